/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/mcp_tool.h"

#include "api/handlers.h"
#include "api/mcp/mcp_content.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define TARGET_LEN (3 * 8192) /* of a target, every byte escaped */

enum {
	READS = 1,
	DESTROYS = 2,
	REPEATS = 4
}; /* hints: only looks; may lose something; twice is as once */

struct mcp_tool {
	const char *name, *title;
	const char *method, *path; /* the route */
	const char
		*arguments; /* parameters and fields that it offers, beside the parts of its path */
	unsigned hints;
	const char *description;
	const char *fixed;	  /* fields that each call has, as JSON; NULL: none */
	const struct fields *own; /* arguments for `handle` instead of the route's fields */
	route_handler handle;	  /* in the place of the route's own; NULL: that one */
};

#define SANDBOX "/v1/sandboxes/{id}"

static const struct mcp_tool table[] = {
	{"sandbox_create", "Create a sandbox", "POST", "/v1/sandboxes",
		"name template env ports labels network resources idle_timeout_s start snapshot", 0,
		"Creates an isolated Linux environment and starts it, within milliseconds. Its "
		"files "
		"stay until it is deleted; unused, it is stopped, and wakes when it is used again. "
		"The workspace is /workspace. Give it a name to find it again."},
	{"sandbox_list", "List sandboxes", "GET", "/v1/sandboxes", "status label limit cursor",
		READS, "Lists your sandboxes with their ids, names and states."},
	{"sandbox_get", "Look at a sandbox", "GET", SANDBOX, "", READS,
		"Tells the state of a sandbox, its limits, ports, previews, and why it last "
		"ended."},
	{"sandbox_start", "Start a sandbox", "POST", SANDBOX "/start", "", REPEATS,
		"Starts a stopped sandbox. There is no need to: every use of it does so."},
	{"sandbox_stop", "Stop a sandbox", "POST", SANDBOX "/stop", "", DESTROYS | REPEATS,
		"Ends all processes of a sandbox; its files stay."},
	{"sandbox_delete", "Delete a sandbox", "POST", SANDBOX "/purge", "", DESTROYS | REPEATS,
		"Removes a sandbox with all its files, for good."},
	{"sandbox_fork", "Copy a sandbox", "POST", SANDBOX "/fork", "count", 0,
		"Makes sandboxes with a copy of all files of this one, to try something in each."},
	{"snapshot_create", "Keep the files of a sandbox", "POST", SANDBOX "/snapshots", "name", 0,
		"Keeps all files of a sandbox as they are now; sandbox_restore goes back to them."},
	{"sandbox_restore", "Go back to a snapshot", "POST", SANDBOX "/restore", "snapshot",
		DESTROYS, "Gives a sandbox the files of a snapshot; what it has now is lost."},
	{"sandbox_changes", "What changed", "GET", SANDBOX "/changes", "since limit cursor", READS,
		"Lists files that were added, modified or deleted since the sandbox was created, "
		"or "
		"since a snapshot."},
	{"exec", "Run a command", "POST", SANDBOX "/exec",
		"command argv cwd env stdin timeout_ms user confirm", DESTROYS,
		"Runs a shell command in a sandbox and waits for its end: exit code, stdout, "
		"stderr, "
		"and why it ended. For a server or anything that goes on, use process_start."},
	{"process_start", "Start a background process", "POST", SANDBOX "/exec",
		"command argv cwd env user confirm", DESTROYS,
		"Starts a command in the background, such as a web server; process_output shows "
		"what "
		"it prints, preview_url opens its port in a browser.",
		.fixed = "{\"background\":true}"},
	{"process_list", "List processes", "GET", SANDBOX "/processes", "", READS,
		"Lists background processes of a sandbox: those that run, and the last that "
		"ended."},
	{"process_output", "Read what a process printed", "GET", SANDBOX "/processes/{process}", "",
		READS, "The end of what a background process has printed so far.",
		.handle = mcp_content_read_output},
	{"process_kill", "End a process", "DELETE", SANDBOX "/processes/{process}", "", DESTROYS,
		"Ends a background process with all that it started."},
	{"run_code", "Run code in a sandbox", "POST", SANDBOX "/executions",
		"language code event timeout_ms env stdin context_id", DESTROYS,
		"Runs Python, JavaScript or shell code in a sandbox and gives its result, output, "
		"figures and files. With a context_id it keeps variables between calls."},
	{"run_code_once", "Run code in a fresh sandbox", "POST", "/v1/executions",
		"language code event timeout_ms env stdin template network dependencies", 0,
		"Runs code in a fresh sandbox that is gone afterwards, and gives its result. The "
		"simplest way to compute something."},
	{"context_create", "Start an interpreter", "POST", SANDBOX "/contexts", "language cwd env",
		0, "Starts an interpreter that keeps its variables; give its id to run_code."},
	{"file_read", "Read a file", "GET", SANDBOX "/files", "path", READS,
		"Reads a file, or a part of a large one.", .own = &mcp_content_read_fields,
		.handle = mcp_content_read_file},
	{"file_write", "Write a file", "PUT", SANDBOX "/files", "path mode", DESTROYS | REPEATS,
		"Writes a whole file; directories on the way are made.",
		.own = &mcp_content_write_fields, .handle = mcp_content_write_file},
	{"file_list", "List files", "GET", SANDBOX "/files/list", "path depth limit cursor", READS,
		"Lists what a directory has, with sizes and times."},
	{"file_move", "Rename a file", "POST", SANDBOX "/files/move", "from to", DESTROYS,
		"Renames a file or directory."},
	{"file_delete", "Delete a file", "DELETE", SANDBOX "/files", "path recursive",
		DESTROYS | REPEATS,
		"Removes a file, or with recursive a directory with all in it."},
	{"port_list", "List ports", "GET", SANDBOX "/ports", "", READS,
		"Lists what listens in a sandbox."},
	{"preview_url", "Open a port to a browser", "POST", SANDBOX "/ports/{port}/links",
		"expires_in_s", 0,
		"Makes a link under which a person opens what listens on a port of the sandbox.",
		.handle = mcp_content_open_port},
	{"network_allow", "Change the network policy", "PATCH", SANDBOX, "network", DESTROYS,
		"Changes what a sandbox may reach: mode none, allowlist or internet, and rules by "
		"name."},
	{"template_list", "List templates", "GET", "/v1/templates", "limit cursor", READS,
		"Lists what sandboxes can start from."},
	{"launch", "Launch an app", "POST", SANDBOX "/launch", "env preview", DESTROYS,
		"Turns the files of a sandbox into a running app with a preview: detects what it "
		"is, "
		"installs, checks, starts. launch_get tells how far it is."},
	{"launch_get", "Look at a launch", "GET", "/v1/launches/{launch}", "", READS,
		"The stages of a launch, what failed and why, and the address of its preview."},
};

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (size_t i = 0; i < array_len(table); i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}

