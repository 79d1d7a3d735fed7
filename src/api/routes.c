/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/handlers.h"
#include "api/sandbox_body.h"

#define DOC(...)     (&(const struct api_doc){__VA_ARGS__})
#define QUERY(table) .query = (table), .query_count = array_len(table)

#define STRING	"{\"type\":\"string\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"

static const struct api_parameter list_query[] = {
	{"status",
		"{\"type\":\"string\",\"enum\":[\"creating\",\"running\",\"paused\",\"stopped\","
		"\"error\"]}",
		"Only those in this state.", false},
	{"template", STRING, "Only those from this template.", false},
	{"project", STRING, "Only that of this project.", false},
	{"label", STRING, "Only those with this label, as name=value.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		"How many on a page.", false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

#define PATH_ROW                                                                                   \
	{                                                                                          \
		"path", STRING, "Absolute path in the sandbox.", true                              \
	}

static const struct api_parameter path_query[] = {PATH_ROW};

static const struct api_parameter write_query[] = {
	PATH_ROW,
	{"mode", STRING, "Permission bits in octal; 0644, or what the replaced file has.", false},
};

static const struct api_parameter delete_query[] = {
	PATH_ROW,
	{"recursive", BOOLEAN, "Whether a directory goes with all that is in it.", false},
};

static const struct api_parameter files_list_query[] = {
	PATH_ROW,
	{"depth", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":64,\"default\":1}",
		"How many levels of directories.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"default\":1000}",
		"How many on a page.", false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

#define ONE    "/v1/sandboxes/{id}"
#define EVENTS "text/event-stream"
#define BYTES  "application/octet-stream"
#define TAR    "application/x-tar"

static const struct route table[] = {
	{"GET", "/healthz", service_health, ROUTE_OPEN,
		DOC("Whether the process serves", "service", .status = 200,
			.answer = "text/plain")},
	{"GET", "/readyz", service_ready, ROUTE_OPEN,
		DOC("Whether sandboxes can be created", "service", .status = 200,
			.answer = "text/plain")},
	{"GET", "/openapi.json", service_openapi, ROUTE_OPEN,
		DOC("This document", "service", .status = 200, .answer = "application/json")},
	{"GET", "/v1/version", service_version, 0,
		DOC("The daemon's version", "service", .status = 200, .answer = "Version")},
	{"POST", "/v1/shutdown", service_shutdown, 0,
		DOC("End the daemon, the keeper and all sandboxes", "service", .status = 202,
			.answer = "Status")},

	{"POST", "/v1/sandboxes", sandboxes_create, ROUTE_BODY,
		DOC("Create a sandbox and start it", "sandboxes", .body = &sandbox_body_fields,
			.status = 201, .answer = "Sandbox")},
	{"GET", "/v1/sandboxes", sandboxes_list, 0,
		DOC("List sandboxes", "sandboxes", QUERY(list_query), .status = 200,
			.answer = "SandboxList")},
	{"POST", "/v1/sandboxes/ensure", sandboxes_ensure, ROUTE_BODY,
		DOC("Get the sandbox of an id or project, woken or created if need be", "sandboxes",
			.body = &sandbox_body_fields, .status = 200, .answer = "Sandbox",
			.also = "201")},
	{"GET", ONE, sandboxes_get, 0,
		DOC("Look at a sandbox", "sandboxes", .status = 200, .answer = "Sandbox")},
	{"PATCH", ONE, sandboxes_patch, ROUTE_BODY,
		DOC("Change timeouts, labels, ports, privacy or network", "sandboxes",
			.body = &sandbox_patch_fields, .status = 200, .answer = "Sandbox")},
	{"DELETE", ONE, sandboxes_delete, 0,
		DOC("End a sandbox and forget it; its workspace stays", "sandboxes",
			.status = 204)},
	{"POST", ONE "/start", sandboxes_start, 0,
		DOC("Start a stopped sandbox", "sandboxes", .status = 200, .answer = "Sandbox")},
	{"POST", ONE "/stop", sandboxes_stop, 0,
		DOC("Stop a sandbox; its files stay", "sandboxes", .status = 200,
			.answer = "Sandbox")},
	{"POST", ONE "/pause", sandboxes_pause, 0,
		DOC("Freeze every process of a sandbox", "sandboxes", .status = 200,
			.answer = "Sandbox")},
	{"POST", ONE "/resume", sandboxes_resume, 0,
		DOC("Go on after a pause", "sandboxes", .status = 200, .answer = "Sandbox")},
	{"POST", ONE "/reset", sandboxes_reset, 0,
		DOC("Empty agent_workspace, outputs and the writable system layer", "sandboxes",
			.status = 200, .answer = "Sandbox")},
	{"POST", ONE "/purge", sandboxes_purge, 0,
		DOC("Remove a sandbox with its workspace, also after it was deleted", "sandboxes",
			.status = 204)},
	{"GET", ONE "/stats", sandboxes_stats, 0,
		DOC("What a sandbox uses", "sandboxes", .status = 200, .answer = "Stats")},
	{"GET", ONE "/events", sandboxes_events, 0,
		DOC("Follow what happens to a sandbox", "sandboxes", .status = 200,
			.answer = EVENTS)},

	{"POST", ONE "/exec", exec_run, ROUTE_BODY,
		DOC("Run a command; with Accept: text/event-stream, live", "exec",
			.body = &exec_fields, .status = 200, .answer = "ExecResult")},

	{"GET", ONE "/files", files_read, 0,
		DOC("Read a file, or a range of it", "files", QUERY(path_query), .status = 200,
			.answer = BYTES, .also = "206 304")},
	{"HEAD", ONE "/files", files_head, 0,
		DOC("Size and tag of a file", "files", QUERY(path_query), .status = 200,
			.answer = BYTES, .also = "206 304")},
	{"PUT", ONE "/files", files_write, ROUTE_RAW_BODY,
		DOC("Write a file, replacing it at a single instant", "files", QUERY(write_query),
			.raw_body = BYTES, .status = 201, .answer = "File", .also = "200")},
	{"DELETE", ONE "/files", files_delete, 0,
		DOC("Remove a file or directory", "files", QUERY(delete_query), .status = 204)},
	{"GET", ONE "/files/list", files_list, 0,
		DOC("List a directory", "files", QUERY(files_list_query), .status = 200,
			.answer = "FileList")},
	{"GET", ONE "/files/stat", files_stat, 0,
		DOC("Look at a file without following a link", "files", QUERY(path_query),
			.status = 200, .answer = "File")},
	{"POST", ONE "/files/mkdir", files_mkdir, ROUTE_BODY,
		DOC("Make a directory with its parents", "files", .body = &files_mkdir_fields,
			.status = 201, .answer = "File", .also = "200")},
	{"POST", ONE "/files/move", files_move, ROUTE_BODY,
		DOC("Rename or move", "files", .body = &files_move_fields, .status = 200,
			.answer = "File")},
	{"PUT", ONE "/files/archive", archives_unpack, ROUTE_RAW_BODY,
		DOC("Unpack a tar or tar.gz into a directory", "files", QUERY(path_query),
			.raw_body = TAR, .status = 200, .answer = "Unpacked")},
	{"GET", ONE "/files/archive", archives_pack, 0,
		DOC("A file or directory as a tar archive", "files", QUERY(path_query),
			.status = 200, .answer = TAR)},
};

const struct route *routes_table(size_t *ret_count)
{
	*ret_count = array_len(table);
	return table;
}
