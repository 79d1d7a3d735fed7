/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/remote/listing.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

#define TOKENS "/v1/tokens"

struct token_values {
	const char *name;
	const char *organization;
	const char *user;
	struct option_list scopes;
	struct option_number expires_ms;
	bool is_e2b;
};

#define AT(member) offsetof(struct token_values, member)

static const struct option options[] = {
	{OPTION_FLAG, 0, "e2b", NULL, "create: in the form that programs of E2B take", AT(is_e2b)},
	{OPTION_SECONDS, 0, "expires", "TIME", "create: refused after so long (30d, 8h)",
		AT(expires_ms)},
	{OPTION_TEXT, 0, "name", "NAME", "create: what it is for", AT(name)},
	{OPTION_TEXT, 0, "organization", "NAME", "create: whose it is", AT(organization)},
	{OPTION_LIST, 0, "scope", "SCOPE",
		"create: read, run, files, manage or admin; may be repeated", AT(scopes)},
	{OPTION_TEXT, 0, "user", "NAME", "create: whose it is", AT(user)},
	{OPTION_END},
};

/* --- create --- */

static json_t *create_body(const struct token_values *v)
{
	json_t *body = json_object();

	if (v->name)
		json_object_set_new(body, "name", json_string(v->name));
	if (v->organization)
		json_object_set_new(body, "organization", json_string(v->organization));
	if (v->user)
		json_object_set_new(body, "user", json_string(v->user));
	if (v->scopes.count > 0) {
		json_t *scopes = json_array();

		for (size_t i = 0; i < v->scopes.count; i++)
			json_array_append_new(scopes, json_string(v->scopes.items[i]));
		json_object_set_new(body, "scopes", scopes);
	}
	if (v->is_e2b)
		json_object_set_new(body, "e2b", json_true());
	if (v->expires_ms.is_set)
		json_object_set_new(body, "expires_in_s",
			json_integer((json_int_t)(v->expires_ms.value / 1000)));
	return body;
}

/* The secret alone goes to standard output, where a script takes it from. */
static int create(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct token_values *v = call->values;
	json_auto_t *body = create_body(v), *token = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "POST", .path = TOKENS, .body = body},
			&token, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		cli_print_json(token);
	} else {
		cli_print("%s\n", cli_text(token, "token"));
		cli_note("this is token %s; it is shown this once", cli_text(token, "id"));
	}
	return 0;
}

/* --- ls --- */

static void add_scopes(struct table *table, const json_t *scopes)
{
	auto_(buf_fini) struct buf text = BUF_INIT(1024);
	auto_free char *joined = NULL;
	const json_t *scope;
	size_t i;

	json_array_foreach((json_t *)scopes, i, scope)
	{
		buf_printf(&text, "%s%s", i ? "," : "",
			json_is_string(scope) ? json_string_value(scope) : "");
	}
	joined = buf_take_str(&text);
	table_add(table, "%s", joined);
}

/* How long ago, or how long still. */
static void add_distance(struct table *table, const char *time, bool is_ahead)
{
	char text[HUMAN_LEN] = "";
	int64_t wall_ms;

	if (human_parse_time(time, &wall_ms) == 0) {
		int64_t age_ms = clock_wall_ms() - wall_ms;

		if (is_ahead && age_ms >= 0)
			snprintf(text, sizeof(text), "expired");
		else
			human_age(is_ahead ? -age_ms : age_ms, text);
	}
	table_add(table, "%s", text);
}

static void print_table(const json_t *tokens)
{
	static const char *const heading[] = {
		"ID", "NAME", "ORGANIZATION", "USER", "SCOPES", "AGE", "EXPIRES", "USED"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *token;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)tokens, i, token)
	{
		const json_t *owner = json_object_get(token, "owner");

		table_add(&table, "%s", cli_text(token, "id"));
		table_add(&table, "%s", cli_text(token, "name"));
		table_add(&table, "%s", cli_text(owner, "organization"));
		table_add(&table, "%s", cli_text(owner, "user"));
		add_scopes(&table, json_object_get(token, "scopes"));
		add_distance(&table, cli_text(token, "created_at"), false);
		add_distance(&table, cli_text(token, "expires_at"), true);
		add_distance(&table, cli_text(token, "last_used_at"), false);
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	json_auto_t *tokens = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = listing_fetch_all(client, TOKENS, "tokens", &tokens, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli)) {
		json_auto_t *document = json_pack("{s:O}", "tokens", tokens);

		cli_print_json(document);
	} else {
		print_table(tokens);
	}
	return 0;
}

/* --- revoke --- */

static int revoke_one(struct client *client, const char *id, struct err *err)
{
	auto_free char *path = mem_printf(TOKENS "/%s", id);

	if (id[strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz")] || !id[0])
		return err_set(err, ERR_INVALID, "%.40s is no id of a token", id);
	return client_json(
		client, &(struct client_call){.method = "DELETE", .path = path}, NULL, err);
}

/* One that fails does not keep the others from being tried; the exit code tells. */
static int revoke(const struct command_call *call, struct err *err)
{
	struct client *client;
	int code = 0;
	int r = cli_connect(call->cli, &client, err);

	if (r < 0)
		return r;
	for (int i = 0; i < call->argc; i++) {
		if (revoke_one(client, call->argv[i], err) < 0) {
			cli_complain(err, call->argv[i]);
			code = cli_exit_code(err);
		} else {
			puts(call->argv[i]);
		}
	}
	return code;
}

/* --- the command --- */

static const struct command_verb verbs[] = {
	{"create", "", 0, 0, create},
	{"ls", "", 0, 0, list},
	{"revoke", "ID...", 1, COMMAND_ANY, revoke},
	{0},
};

const struct command cmd_token = {
	.name = "token",
	.operands = "create|ls|revoke [ID...]",
	.summary = "make, list and revoke tokens",
	.details =
		"create prints the secret, which is shown this once; only an administrator may "
		"make\n"
		"tokens. Without --scope a token may do everything but administer; without\n"
		"--organization and --user it is yours. With --e2b it is a key for E2B_API_KEY.\n\n"
		"  sandlot token create --organization acme --user ci --scope run --expires 30d\n"
		"  sandlot token ls\n"
		"  sandlot token revoke 01k9x3c8d0p5w6v7q2t4r1h9ms\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct token_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.verbs = verbs,
};
