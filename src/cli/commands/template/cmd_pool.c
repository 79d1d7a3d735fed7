/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

static long long number(const json_t *pool, const char *name)
{
	return (long long)json_integer_value(json_object_get(pool, name));
}

static void add_owner(struct table *table, const json_t *owner)
{
	if (json_is_object(owner))
		table_add(table, "%s/%s", cli_text(owner, "organization"), cli_text(owner, "user"));
	else
		table_add(table, "everybody");
}

static void print_table(const json_t *document)
{
	static const char *const heading[] = {
		"TEMPLATE", "OWNER", "SIZE", "READY", "WARMING", "HITS", "MISSES", "ERROR"};
	static const char *const numbers[] = {"size", "ready", "warming", "hits", "misses"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *pool, *held = json_object_get(document, "held_because");
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach(json_object_get(document, "pools"), i, pool)
	{
		table_add(&table, "%s", cli_text(pool, "template"));
		add_owner(&table, json_object_get(pool, "owner"));
		for (size_t j = 0; j < array_len(numbers); j++)
			table_add(&table, "%lld", number(pool, numbers[j]));
		table_add(&table, "%s", cli_text(pool, "error"));
	}
	table_print(&table, stdout);
	if (json_is_string(held))
		cli_note("pools are not filled: %s", json_string_value(held));
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	json_auto_t *document = NULL;
	struct client *client;
	int r;

	(void)values;
	if (argc > 0 && strcmp(argv[0], "ls") != 0)
		return err_set(err, ERR_INVALID, "pool has ls alone, not %.40s", argv[0]);
	r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = "/v1/pools"},
			&document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		print_table(document);
	return 0;
}

const struct command cmd_pool = {
	.name = "pool",
	.operands = "[ls]",
	.summary = "show the sandboxes that wait for a create",
	.details = "For administrators. Sizes are set with \"sandlot template update --pool\", and "
		   "with the setting\npool for the templates host and browser.\n\n"
		   "  sandlot template update web --pool 4\n"
		   "  sandlot pool ls\n",
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.run = run,
};
