/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/local_daemon.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>

#define LOGINS "/v1/logins"

struct console_values {
	bool opens;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "open", NULL, "open the link in the browser of this machine",
		offsetof(struct console_values, opens)},
	{OPTION_END},
};

/* --- the link --- */

/* Where browsers reach the daemon whose socket we use: as it wrote it down when it began to serve. */
static int read_address(char **ret_url, struct err *err)
{
	auto_free char *dir = local_daemon_data_dir();
	auto_free char *path = mem_printf("%s/run/api.addr", dir);
	FILE *file = fopen(path, "re");
	char line[256] = "";

	if (file) {
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		fclose(file);
	}
	line[strcspn(line, " \n")] = '\0';
	if (!line[0])
		return err_set(err, ERR_UNAVAILABLE, "%s does not say where the daemon is", path);
	*ret_url = mem_printf("%s%s", strstr(line, "://") ? "" : "http://", line);
	return 0;
}

static int find_url(const struct client *client, char **ret_url, struct err *err)
{
	const char *url = client_url(client);

	if (strncmp(url, "http", 4) != 0)
		return read_address(ret_url, err);
	*ret_url = mem_strdup(url);
	return 0;
}

/* What a desktop opens it with; a machine that has none shows the link alone. */
static void open_browser(const char *link)
{
	char *argv[] = {(char *)"xdg-open", (char *)link, NULL};
	extern char **environ;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		cli_note("there is no xdg-open here; open the link yourself");
}

static int print_link(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct console_values *v = call->values;
	json_auto_t *body = json_pack("{s:s}", "path", "/login"), *ticket = NULL, *answer = NULL;
	auto_free char *url = NULL, *link = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = find_url(client, &url, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){
				.method = "POST", .path = "/v1/tickets", .body = body},
			&ticket, err);
	if (r < 0)
		return r;
	link = mem_printf("%s/login?code=%s", url, cli_text(ticket, "ticket"));
	answer = json_pack("{s:s, s:s}", "url", link, "expires_at", cli_text(ticket, "expires_at"));
	cli_print_answer(cli, answer, link);
	if (!cli_wants_json(cli))
		cli_note("it signs one browser in, within a minute");
	if (v->opens)
		open_browser(link);
	return 0;
}

/* --- sessions --- */

static void add_age(struct table *table, const char *time, bool is_ahead)
{
	char text[HUMAN_LEN] = "";
	int64_t wall_ms;

	if (human_parse_time(time, &wall_ms) == 0)
		human_age(is_ahead ? wall_ms - clock_wall_ms() : clock_wall_ms() - wall_ms, text);
	table_add(table, "%s", text);
}

static void print_table(const json_t *logins)
{
	static const char *const heading[] = {
		"ID", "ORGANIZATION", "USER", "FROM", "AGE", "EXPIRES", "USED", "BROWSER"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *login;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)logins, i, login)
	{
		const json_t *owner = json_object_get(login, "owner");

		table_add(&table, "%s", cli_text(login, "id"));
		table_add(&table, "%s", cli_text(owner, "organization"));
		table_add(&table, "%s", cli_text(owner, "user"));
		table_add(&table, "%s", cli_text(login, "address"));
		add_age(&table, cli_text(login, "created_at"), false);
		add_age(&table, cli_text(login, "expires_at"), true);
		add_age(&table, cli_text(login, "last_used_at"), false);
		table_add(&table, "%.40s", cli_text(login, "agent"));
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	json_auto_t *logins = NULL, *document = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, LOGINS, "logins", &logins, err);
	if (r < 0)
		return r;
	document = json_pack("{s:O}", "logins", logins);
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		print_table(logins);
	return 0;
}

static int end(const struct command_call *call, struct err *err)
{
	const char *id = call->argv[0];
	auto_free char *path = mem_printf(LOGINS "/%s", id);
	struct client *client;
	int r = cli_connect(call->cli, &client, err);

	if (r == 0 && (id[strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz")] || !id[0]))
		r = err_set(err, ERR_INVALID, "%.40s is no id of a session", id);
	if (r == 0)
		r = client_json(
			client, &(struct client_call){.method = "DELETE", .path = path}, NULL, err);
	if (r == 0)
		cli_print("%s\n", id);
	return r;
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"", "", 0, 0, print_link},
	{"ls", "", 0, 0, list},
	{"end", "ID", 1, 1, end},
	{0},
};

const struct command cmd_console = {
	.name = "console",
	.operands = "[ls | end ID]",
	.summary = "print a link that opens the console in a browser, signed in",
	.details =
		"The link signs one browser in, once and within a minute, with the rights of the\n"
		"token that the command line uses. ls lists the sessions of browsers, end ends "
		"one.\n\n"
		"  sandlot console\n"
		"  sandlot console ls\n"
		"  sandlot console end 01k9x3c8d0p5w6v7q2t4r1h9ms\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct console_values),
	.min_operands = 0,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.verbs = verbs,
};
