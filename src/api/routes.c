/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/command_body.h"
#include "api/handlers.h"
#include "api/sandbox_body.h"

#include <string.h>

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

static const struct api_parameter tokens_query[] = {
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		"How many on a page.", false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter audit_query[] = {
	{"organization", STRING, "Only of this one; for administrators.", false},
	{"user", STRING, "Only what this user did.", false},
	{"action", STRING, "Only this action, such as sandbox.create.", false},
	{"object", STRING, "Only what was done to this sandbox, or to a process: id/p3.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		"How many on a page.", false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter verify_query[] = {
	{"head", STRING, "The head of an earlier verification, which must still be in the log.",
		false},
};

static const struct api_parameter processes_query[] = {
	{"status", "{\"type\":\"string\",\"enum\":[\"running\",\"exited\"]}",
		"Only those in this state.", false},
};

static const struct api_parameter kill_query[] = {
	{"kill_tree", "{\"type\":\"boolean\",\"default\":true}",
		"Whether all that it started ends too, or only its main process.", false},
};

static const struct api_parameter wait_query[] = {
	{"timeout_ms", "{\"type\":\"integer\",\"minimum\":1}",
		"Answers after so long, even if it still runs.", false},
};

static const struct api_parameter output_query[] = {
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"Resume after the event of this id. The header Last-Event-ID weighs more.", false},
	{"follow", "{\"type\":\"boolean\",\"default\":true}",
		"Whether to wait for what comes, or to end with what is there.", false},
};

static const struct api_parameter terminal_query[] = {
	{"cols", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":80}", "Width.",
		false},
	{"rows", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":24}", "Height.",
		false},
	{"user", STRING, "Who the shell runs as: sandbox, root, or a uid.", false},
	{"cwd", STRING, "Where it starts; /workspace.", false},
	{"process", STRING, "Attach to this process instead of starting a shell.", false},
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"Of an attached process: the first byte to be sent; else the last 256 KiB kept.",
		false},
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

static const struct api_parameter watch_query[] = {
	PATH_ROW,
	{"recursive", BOOLEAN, "Whether all directories below are watched too.", false},
};

#define EVENTS_TEXT                                                                                \
	"Server-sent events, with ids that grow. `status` {sandbox, status}: what it is now, the " \
	"first one. `sandbox.<status>` {sandbox, status, at}: what it has become, or that it was " \
	"deleted. `start.running`, `start.waiting`, `start.exited`, `start.killed` {sandbox, "     \
	"name, ...}: how a start command fares, as in `start` of the sandbox. "                    \
	"`network.denied` {sandbox, target, reason, rule, at}. `port.opened` and "                 \
	"`port.closed` {sandbox, address, port, pid, command, process, reachable, at}: something " \
	"listens on a TCP port, or no longer does; of those that are open already `port.opened` "  \
	"comes first. Ports are looked at twice a second while somebody follows and processes "    \
	"start, end or write, and every 4 seconds while all are silent: of one that opens and "    \
	"closes in between nothing is told. Following is no use of the sandbox, and "              \
	"wakes nobody. Who does not read fast enough misses events. The stream goes on with "      \
	"another sandbox of the same id, if that is yours too; else it ends."

#define PORTS_TEXT                                                                                 \
	"TCP sockets that listen, of IPv4 and IPv6, at most 128. Nothing listens in a sandbox "    \
	"that is stopped; of one that is paused it is not known (409). What is told comes from "   \
	"inside of the sandbox, which may lie about itself."

#define CONNECT_TEXT                                                                               \
	"Any TCP protocol, on any port that listens on 127.0.0.1, ::1 or all addresses. A "        \
	"stopped "                                                                                 \
	"sandbox is woken, and while the connection lasts it is not idle. Binary frames are "      \
	"bytes. The text frame {\"type\":\"end\"} says that no bytes follow in its direction; "    \
	"close when you have sent one and seen one. Leaving before that resets the connection "    \
	"inside; one that is reset there closes the WebSocket with 1011. If nothing listens, the " \
	"answer is an error with the code port_closed."

#define WATCH_TEXT                                                                                 \
	"Server-sent events; the id of each is one more than that of the one before. `ready` "     \
	"{path}: everything is watched from here on, and a listing made now misses nothing. "      \
	"`created`, `modified`, `deleted` {path, type}; `moved` {path, to, type}; type is file, "  \
	"dir, symlink or other (of what was deleted: file or dir). `overflow` {}: changes were "   \
	"too many or were not read fast enough, and some were missed; list again. `gone` {path}: " \
	"what was watched is not there any more, or the sandbox ended; the last event. Paths "     \
	"are absolute; one that is not UTF-8 comes as path_base64 (to_base64).\n\n"                \
	"A file is modified when a program closes it after writing, when its mode, owner or "      \
	"times change, and at most about seven times a second while it is kept open and "          \
	"written. A rename within the watched directories is `moved`, also one that replaces "     \
	"something: an editor or `sed -i` that writes a new file and renames it over the old "     \
	"one is seen as `moved` to the old name. A rename into them is `created`, out of them "    \
	"`deleted`. What is in a directory that is made or moved in comes as `created` too. If "   \
	"path is a file, whatever replaces it is `modified`, and it is gone when it has been "     \
	"missing for half a second. If path is a symbolic link, it is followed; links below it "   \
	"are not, and neither are file systems that the kernel makes up, such as /proc. A watch "  \
	"counts as a use of the sandbox when it is opened, not while it is open."

#define TICKET_TEXT                                                                                \
	"Send it as ?ticket= in the place of a token. It is good for a minute, once, and for the " \
	"path that it names; the scope of that route is checked when it is used. Events, output, " \
	"file watches and terminals take one."

#define SECRET_TEXT                                                                                \
	"A sandbox whose `network.secrets` has the name reaches the server as "                    \
	"http://<name>.internal/, over plain HTTP; the daemon adds the secret to each request, "   \
	"in the place of what the sandbox may have sent in that field, and speaks TLS to the "     \
	"server if its URL says so. If the URL is plain http, requests that name the server "      \
	"itself get it too. It goes to no other server: redirects are not followed. Setting it "   \
	"again acts on the next request."

#define ONE	     "/v1/sandboxes/{id}"
#define PROCESS	     ONE "/processes/{process}"
#define ORGANIZATION "/v1/quotas/{organization}"
#define EVENTS	     "text/event-stream"
#define BYTES	     "application/octet-stream"
#define TAR	     "application/x-tar"

static const struct route table[] = {
	{"GET", "/healthz", service_health, ROUTE_OPEN, 0,
		DOC("Whether the process serves", "service", .status = 200,
			.answer = "text/plain")},
	{"GET", "/readyz", service_ready, ROUTE_OPEN, 0,
		DOC("Whether sandboxes can be created", "service", .status = 200,
			.answer = "text/plain")},
	{"GET", "/openapi.json", service_openapi, ROUTE_OPEN, 0,
		DOC("This document", "service", .status = 200, .answer = "application/json")},
	{"GET", "/v1/version", service_version, 0, SCOPE_READ,
		DOC("The daemon's version", "service", .status = 200, .answer = "Version")},
	{"POST", "/v1/shutdown", service_shutdown, 0, SCOPE_ADMIN,
		DOC("End the daemon, the keeper and all sandboxes", "service", .status = 202,
			.answer = "Status"),
		"daemon.shutdown"},

	{"GET", "/v1/audit", audits_list, 0, SCOPE_READ,
		DOC("What was done in the name of an organization, the newest first", "audit",
			QUERY(audit_query), .status = 200, .answer = "AuditPage")},
	{"GET", "/v1/audit/verify", audits_verify, 0, SCOPE_ADMIN,
		DOC("Walk the chain of the audit log and name the first entry that is wrong",
			"audit", QUERY(verify_query), .status = 200, .answer = "AuditReport")},

	{"POST", "/v1/tokens", tokens_create, ROUTE_BODY, SCOPE_ADMIN,
		DOC("Make a token; its secret is shown this once", "tokens", .body = &tokens_fields,
			.status = 201, .answer = "NewToken"),
		"token.create"},
	{"GET", "/v1/tokens", tokens_list, 0, SCOPE_READ,
		DOC("List tokens: an administrator all, others those of their owner", "tokens",
			QUERY(tokens_query), .status = 200, .answer = "TokenList")},
	{"GET", "/v1/tokens/{token}", tokens_get, 0, SCOPE_READ,
		DOC("Look at a token", "tokens", .status = 200, .answer = "Token")},
	{"DELETE", "/v1/tokens/{token}", tokens_revoke, 0, SCOPE_MANAGE,
		DOC("Revoke a token, and cut what is served to it", "tokens", .status = 204),
		"token.revoke"},
	{"POST", "/v1/tickets", tickets_create, ROUTE_BODY, SCOPE_READ,
		DOC("A ticket for one WebSocket or event stream, for browsers", "tokens",
			.body = &tickets_fields, .status = 201, .answer = "Ticket",
			.description = TICKET_TEXT),
		"ticket.create"},

	{"GET", "/v1/quotas", quotas_own, 0, SCOPE_READ,
		DOC("The quotas of your organization and of yourself", "quotas", .status = 200,
			.answer = "QuotaList")},
	{"GET", ORGANIZATION, quotas_get, 0, SCOPE_ADMIN,
		DOC("What an organization may have, and has", "quotas", .status = 200,
			.answer = "Quota")},
	{"PUT", ORGANIZATION, quotas_put, ROUTE_BODY, SCOPE_ADMIN,
		DOC("Set the quotas of an organization", "quotas", .body = &quotas_fields,
			.status = 200, .answer = "Quota"),
		"quota.set"},
	{"DELETE", ORGANIZATION, quotas_delete, 0, SCOPE_ADMIN,
		DOC("Let the default quotas hold for an organization", "quotas", .status = 204),
		"quota.delete"},
	{"GET", ORGANIZATION "/{user}", quotas_get, 0, SCOPE_ADMIN,
		DOC("What a user may have, and has", "quotas", .status = 200, .answer = "Quota")},
	{"PUT", ORGANIZATION "/{user}", quotas_put, ROUTE_BODY, SCOPE_ADMIN,
		DOC("Set the quotas of a user", "quotas", .body = &quotas_fields, .status = 200,
			.answer = "Quota"),
		"quota.user.set"},
	{"DELETE", ORGANIZATION "/{user}", quotas_delete, 0, SCOPE_ADMIN,
		DOC("Let the default quotas hold for a user", "quotas", .status = 204),
		"quota.user.delete"},

	{"GET", "/v1/secrets", secrets_list, 0, SCOPE_READ,
		DOC("List the secrets that your sandboxes may use, without their values", "secrets",
			.status = 200, .answer = "SecretList")},
	{"PUT", "/v1/secrets/{secret}", secrets_put, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Set a secret, and the one server that gets it", "secrets",
			.body = &secrets_fields, .status = 200, .answer = "Secret",
			.description = SECRET_TEXT),
		"secret.set"},
	{"DELETE", "/v1/secrets/{secret}", secrets_delete, 0, SCOPE_MANAGE,
		DOC("Remove a secret; no request gets it from then on", "secrets", .status = 204),
		"secret.delete"},

	{"POST", "/v1/sandboxes", sandboxes_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Create a sandbox and start it", "sandboxes", .body = &sandbox_body_fields,
			.status = 201, .answer = "Sandbox"),
		"sandbox.create"},
	{"GET", "/v1/sandboxes", sandboxes_list, 0, SCOPE_READ,
		DOC("List sandboxes", "sandboxes", QUERY(list_query), .status = 200,
			.answer = "SandboxList")},
	{"POST", "/v1/sandboxes/ensure", sandboxes_ensure, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Get the sandbox of an id or project, woken or created if need be", "sandboxes",
			.body = &sandbox_body_fields, .status = 200, .answer = "Sandbox",
			.also = "201"),
		"sandbox.ensure"},
	{"GET", ONE, sandboxes_get, 0, SCOPE_READ,
		DOC("Look at a sandbox", "sandboxes", .status = 200, .answer = "Sandbox")},
	{"PATCH", ONE, sandboxes_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Change timeouts, labels, ports, privacy or network", "sandboxes",
			.body = &sandbox_patch_fields, .status = 200, .answer = "Sandbox"),
		"sandbox.update"},
	{"DELETE", ONE, sandboxes_delete, 0, SCOPE_MANAGE,
		DOC("End a sandbox and forget it; its workspace stays", "sandboxes", .status = 204),
		"sandbox.delete"},
	{"POST", ONE "/start", sandboxes_start, 0, SCOPE_MANAGE,
		DOC("Start a stopped sandbox", "sandboxes", .status = 200, .answer = "Sandbox"),
		"sandbox.start"},
	{"POST", ONE "/stop", sandboxes_stop, 0, SCOPE_MANAGE,
		DOC("Stop a sandbox; its files stay", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.stop"},
	{"POST", ONE "/pause", sandboxes_pause, 0, SCOPE_MANAGE,
		DOC("Freeze every process of a sandbox", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.pause"},
	{"POST", ONE "/resume", sandboxes_resume, 0, SCOPE_MANAGE,
		DOC("Go on after a pause", "sandboxes", .status = 200, .answer = "Sandbox"),
		"sandbox.resume"},
	{"POST", ONE "/reset", sandboxes_reset, 0, SCOPE_MANAGE,
		DOC("Empty agent_workspace, outputs and the writable system layer", "sandboxes",
			.status = 200, .answer = "Sandbox"),
		"sandbox.reset"},
	{"POST", ONE "/purge", sandboxes_purge, 0, SCOPE_MANAGE,
		DOC("Remove a sandbox with its workspace, also after it was deleted", "sandboxes",
			.status = 204),
		"sandbox.purge"},
	{"GET", ONE "/stats", sandboxes_stats, 0, SCOPE_READ,
		DOC("What a sandbox uses", "sandboxes", .status = 200, .answer = "Stats")},
	{"GET", ONE "/network", networks_get, 0, SCOPE_READ,
		DOC("What a sandbox may reach, what it reached and what was refused", "sandboxes",
			.status = 200, .answer = "Network")},
	{"GET", ONE "/events", sandboxes_events, ROUTE_TICKET, SCOPE_READ,
		DOC("Follow what happens to a sandbox", "sandboxes", .status = 200,
			.answer = EVENTS, .description = EVENTS_TEXT)},

	{"GET", ONE "/ports", ports_list, ROUTE_WAITS, SCOPE_READ,
		DOC("List what listens in a sandbox, without waking it", "previews", .status = 200,
			.answer = "Ports", .description = PORTS_TEXT)},
	{"GET", ONE "/ports/{port}/connect", ports_connect, ROUTE_WEBSOCKET | ROUTE_TICKET,
		SCOPE_RUN,
		DOC("A connection to a port as a WebSocket (subprotocol tcp.v1)", "previews",
			.status = 101, .answer = NULL, .description = CONNECT_TEXT),
		"port.connect"},
	{"PATCH", ONE "/ports/{port}", preview_ports_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Give a port a preview: who may see it, and what its app sees of paths",
			"previews", .body = &preview_ports_fields, .status = 200,
			.answer = "PreviewPort"),
		"preview.update"},
	{"POST", ONE "/ports/{port}/links", preview_links_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("Make a link that opens the preview of a port", "previews",
			.body = &preview_links_fields, .status = 201, .answer = "PreviewLink"),
		"preview.link"},
	{"GET", ONE "/ports/{port}/links", preview_links_list, 0, SCOPE_READ,
		DOC("List the links of a port", "previews", .status = 200,
			.answer = "PreviewLinks")},
	{"DELETE", ONE "/ports/{port}/links/{link}", preview_links_delete, 0, SCOPE_MANAGE,
		DOC("Revoke a link", "previews", .status = 204), "preview.revoke"},

	{"POST", ONE "/exec", exec_run, ROUTE_BODY, SCOPE_RUN,
		DOC("Run a command; with Accept: text/event-stream, live", "exec",
			.body = &command_body_fields, .status = 200, .answer = "ExecResult",
			.also = "201", .also_answer = "ProcessAnswer"),
		"exec.run"},

	{"GET", ONE "/processes", processes_list, 0, SCOPE_READ,
		DOC("List processes: those that run, and the last that ended", "processes",
			QUERY(processes_query), .status = 200, .answer = "ProcessList")},
	{"GET", PROCESS, processes_get, 0, SCOPE_READ,
		DOC("Look at a process, by its id or its pid", "processes", .status = 200,
			.answer = "ProcessAnswer")},
	{"DELETE", PROCESS, processes_kill, 0, SCOPE_RUN,
		DOC("Kill a process with all that it started, and wait for its end", "processes",
			QUERY(kill_query), .status = 204),
		"process.kill"},
	{"GET", PROCESS "/wait", processes_wait, 0, SCOPE_READ,
		DOC("Wait until a process has ended", "processes", QUERY(wait_query), .status = 200,
			.answer = "ProcessAnswer")},
	{"GET", PROCESS "/output", processes_output, ROUTE_TICKET, SCOPE_READ,
		DOC("Replay and follow the output of a process; resumes after Last-Event-ID",
			"processes", QUERY(output_query), .status = 200, .answer = EVENTS,
			.also = "204")},
	{"POST", PROCESS "/stdin", processes_stdin, ROUTE_BODY, SCOPE_RUN,
		DOC("Write to standard input, and close it", "processes",
			.body = &processes_stdin_fields, .status = 204),
		"process.stdin"},
	{"POST", PROCESS "/signal", processes_signal, ROUTE_BODY, SCOPE_RUN,
		DOC("Send a signal", "processes", .body = &processes_signal_fields, .status = 204),
		"process.signal"},
	{"POST", PROCESS "/resize", processes_resize, ROUTE_BODY, SCOPE_RUN,
		DOC("Change the size of its terminal", "processes",
			.body = &processes_resize_fields, .status = 204),
		"process.resize"},
	{"GET", ONE "/terminal", terminals_open, ROUTE_WEBSOCKET | ROUTE_TICKET, SCOPE_RUN,
		DOC("A terminal as a WebSocket (subprotocol pty.v1): binary frames are bytes, text "
		    "frames JSON control",
			"processes", QUERY(terminal_query), .status = 101, .answer = NULL),
		"terminal.open"},

	{"GET", ONE "/files", files_read, ROUTE_WAITS, SCOPE_FILES,
		DOC("Read a file, or a range of it", "files", QUERY(path_query), .status = 200,
			.answer = BYTES, .also = "206 304")},
	{"HEAD", ONE "/files", files_head, ROUTE_WAITS, SCOPE_FILES,
		DOC("Size and tag of a file", "files", QUERY(path_query), .status = 200,
			.answer = BYTES, .also = "206 304")},
	{"PUT", ONE "/files", files_write, ROUTE_RAW_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("Write a file, replacing it at a single instant", "files", QUERY(write_query),
			.raw_body = BYTES, .status = 201, .answer = "File", .also = "200"),
		"file.write"},
	{"DELETE", ONE "/files", files_delete, ROUTE_WAITS, SCOPE_FILES,
		DOC("Remove a file or directory", "files", QUERY(delete_query), .status = 204),
		"file.delete"},
	{"GET", ONE "/files/list", files_list, ROUTE_WAITS, SCOPE_FILES,
		DOC("List a directory", "files", QUERY(files_list_query), .status = 200,
			.answer = "FileList")},
	{"GET", ONE "/files/stat", files_stat, ROUTE_WAITS, SCOPE_FILES,
		DOC("Look at a file without following a link", "files", QUERY(path_query),
			.status = 200, .answer = "File")},
	{"POST", ONE "/files/mkdir", files_mkdir, ROUTE_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("Make a directory with its parents", "files", .body = &files_mkdir_fields,
			.status = 201, .answer = "File", .also = "200"),
		"file.mkdir"},
	{"POST", ONE "/files/move", files_move, ROUTE_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("Rename or move", "files", .body = &files_move_fields, .status = 200,
			.answer = "File"),
		"file.move"},
	{"GET", ONE "/files/watch", watches_open, ROUTE_TICKET | ROUTE_WAITS, SCOPE_FILES,
		DOC("Follow what happens to files", "files", QUERY(watch_query), .status = 200,
			.answer = EVENTS, .description = WATCH_TEXT)},
	{"PUT", ONE "/files/archive", archives_unpack, ROUTE_RAW_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("Unpack a tar or tar.gz into a directory", "files", QUERY(path_query),
			.raw_body = TAR, .status = 200, .answer = "Unpacked"),
		"file.unpack"},
	{"GET", ONE "/files/archive", archives_pack, ROUTE_WAITS, SCOPE_FILES,
		DOC("A file or directory as a tar archive", "files", QUERY(path_query),
			.status = 200, .answer = TAR)},
};

const struct route *routes_table(size_t *ret_count)
{
	*ret_count = array_len(table);
	return table;
}

bool routes_take_query(const struct route *route, const char *name)
{
	const struct api_doc *doc = route->doc;

	for (size_t i = 0; i < doc->query_count; i++)
		if (strcmp(doc->query[i].name, name) == 0)
			return true;
	return false;
}
