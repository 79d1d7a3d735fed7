/* SPDX-License-Identifier: Apache-2.0 */
/* sandlot audit ls, sandlot audit verify. */
#include "cli/command.h"
#include "cli/remote/query.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

#include <string.h>

#define PAGE_MAX    1000
#define LIMIT	    50
#define EXIT_BROKEN 1 /* the log was tampered with */

struct audit_values {
	const char *organization, *user, *action, *object, *head;
	struct option_number limit;
};

static const struct option options[] = {
	{OPTION_TEXT, 'a', "action", "NAME", "ls: only this action, such as sandbox.create",
		offsetof(struct audit_values, action)},
	{OPTION_TEXT, 0, "head", "N:HASH", "verify: this entry, noted earlier, must still be there",
		offsetof(struct audit_values, head)},
	{OPTION_NUMBER, 'n', "limit", "N", "ls: how many, 50 unless told; 0 for all",
		offsetof(struct audit_values, limit)},
	{OPTION_TEXT, 0, "object", "ID",
		"ls: only what was done to this sandbox (or secret, token, template)",
		offsetof(struct audit_values, object)},
	{OPTION_TEXT, 0, "organization", "NAME", "ls: only of this one; for administrators",
		offsetof(struct audit_values, organization)},
	{OPTION_TEXT, 'u', "user", "NAME", "ls: only what this user did",
		offsetof(struct audit_values, user)},
	{OPTION_END},
};

/* --- ls --- */

static int fetch_page(struct client *client, const struct audit_values *values, uint64_t limit,
	const char *cursor, json_t **ret, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(16384);
	auto_free char *path = NULL;
	char number[24];

	snprintf(number, sizeof(number), "%llu",
		(unsigned long long)(limit < PAGE_MAX ? limit : PAGE_MAX));
	buf_append_str(&target, "/v1/audit");
	query_add(&target, "limit", number);
	query_add(&target, "organization", values->organization);
	query_add(&target, "user", values->user);
	query_add(&target, "action", values->action);
	query_add(&target, "object", values->object);
	query_add(&target, "cursor", cursor);
	if (target.failed)
		return err_set(err, ERR_INVALID, "the filter is too long");
	path = buf_take_str(&target);
	return client_json(client, &(struct client_call){.method = "GET", .path = path}, ret, err);
}

static void add_entry(struct table *table, const json_t *entry)
{
	const char *code = cli_text(entry, "code");

	table_add(table, "%lld", (long long)json_integer_value(json_object_get(entry, "sequence")));
	table_add(table, "%s", cli_text(entry, "at"));
	table_add(table, "%s%s%s", cli_text(entry, "organization"),
		cli_text(entry, "user")[0] ? "/" : "", cli_text(entry, "user"));
	table_add(table, "%s", cli_text(entry, "from"));
	table_add(table, "%s", cli_text(entry, "action"));
	table_add(table, "%s", cli_text(entry, "object"));
	table_add(table, "%lld%s%s",
		(long long)json_integer_value(json_object_get(entry, "status")), code[0] ? " " : "",
		code);
	table_add(table, "%s", cli_text(entry, "detail"));
}

static void print_entries(const json_t *entries)
{
	static const char *const heading[] = {
		"ENTRY", "AT", "WHO", "FROM", "ACTION", "OBJECT", "RESULT", "DETAIL"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *entry;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(entries, i, entry) add_entry(&table, entry);
	table_print(&table, stdout);
}

/*
 * The log names sandboxes by their ids. What is no sandbox, or is one that is gone, is looked for as it was typed.
 */
static int find_object(struct client *client, struct audit_values *values,
	char id[RESOLVE_ID_LEN + 1], struct err *err)
{
	int r;

	if (!values->object)
		return 0;
	r = resolve_left(client, values->object, id, err);
	if (r == 0)
		values->object = id;
	else if (err->kind != ERR_NOT_FOUND &&
		 (err->kind != ERR_INVALID || strcmp(err->code, "ambiguous_id") == 0))
		return r;
	return 0;
}

static int list(struct cli *cli, const struct audit_values *given, struct err *err)
{
	struct audit_values filter = *given, *values = &filter;
	uint64_t left = values->limit.is_set ? values->limit.value : LIMIT;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *all = json_array();
	auto_free char *cursor = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = find_object(client, values, id, err);
	if (left == 0)
		left = UINT64_MAX;
	while (r == 0 && left > 0) {
		json_auto_t *page = NULL;
		const char *next;

		r = fetch_page(client, values, left, cursor, &page, err);
		if (r < 0)
			return r;
		json_array_extend(all, json_object_get(page, "entries"));
		left -= json_array_size(json_object_get(page, "entries"));
		next = json_string_value(json_object_get(page, "next_cursor"));
		if (!next)
			break;
		free(cursor);
		cursor = mem_strdup(next);
	}
	if (r == 0 && cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "entries", all);

		cli_print_json(document);
	} else if (r == 0) {
		print_entries(all);
	}
	return r;
}

/* --- verify --- */

static const struct {
	const char *kind, *sentence;
} flaws[] = {
	{"changed", "is not what was written, or not in its place"},
	{"missing", "is missing"},
	{"cut", "and all after it were cut off"},
	{"rewritten", "is not the one that was there"},
};

static int print_report(const json_t *report)
{
	const json_t *flaw = json_object_get(report, "flaw");
	const char *kind = cli_text(flaw, "kind"), *sentence = kind;

	if (json_is_true(json_object_get(report, "ok"))) {
		cli_print("the audit log is whole: %lld entries\nhead  %s\n",
			(long long)json_integer_value(json_object_get(report, "entries")),
			cli_text(report, "head"));
		return 0;
	}
	for (size_t i = 0; i < array_len(flaws); i++) {
		if (strcmp(flaws[i].kind, kind) == 0)
			sentence = flaws[i].sentence;
	}
	cli_print("the audit log is BROKEN: entry %lld %s\n",
		(long long)json_integer_value(json_object_get(flaw, "sequence")), sentence);
	return EXIT_BROKEN;
}

static int verify(struct cli *cli, const struct audit_values *values, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(1024);
	auto_free char *path = NULL;
	json_auto_t *report = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r < 0)
		return r;
	buf_append_str(&target, "/v1/audit/verify");
	query_add(&target, "head", values->head);
	path = buf_take_str(&target);
	r = client_json(client, &(struct client_call){.method = "GET", .path = path}, &report, err);
	if (r < 0)
		return r;
	if (!cli_wants_json(cli))
		return print_report(report);
	cli_print_json(report);
	return json_is_true(json_object_get(report, "ok")) ? 0 : EXIT_BROKEN;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)argc;
	if (strcmp(argv[0], "ls") == 0)
		return list(cli, values, err);
	if (strcmp(argv[0], "verify") == 0)
		return verify(cli, values, err);
	return err_set(err, ERR_INVALID, "audit can do ls and verify, not \"%s\"", argv[0]);
}

const struct command cmd_audit = {
	.name = "audit",
	.operands = "ls|verify",
	.summary = "show who did what, or check that nobody changed that",
	.details = "  sandlot audit ls --object 01k9...\n"
		   "  sandlot audit verify --head 4711:8d5e...\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct audit_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
