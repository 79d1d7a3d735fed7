/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/commands/project/launch_watch.h"
#include "cli/commands/project/stage_line.h"
#include "cli/copy/transfer.h"
#include "cli/remote/event_follow.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/reconnect.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PROJECTS "/v1/projects"
#define NAME_LEN 40

struct launch_values {
	const char *project, *template_name, *services, *only, *preview, *from;
	struct option_list env;
	struct option_number install_ms, backend_ms, frontend_ms;
	bool verbose, watch;
};

#define AT(field) offsetof(struct launch_values, field)

static const struct option options[] = {
	{OPTION_TEXT, 0, "project", "NAME", "the project; named after the directory", AT(project)},
	{OPTION_TEXT, 't', "template", "NAME", "what a new sandbox starts from", AT(template_name)},
	{OPTION_LIST, 'e', "env", "NAME=VALUE",
		"a variable of the app and of what installs its packages; may be repeated",
		AT(env)},
	{OPTION_TEXT, 0, "services", "NAMES",
		"postgres, redis, both with a comma, or none; else what is detected", AT(services)},
	{OPTION_TEXT, 0, "only", "PART",
		"start frontend or backend alone, whatever else is detected", AT(only)},
	{OPTION_TEXT, 0, "preview", "MODE",
		"host, the default: the preview has a name of its own; path: it is at a path",
		AT(preview)},
	{OPTION_SECONDS, 0, "install-timeout", "TIME", "how long installing may take; 2 minutes",
		AT(install_ms)},
	{OPTION_SECONDS, 0, "backend-timeout", "TIME",
		"how long the backend may take to answer; 30 seconds", AT(backend_ms)},
	{OPTION_SECONDS, 0, "frontend-timeout", "TIME", "the same of the page; 45 seconds",
		AT(frontend_ms)},
	{OPTION_TEXT, 0, "from", "STAGE", "begin there, and do again what is done already",
		AT(from)},
	{OPTION_FLAG, 'v', "verbose", NULL, "show what the stages say", AT(verbose)},
	{OPTION_FLAG, 'w', "watch", NULL, "then send edits as they are made, until Ctrl-C",
		AT(watch)},
	{OPTION_END},
};

/* --- the files --- */

/* The name of a directory as one of a project. */
static int name_project(const char *dir, char name[NAME_LEN + 1], struct err *err)
{
	auto_free char *path = realpath(dir, NULL);
	const char *last = path ? strrchr(path, '/') + 1 : NULL;
	size_t len = 0;

	if (!path)
		return errno == ENOENT || errno == ENOTDIR
			       ? err_explain(err, ERR_NOT_FOUND, NULL,
					 "name the directory of the app; \".\" is the one you are "
					 "in",
					 "open %s on this machine: %s", dir, strerror(errno))
			       : err_sys(err, "%s", dir);
	for (; *last && len < NAME_LEN; last++) {
		if (isalnum((unsigned char)*last) || (len > 0 && strchr("._-", *last)))
			name[len++] = *last;
	}
	name[len] = '\0';
	return len > 0 ? 0 : err_set(err, ERR_INVALID, "name the project with --project");
}

static int take_project(struct client *client, const char *name, json_t **ret, struct err *err)
{
	auto_free char *path = mem_printf(PROJECTS "/%s", name);
	json_auto_t *body = json_pack("{s:s}", "name", name);
	int r = client_json(client, &(struct client_call){.method = "GET", .path = path}, ret, err);

	if (r == 0 || err->kind != ERR_NOT_FOUND)
		return r;
	return client_json(client,
		&(struct client_call){.method = "POST", .path = PROJECTS, .body = body}, ret, err);
}

/* The project follows the directory: what an earlier launch put there, and is gone here, goes there too. */
static int upload(struct client *client, const char *project, const char *dir, struct err *err)
{
	auto_free char *path = mem_printf(PROJECTS "/%s/archive?sync=true", project);
	json_auto_t *answer = NULL;
	json_t *removed, *file;
	json_int_t more;
	size_t i;
	int r = transfer_send_project(client, path, dir, &answer, err);

	removed = json_object_get(answer, "removed_files");
	json_array_foreach(removed, i, file) cli_note("removed %s", json_string_value(file));
	more = json_integer_value(json_object_get(answer, "removed")) -
	       (json_int_t)json_array_size(removed);
	if (more > 0)
		cli_note("removed %lld files more", (long long)more);
	return r;
}

