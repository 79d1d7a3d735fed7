/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define SNAPSHOTS "/v1/snapshots"
#define MIB	  (1024.0 * 1024.0)

struct snapshot_values {
	const char *name;
	bool quiet;
};

static const struct option options[] = {
	{OPTION_TEXT, 0, "name", "TEXT", "create: a few words of your own",
		offsetof(struct snapshot_values, name)},
	{OPTION_FLAG, 'q', "quiet", NULL, "ls: only ids", offsetof(struct snapshot_values, quiet)},
	{OPTION_END},
};

static int fetch(struct client *client, const char *sandbox, json_t **ret_list, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1] = "";
	auto_free char *path = NULL;
	int r = 0;

	/* The sandbox of a snapshot may be gone. */
	if (sandbox && resolve_is_whole(sandbox))
		snprintf(id, sizeof(id), "%s", sandbox);
	else if (sandbox)
		r = resolve_left(client, sandbox, id, err);
	if (r < 0)
		return r;
	path = id[0] ? mem_printf(SNAPSHOTS "?sandbox=%s", id) : mem_strdup(SNAPSHOTS);
	return listing_fetch_all(client, path, "snapshots", ret_list, err);
}

/* A whole id needs no list. */
static int find(
	struct client *client, const char *text, char id[RESOLVE_ID_LEN + 1], struct err *err)
{
	json_auto_t *list = NULL;
	int r;

	if (resolve_is_whole(text)) {
		snprintf(id, RESOLVE_ID_LEN + 1, "%s", text);
		return 0;
	}
	r = fetch(client, NULL, &list, err);
	return r < 0 ? r : resolve_among(list, text, id, err);
}

static int create(
	struct cli *cli, const struct snapshot_values *v, const char *sandbox, struct err *err)
{
	json_auto_t *body = v->name ? json_pack("{s:s}", "name", v->name) : json_object();
	json_auto_t *answer = NULL;
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0 && !body)
		r = err_set(err, ERR_INVALID, "--name is not UTF-8 text");
	if (r == 0)
		r = resolve_id(client, sandbox, id, err);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/snapshots", id);
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_print("%s\n", cli_text(answer, "id"));
	return 0;
}

static void print_table(const json_t *snapshots)
{
	static const char *const heading[] = {"ID", "SANDBOX", "TEMPLATE", "SIZE", "AGE", "NAME"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *one;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)snapshots, i, one)
	{
		table_add(&table, "%s", cli_text(one, "id"));
		table_add(&table, "%s", cli_text(one, "sandbox_id"));
		table_add(&table, "%s", cli_text(one, "template"));
		table_add(&table, "%.1f MiB",
			(double)json_integer_value(json_object_get(one, "size")) / MIB);
		table_add_age(&table, cli_text(one, "created_at"));
		table_add(&table, "%s",
			json_is_true(json_object_get(one, "checkpoint")) ? "(checkpoint)"
									 : cli_text(one, "name"));
	}
	table_print(&table, stdout);
}

static int list(
	struct cli *cli, const struct snapshot_values *v, const char *sandbox, struct err *err)
{
	json_auto_t *snapshots = NULL;
	struct client *client;
	const json_t *one;
	size_t i;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = fetch(client, sandbox, &snapshots, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(snapshots);
	} else if (v->quiet) {
		json_array_foreach(snapshots, i, one) cli_print("%s\n", cli_text(one, "id"));
	} else {
		print_table(snapshots);
	}
	return 0;
}

static int call(struct client *client, const char *method, const char *text, json_t **ret_answer,
	struct err *err)
{
	char id[RESOLVE_ID_LEN + 1];
	auto_free char *path = NULL;
	int r = find(client, text, id, err);

	if (r < 0)
		return r;
	path = mem_printf(SNAPSHOTS "/%s", id);
	return client_json(
		client, &(struct client_call){.method = method, .path = path}, ret_answer, err);
}

static int show(struct cli *cli, const char *text, struct err *err)
{
	json_auto_t *snapshot = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = call(client, "GET", text, &snapshot, err);
	if (r == 0)
		cli_print_json(snapshot);
	return r;
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int remove_all(struct cli *cli, int count, char **texts, struct err *err)
{
	struct client *client;
	int code = 0;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	for (int i = 0; i < count; i++) {
		if (call(client, "DELETE", texts[i], NULL, err) < 0) {
			cli_complain(err, texts[i]);
			code = cli_exit_code(err);
		} else {
			cli_print("%s\n", texts[i]);
		}
	}
	return code;
}

static int restore(struct cli *cli, const char *sandbox, const char *text, struct err *err)
{
	char id[RESOLVE_ID_LEN + 1], snapshot[RESOLVE_ID_LEN + 1];
	json_auto_t *body = NULL, *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = resolve_id(client, sandbox, id, err);
	if (r == 0)
		r = find(client, text, snapshot, err);
	if (r < 0)
		return r;
	body = json_pack("{s:s}", "snapshot", snapshot);
	path = mem_printf("/v1/sandboxes/%s/restore", id);
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_print("%s\n", id);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	if (strcmp(argv[0], "create") == 0 && argc == 2)
		return create(cli, values, argv[1], err);
	if (strcmp(argv[0], "ls") == 0 && argc <= 2)
		return list(cli, values, argc == 2 ? argv[1] : NULL, err);
	if (strcmp(argv[0], "show") == 0 && argc == 2)
		return show(cli, argv[1], err);
	if (strcmp(argv[0], "rm") == 0 && argc >= 2)
		return remove_all(cli, argc - 1, argv + 1, err);
	if (strcmp(argv[0], "restore") == 0 && argc == 3)
		return restore(cli, argv[1], argv[2], err);
	return err_explain(err, ERR_INVALID, NULL, "see \"sandlot snapshot --help\"",
		"snapshot can do create SANDBOX, ls [SANDBOX], show SNAPSHOT, rm SNAPSHOT..., and "
		"restore SANDBOX SNAPSHOT");
}

const struct command cmd_snapshot = {
	.name = "snapshot",
	.operands = "create|ls|show|rm|restore [SANDBOX] [SNAPSHOT]",
	.summary = "keep a copy of all files of a sandbox, and go back to it",
	.details =
		"A snapshot has the files of the system and of the workspace as they are at one\n"
		"moment. It outlives its sandbox. restore gives a sandbox the files of a\n"
		"snapshot: what it has written since is lost, and what runs in it ends.\n\n"
		"  sandlot snapshot create web --name 'before the upgrade'\n"
		"  sandlot snapshot ls web\n"
		"  sandlot snapshot restore web 01k9\n"
		"  sandlot create --snapshot 01k9abcdefghjkmnpqrstvwxyz\n"
		"  sandlot snapshot rm 01k9\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct snapshot_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
