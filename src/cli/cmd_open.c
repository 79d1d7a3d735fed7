/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/resolve.h"

#include <stdio.h>

struct open_values {
	struct option_number expires_ms;
	bool is_public, is_private;
	const char *prefix;
};

#define AT(field) offsetof(struct open_values, field)

static const struct option options[] = {
	{OPTION_SECONDS, 0, "expires", "TIME", "for how long the link is good (8h); a day",
		AT(expires_ms)},
	{OPTION_FLAG, 0, "public", NULL, "let anyone open it from now on, without a link",
		AT(is_public)},
	{OPTION_FLAG, 0, "private", NULL, "let nobody open it from now on without a link",
		AT(is_private)},
	{OPTION_CHOICE, 0, "prefix", "MODE",
		"whether the app sees the path in front of requests by path: strip or keep",
		AT(prefix), "strip keep"},
	{OPTION_END},
};

/* Gives the port a preview if it has none, and changes what the options say. */
static int declare_port(struct client *client, const char *id, const char *port,
	const struct open_values *v, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/ports/%s", id, port);
	json_auto_t *body = json_object();
	json_auto_t *answer = NULL;

	if (v->is_public && v->is_private)
		return err_set(err, ERR_INVALID, "--public does not go with --private");
	if (v->is_public || v->is_private)
		json_object_set_new(body, "public", json_boolean(v->is_public));
	if (v->prefix)
		json_object_set_new(body, "prefix", json_string(v->prefix));
	return client_json(client,
		&(struct client_call){.method = "PATCH", .path = path, .body = body}, &answer, err);
}

/* The address of one that needs no link. */
static int get_address(struct client *client, const char *id, const char *port,
	json_t **ret_address, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s", id);
	json_auto_t *sandbox = NULL;
	int r = client_json(
		client, &(struct client_call){.method = "GET", .path = path}, &sandbox, err);

	if (r < 0)
		return r;
	*ret_address = json_pack(
		"{s:O?}", "url", json_object_get(json_object_get(sandbox, "previews"), port));
	return 0;
}

static int make_link(struct client *client, const char *id, const char *port,
	const struct open_values *v, json_t **ret_link, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/ports/%s/links", id, port);
	json_auto_t *body = json_object();

	if (v->expires_ms.is_set)
		json_object_set_new(body, "expires_in_s",
			json_integer((json_int_t)(v->expires_ms.value / 1000)));
	return client_json(client,
		&(struct client_call){.method = "POST", .path = path, .body = body}, ret_link, err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct open_values *v = values;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *link = NULL;
	struct client *client;
	const char *url;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r == 0)
		r = declare_port(client, id, argv[1], v, err);
	if (r == 0)
		r = v->is_public ? get_address(client, id, argv[1], &link, err)
				 : make_link(client, id, argv[1], v, &link, err);
	if (r < 0)
		return r;
	url = json_string_value(json_object_get(link, "url"));
	if (cli_wants_json(cli))
		cli_print_json(link);
	else if (url)
		puts(url);
	return 0;
}

const struct command cmd_open = {
	.name = "open",
	.operands = "SANDBOX PORT",
	.summary = "print a link that opens the preview of a port",
	.details = "Whoever has the link may see what listens on that port, until it expires.\n"
		   "A port that was not named at the creation gets a preview by this.\n"
		   "With --public anyone may, until --private takes it back.\n\n"
		   "  sandlot open 01k9 3000\n"
		   "  xdg-open \"$(sandlot open --expires 8h 01k9 3000)\"\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct open_values),
	.min_operands = 2,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