/* The tool whose route, as "GET /v1/sandboxes", stands at the beginning of a text; how long it is. */
static const struct mcp_tool *named_by(const char *text, size_t *ret_len)
{
	for (size_t i = 0; i < array_len(table); i++) {
		size_t method = strlen(table[i].method), path = strlen(table[i].path);

		if (strncmp(text, table[i].method, method) != 0 || text[method] != ' ' ||
			strncmp(text + method + 1, table[i].path, path) != 0 ||
			text[method + 1 + path] == '/')
			continue;
		*ret_len = method + 1 + path;
		return &table[i];
	}
	return NULL;
}

char *mcp_tool_speak(const char *text)
{
	auto_(buf_fini) struct buf spoken = BUF_INIT(4096);

	while (*text) {
		size_t len = 1;
		const struct mcp_tool *tool =
			isupper((unsigned char)*text) ? named_by(text, &len) : NULL;

		if (tool)
			buf_append_str(&spoken, tool->name);
		else
			buf_append(&spoken, text, 1);
		text += len;
	}
	return buf_take_str(&spoken);
}

static const struct route *route_of(const struct mcp_tool *tool)
{
	size_t count;
	const struct route *routes = routes_table(&count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(routes[i].method, tool->method) == 0 &&
			strcmp(routes[i].path, tool->path) == 0)
			return &routes[i];
	}
	abort(); /* the table is wrong; a test walks it */
}