/* --- the stages --- */

struct drawing {
	bool is_verbose, is_json;
	struct stage_line line; /* while one runs */
	json_t *launch;		/* what came of it; owned */
	char seen[32];		/* the id of the last event; "": none */
	struct reconnect reconnect;
	struct err *err;
};

static int on_event(const struct event *event, void *arg)
{
	struct drawing *drawing = arg;
	json_auto_t *data = json_loadb(event->data, event->data_len, 0, NULL);

	if (!data)
		return err_set(
			drawing->err, ERR_INTERNAL, "the daemon sent an event that is not JSON");
	snprintf(drawing->seen, sizeof(drawing->seen), "%s", event->id);
	if (strcmp(event->name, "end") == 0)
		drawing->launch = json_incref(data);
	else if (!drawing->is_json)
		stage_line_tell(&drawing->line, data);
	return 0;
}

/* One connection: 0 when the launch is over. */
static int follow_once(struct client *client, const char *id, struct drawing *drawing)
{
	auto_free char *path = mem_printf(
		"/v1/launches/%s/events%s%s", id, drawing->seen[0] ? "?from=" : "", drawing->seen);
	int r = client_open(client,
		&(struct client_call){.method = "GET", .path = path, .accept = "text/event-stream"},
		drawing->err);

	if (r < 0)
		return r;
	reconnect_connected(&drawing->reconnect);
	r = event_follow(client, on_event, drawing, drawing->err);
	client_close(client);
	if (r == 0 && !drawing->launch)
		return err_explain(drawing->err, ERR_UNAVAILABLE, "connection_lost", NULL,
			"the daemon ended the stream before the launch was over");
	return r;
}

/* To its end, which a daemon that is restarted meanwhile comes to as well. */
static int follow(struct client *client, const char *id, struct drawing *drawing)
{
	struct interrupt *interrupt = client_interrupt(client);
	bool was_watched = interrupt->is_watched;
	int r = interrupt_hold(interrupt, drawing->err);

	if (r < 0)
		return r;
	interrupt_watch(interrupt, true);
	drawing->seen[0] = '\0';
	drawing->reconnect = (struct reconnect){0};
	stage_line_init(&drawing->line, drawing->is_verbose);
	do {
		r = follow_once(client, id, drawing);
		if (r < 0)
			r = reconnect_wait(&drawing->reconnect, client, r, drawing->err);
	} while (r == 0 && !drawing->launch);
	stage_line_fini(&drawing->line);
	interrupt_watch(interrupt, was_watched);
	if (r == -EINTR)
		cli_note("the launch goes on without us; \"sandlot job cancel %s\" ends it", id);
	return r;
}

/* --- the end --- */

static int tell_failure(const json_t *launch, struct err *err)
{
	const json_t *error = json_object_get(launch, "error");
	json_t *lines = json_object_get(error, "lines"), *line;
	const char *remedy = cli_text(error, "remediation");
	size_t i;

	json_array_foreach(lines, i, line) cli_note("    %s", json_string_value(line));
	if (!json_is_object(error))
		return err_set(
			err, ERR_UNPROCESSABLE, "the launch was %s", cli_text(launch, "status"));
	return err_explain(err, ERR_UNPROCESSABLE, "launch_failed", remedy[0] ? remedy : NULL,
		"%s: %s", cli_text(error, "stage"), cli_text(error, "message"));
}

/* A browser shows pages by path of public ports alone. */
static void tell_private(struct client *client, const json_t *launch)
{
	const char *id = cli_text(launch, "sandbox_id");
	auto_free char *path = mem_printf("/v1/sandboxes/%s/ports", id);
	const json_t *page = json_object_get(launch, "frontend_port");
	json_int_t number = json_integer_value(
		json_is_integer(page) ? page : json_object_get(launch, "backend_port"));
	json_auto_t *answer = NULL;
	json_t *ports, *port;
	struct err ignored;
	size_t i;

	if (client_json(client, &(struct client_call){.method = "GET", .path = path}, &answer,
		    &ignored) < 0)
		return;
	ports = json_object_get(answer, "ports");
	json_array_foreach(ports, i, port)
	{
		if (json_integer_value(json_object_get(port, "port")) == number &&
			json_is_false(json_object_get(port, "public")))
			cli_note("port %lld is private, and browsers show pages by path of public "
				 "ports alone: \"sandlot open --public %s %lld\" makes it public",
				(long long)number, id, (long long)number);
	}
}

