/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/dependency_spec.h"
#include "cli/remote/resolve.h"
#include "cli/text/table.h"

#include <stdio.h>
#include <string.h>

struct deps_values {
	struct dependency_spec spec;
	bool no_cache, detach;
};

static const struct option options[] = {
	DEPENDENCY_SPEC_OPTIONS(offsetof(struct deps_values, spec)),
	{OPTION_FLAG, 0, "no-cache", NULL, "install anew, with the newest versions that fit",
		offsetof(struct deps_values, no_cache)},
	{OPTION_FLAG, 'd', "detach", NULL, "do not wait until they are installed",
		offsetof(struct deps_values, detach)},
	{OPTION_END},
};

static void add_rows(struct table *table, const char *language, const json_t *packages)
{
	const char *name;
	json_t *version;

	json_object_foreach((json_t *)packages, name, version)
	{
		table_add(table, "%s", language);
		table_add(table, "%s", name);
		table_add(table, "%s", json_string_value(version));
	}
}

static void show(struct cli *cli, const json_t *document)
{
	static const char *const heading[] = {"LANGUAGE", "PACKAGE", "VERSION"};
	auto_(table_fini) struct table table = TABLE_INIT(array_len(heading));
	const json_t *installed = json_object_get(document, "installed");
	const char *status = cli_text(document, "status");

	if (cli_wants_json(cli)) {
		cli_print_json(document);
		return;
	}
	table_add_row(&table, heading);
	add_rows(&table, "python", json_object_get(installed, "python"));
	add_rows(&table, "node", json_object_get(installed, "node"));
	table_print(&table, stdout);
	if (json_is_string(json_object_get(document, "error")))
		cli_note("%s: %s", status, cli_text(document, "error"));
	else if (strcmp(status, "succeeded") != 0 && strcmp(status, "none") != 0)
		cli_note("%s: sandlot job log %s", status, cli_text(document, "job"));
}

/* Without packages it only shows what there is. */
static int ask(struct client *client, const struct deps_values *v, const char *id,
	json_t **ret_document, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/dependencies", id);
	json_auto_t *body = NULL, *answer = NULL;
	int r = dependency_spec_body(&v->spec, true, &body, err);

	if (r < 0)
		return r;
	if (!body)
		return client_json(client, &(struct client_call){.method = "GET", .path = path},
			ret_document, err);
	if (v->no_cache)
		json_object_set_new(body, "no_cache", json_true());
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&answer, err);
	if (r < 0)
		return r;
	if (!v->detach)
		return dependency_spec_await(client, id, ret_document, err);
	*ret_document = json_incref(answer);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct deps_values *v = values;
	json_auto_t *document = NULL;
	char id[RESOLVE_ID_LEN + 1];
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r == 0)
		r = ask(client, v, id, &document, err);
	if (r == 0)
		show(cli, document);
	return r;
}

const struct command cmd_deps = {
	.name = "deps",
	.operands = "SANDBOX",
	.summary = "install packages of Python and Node for a sandbox, or list them",
	.details = "pip and npm of its template install them beside the sandbox, at "
		   "/opt/dependencies;\n"
		   "they add to those that it has, and come again after each start. The same "
		   "packages\n"
		   "on the same template are installed once. With : before it, FILE and DIR are in "
		   "the\n"
		   "sandbox.\n\n"
		   "  sandlot deps web --python requests --python 'numpy<2'\n"
		   "  sandlot deps web --node left-pad@1.3.0\n"
		   "  sandlot deps web -r requirements.txt\n"
		   "  sandlot deps web --lock :/workspace/app\n"
		   "  sandlot deps web\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct deps_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
