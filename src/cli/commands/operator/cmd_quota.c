/* SPDX-License-Identifier: Apache-2.0 */
/* sandlot quota show, ls, set, rm. */
#include "base/format.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <string.h>

static int path_of(const char *whom, char **ret_path, struct err *err)
{
	const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
	const char *slash = strchr(whom, '/');

	if (whom[strspn(whom, plain)] || !whom[0] || whom[0] == '/' ||
		(slash && (!slash[1] || strchr(slash + 1, '/'))))
		return err_set(err, ERR_INVALID,
			"\"%s\" is neither ORGANIZATION nor ORGANIZATION/USER", whom);
	*ret_path = mem_printf("/v1/quotas/%s", whom);
	return 0;
}

static void add_amount(struct table *table, const json_t *amount)
{
	char text[HUMAN_LEN];
	uint64_t bytes;

	/* A size: the exact one is in the JSON. */
	if (json_is_string(amount) && human_parse_bytes(json_string_value(amount), &bytes) == 0) {
		format_size(bytes, text);
		table_add(table, "%s", text);
	} else if (json_is_string(amount))
		table_add(table, "%s", json_string_value(amount));
	else if (json_is_number(amount))
		table_add(table, "%g", json_number_value(amount));
	else
		table_add(table, "-");
}

static void add_quota(struct table *table, const json_t *quota)
{
	const char *organization = json_string_value(json_object_get(quota, "organization"));
	const char *user = json_string_value(json_object_get(quota, "user"));
	const json_t *used = json_object_get(quota, "used");
	const char *name;
	json_t *limit;

	json_object_foreach(json_object_get(quota, "limits"), name, limit)
	{
		table_add(table, "%s%s%s", organization ? organization : "", user ? "/" : "",
			user ? user : "");
		table_add(table, "%s", name);
		add_amount(table, limit);
		add_amount(table, json_object_get(used, name));
	}
	table_add(table, "%s%s%s", organization ? organization : "", user ? "/" : "",
		user ? user : "");
	table_add(table, "dangerous_commands");
	table_add(table, "%s", cli_text(quota, "dangerous_commands"));
	table_add(table, "-");
}

static void print(struct cli *cli, const json_t *answer)
{
	static const char *const heading[] = {"WHO", "QUOTA", "LIMIT", "USED"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *quotas = json_object_get(answer, "quotas"), *quota;
	size_t i;

	if (cli_wants_json(cli)) {
		cli_print_json(answer);
		return;
	}
	table_add_row(&table, heading);
	json_array_foreach(quotas, i, quota) add_quota(&table, quota);
	if (!quotas)
		add_quota(&table, answer);
	table_print(&table, stdout);
}

static int show(struct cli *cli, const char *whom, struct err *err)
{
	auto_free char *path = NULL;
	json_auto_t *answer = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0 && whom)
		r = path_of(whom, &path, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "GET", .path = path ? path : "/v1/quotas"},
			&answer, err);
	if (r == 0)
		print(cli, answer);
	return r;
}

static void add_owner(struct table *table, const json_t *quota)
{
	static const char *const names[] = {"sandboxes", "running", "cpu", "memory", "disk"};
	const json_t *used = json_object_get(quota, "used");

	table_add(table, "%s/%s", cli_text(quota, "organization"), cli_text(quota, "user"));
	for (size_t i = 0; i < array_len(names); i++)
		add_amount(table, json_object_get(used, names[i]));
	table_add(table, "%s", json_is_true(json_object_get(quota, "is_set")) ? "own" : "default");
}

/* All pages. */
static int list_owners(struct cli *cli, struct err *err)
{
	static const char *const heading[] = {
		"OWNER", "SANDBOXES", "RUNNING", "CPU", "MEMORY", "DISK", "QUOTA"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	json_auto_t *owners = NULL;
	const json_t *quota;
	struct client *client;
	size_t i;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, "/v1/owners", "owners", &owners, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "owners", owners);

		cli_print_json(document);
		return 0;
	}
	table_add_row(&table, heading);
	json_array_foreach(owners, i, quota) add_owner(&table, quota);
	table_print(&table, stdout);
	return 0;
}

/* "memory=8Gi", "running=5", "cpu=2.5", "disk=none": a number where it is one. */
static int add_limit(json_t *body, const char *text, struct err *err)
{
	const char *equals = strchr(text, '=');
	auto_free char *name = NULL;
	uint64_t number;
	double real;
	char *end;

	if (!equals)
		return err_set(err, ERR_INVALID, "\"%s\" is not NAME=LIMIT", text);
	name = mem_printf("%.*s", (int)(equals - text), text);
	real = strtod(equals + 1, &end);
	if (strcmp(equals + 1, "none") == 0)
		json_object_set_new(body, name, json_null());
	else if (number_parse(equals + 1, 0, INT64_MAX, &number) == 0)
		json_object_set_new(body, name, json_integer((json_int_t)number));
	else if (end > equals + 1 && !*end)
		json_object_set_new(body, name, json_real(real));
	else
		json_object_set_new(body, name, json_string(equals + 1));
	return 0;
}

static int set(struct cli *cli, int argc, char **argv, struct err *err)
{
	json_auto_t *body = json_object(), *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = path_of(argv[0], &path, err);
	for (int i = 1; i < argc && r == 0; i++)
		r = add_limit(body, argv[i], err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "PUT", .path = path, .body = body}, &answer,
			err);
	if (r == 0)
		print(cli, answer);
	return r;
}

static int unset(struct cli *cli, const char *whom, struct err *err)
{
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = path_of(whom, &path, err);
	if (r == 0)
		r = client_json(
			client, &(struct client_call){.method = "DELETE", .path = path}, NULL, err);
	return r;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	if (strcmp(argv[0], "show") == 0 && argc <= 2)
		return show(cli, argc > 1 ? argv[1] : NULL, err);
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return list_owners(cli, err);
	if (strcmp(argv[0], "set") == 0 && argc >= 2)
		return set(cli, argc - 1, argv + 1, err);
	if (strcmp(argv[0], "rm") == 0 && argc == 2)
		return unset(cli, argv[1], err);
	return err_explain(err, ERR_INVALID, NULL, "see \"sandlot quota --help\"",
		"quota can do show [WHOM], ls, set WHOM NAME=LIMIT..., and rm WHOM");
}

const struct command cmd_quota = {
	.name = "quota",
	.operands = "show|ls|set|rm [ORGANIZATION[/USER]] [NAME=LIMIT...]",
	.summary = "show and set how much organizations and users may have",
	.details = "  sandlot quota show\n"
		   "  sandlot quota ls\n"
		   "  sandlot quota set acme sandboxes=50 memory=64Gi disk=none\n"
		   "  sandlot quota set acme/ann running=5 creates_per_minute=30\n"
		   "  sandlot quota set acme/ann dangerous_commands=confirm\n"
		   "  sandlot quota rm acme/ann\n\n"
		   "Setting replaces all that was set; what is not named is as the daemon's "
		   "settings say.\n",
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
