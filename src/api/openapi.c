/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters and bodies come from the tables that also decode them, so the document cannot promise
 * what the server does not take. The shapes of answers are in schemas.json, what operations do is in
 * operations.json, examples are in examples.json, of which events streams consist is in
 * streams.json, and what a tag gathers, in the order to be read, in tags.json; the linker builds them in.
 */
#include "api/openapi.h"

#include "api/handlers.h"
#include "api/openapi_examples.h"
#include "api/routes.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

extern const char schemas_json[];
extern const char schemas_json_end[];
extern const char operations_json[];
extern const char operations_json_end[];
extern const char examples_json[];
extern const char examples_json_end[];
extern const char streams_json[];
extern const char streams_json_end[];
extern const char tags_json[];
extern const char tags_json_end[];

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert(value);
	return value;
}

static json_t *parse_file(const char *begin, const char *end)
{
	json_t *value = json_loadb(begin, (size_t)(end - begin), JSON_REJECT_DUPLICATES, NULL);

	assert(value);
	return value;
}

/* Media types, with spaces between, whose bodies are no JSON. */
static json_t *raw_content(const char *types)
{
	json_t *all = json_object();

	while (*types) {
		size_t len = strcspn(types, " ");

		json_object_setn_new(
			all, types, len, json_pack("{s:{s:s}}", "schema", "type", "string"));
		types += len + strspn(types + len, " ");
	}
	return all;
}

/* Media types as they are; a schema's name as a reference in JSON. */
static json_t *content(const char *answer)
{
	char ref[96];

	if (strcmp(answer, "application/json") == 0)
		return json_pack("{s:{}}", answer);
	if (strchr(answer, '/'))
		return raw_content(answer);
	snprintf(ref, sizeof(ref), "#/components/schemas/%s", answer);
	return json_pack("{s:{s:{s:s}}}", "application/json", "schema", "$ref", ref);
}

static void add_response(json_t *responses, int status, const char *answer)
{
	char key[8];
	json_t *response = json_pack("{s:s}", "description",
		status == 304	? "Not changed"
		: status >= 400 ? "Not now, and why"
				: "Done");

	snprintf(key, sizeof(key), "%d", status);
	if (answer && status != 204 && status != 304)
		json_object_set_new(response, "content", content(answer));
	json_object_set_new(responses, key, response);
}

static void add_stream(json_t *responses, int status, const char *type)
{
	json_t *stream = content(type);
	char key[8];

	snprintf(key, sizeof(key), "%d", status);
	json_object_update(json_object_get(json_object_get(responses, key), "content"), stream);
	json_decref(stream);
}

static json_t *responses_of(const struct route *route)
{
	const struct api_doc *doc = route->doc;
	const char *name = route->flags & ROUTE_E2B ? "E2bRefusal" : "Error";
	json_t *responses = json_object();
	json_t *error = json_pack("{s:s, s:o}", "description", "What went wrong, and what to do",
		"content", content(name));

	add_response(responses, doc->status, doc->answer);
	if (doc->stream_answer)
		add_stream(responses, doc->status, doc->stream_answer);
	for (const char *at = doc->also; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		add_response(responses, (int)strtol(at, NULL, 10),
			doc->also_answer ? doc->also_answer : doc->answer);
	json_object_set_new(responses, "default", error);
	return responses;
}

static void add_parameter(json_t *parameters, const char *name, const char *in, const char *doc,
	bool required, json_t *schema)
{
	json_array_append_new(
		parameters, json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "in", in,
				    "description", doc, "required", required, "schema", schema));
}

#define NAME_SCHEMA "{\"type\":\"string\",\"pattern\":\"^[0-9A-Za-z][0-9A-Za-z._-]*$\"}"

#define PATH_MAX_SHOWN 256

