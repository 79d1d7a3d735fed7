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
	if (r < 0)
		return r;
	r = resolve_among(list, text, id, err);
	if (r == 0 || err->kind != ERR_NOT_FOUND)
		return r;
	return err_explain(err, ERR_NOT_FOUND, "snapshot_not_found",
		"\"sandlot snapshot ls\" shows those there are",
		"there is no snapshot whose id begins or ends with \"%.64s\"", text);
}

static int create(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct snapshot_values *v = call->values;
	const char *sandbox = call->argv[0];
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
	cli_print_answer(cli, answer, cli_text(answer, "id"));
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

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct snapshot_values *v = call->values;
	const char *sandbox = call->argc > 0 ? call->argv[0] : NULL;
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

static int request(struct client *client, const char *method, const char *text, json_t **ret_answer,
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

static int show(const struct command_call *call, struct err *err)
{
	json_auto_t *snapshot = NULL;
	struct client *client;
	int r = cli_connect(call->cli, &client, err);

	if (r == 0)
		r = request(client, "GET", call->argv[0], &snapshot, err);
	if (r == 0)
		cli_print_json(snapshot);
	return r;
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int remove_all(const struct command_call *call, struct err *err)
{
	struct client *client;
	int code = 0;
	int r = cli_connect(call->cli, &client, err);

	if (r < 0)
		return r;
	for (int i = 0; i < call->argc; i++) {
		if (request(client, "DELETE", call->argv[i], NULL, err) < 0) {
			cli_complain(err, call->argv[i]);
			code = cli_exit_code(err);
		} else {
			cli_print("%s\n", call->argv[i]);
		}
	}
	return code;
}

static int restore(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const char *sandbox = call->argv[0], *text = call->argv[1];
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
	cli_print_answer(cli, answer, id);
	return 0;
}

static const struct command_verb verbs[] = {
	{"create", "SANDBOX", 1, 1, create},
	{"ls", "[SANDBOX]", 0, 1, list},
	{"show", "SNAPSHOT", 1, 1, show},
	{"rm", "SNAPSHOT...", 1, COMMAND_ANY, remove_all},
	{"restore", "SANDBOX SNAPSHOT", 2, 2, restore},
	{0},
};

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
	.verbs = verbs,
};
