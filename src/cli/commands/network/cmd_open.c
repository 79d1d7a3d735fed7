/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/remote/resolve.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define SERVER_BEGINS_MS 5000
#define LOOK_AGAIN_MS	 50

struct open_values {
	struct option_number expires_ms;
	bool is_public, is_private;
	const char *prefix, *frame_origin;
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
	{OPTION_TEXT, 0, "frame", "ORIGIN",
		"make an address for a frame in pages of that origin, which needs no cookie",
		AT(frame_origin)},
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
	if (v->frame_origin)
		json_object_set_new(body, "frame_origin", json_string(v->frame_origin));
	return client_json(client,
		&(struct client_call){.method = "POST", .path = path, .body = body}, ret_link, err);
}

/* Adds the number of each port to the set; of those that listen, only what a preview can reach. */
static void collect_ports(const json_t *ports, json_t *set)
{
	const json_t *port;
	size_t i;

	json_array_foreach((json_t *)ports, i, port)
	{
		const json_t *number = json_is_object(port) ? json_object_get(port, "port") : port;
		char text[8];

		if (json_is_false(json_object_get(port, "reachable")))
			continue;
		snprintf(text, sizeof(text), "%u", (unsigned)json_integer_value(number) & 0xffff);
		json_object_set_new(set, text, json_true());
	}
}

/* The only port that has a preview; if none has, the only one that something listens on. */
static int choose_port(struct client *client, const char *id, char **ret_port, struct err *err)
{
	json_auto_t *set = json_object(), *sandbox = NULL, *listening = NULL;
	auto_(buf_fini) struct buf names = BUF_INIT(2048);
	const char *name;
	json_t *ignored;
	int r = resolve_get(client, id, "", &sandbox, err);

	if (r < 0)
		return r;
	collect_ports(json_object_get(sandbox, "ports"), set);
	if (json_object_size(set) == 0) {
		r = resolve_get(client, id, "/ports", &listening, err);
		if (r < 0)
			return r;
		collect_ports(json_object_get(listening, "ports"), set);
	}
	json_object_foreach(set, name, ignored) buf_printf(&names, " %s", name);
	if (json_object_size(set) == 1) {
		*ret_port = mem_strdup(json_object_iter_key(json_object_iter(set)));
		return 0;
	}
	if (json_object_size(set) == 0)
		return err_explain(err, ERR_NOT_FOUND, "port_not_found",
			"start a server in it, or name the port: sandlot open ID PORT",
			"sandbox %s has no port with a preview, and nothing listens in it", id);
	return err_explain(err, ERR_INVALID, "ambiguous_port", "name one: sandlot open ID PORT",
		"sandbox %s has several ports:%.*s", id, (int)names.len, (const char *)names.data);
}

/* Whether it is known that nothing serves the port; while its start commands run that may change soon. */
static bool is_unserved(struct client *client, const char *id, const char *port, bool *ret_may_come)
{
	json_auto_t *sandbox = NULL, *listening = NULL, *set = json_object();
	const json_t *command;
	struct err ignored;
	size_t i;

	if (resolve_get(client, id, "", &sandbox, &ignored) < 0 ||
		strcmp(cli_text(sandbox, "status"), "running") != 0 ||
		resolve_get(client, id, "/ports", &listening, &ignored) < 0)
		return false;
	*ret_may_come = false;
	json_array_foreach(json_object_get(sandbox, "start"), i, command) *ret_may_come |=
		strcmp(cli_text(command, "status"), "running") == 0;
	collect_ports(json_object_get(listening, "ports"), set);
	return !json_object_get(set, port);
}

/*
 * The link is good in any case: the server may come later, or with a sandbox that wakes. One that was begun just now
 * gets the moment that it needs.
 */
static void warn_unserved(struct client *client, const char *id, const char *port)
{
	uint64_t end_ms = clock_steady_ms() + SERVER_BEGINS_MS;
	bool may_come = false;

	while (is_unserved(client, id, port, &may_come)) {
		if (!may_come || clock_steady_ms() >= end_ms) {
			cli_note("nothing that a preview reaches listens on port %s yet", port);
			return;
		}
		(void)poll(NULL, 0, LOOK_AGAIN_MS);
	}
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct open_values *v = values;
	auto_free char *port = argc > 1 ? mem_strdup(argv[1]) : NULL;
	char id[RESOLVE_ID_LEN + 1];
	json_auto_t *link = NULL;
	struct client *client;
	const char *url;
	int r = cli_connect(cli, &client, err);

	if (r == 0)
		r = resolve_id(client, argv[0], id, err);
	if (r < 0 && argc == 1 && !argv[0][strspn(argv[0], "0123456789")] && strlen(argv[0]) <= 5)
		snprintf(err->remedy, sizeof(err->remedy),
			"for a port, name its sandbox before it: sandlot open SANDBOX %s", argv[0]);
	if (r == 0 && !port)
		r = choose_port(client, id, &port, err);
	if (r == 0)
		r = declare_port(client, id, port, v, err);
	if (r == 0)
		r = v->is_public ? get_address(client, id, port, &link, err)
				 : make_link(client, id, port, v, &link, err);
	if (r < 0)
		return r;
	url = json_string_value(json_object_get(link, "url"));
	if (cli_wants_json(cli))
		cli_print_json(link);
	else if (url)
		cli_print("%s\n", url);
	warn_unserved(client, id, port);
	return 0;
}

const struct command cmd_open = {
	.name = "open",
	.operands = "SANDBOX [PORT]",
	.summary = "print a link that opens the preview of a port",
	.details = "Whoever has the link may see what listens on that port, until it expires.\n"
		   "Without PORT it is the only one that has a preview or, if none has, that "
		   "listens.\n"
		   "A port that was not named at the creation gets a preview by this.\n"
		   "With --public anyone may, until --private takes it back.\n\n"
		   "  sandlot open 01k9\n"
		   "  xdg-open \"$(sandlot open --expires 8h 01k9 3000)\"\n"
		   "  sandlot open --frame https://app.example 01k9 3000\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct open_values),
	.min_operands = 1,
	.max_operands = 2,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_IDS,
	.run = run,
};
