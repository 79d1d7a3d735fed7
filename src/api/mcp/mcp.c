/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door for models: the Model Context Protocol over HTTP, one JSON-RPC message a POST.
 *
 * Two eras of it are served. Since 2026-07-28 a request says in its headers and its _meta all that there is to know, and
 * there is nothing else; before, a client said `initialize` first. Neither needs a session here: a tool names its
 * sandbox in each call. A call of a tool goes on as the request of the API that does it (http/server/request/request_redirect.h), with
 * the scope, the bounds and the account of that.
 */
#include "api/handlers.h"
#include "api/mcp/mcp_result.h"
#include "api/mcp/mcp_tool.h"
#include "api/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MODERN	      "2026-07-28"
#define LEGACY_NEWEST "2025-11-25"
#define META	      "io.modelcontextprotocol/"

static const char *const legacy_versions[] = {
	LEGACY_NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"};

#define INSTRUCTIONS                                                                               \
	"Sandboxes are isolated Linux environments. Create one with sandbox_create (or take one "  \
	"of "                                                                                      \
	"sandbox_list), run commands with exec, and name the sandbox in every call. Work in "      \
	"/workspace. To compute something once, run_code_once needs no sandbox. Delete what is "   \
	"no "                                                                                      \
	"longer needed."

enum {
	PARSE_ERROR = -32700,
	INVALID = -32600,
	NO_METHOD = -32601,
	BAD_PARAMS = -32602,
	HEADER_MISMATCH = -32020,
	BAD_VERSION = -32022
};

/* One message. Kept by the request. */
struct mcp_call {
	json_t *message;
	const json_t *id; /* of it */
	bool is_modern;
};

static void mcp_call_free(void *arg)
{
	struct mcp_call *call = arg;

	json_decref(call->message);
	free(call);
}

/* --- answers --- */

static json_t *envelope(const struct mcp_call *call)
{
	return json_pack("{s:s, s:O?}", "jsonrpc", "2.0", "id", call->id);
}

/* The modern era wants to know of every result that it is whole, and who gave it. */
static json_t *enclose(const struct mcp_call *call, json_t *result)
{
	json_t *answer = envelope(call);

	if (call->is_modern) {
		json_object_set_new(result, "resultType", json_string("complete"));
		json_object_set_new(result, "_meta",
			json_pack("{s:{s:s, s:s}}", META "serverInfo", "name", "sandlot", "version",
				SANDLOT_VERSION));
	}
	json_object_set_new(answer, "result", result);
	return answer;
}

static int answer_result(struct request *req, const struct mcp_call *call, json_t *result)
{
	request_answer_json(req, 200, enclose(call, result));
	return 0;
}

static int answer_error(struct request *req, const struct mcp_call *call, int status, int code,
	const char *message, json_t *data)
{
	json_t *answer = envelope(call);
	json_t *error = json_pack("{s:i, s:s}", "code", code, "message", message);

	if (data)
		json_object_set_new(error, "data", data);
	if (!call->id)
		json_object_set_new(answer, "id", json_null());
	json_object_set_new(answer, "error", error);
	request_answer_json(req, status, answer);
	return 0;
}

/* --- methods --- */

static json_t *capabilities(void)
{
	return json_pack("{s:{s:b}}", "tools", "listChanged", 0);
}

static bool is_legacy_version(const char *version)
{
	for (size_t i = 0; i < array_len(legacy_versions); i++) {
		if (strcmp(legacy_versions[i], version) == 0)
			return true;
	}
	return false;
}

static const char *param(const struct mcp_call *call, const char *name)
{
	return json_string_value(json_object_get(json_object_get(call->message, "params"), name));
}

static int initialize(struct request *req, struct mcp_call *call)
{
	const char *version = param(call, "protocolVersion");

	return answer_result(req, call,
		json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:s}", "protocolVersion",
			version && is_legacy_version(version) ? version : LEGACY_NEWEST,
			"capabilities", capabilities(), "serverInfo", "name", "sandlot", "title",
			"Sandlot", "version", SANDLOT_VERSION, "instructions", INSTRUCTIONS));
}

static json_t *supported(void)
{
	json_t *versions = json_pack("[s]", MODERN);

	for (size_t i = 0; i < array_len(legacy_versions); i++)
		json_array_append_new(versions, json_string(legacy_versions[i]));
	return versions;
}

/* What may be kept, and by whom, is said of lists in the modern era. */
static json_t *set_cache(const struct mcp_call *call, json_t *result)
{
	if (call->is_modern) {
		json_object_set_new(result, "ttlMs", json_integer(0));
		json_object_set_new(result, "cacheScope", json_string("private"));
	}
	return result;
}

static int discover(struct request *req, struct mcp_call *call)
{
	return answer_result(req, call,
		set_cache(call,
			json_pack("{s:o, s:o, s:s}", "supportedVersions", supported(),
				"capabilities", capabilities(), "instructions", INSTRUCTIONS)));
}

static int ping(struct request *req, struct mcp_call *call)
{
	return answer_result(req, call, json_object());
}

static int list_tools(struct request *req, struct mcp_call *call)
{
	return answer_result(
		req, call, set_cache(call, json_pack("{s:o}", "tools", mcp_tool_list())));
}

static json_t *translate(void *arg, int *status, json_t *body)
{
	const struct mcp_call *call = arg;
	json_t *result = mcp_result_make(*status, body);

	*status = 200;
	return enclose(call, result);
}