/* Whether a list with spaces between has the word. */
static bool lists(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; len > 0 && (at = strstr(at, word)); at += len) {
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	}
	return false;
}

/* What a model calls a part of a path: in its words an id says of what. */
static const char *shown_name(const char *parameter)
{
	return strcmp(parameter, "id") == 0 ? "sandbox" : parameter;
}

/* --- what it takes --- */

static void add_property(
	json_t *schema, const char *name, const char *doc, bool is_required, const json_t *type)
{
	json_t *property = json_deep_copy(type), *items = json_object_get(property, "items");

	/* The schema must stand alone. What refers elsewhere is a port with its rules, whose number does here. */
	if (json_object_get(items, "$ref"))
		json_object_set_new(property, "items", json_pack("{s:s}", "type", "integer"));
	if (doc)
		json_object_set_new(property, "description", json_string(doc));
	json_object_set_new(json_object_get(schema, "properties"), name, property);
	if (is_required)
		json_array_append_new(json_object_get(schema, "required"), json_string(name));
}

static bool is_required_in(const json_t *fields, const char *name)
{
	const json_t *required = json_object_get(fields, "required"), *one;
	size_t i;

	json_array_foreach(required, i, one)
	{
		if (strcmp(json_string_value(one), name) == 0)
			return true;
	}
	return false;
}

static void add_fields(json_t *schema, const struct fields *body, const char *only)
{
	json_auto_t *fields = fields_schema(body);
	const char *name;
	json_t *type;

	json_object_foreach(json_object_get(fields, "properties"), name, type)
	{
		if (!only || lists(only, name))
			add_property(schema, name, NULL, is_required_in(fields, name), type);
	}
}

static json_t *input_schema(const struct mcp_tool *tool)
{
	const struct route *route = route_of(tool);
	const struct api_doc *doc = route->doc;
	json_t *schema = json_pack("{s:s, s:{}, s:[], s:b}", "type", "object", "properties",
		"required", "additionalProperties", 0);
	json_auto_t *parameters = openapi_parameters(route);
	json_t *parameter;
	size_t i;

	json_array_foreach(parameters, i, parameter)
	{
		const char *name = json_string_value(json_object_get(parameter, "name"));
		bool is_part =
			strcmp(json_string_value(json_object_get(parameter, "in")), "path") == 0;

		if (is_part || lists(tool->arguments, name))
			add_property(schema, shown_name(name),
				json_string_value(json_object_get(parameter, "description")),
				json_is_true(json_object_get(parameter, "required")),
				json_object_get(parameter, "schema"));
	}
	if (tool->own)
		add_fields(schema, tool->own, NULL);
	else if (doc->body)
		add_fields(schema, doc->body, tool->arguments);
	return schema;
}

json_t *mcp_tool_list(void)
{
	json_t *tools = json_array();

	for (size_t i = 0; i < array_len(table); i++) {
		const struct mcp_tool *tool = &table[i];

		json_array_append_new(tools,
			json_pack("{s:s, s:s, s:s, s:o, s:{s:b, s:b, s:b, s:b}}", "name",
				tool->name, "title", tool->title, "description", tool->description,
				"inputSchema", input_schema(tool), "annotations", "readOnlyHint",
				(tool->hints & READS) != 0, "destructiveHint",
				(tool->hints & DESTROYS) != 0, "idempotentHint",
				(tool->hints & (READS | REPEATS)) != 0, "openWorldHint", 0));
	}
	return tools;
}

/* --- what is asked for --- */

