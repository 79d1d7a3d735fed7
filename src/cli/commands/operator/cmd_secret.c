/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "cli/command.h"
#include "cli/terminal/input/hidden_input.h"
#include "cli/terminal/terminal.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECRETS	  "/v1/secrets"
#define VALUE_MAX 8192

struct secret_values {
	const char *header;
	const char *prefix;
	const char *url;
};

#define AT(member) offsetof(struct secret_values, member)

static const struct option options[] = {
	{OPTION_TEXT, 0, "header", "NAME", "set: the field it is sent as (Authorization)",
		AT(header)},
	{OPTION_TEXT, 0, "prefix", "TEXT",
		"set: what stands before it (\"Bearer \" in Authorization)", AT(prefix)},
	{OPTION_TEXT, 0, "server", "URL", "set: the one server that gets it", AT(url)},
	{OPTION_END},
};

static int path_of(const char *name, char **ret_path, struct err *err)
{
	if (!name[0] || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return err_set(
			err, ERR_INVALID, "%.64s is no name of a secret: a-z, 0-9 and -", name);
	*ret_path = mem_printf(SECRETS "/%s", name);
	return 0;
}

/* --- set --- */

/* Up to its end, without one end of a line. */
static int read_all(struct buf *value, struct err *err)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
		if (buf_append(value, bytes, (size_t)n) < 0)
			return err_set(
				err, ERR_INVALID, "a secret has at most %d bytes", VALUE_MAX);
	}
	explicit_bzero(bytes, sizeof(bytes));
	if (n < 0)
		return err_sys(err, "read standard input");
	if (value->len > 0 && value->data[value->len - 1] == '\n')
		value->len--;
	return 0;
}

/* Not from the command line, which every user of this machine may read. */
static int read_value(struct buf *value, struct err *err)
{
	int r;

	if (terminal_is_there()) {
		cli_note("type the secret, which is not shown, and Enter");
		r = hidden_input_read(value, err);
	} else {
		r = read_all(value, err);
	}
	if (r < 0)
		return r;
	if (value->len == 0)
		return err_explain(err, ERR_INVALID, NULL,
			"printf %s \"$KEY\" | sandlot secret set NAME --server URL",
			"the secret is read from standard input, and there was none");
	return 0;
}

static int make_body(const struct secret_values *v, json_t *body, struct err *err)
{
	auto_(buf_fini) struct buf value = BUF_INIT(VALUE_MAX + 1);
	int r;

	if (!v->url)
		return err_explain(err, ERR_INVALID, NULL, "--server https://api.example.com/v1",
			"set needs --server: the one server that gets the secret");
	r = read_value(&value, err);
	if (r < 0)
		return r;
	if (json_object_set_new(body, "value", json_stringn((const char *)value.data, value.len)) <
		0)
		return err_set(err, ERR_INVALID, "the secret is not UTF-8 text");
	json_object_set_new(body, "url", json_string(v->url));
	if (v->header)
		json_object_set_new(body, "header", json_string(v->header));
	if (v->prefix)
		json_object_set_new(body, "prefix", json_string(v->prefix));
	return 0;
}

static int set(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	const struct secret_values *v = call->values;
	const char *name = call->argv[0];
	json_auto_t *body = json_object(), *answer = NULL;
	auto_free char *path = NULL;
	struct client *client;
	int r = path_of(name, &path, err);

	if (r == 0)
		r = make_body(v, body, err);
	if (r == 0)
		r = cli_connect(cli, &client, err);
	if (r == 0)
		r = client_json(client,
			&(struct client_call){.method = "PUT", .path = path, .body = body}, &answer,
			err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(answer);
	else
		cli_note("in sandboxes with --secret %s, http://%s.internal is %s", name, name,
			cli_text(answer, "url"));
	return 0;
}

/* --- ls --- */

static void print_table(const json_t *secrets)
{
	static const char *const heading[] = {"NAME", "URL", "HEADER", "CHANGED"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *secret;
	size_t i;

	table_add_row(&table, heading);
	json_array_foreach((json_t *)secrets, i, secret)
	{
		table_add(&table, "%s", cli_text(secret, "name"));
		table_add(&table, "%s", cli_text(secret, "url"));
		table_add(&table, "%s", cli_text(secret, "header"));
		table_add(&table, "%s", cli_text(secret, "changed_at"));
	}
	table_print(&table, stdout);
}

static int list(const struct command_call *call, struct err *err)
{
	struct cli *cli = call->cli;
	json_auto_t *document = NULL;
	struct client *client;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = client_json(client, &(struct client_call){.method = "GET", .path = SECRETS},
			&document, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		cli_print_json(document);
	else
		print_table(json_object_get(document, "secrets"));
	return 0;
}

/* --- rm --- */

static int remove_one(struct client *client, const char *name, struct err *err)
{
	auto_free char *path = NULL;
	int r = path_of(name, &path, err);

	return r < 0 ? r
		     : client_json(client, &(struct client_call){.method = "DELETE", .path = path},
			       NULL, err);
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
		if (remove_one(client, call->argv[i], err) < 0) {
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
	{"set", "NAME --server URL", 1, 1, set},
	{"ls", "", 0, 0, list},
	{"rm", "NAME...", 1, COMMAND_ANY, remove_all},
	{0},
};

const struct command cmd_secret = {
	.name = "secret",
	.operands = "set|ls|rm [NAME...]",
	.summary = "give requests of sandboxes a key that they never see",
	.details =
		"set reads the secret from standard input; what is typed there is not shown. A\n"
		"sandbox made with --secret NAME reaches the server as http://NAME.internal; the\n"
		"daemon adds the secret on the way and speaks TLS to the server. The secret goes\n"
		"nowhere else, and nobody is shown it.\n\n"
		"  sandlot secret set model --server https://api.example.com < key\n"
		"  sandlot secret set other --server https://api.example.org --header x-api-key < "
		"key\n"
		"  sandlot run --network none --secret model -- curl "
		"http://model.internal/v1/models\n"
		"  sandlot secret ls\n"
		"  sandlot secret rm model\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct secret_values),
	.min_operands = 1,
	.max_operands = -1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.verbs = verbs,
};