static int call_tool(struct request *req, struct mcp_call *call)
{
	const json_t *arguments =
		json_object_get(json_object_get(call->message, "params"), "arguments");
	const char *name = param(call, "name");
	const struct mcp_tool *tool = name ? mcp_tool_find(name) : NULL;
	struct mcp_request request = {0};
	struct err err = {0};
	int r;

	if (!tool)
		return answer_error(req, call, call->is_modern ? 400 : 200, BAD_PARAMS,
			"there is no tool of that name; tools/list has them", NULL);
	if (arguments && !json_is_object(arguments))
		return answer_error(req, call, call->is_modern ? 400 : 200, BAD_PARAMS,
			"arguments must be an object", NULL);
	r = mcp_tool_request(tool, arguments, &request, &err);
	if (r == 0)
		r = request_redirect(req,
			&(struct request_redirection){.method = request.method,
				.target = request.target,
				.body = request.body,
				.handle = request.handle,
				.translate = translate,
				.arg = call},
			&err);
	mcp_request_fini(&request);
	return r < 0 ? answer_result(req, call, mcp_result_fail(err.message, err.remedy)) : 0;
}

static const struct method {
	const char *name;
	int (*run)(struct request *req, struct mcp_call *call);
} methods[] = {
	{"initialize", initialize},
	{"ping", ping},
	{"server/discover", discover},
	{"tools/call", call_tool},
	{"tools/list", list_tools},
};

/* --- what is checked first --- */

/* The name that the modern era repeats in a header, perhaps as =?base64?...?=. */
static bool names_same(const char *header, const char *value)
{
	static const char mark[] = "=?base64?";
	size_t len = header ? strlen(header) : 0;
	auto_free char *inner = NULL;
	auto_free uint8_t *decoded = NULL;
	ssize_t size;

	if (!header || !value)
		return false;
	if (strncmp(header, mark, sizeof(mark) - 1) != 0 || len < sizeof(mark) + 1 ||
		strcmp(header + len - 2, "?=") != 0)
		return strcmp(header, value) == 0;
	inner = mem_printf("%.*s", (int)(len - sizeof(mark) - 1), header + sizeof(mark) - 1);
	size = text_decode_base64(inner, &decoded);
	return size == (ssize_t)strlen(value) && memcmp(decoded, value, (size_t)size) == 0;
}

/* Of the modern era: what its headers say must be what the message says. 0, or it is answered. */
static int check_modern(struct request *req, const struct mcp_call *call, const char *method)
{
	const json_t *meta = json_object_get(json_object_get(call->message, "params"), "_meta");
	const char *version = json_string_value(json_object_get(meta, META "protocolVersion"));
	const char *header = request_header(req, "MCP-Protocol-Version");

	if (version && header && strcmp(version, header) == 0 && strcmp(version, MODERN) != 0) {
		answer_error(req, call, 400, BAD_VERSION, "this version is not spoken here",
			json_pack("{s:o, s:s}", "supported", supported(), "requested", version));
		return -1;
	}
	if (!version || !json_is_object(json_object_get(meta, META "clientCapabilities"))) {
		answer_error(req, call, 400, BAD_PARAMS,
			"params._meta must have protocolVersion and clientCapabilities", NULL);
		return -1;
	}
	if (!header || strcmp(header, version) != 0 ||
		!names_same(request_header(req, "Mcp-Method"), method) ||
		(strcmp(method, "tools/call") == 0 &&
			!names_same(request_header(req, "Mcp-Name"), param(call, "name")))) {
		answer_error(req, call, 400, HEADER_MISMATCH,
			"the headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must say what "
			"the message says",
			NULL);
		return -1;
	}
	return 0;
}

/* The era of a message: the modern one says its version in each. */
static bool is_modern(const struct request *req, const json_t *message, const char *method)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");
	const char *header = request_header(req, "MCP-Protocol-Version");

	if (strcmp(method, "initialize") == 0)
		return false;
	return json_object_get(meta, META "protocolVersion") ||
	       (header && strcmp(header, MODERN) == 0);
}

static int run_method(struct request *req, struct mcp_call *call, const char *name)
{
	const char *header = request_header(req, "MCP-Protocol-Version");

	call->is_modern = is_modern(req, call->message, name);
	if (call->is_modern && check_modern(req, call, name) < 0)
		return 0;
	if (!call->is_modern && header && !is_legacy_version(header) &&
		strcmp(name, "initialize") != 0)
		return answer_error(req, call, 400, INVALID,
			"this version is not spoken here; begin with initialize", NULL);
	for (size_t i = 0; i < array_len(methods); i++) {
		if (strcmp(methods[i].name, name) == 0)
			return methods[i].run(req, call);
	}
	return answer_error(
		req, call, call->is_modern ? 404 : 200, NO_METHOD, "there is no such method", NULL);
}

HANDLER(mcp_post)
{
	struct mcp_call *call = mem_new(sizeof(*call));
	const char *method;
	struct err wrong;

	(void)context, (void)err;
	request_keep(req, call, mcp_call_free);
	if (request_body_value(req, &call->message, &wrong) < 0)
		return answer_error(req, call, 400, PARSE_ERROR, wrong.message, NULL);
	call->id = json_object_get(call->message, "id");
	method = json_string_value(json_object_get(call->message, "method"));
	if (!json_is_object(call->message) ||
		(call->id && !json_is_string(call->id) && !json_is_integer(call->id)) || !method ||
		!method[0]) {
		call->id = NULL;
		return answer_error(req, call, 400, INVALID,
			"a message is one JSON-RPC request with a method and an id that is a text "
			"or "
			"a whole number",
			NULL);
	}
	/* A notification: there is nothing to be done about any. */
	if (!call->id) {
		request_answer_empty(req, 202);
		return 0;
	}
	return run_method(req, call, method);
}
