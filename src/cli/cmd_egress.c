/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/create_spec.h"
#include "cli/human.h"
#include "cli/resolve.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

struct egress_options {
	const char *network;
	struct option_list allow, secrets;
	bool learn;
};

#define AT(field) offsetof(struct egress_options, field)

static const struct option options[] = {
	{OPTION_CHOICE, 0, "network", "MODE", "change the mode: none, allowlist or internet",
		AT(network), "none allowlist internet"},
	{OPTION_LIST, 0, "allow", "RULE", "change the list of what is allowed; may be repeated",
		AT(allow)},
	{OPTION_LIST, 0, "secret", "NAME",
		"change the list of secrets that its requests are given; may be repeated",
		AT(secrets)},
	{OPTION_FLAG, 0, "learn", NULL, "print only what was reached, as the rules of an allowlist",
		AT(learn)},
	{OPTION_END},
};

static int fetch(struct client *client, const char *id, json_t **ret_report, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/network", id);

	return client_json(
		client, &(struct client_call){.method = "GET", .path = path}, ret_report, err);
}

/* What is not named stays; a list of what is allowed is the mode allowlist, unless another is named. */
static int change(
	struct client *client, const char *id, const struct egress_options *wanted, struct err *err)
{
	const char *mode =
		!wanted->network && wanted->allow.count > 0 ? "allowlist" : wanted->network;
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id);
	json_auto_t *body = json_object(), *report = NULL, *answer = NULL;
	int r = create_spec_network(mode, &wanted->allow, &wanted->secrets, body, err);

	if (r < 0 || json_object_size(body) == 0)
		return r;
	r = fetch(client, id, &report, err);
	if (r < 0)
		return r;
	json_object_update_missing(
		json_object_get(body, "network"), json_object_get(report, "policy"));
	return client_json(client,
		&(struct client_call){.method = "PATCH", .path = path, .body = body}, &answer, err);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "-";
}

static long long number_of(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

static void print_list(const char *label, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		printf("%-12s %s\n", i == 0 ? label : "", json_string_value(item));
}

static void print_denials(const json_t *denials)
{
	auto_(table_fini) struct table table = TABLE_INIT(4);
	const json_t *denial;
	size_t i;

	if (json_array_size(denials) == 0)
		return;
	table_add(&table, "%s", "DENIED");
	table_add(&table, "%s", "TIMES");
	table_add(&table, "%s", "REASON");
	table_add(&table, "%s", "RULE THAT WOULD ALLOW IT");
	json_array_foreach(denials, i, denial)
	{
		table_add(&table, "%s", text_of(denial, "target"));
		table_add(&table, "%lld", number_of(denial, "count"));
		table_add(&table, "%s", text_of(denial, "reason"));
		table_add(&table, "%s", text_of(denial, "rule"));
	}
	printf("\n");
	table_print(&table, stdout);
}

static void print_report(const json_t *report)
{
	const json_t *policy = json_object_get(report, "policy");
	char sent[HUMAN_LEN], received[HUMAN_LEN];

	human_bytes((uint64_t)number_of(report, "tx_bytes"), sent);
	human_bytes((uint64_t)number_of(report, "rx_bytes"), received);
	printf("%-12s %s\n", "mode", text_of(policy, "mode"));
	print_list("allow", json_object_get(policy, "allow"));
	print_list("secrets", json_object_get(policy, "secrets"));
	printf("%-12s %s sent, %s received, %lld connections (%lld open), %lld denied\n", "traffic",
		sent, received, number_of(report, "connections"),
		number_of(report, "open_connections"), number_of(report, "denied"));
	print_list("reached", json_object_get(report, "reached"));
	print_denials(json_object_get(report, "denials"));
}

static void print_rules(const json_t *report)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(report, "reached"), i, rule)
		printf("%s\n", json_string_value(rule));
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct egress_options *wanted = values;
	json_auto_t *report = NULL;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r == 0)
		r = change(client, id, wanted, err);
	if (r == 0)
		r = fetch(client, id, &report, err);
	if (r < 0)
		return r;
	if (wanted->learn)
		print_rules(report);
	else if (cli_wants_json(cli))
		cli_print_json(report);
	else
		print_report(report);
	return 0;
}

const struct command cmd_egress = {
	.name = "egress",
	.operands = "ID",
	.summary = "show or change what a sandbox may reach, and what it tried",
	.details =
		"Shows the policy, what was reached and what was refused, each with the rule that\n"
		"would allow it. A change acts at once, also on open connections.\n\n"
		"To learn an allowlist, run with --network internet and print what was used:\n"
		"  sandlot egress ID --learn\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct egress_options),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