/* A link that its owner can open: previews are private. */
static int print_link(struct client *client, const json_t *launch, struct err *err)
{
	const char *url = cli_text(launch, "preview_url"), *id = cli_text(launch, "sandbox_id");
	auto_free char *path = NULL;
	json_auto_t *body = json_object(), *link = NULL;
	char prefix[64];
	const char *port;
	int r;

	cli_note("the app runs in the sandbox %s", id);
	snprintf(prefix, sizeof(prefix), "%s-", id);
	port = strstr(url, prefix);
	if (!port) {
		tell_private(client, launch);
		cli_print("%s\n", url);
		return 0;
	}
	path = mem_printf(
		"/v1/sandboxes/%s/ports/%lu/links", id, strtoul(port + strlen(prefix), NULL, 10));
	r = client_json(client, &(struct client_call){.method = "POST", .path = path, .body = body},
		&link, err);
	if (r == 0)
		cli_print("%s\n", cli_text(link, "url"));
	return r;
}

/* "postgres,redis" as a list; "none" is an empty one. */
static json_t *split_services(const char *names)
{
	json_t *list = json_array();

	for (size_t len; *names; names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		if (len > 0 && strcmp(names, "none") != 0)
			json_array_append_new(list, json_stringn(names, len));
	}
	return list;
}

/* The other part is left out. */
static int add_only(json_t *body, const char *only, struct err *err)
{
	static const char *const parts[] = {"frontend", "backend"};

	for (size_t i = 0; only && i < array_len(parts); i++) {
		if (strcmp(only, parts[i]) != 0)
			continue;
		json_object_set_new(body, parts[1 - i], json_false());
		return 0;
	}
	return only ? err_set(err, ERR_INVALID, "--only wants frontend or backend, not %.60s", only)
		    : 0;
}

static void add_timeouts(json_t *body, const struct launch_values *v)
{
	const struct {
		const char *name;
		const struct option_number *ms;
	} waits[] = {{"install_s", &v->install_ms}, {"backend_s", &v->backend_ms},
		{"frontend_s", &v->frontend_ms}};
	json_t *timeouts = json_object();

	for (size_t i = 0; i < array_len(waits); i++) {
		if (waits[i].ms->is_set)
			json_object_set_new(timeouts, waits[i].name,
				json_integer((json_int_t)(waits[i].ms->value / 1000)));
	}
	if (json_object_size(timeouts) > 0)
		json_object_set(body, "timeouts", timeouts);
	json_decref(timeouts);
}

static int make_body(
	const struct launch_values *v, const json_t *project, json_t **ret_body, struct err *err)
{
	json_auto_t *body = json_pack("{s:s}", "project", cli_text(project, "id"));
	json_t *env = json_object();
	int r;

	json_object_set_new(body, "env", env);
	r = add_only(body, v->only, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < v->env.count; i++) {
		const char *equals = strchr(v->env.items[i], '=');
		auto_free char *name = NULL;

		if (!equals || equals == v->env.items[i])
			return err_set(err, ERR_INVALID, "--env wants NAME=VALUE, not %.60s",
				v->env.items[i]);
		name = mem_printf("%.*s", (int)(equals - v->env.items[i]), v->env.items[i]);
		json_object_set_new(env, name, json_string(equals + 1));
	}
	if (v->services)
		json_object_set_new(body, "services", split_services(v->services));
	if (v->template_name)
		json_object_set_new(body, "template", json_string(v->template_name));
	if (v->preview)
		json_object_set_new(body, "preview", json_string(v->preview));
	if (v->from)
		json_object_set_new(body, "from", json_string(v->from));
	add_timeouts(body, v);
	*ret_body = json_incref(body);
	return 0;
}

/* What sandlot.json says and nothing follows: whoever wrote it waits for it in vain. */
static void tell_settings(const json_t *launch)
{
	json_t *findings = json_object_get(launch, "findings"), *finding;
	size_t i;

	json_array_foreach(findings, i, finding)
	{
		if (strcmp(cli_text(finding, "rule"), "settings") == 0 &&
			strcmp(cli_text(finding, "severity"), "warning") == 0)
			cli_note("%s:%lld: %s", cli_text(finding, "file"),
				(long long)json_integer_value(json_object_get(finding, "line")),
				cli_text(finding, "message"));
	}
}

