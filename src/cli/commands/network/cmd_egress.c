/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"
#include "cli/command.h"
#include "cli/remote/resolve.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

struct egress_options {
	const char *network;
	struct option_list allow, set, remove, secrets;
	bool learn;
};

#define AT(field) offsetof(struct egress_options, field)

static const struct option options[] = {
	{OPTION_LIST, 0, "allow", "RULE", "add a rule to what is allowed; may be repeated",
		AT(allow)},
	{OPTION_CHOICE, 0, "mode", "MODE", "change the mode: none, allowlist or internet",
		AT(network), "none allowlist internet"},
	{OPTION_CHOICE, 0, "network", "MODE", "the same as --mode", AT(network),
		"none allowlist internet"},
	{OPTION_LIST, 0, "remove", "RULE", "take a rule or secret away; may be repeated",
		AT(remove)},
	{OPTION_LIST, 0, "secret", "NAME",
		"add a secret that its requests are given; may be repeated", AT(secrets)},
	{OPTION_LIST, 0, "set", "RULE", "put this in the place of all rules; may be repeated",
		AT(set)},
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

static bool is_in(const json_t *list, const char *text, size_t *ret_index)
{
	const json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item)
	{
		if (json_is_string(item) && strcmp(json_string_value(item), text) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static int add_all(json_t *list, const struct option_list *items, struct err *err)
{
	size_t ignored;

	for (size_t i = 0; i < items->count; i++) {
		if (!is_in(list, items->items[i], &ignored) &&
			json_array_append_new(list, json_string(items->items[i])) < 0)
			return err_set(err, ERR_INVALID, "a rule is not UTF-8 text");
	}
	return 0;
}

static int remove_all(
	json_t *rules, json_t *secrets, const struct option_list *items, struct err *err)
{
	for (size_t i = 0; i < items->count; i++) {
		size_t at;

		if (is_in(rules, items->items[i], &at))
			json_array_remove(rules, at);
		else if (is_in(secrets, items->items[i], &at))
			json_array_remove(secrets, at);
		else
			return err_explain(err, ERR_NOT_FOUND, "rule_not_found",
				"\"sandlot egress ID\" shows those there are",
				"there is no rule or secret \"%s\" to remove", items->items[i]);
	}
	return 0;
}

/* A list of the policy, to be changed. */
static json_t *list_of(json_t *policy, const char *name)
{
	if (!json_is_array(json_object_get(policy, name)))
		json_object_set_new(policy, name, json_array());
	return json_object_get(policy, name);
}

/* A rule adds: the mode stays, unless nothing at all is allowed, when a rule would mean nothing. */
static void choose_mode(json_t *policy, const struct egress_options *wanted)
{
	bool has_rules = wanted->allow.count + wanted->set.count > 0;
	const char *mode = json_string_value(json_object_get(policy, "mode"));

	if (wanted->network) {
		json_object_set_new(policy, "mode", json_string(wanted->network));
	} else if (has_rules && mode && strcmp(mode, "none") == 0) {
		json_object_set_new(policy, "mode", json_string("allowlist"));
		cli_note("the mode was none and is allowlist now");
	}
}

static int change(
	struct client *client, const char *id, const struct egress_options *wanted, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id);
	json_auto_t *report = NULL, *answer = NULL, *body = NULL;
	json_t *policy, *rules, *secrets;
	int r;

	if (!wanted->network && wanted->allow.count + wanted->set.count + wanted->remove.count +
						wanted->secrets.count ==
					0)
		return 0;
	r = fetch(client, id, &report, err);
	if (r < 0)
		return r;
	policy = json_object_get(report, "policy");
	rules = list_of(policy, "allow");
	secrets = list_of(policy, "secrets");
	if (wanted->set.count > 0)
		json_array_clear(rules);
	r = remove_all(rules, secrets, &wanted->remove, err);
	if (r == 0)
		r = add_all(rules, &wanted->set, err);
	if (r == 0)
		r = add_all(rules, &wanted->allow, err);
	if (r == 0)
		r = add_all(secrets, &wanted->secrets, err);
	if (r < 0)
		return r;
	choose_mode(policy, wanted);
	body = json_pack("{s:O}", "network", policy);
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
		cli_print("%-12s %s\n", i == 0 ? label : "", json_string_value(item));
}

static void print_denials(const char *sandbox, const json_t *denials)
{
	auto_(table_fini) struct table table = TABLE_INIT(4);
	const json_t *denied_syscall;
	size_t i;

	if (json_array_size(denials) == 0)
		return;
	table_add(&table, "%s", "DENIED");
	table_add(&table, "%s", "TIMES");
	table_add(&table, "%s", "REASON");
	table_add(&table, "%s", "RULE THAT WOULD ALLOW IT");
	json_array_foreach(denials, i, denied_syscall)
	{
		table_add(&table, "%s", text_of(denied_syscall, "target"));
		table_add(&table, "%lld", number_of(denied_syscall, "count"));
		table_add(&table, "%s", text_of(denied_syscall, "reason"));
		table_add(&table, "%s", text_of(denied_syscall, "rule"));
	}
	printf("\n");
	table_print(&table, stdout);
	printf("\nTo add a rule to those there are: sandlot egress %s --allow RULE\n", sandbox);
}

static void print_lookups(const json_t *lookups)
{
	auto_(table_fini) struct table table = TABLE_INIT(3);
	const json_t *failed;
	size_t i;

	if (json_array_size(lookups) == 0)
		return;
	table_add(&table, "%s", "NOT FOUND");
	table_add(&table, "%s", "TIMES");
	table_add(&table, "%s", "WHY");
	json_array_foreach(lookups, i, failed)
	{
		bool is_unknown = strcmp(text_of(failed, "cause"), "no_such_name") == 0;

		table_add(&table, "%s", text_of(failed, "name"));
		table_add(&table, "%lld", number_of(failed, "count"));
		table_add(&table, "%s",
			is_unknown ? "the name servers know no such name"
				   : "no name server of the daemon's host answers");
	}
	printf("\n");
	table_print(&table, stdout);
}

/* sandbox: as the user called it. */
static void print_report(const char *sandbox, const json_t *report)
{
	const json_t *policy = json_object_get(report, "policy");
	char sent[HUMAN_LEN], received[HUMAN_LEN];

	format_size((uint64_t)number_of(report, "tx_bytes"), sent);
	format_size((uint64_t)number_of(report, "rx_bytes"), received);
	cli_print("%-12s %s\n", "mode", text_of(policy, "mode"));
	print_list("allow", json_object_get(policy, "allow"));
	print_list("secrets", json_object_get(policy, "secrets"));
	printf("%-12s %s sent, %s received, %lld connections (%lld open), %lld denied\n", "traffic",
		sent, received, number_of(report, "connections"),
		number_of(report, "open_connections"), number_of(report, "denied"));
	print_list("reached", json_object_get(report, "reached"));
	print_denials(sandbox, json_object_get(report, "denials"));
	print_lookups(json_object_get(report, "failed_lookups"));
}

static void print_rules(const json_t *report)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(report, "reached"), i, rule)
		cli_print("%s\n", json_string_value(rule));
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
		print_report(argv[0], report);
	return 0;
}

const struct command cmd_egress = {
	.name = "egress",
	.operands = "ID",
	.summary = "show or change what a sandbox may reach, and what it tried",
	.details =
		"Shows the policy, what was reached and what was refused, each with the rule that\n"
		"would allow it. A change acts at once, also on open connections; what is not "
		"named stays.\n\n"
		"  sandlot egress ID --allow packages.example.org --allow files.example.org\n"
		"  sandlot egress ID --remove packages.example.org\n"
		"  sandlot egress ID --mode none\n\n"
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
