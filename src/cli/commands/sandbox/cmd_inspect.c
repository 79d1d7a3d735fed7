/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

static void add_value(struct table *table, const char *name, const json_t *value);

static void add_member(struct table *table, const char *name, const char *key, const json_t *member)
{
	auto_free char *path = mem_printf("%s%s%s", name, name[0] ? "." : "", key);

	add_value(table, path, member);
}

/* What tells an entry of a list from the others; "" if nothing does. */
static const char *key_of(const json_t *entry)
{
	return json_object_get(entry, "role")	? "role"
	       : json_object_get(entry, "name") ? "name"
						: "";
}

/* The lines of a list whose entries have names or roles, such as start commands and members; false if it is none. */
static bool add_named(struct table *table, const char *name, const json_t *list)
{
	json_t *member;
	size_t i;

	if (json_array_size(list) == 0)
		return false;
	json_array_foreach((json_t *)list, i, member)
	{
		if (!json_is_string(json_object_get(member, key_of(member))))
			return false;
	}
	json_array_foreach((json_t *)list, i, member)
	{
		json_auto_t *rest = json_copy(member);

		json_object_del(rest, key_of(member));
		add_member(table, name, cli_text(member, key_of(member)), rest);
	}
	return true;
}

/* One line for each value, with a dotted name for what lies deeper: easy to read and to grep. */
static void add_value(struct table *table, const char *name, const json_t *value)
{
	auto_free char *text = NULL;
	const char *key;
	json_t *member;

	if (json_is_object(value) && json_object_size(value) > 0) {
		json_object_foreach((json_t *)value, key, member)
			add_member(table, name, key, member);
		return;
	}
	if (add_named(table, name, value))
		return;
	table_add(table, "%s", name);
	if (json_is_string(value)) {
		table_add(table, "%s", json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
	table_add(table, "%s", json_is_null(value) || json_is_object(value) || !text ? "" : text);
}

static int show(struct cli *cli, const char *text, struct err *err)
{
	auto_(table_fini) struct table table = TABLE_INIT(2);
	json_auto_t *document = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = resolve_get(client, text, "", &document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(document);
		return 0;
	}
	add_value(&table, "", document);
	table_print(&table, stdout);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	(void)values;
	for (int i = 0; i < argc; i++) {
		int r;

		if (i > 0 && !cli_wants_json(cli))
			putchar('\n');
		r = show(cli, argv[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct command cmd_inspect = {
	.name = "inspect",
	.operands = "ID...",
	.summary = "show everything about sandboxes",
	.details = "  sandlot inspect 01k9\n"
		   "  sandlot inspect -o json 01k9 | jq .termination\n",
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