/* The variable parts of paths. */
static const struct api_parameter path_parts[] = {
	{"call", "{\"type\":\"string\"}",
		"The call, as clients of E2B write its path, with all its slashes.", true},
	{"id", "{\"type\":\"string\",\"pattern\":\"^([0-9a-z]{26}|[a-z][a-z0-9-]{0,39})$\"}",
		"The sandbox: its id, or its name.", true},
	{"context", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The context's id.",
		true},
	{"execution", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The execution's id.",
		true},
	{"launch", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The launch's id.",
		true},
	{"link", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The link's id.", true},
	{"login", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The session's id.",
		true},
	{"organization", NAME_SCHEMA, "The organization.", true},
	{"file", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":1023}",
		"The file: its id, or its path, in which slashes are written %2F.", true},
	{"project", NAME_SCHEMA, "The project: its id, or its name.", true},
	{"port", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":65535}", "The port.", true},
	{"process", "{\"type\":\"string\",\"pattern\":\"^p?[1-9][0-9]*$\"}",
		"The process: its id, or its pid.", true},
	{"template",
		"{\"type\":\"string\",\"pattern\":\"^[0-9A-Za-z._/:@][0-9A-Za-z._/:@-]{0,254}$\"}",
		"Name of the template, or the reference of an image that was used without a name; "
		"its slashes are written %2F.",
		true},
	{"function", "{\"type\":\"string\",\"pattern\":\"^[0-9A-Za-z][0-9A-Za-z._-]{0,62}$\"}",
		"The function's name.", true},
	{"path", "{\"type\":\"string\"}",
		"The artifact's path as it is listed, or below the directory for outputs; a slash "
		"in it may be %2F.",
		true},
	{"snapshot", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]{26}$\"}", "The snapshot's id.",
		true},
	{"secret", "{\"type\":\"string\",\"pattern\":\"^[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?$\"}",
		"The secret's name.", true},
	{"token", "{\"type\":\"string\",\"pattern\":\"^([0-9a-z]{26}|admin)$\"}", "The token's id.",
		true},
	{"user", NAME_SCHEMA, "The user of it.", true},
};

static bool has_part(const struct route *route, const char *name)
{
	char part[32], rest[32];

	snprintf(part, sizeof(part), "{%s}", name);
	snprintf(rest, sizeof(rest), "{%s*}", name);
	return strstr(route->path, part) || strstr(route->path, rest);
}

/* OpenAPI has no sign for a part that takes all that follows. */
static void show_path(const struct route *route, char path[PATH_MAX_SHOWN])
{
	size_t len = 0;

	for (const char *at = route->path; *at && len < PATH_MAX_SHOWN - 1; at++) {
		if (*at != '*')
			path[len++] = *at;
	}
	path[len] = '\0';
}

json_t *openapi_parameters(const struct route *route)
{
	const struct api_doc *doc = route->doc;
	json_t *parameters = json_array();

	for (size_t i = 0; i < array_len(path_parts); i++) {
		const struct api_parameter *p = &path_parts[i];

		if (has_part(route, p->name))
			add_parameter(
				parameters, p->name, "path", p->doc, p->required, parse(p->schema));
	}
	if (route->flags & ROUTE_TICKET)
		add_parameter(parameters, "ticket", "query",
			"A ticket of POST /v1/tickets, in the place of a token.", false,
			parse("{\"type\":\"string\"}"));
	if (route->flags & ROUTE_MEMBER)
		add_parameter(parameters, "member", "query",
			"Of a sandbox with members: the role of the one that is meant; else the "
			"sandbox itself.",
			false,
			parse("{\"type\":\"string\",\"enum\":[\"primary\",\"frontend\",\"backend\","
			      "\"database\",\"cache\"]}"));
	for (size_t i = 0; i < doc->query_count; i++) {
		const struct api_parameter *p = &doc->query[i];

		add_parameter(parameters, p->name, "query", p->doc, p->required, parse(p->schema));
	}
	for (size_t i = 0; i < doc->header_count; i++) {
		const struct api_parameter *p = &doc->headers[i];

		add_parameter(parameters, p->name, "header", p->doc, p->required, parse(p->schema));
	}
	return parameters;
}

/* None, or either of the two ways to send a token, which must have the scope. */
static json_t *security_of(const struct route *route)
{
	char scope[SCOPE_TEXT_MAX];

	if (route->flags & ROUTE_OPEN)
		return json_array();
	scope_format(route->scope, scope);
	return json_pack("[{s:[s]}, {s:[s]}]", "bearer", scope, "key", scope);
}

static json_t *body_of(const struct api_doc *doc)
{
	json_t *schema;
	bool is_required;

	if (doc->takes_any)
		return json_pack("{s:b, s:{s:{s:{s:s}}}}", "required", 0, "content",
			"application/json", "schema", "description",
			"Any JSON; any type with format=http.");
	if (doc->raw_body)
		return json_pack(
			"{s:b, s:o}", "required", 1, "content", raw_content(doc->raw_body));
	if (!doc->body)
		return NULL;
	schema = fields_schema(doc->body);
	is_required = doc->needs_body || json_object_get(schema, "required");
	return json_pack("{s:b, s:{s:{s:o}}}", "required", is_required, "content",
		"application/json", "schema", schema);
}