/* One launch: what came of it is told. */
static int launch_once(struct client *client, const json_t *body, struct drawing *drawing)
{
	json_auto_t *begun = NULL;
	int r;

	json_decref(drawing->launch);
	drawing->launch = NULL;
	r = client_json(client,
		&(struct client_call){.method = "POST", .path = "/v1/launches", .body = body},
		&begun, drawing->err);
	if (r == 0)
		r = follow(client, cli_text(begun, "id"), drawing);
	if (r == 0 && drawing->is_json)
		cli_print_json(drawing->launch);
	else if (r == 0)
		tell_settings(drawing->launch);
	if (r == 0 && strcmp(cli_text(drawing->launch, "status"), "succeeded") != 0)
		return tell_failure(drawing->launch, drawing->err);
	if (r == 0 && !drawing->is_json)
		r = print_link(client, drawing->launch, drawing->err);
	return r;
}

/* --- watching --- */

struct relaunch {
	struct launch_watch *watch;
	const json_t *body;
	struct drawing *drawing;
};

/* An app that fails is told of, and the next edit may mend it. */
static int launch_again(void *arg, struct err *err)
{
	struct relaunch *relaunch = arg;
	struct drawing *drawing = relaunch->drawing;
	int r = launch_once(relaunch->watch->client, relaunch->body, drawing);

	relaunch->watch->launch = drawing->launch;
	if (r < 0 && drawing->launch) {
		cli_complain(drawing->err, NULL);
		return 0;
	}
	if (r < 0 && err != drawing->err)
		*err = *drawing->err;
	return r;
}

static int launch_and_watch(struct client *client, const char *dir, const json_t *project,
	struct dir_watch *files, json_t *body, struct drawing *drawing)
{
	struct launch_watch watch = {.client = client,
		.files = files,
		.dir = dir,
		.project = cli_text(project, "id"),
		.again = launch_again};
	struct relaunch relaunch = {&watch, body, drawing};
	int r;

	watch.arg = &relaunch;
	r = launch_again(&relaunch, drawing->err);
	json_object_del(body, "from"); /* once is enough */
	return r < 0 ? r : launch_watch_run(&watch, drawing->err);
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct launch_values *v = values;
	struct drawing drawing = {
		.is_verbose = v->verbose, .is_json = cli_wants_json(cli), .err = err};
	auto_(dir_watch_freep) struct dir_watch *files = NULL;
	json_auto_t *project = NULL, *body = NULL;
	char name[NAME_LEN + 1];
	struct client *client;
	int r = cli_connect(cli, &client, err);

	(void)argc;
	if (r == 0 && v->watch && drawing.is_json)
		r = err_set(err, ERR_INVALID, "--watch does not go with --json");
	/* What is edited while the first launch runs is sent after it. */
	if (r == 0 && v->watch)
		r = dir_watch_new(argv[0], transfer_project_skipped, &files, err);
	if (r == 0 && !v->project)
		r = name_project(argv[0], name, err);
	if (r == 0)
		r = take_project(client, v->project ? v->project : name, &project, err);
	if (r == 0)
		r = upload(client, cli_text(project, "id"), argv[0], err);
	if (r == 0)
		r = make_body(v, project, &body, err);
	if (r == 0)
		r = files ? launch_and_watch(client, argv[0], project, files, body, &drawing)
			  : launch_once(client, body, &drawing);
	json_decref(drawing.launch);
	return r;
}

const struct command cmd_launch = {
	.name = "launch",
	.operands = "DIRECTORY",
	.summary = "make a running preview of the app in a directory",
	.details = "Uploads the files into a project, finds out what they are, installs what they "
		   "need in the\nproject's sandbox, starts them, and prints a link that opens the "
		   "preview.\n"
		   "Again, it uploads what has changed and does what is needed.\n\n"
		   "  sandlot launch ./my-app\n"
		   "  sandlot launch --watch ./my-app\n"
		   "  sandlot launch -v -e DEBUG=1 --install-timeout 5m ./my-app\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct launch_values),
	.min_operands = 1,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_FILES,
	.run = run,
};