/* A part of a path or a parameter as text; NULL if it can be none. The caller frees it. */
static char *value_text(const json_t *value)
{
	if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
		return mem_strdup(json_string_value(value));
	if (json_is_boolean(value) || json_is_integer(value))
		return json_dumps(value, JSON_ENCODE_ANY);
	return NULL;
}

static int wrong_value(const char *name, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_argument", NULL,
		"argument %s must be a text, a whole number or a boolean", name);
}

static int append_path(struct buf *target, const char *pattern, json_t *arguments, struct err *err)
{
	for (const char *at = pattern; *at;) {
		size_t fixed = strcspn(at, "{"), len;
		auto_free char *name = NULL, *text = NULL;
		const json_t *value;

		buf_append(target, at, fixed);
		at += fixed;
		if (!*at)
			break;
		len = strcspn(at, "}");
		name = mem_printf("%.*s", (int)len - 1, at + 1);
		at += len + 1;
		value = json_object_get(arguments, shown_name(name));
		if (!value)
			return err_explain(err, ERR_INVALID, "missing_argument", NULL,
				"argument %s must be given", shown_name(name));
		text = value_text(value);
		if (!text || !text[0])
			return wrong_value(shown_name(name), err);
		text_put_escaped(target, text);
		json_object_del(arguments, shown_name(name));
	}
	return 0;
}

static int append_query(struct buf *target, const struct mcp_tool *tool, const struct api_doc *doc,
	json_t *arguments, struct err *err)
{
	char joint = '?';

	for (size_t i = 0; i < doc->query_count; i++) {
		const char *name = doc->query[i].name;
		const json_t *value = json_object_get(arguments, name);
		auto_free char *text = NULL;

		if (!value || !lists(tool->arguments, name))
			continue;
		text = value_text(value);
		if (!text)
			return wrong_value(name, err);
		buf_printf(target, "%c%s=", joint, name);
		text_put_escaped(target, text);
		joint = '&';
		json_object_del(arguments, name);
	}
	return 0;
}

/* What is left are fields of the body. */
static int check_fields(const struct mcp_tool *tool, const json_t *arguments, struct err *err)
{
	const struct api_doc *doc = route_of(tool)->doc;
	const char *name;
	json_t *value;

	if (tool->own)
		return 0; /* its handler decodes them */
	json_object_foreach((json_t *)arguments, name, value)
	{
		if (!doc->body || !lists(tool->arguments, name))
			return err_explain(err, ERR_INVALID, "unknown_argument",
				"tools/list shows what it takes", "%s takes no argument %.64s",
				tool->name, name);
	}
	return 0;
}

/* A model that means "not given" often says null. */
static void drop_nulls(json_t *arguments)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(arguments, next, name, value)
	{
		if (json_is_null(value))
			json_object_del(arguments, name);
	}
}

void mcp_request_fini(struct mcp_request *request)
{
	free(request->target);
	json_decref(request->body);
}

int mcp_tool_request(const struct mcp_tool *tool, const json_t *arguments,
	struct mcp_request *ret_request, struct err *err)
{
	auto_(buf_fini) struct buf target = BUF_INIT(TARGET_LEN);
	json_auto_t *left = arguments ? json_copy((json_t *)arguments) : json_object();
	int r;

	drop_nulls(left);
	r = append_path(&target, tool->path, left, err);
	if (r == 0)
		r = append_query(&target, tool, route_of(tool)->doc, left, err);
	if (r == 0)
		r = check_fields(tool, left, err);
	if (r == 0 && target.failed)
		r = err_set(err, ERR_TOO_LARGE, "the arguments are too long");
	if (r < 0)
		return r;
	if (tool->fixed) {
		json_auto_t *fixed = json_loads(tool->fixed, 0, NULL);

		json_object_update(left, fixed);
	}
	*ret_request = (struct mcp_request){.method = tool->method,
		.target = buf_take_str(&target),
		.body = json_incref(left),
		.handle = tool->handle};
	return 0;
}