/* Whether a list with spaces between has a word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list; list += strcspn(list, " "), list += *list == ' ') {
		if (strcspn(list, " ") == len && strncmp(list, word, len) == 0)
			return true;
	}
	return false;
}

/*
 * OpenAPI 3.1 has no words for what a stream consists of: `x-events` has the schema of the data of each event by its
 * name, where `port.*` stands for all that begin with `port.` and are not named.
 */
static void add_events(json_t *operation, const char *id, const json_t *streams)
{
	json_t *media = json_object_get(
		json_object_get(
			json_object_get(json_object_get(operation, "responses"), "200"), "content"),
		"text/event-stream");
	json_t *events = json_object(), *one, *schema;
	const char *ids, *name;

	json_object_foreach((json_t *)streams, ids, one)
	{
		if (!has_word(ids, id))
			continue;
		json_object_foreach(one, name, schema) json_object_set_new(events, name,
			json_pack("{s:s+}", "$ref", "#/components/schemas/",
				json_string_value(schema)));
	}
	if (media && json_object_size(events) > 0)
		json_object_set(media, "x-events", events);
	json_decref(events);
}

static json_t *operation_of(const struct route *route, const json_t *texts, const json_t *streams)
{
	const struct api_doc *doc = route->doc;
	const char *description = json_string_value(json_object_get(texts, doc->id));
	json_t *operation = json_pack("{s:s, s:s, s:[s], s:o, s:o}", "operationId", doc->id,
		"summary", doc->summary, "tags", doc->tag, "parameters", openapi_parameters(route),
		"responses", responses_of(route));
	json_t *body = body_of(doc);

	json_object_set_new(
		operation, "description", json_string(description ? description : doc->summary));
	if (body)
		json_object_set_new(operation, "requestBody", body);
	json_object_set_new(operation, "security", security_of(route));
	add_events(operation, doc->id, streams);
	return operation;
}

static json_t *paths(void)
{
	json_t *texts = parse_file(operations_json, operations_json_end);
	json_t *streams = parse_file(streams_json, streams_json_end);
	json_t *all = json_object();
	size_t count;
	const struct route *routes = routes_table(&count);

	for (size_t i = 0; i < count; i++) {
		char shown[PATH_MAX_SHOWN], method[16] = "";
		json_t *path;

		for (size_t c = 0; routes[i].method[c] && c < sizeof(method) - 1; c++)
			method[c] = (char)tolower((unsigned char)routes[i].method[c]);
		show_path(&routes[i], shown);
		path = json_object_get(all, shown);
		if (!path) {
			path = json_object();
			json_object_set_new(all, shown, path);
		}
		json_object_set_new(path, method, operation_of(&routes[i], texts, streams));
	}
	json_decref(streams);
	json_decref(texts);
	return all;
}

/* What each scope means, where a reader of the document looks for it. */
static void describe_scopes(json_t *scheme)
{
	auto_(buf_fini) struct buf text = BUF_INIT(4096);
	auto_free char *description = NULL;

	buf_append_str(&text, "A token or a signed token (JWT). The scopes of tokens:");
	for (size_t i = 0; i < scope_count; i++)
		buf_printf(&text, "%s %s: %s", i ? ";" : "", scope_table[i].name,
			scope_table[i].meaning);
	description = buf_take_str(&text);
	json_object_set_new(scheme, "description", json_string(description));
}

json_t *openapi_make(void)
{
	json_t *schemas = parse_file(schemas_json, schemas_json_end);
	json_t *examples = parse_file(examples_json, examples_json_end);
	json_t *schemes =
		parse("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
		      "\"key\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}}");
	json_t *document;

	describe_scopes(json_object_get(schemes, "bearer"));
	describe_scopes(json_object_get(schemes, "key"));
	document = json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s, s:s}], s:[{s:[]}, "
			     "{s:[]}], s:o, s:o, s:{s:o, s:o}}",
		"openapi", "3.1.0", "info", "title", "Sandlot", "version", SANDLOT_VERSION,
		"description",
		"Isolated Linux environments for AI agents, generated projects and untrusted code.",
		"license", "name", "Apache-2.0", "identifier", "Apache-2.0", "servers", "url", "/",
		"description", "The daemon that served this document.", "security", "bearer", "key",
		"tags", parse_file(tags_json, tags_json_end), "paths", paths(), "components",
		"schemas", schemas, "securitySchemes", schemes);
	openapi_examples_add(document, examples);
	json_decref(examples);
	return document;
}
