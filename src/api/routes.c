/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/project/project_body.h"
#include "api/sandbox/dependency_body.h"
#include "api/sandbox/sandbox_body.h"

#include <string.h>

#define DOC(...)       (&(const struct api_doc){__VA_ARGS__})
#define QUERY(table)   .query = (table), .query_count = array_len(table)
#define HEADERS(table) .headers = (table), .header_count = array_len(table)

#define STRING "{\"type\":\"string\"}"
/* LIST_PAGE_BYTES bounds it too. */
#define PAGE_LIMIT "How many on a page, at most: one has no more than about 1 MiB."
#define BOOLEAN	   "{\"type\":\"boolean\"}"
#define TIME	   "{\"type\":\"string\",\"format\":\"date-time\"}"

static const struct api_parameter list_query[] = {
	{"status",
		"{\"type\":\"string\",\"enum\":[\"creating\",\"running\",\"paused\",\"stopped\","
		"\"error\"]}",
		"Only those in this state.", false},
	{"template", STRING, "Only those from this template.", false},
	{"project", STRING, "Only those of this project, by name or id.", false},
	{"session", STRING, "Only those of this session.", false},
	{"label", STRING, "Only those with this label, as name=value.", false},
	{"removed", BOOLEAN,
		"Whether to list, as `removed`, the workspaces that removed sandboxes left; no "
		"other "
		"filter goes with it.",
		false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter tokens_query[] = {
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter snapshots_query[] = {
	{"sandbox", STRING,
		"Only those of this sandbox, by its id or name; by its id it may be gone.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter changes_query[] = {
	{"since", STRING, "Since this snapshot, by its id; else since it was created.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"default\":1000}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter archive_query[] = {
	{"tag", STRING, "Which of the images of the archive; needed if there are several.", false},
	{"shared", BOOLEAN, "Whether it is everybody's. Needs the scope admin.", false},
};

static const struct api_parameter jobs_query[] = {
	{"state",
		"{\"type\":\"string\",\"enum\":[\"queued\",\"running\",\"succeeded\","
		"\"failed\",\"cancelled\",\"lost\"]}",
		"Only those in this state.", false},
	{"kind", STRING, "Only those of this kind.", false},
	{"target", STRING, "Only those about this object.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter executions_query[] = {
	{"sandbox", STRING,
		"Only those in this sandbox, by its id or name; by its id it may be gone.", false},
	{"status",
		"{\"type\":\"string\",\"enum\":[\"queued\",\"running\",\"succeeded\",\"failed\","
		"\"timeout\",\"cancelled\",\"lost\"]}",
		"Only those in this state.", false},
	{"language", STRING, "Only those in this language.", false},
	{"function", STRING, "Only calls of this function.", false},
	{"since", TIME, "Only those that were asked for at this time or later.", false},
	{"until", TIME, "Only those that were asked for before.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter execution_stats_query[] = {
	{"sandbox", STRING,
		"Only those in this sandbox, by its id or name; by its id it may be gone.", false},
	{"function", STRING, "Only calls of this function.", false},
	{"since", TIME, "Only those that were asked for at this time or later.", false},
	{"until", TIME, "Only those that were asked for before.", false},
};

static const struct api_parameter execution_query[] = {
	{"wait_ms", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":86400000}",
		"Answers when it is over, or after so long.", false},
};

static const struct api_parameter execution_retry_query[] = {
	{"async", BOOLEAN, "Answers with 202 as soon as it runs.", false},
};

static const struct api_parameter function_query[] = {
	{"version", STRING, "A version by its number; the last if left out, or for $LATEST.",
		false},
};

static const struct api_parameter function_invoke_query[] = {
	{"version", STRING, "A version by its number; the last if left out, or for $LATEST.",
		false},
	{"format", "{\"type\":\"string\",\"enum\":[\"json\",\"http\",\"http-2.0\"]}",
		"http: the event tells of the whole request, and the result becomes the answer, as "
		"with API Gateway; http-2.0 is version 2.0 of its payload. Other parameters belong "
		"to the event then.",
		false},
	{"async", BOOLEAN, "Answers with 202 and the execution as soon as it runs.", false},
};

static const struct api_parameter execution_events_query[] = {
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"Resume after the event of this id. The header Last-Event-ID weighs more.", false},
};

static const struct api_parameter job_log_query[] = {
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"The id of the last event that was seen; Last-Event-ID does the same.", false},
	{"follow", BOOLEAN, "Whether to wait for what comes; true.", false},
};

static const struct api_parameter events_query[] = {
	{"topics", STRING,
		"Only these, with commas between: sandbox, start, port, network, job, execution, "
		"project, member, pool, and process and stats, which come only if they are named.",
		false},
	{"sandbox", STRING, "Only of this sandbox, by its id or name; its ports are watched then.",
		false},
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"Resume after the event of this id. The header Last-Event-ID weighs more.", false},
};

static const struct api_parameter search_query[] = {
	{"q", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}",
		"What a line must have: a text as it is, no pattern.", true},
	{"process", STRING, "Only of this process, by its id.", false},
	{"ignore_case", BOOLEAN, "Whether A is a; of letters of ASCII.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		"How many lines, at most.", false},
};

static const struct api_parameter history_query[] = {
	{"window", "{\"type\":\"string\",\"enum\":[\"hour\",\"day\"],\"default\":\"hour\"}",
		"An hour in steps of 10 seconds, or a day in steps of 5 minutes.", false},
};

static const struct api_parameter audit_query[] = {
	{"organization", STRING, "Only of this one; for administrators.", false},
	{"user", STRING, "Only what this user did.", false},
	{"action", STRING, "Only this action, such as sandbox.create.", false},
	{"object", STRING,
		"Only what was done to this object: a sandbox, by its id or name, or a process: "
		"web/p3.",
		false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter verify_query[] = {
	{"head", STRING, "The head of an earlier verification, which must still be in the log.",
		false},
};

static const struct api_parameter processes_query[] = {
	{"status", "{\"type\":\"string\",\"enum\":[\"running\",\"exited\"]}",
		"Only those in this state.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
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

static const struct api_parameter create_headers[] = {
	{"Idempotency-Key", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":255}",
		"A text of your own for this sandbox: a request that is sent again with it makes "
		"no "
		"second one, and gets the answer of the first.",
		false},
};

static const struct api_parameter exec_headers[] = {
	{"Accept", STRING, "text/event-stream: output is sent while the command runs.", false},
};

static const struct api_parameter output_headers[] = {
	{"Last-Event-ID", STRING, "Resume after the event of this id, as browsers do.", false},
};

static const struct api_parameter process_output_headers[] = {
	{"Last-Event-ID", STRING, "Resume after the event of this id, as browsers do.", false},
	{"Accept", STRING,
		"application/json: what was printed so far, at once. Anything else: events.",
		false},
};

static const struct api_parameter read_headers[] = {
	{"Range", STRING, "One range of bytes, such as bytes=0-99; answered with 206.", false},
	{"If-Range", STRING, "A tag; if the file has another by now, all of it is sent.", false},
	{"If-None-Match", STRING, "A tag; if the file still has it, the answer is 304.", false},
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
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter project_files_query[] = {
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"default\":1000}",
		PAGE_LIMIT, false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter project_put_query[] = {
	{"path", STRING, "Its path in the project, relative.", true},
	{"executable", BOOLEAN, "Whether it may be executed.", false},
	{"sync", BOOLEAN, "Whether it comes from the directory that the project follows.", false},
};

static const struct api_parameter project_export_query[] = {
	{"format",
		"{\"type\":\"string\",\"enum\":[\"tar\",\"tar.gz\",\"zip\"],\"default\":\"tar\"}",
		"What kind of archive it is to be.", false},
};
static const struct api_parameter project_archive_query[] = {
	{"path", STRING, "A directory of the project that the files go below; its root.", false},
	{"sync", BOOLEAN,
		"Whether files of earlier archives with this parameter that are not in it are "
		"removed.",
		false},
};

static const struct api_parameter launches_query[] = {
	{"project", STRING, "Only those of this project, by name or id.", false},
	{"sandbox", STRING,
		"Only those in this sandbox, by its id or name; by its id it may be gone.", false},
	{"status", STRING, "Only those with this status.", false},
	{"failed_stage", STRING, "Only those that failed in this stage.", false},
	{"days", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":3660}",
		"Only those of the last so many days.", false},
	{"since", TIME, "Only those that were asked for at this time or later.", false},
	{"limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
		"At most so many.", false},
	{"cursor", STRING, "next_cursor of the page before.", false},
};

static const struct api_parameter launch_stats_query[] = {
	{"project", STRING, "Only those of this project, by name or id.", false},
	{"days", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":3660}",
		"Only those of the last so many days.", false},
	{"since", TIME, "Only those that were asked for at this time or later.", false},
};

static const struct api_parameter launch_events_query[] = {
	{"from", "{\"type\":\"integer\",\"minimum\":0}",
		"Where to go on: the id of the last event that was seen.", false},
};

static const struct api_parameter watch_query[] = {
	PATH_ROW,
	{"recursive", BOOLEAN, "Whether all directories below are watched too.", false},
};

static const struct api_parameter mcp_headers[] = {
	{"MCP-Protocol-Version", STRING, "The version of the protocol that the client speaks.",
		false},
	{"Mcp-Method", STRING, "Since 2026-07-28: the method of the message.", false},
	{"Mcp-Name", STRING, "Since 2026-07-28: the tool that it calls.", false},
};

#define ONE	     "/v1/sandboxes/{id}"
#define PROCESS	     ONE "/processes/{process}"
#define EXECUTION    "/v1/executions/{execution}"
#define CONTEXT	     ONE "/contexts/{context}"
#define FUNCTION     "/v1/functions/{function}"
#define LAUNCH	     "/v1/launches/{launch}"
#define PROJECT	     "/v1/projects/{project}"
#define ORGANIZATION "/v1/quotas/{organization}"
#define EVENTS	     "text/event-stream"
#define BYTES	     "application/octet-stream"
#define TAR	     "application/x-tar"
#define ARCHIVE	     "application/x-tar application/gzip application/octet-stream"

static const struct route table[] = {
	{"GET", "/healthz", service_health, ROUTE_OPEN, 0,
		DOC("getHealth", "Whether the process serves", "service", .status = 200,
			.answer = "text/plain")},
	{"GET", "/readyz", service_ready, ROUTE_OPEN, 0,
		DOC("getReadiness",
			"Whether sandboxes can be created; 503 says why not, as when the disk is "
			"full",
			"service", .status = 200, .answer = "text/plain", .also = "503")},
	{"GET", "/openapi.json", service_openapi, ROUTE_OPEN, 0,
		DOC("getOpenapi", "This document", "service", .status = 200,
			.answer = "application/json")},
	{"GET", "/metrics", metrics_read, 0, SCOPE_ADMIN,
		DOC("getMetrics", "Figures of the daemon, for Prometheus", "service", .status = 200,
			.answer = "text/plain")},
	{"POST", "/mcp", mcp_post, ROUTE_BODY | ROUTE_ANY_BODY, SCOPE_READ,
		DOC("callMcp", "The door for models: the Model Context Protocol", "service",
			HEADERS(mcp_headers), .takes_any = true, .status = 200,
			.answer = "McpMessage", .also = "202 400 404",
			.also_answer = "McpRefusal")},
	{"GET", "/e2b/{call*}", e2b_get, ROUTE_FREE_QUERY | ROUTE_E2B, SCOPE_READ,
		DOC("readCompatibly", "The door for programs of E2B: calls that read", "service",
			.status = 200, .answer = "E2bAnswer", .stream_answer = BYTES " text/plain",
			.also = "204 400 404 502", .also_answer = "E2bAnswer")},
	{"POST", "/e2b/{call*}", e2b_post,
		ROUTE_BODY | ROUTE_ANY_BODY | ROUTE_FREE_QUERY | ROUTE_E2B, SCOPE_READ,
		DOC("callCompatibly", "The door for programs of E2B: calls that act", "service",
			.takes_any = true, .status = 200, .answer = "E2bAnswer",
			.stream_answer = "application/connect+json application/x-ndjson",
			.also = "201 204 400 404 409 501 503", .also_answer = "E2bAnswer")},
	{"DELETE", "/e2b/{call*}", e2b_delete, ROUTE_FREE_QUERY | ROUTE_E2B, SCOPE_READ,
		DOC("deleteCompatibly", "The door for programs of E2B: calls that remove",
			"service", .status = 204, .answer = NULL, .also = "200 404",
			.also_answer = "E2bAnswer")},
	{"POST", "/e2b/data/{id}/envd/files", e2b_upload_write,
		ROUTE_RAW_BODY | ROUTE_WAITS | ROUTE_FREE_QUERY | ROUTE_E2B, SCOPE_FILES,
		DOC("uploadCompatibly", "The door for programs of E2B: files", "service",
			.raw_body = BYTES, .status = 200, .answer = "E2bAnswer",
			.also = "400 404 507", .also_answer = "E2bAnswer"),
		"file.upload"},
	{"GET", "/v1/version", service_version, 0, SCOPE_READ,
		DOC("getVersion", "The daemon's version", "service", .status = 200,
			.answer = "Version")},
	{"GET", "/v1/drivers", service_drivers, 0, SCOPE_READ,
		DOC("listDrivers", "What can run sandboxes here, and what each can do", "service",
			.status = 200, .answer = "DriverList")},
	{"POST", "/v1/shutdown", service_shutdown, 0, SCOPE_ADMIN,
		DOC("shutDown", "End the daemon, the keeper and all sandboxes", "service",
			.status = 202, .answer = "Status"),
		"daemon.shutdown"},
	{"GET", "/v1/doctor", doctor_report, 0, SCOPE_ADMIN,
		DOC("getDoctor", "What is missing or slow on the host, and what mends it",
			"service", .status = 200, .answer = "DoctorReport")},
	{"GET", "/v1/backups", service_backups, 0, SCOPE_ADMIN,
		DOC("listBackups",
			"List the backups of the state, the oldest first, and why the last failed",
			"service", .status = 200, .answer = "BackupList")},

	{"POST", "/v1/backups", jobs_back_up, 0, SCOPE_ADMIN,
		DOC("createBackup", "Write a backup of the state now, as a job", "service",
			.status = 202, .answer = "Job"),
		"backup.create"},

	{"GET", "/v1/jobs", jobs_list, 0, SCOPE_READ,
		DOC("listJobs", "List jobs, the newest first", "jobs", QUERY(jobs_query),
			.status = 200, .answer = "JobList")},
	{"GET", "/v1/jobs/{id}", jobs_get, 0, SCOPE_READ,
		DOC("getJob", "Look at a job", "jobs", .status = 200, .answer = "Job")},
	{"GET", "/v1/jobs/{id}/log", jobs_log, ROUTE_TICKET, SCOPE_READ,
		DOC("followJobLog", "Follow the log of a job", "jobs", QUERY(job_log_query),
			.status = 200, .answer = EVENTS, .also = "204")},
	{"POST", "/v1/jobs/{id}/cancel", jobs_cancel, 0, SCOPE_MANAGE,
		DOC("cancelJob", "Ask for the end of a job", "jobs", .status = 200,
			.answer = "Job"),
		"job.cancel"},
	{"GET", "/v1/executions", executions_list, 0, SCOPE_READ,
		DOC("listExecutions", "List executions, the newest first", "executions",
			QUERY(executions_query), .status = 200, .answer = "ExecutionList")},
	{"POST", "/v1/executions", fresh_executions_run, ROUTE_BODY, SCOPE_RUN,
		DOC("executeOnce", "Run code for its result in a fresh sandbox, gone afterwards",
			"executions", HEADERS(exec_headers), .body = &executions_fresh_fields,
			.needs_body = true, .status = 200, .answer = "Execution",
			.stream_answer = EVENTS, .also = "202"),
		"execution.run_fresh"},
	{"GET", "/v1/executions/stats", executions_stats, 0, SCOPE_READ,
		DOC("getExecutionStats",
			"Count executions by sandbox and function, with how long they took",
			"executions", QUERY(execution_stats_query), .status = 200,
			.answer = "ExecutionStats")},
	{"GET", EXECUTION "/artifacts/{path*}", artifacts_read, ROUTE_WAITS, SCOPE_FILES,
		DOC("readArtifact", "Read a file that an execution wrote to its outputs",
			"executions", .status = 200, .answer = BYTES)},
	{"GET", EXECUTION, executions_get, 0, SCOPE_READ,
		DOC("getExecution", "Look at an execution, or wait for its end", "executions",
			QUERY(execution_query), .status = 200, .answer = "Execution")},
	{"GET", EXECUTION "/events", executions_events, ROUTE_TICKET, SCOPE_READ,
		DOC("followExecution", "Follow an execution", "executions",
			QUERY(execution_events_query), HEADERS(output_headers), .status = 200,
			.answer = EVENTS)},
	{"POST", EXECUTION "/cancel", executions_cancel, 0, SCOPE_RUN,
		DOC("cancelExecution", "End an execution with all that it started", "executions",
			.status = 200, .answer = "Execution"),
		"execution.cancel"},
	{"POST", EXECUTION "/retry", executions_retry, 0, SCOPE_RUN,
		DOC("retryExecution", "Run again what an execution was asked for", "executions",
			QUERY(execution_retry_query), HEADERS(exec_headers), .status = 200,
			.answer = "Execution", .stream_answer = EVENTS, .also = "202"),
		"execution.retry"},

	{"GET", "/v1/functions", functions_list, 0, SCOPE_READ,
		DOC("listFunctions", "List functions in their last version", "functions",
			.status = 200, .answer = "FunctionList")},
	{"PUT", FUNCTION, functions_put, ROUTE_BODY, SCOPE_MANAGE,
		DOC("putFunction", "Make a new version of a function", "functions",
			.body = &functions_fields, .needs_body = true, .status = 200,
			.answer = "Function"),
		"function.put"},
	{"GET", FUNCTION, functions_get, 0, SCOPE_READ,
		DOC("getFunction", "Look at a function, with its code", "functions",
			QUERY(function_query), .status = 200, .answer = "Function")},
	{"DELETE", FUNCTION, functions_delete, 0, SCOPE_MANAGE,
		DOC("deleteFunction", "Remove a function in all its versions", "functions",
			.status = 204),
		"function.delete"},
	{"GET", FUNCTION "/versions", functions_versions, 0, SCOPE_READ,
		DOC("listFunctionVersions", "List the versions of a function, the last first",
			"functions", .status = 200, .answer = "FunctionList")},
	{"POST", FUNCTION "/invoke", functions_invoke,
		ROUTE_BODY | ROUTE_ANY_BODY | ROUTE_FREE_QUERY | ROUTE_REPEATED_QUERY, SCOPE_RUN,
		DOC("invokeFunction",
			"Call a function: the body is the event, the answer its result",
			"functions", QUERY(function_invoke_query), HEADERS(exec_headers),
			.takes_any = true, .status = 200, .answer = "FunctionResult",
			.stream_answer = EVENTS, .also = "202"),
		"function.invoke"},
	{"GET", "/v1/events", events_of_owner, ROUTE_TICKET, SCOPE_READ,
		DOC("followEvents", "Follow what happens to all that is yours", "events",
			QUERY(events_query), HEADERS(output_headers), .status = 200,
			.answer = EVENTS)},

	{"GET", "/v1/audit", audits_list, 0, SCOPE_READ,
		DOC("listAuditEntries",
			"What was done in the name of an organization, the newest first", "audit",
			QUERY(audit_query), .status = 200, .answer = "AuditPage")},
	{"GET", "/v1/audit/verify", audits_verify, 0, SCOPE_ADMIN,
		DOC("verifyAudit",
			"Walk the chain of the audit log and name the first entry that is wrong",
			"audit", QUERY(verify_query), .status = 200, .answer = "AuditReport")},

	{"POST", "/v1/tokens", tokens_create, ROUTE_BODY, SCOPE_ADMIN,
		DOC("createToken", "Make a token; its secret is shown this once", "tokens",
			.body = &tokens_fields, .status = 201, .answer = "NewToken"),
		"token.create"},
	{"GET", "/v1/tokens", tokens_list, 0, SCOPE_READ,
		DOC("listTokens", "List tokens: an administrator all, others those of their owner",
			"tokens", QUERY(tokens_query), .status = 200, .answer = "TokenList")},
	{"GET", "/v1/tokens/{token}", tokens_get, 0, SCOPE_READ,
		DOC("getToken", "Look at a token", "tokens", .status = 200, .answer = "Token")},
	{"DELETE", "/v1/tokens/{token}", tokens_revoke, 0, SCOPE_MANAGE,
		DOC("revokeToken", "Revoke a token, and cut what is served to it", "tokens",
			.status = 204),
		"token.revoke"},
	{"POST", "/v1/tickets", tickets_create, ROUTE_BODY, SCOPE_READ,
		DOC("createTicket", "A ticket for one WebSocket or event stream, for browsers",
			"tokens", .body = &tickets_fields, .status = 201, .answer = "Ticket"),
		"ticket.create"},

	{"POST", "/v1/login", logins_create, ROUTE_OPEN | ROUTE_BODY, 0,
		DOC("signIn", "Begin a session of a browser, with a token", "tokens",
			.body = &logins_fields, .needs_body = true, .status = 201,
			.answer = "Login"),
		"login.create"},
	{"GET", "/v1/login", logins_get_own, 0, SCOPE_READ,
		DOC("getLogin", "Who you are, and what you may do", "tokens", .status = 200,
			.answer = "Identity")},
	{"POST", "/v1/logout", logins_end_own, 0, SCOPE_READ,
		DOC("signOut", "End the session of this browser", "tokens", .status = 204),
		"login.sign_out"},
	{"GET", "/v1/logins", logins_list, 0, SCOPE_READ,
		DOC("listLogins",
			"List sessions of browsers: an administrator all, others those of their "
			"owner",
			"tokens", QUERY(tokens_query), .status = 200, .answer = "LoginList")},
	{"DELETE", "/v1/logins/{login}", logins_end, 0, SCOPE_MANAGE,
		DOC("endLogin", "End a session of a browser, and cut what is served to it",
			"tokens", .status = 204),
		"login.end"},

	{"GET", "/v1/quotas", quotas_own, 0, SCOPE_READ,
		DOC("listOwnQuotas", "The quotas of your organization and of yourself", "quotas",
			.status = 200, .answer = "QuotaList")},
	{"GET", "/v1/owners", quotas_owners, 0, SCOPE_ADMIN,
		DOC("listOwners", "List the owners there are, with what each may have, and has",
			"quotas", QUERY(tokens_query), .status = 200, .answer = "OwnerList")},
	{"GET", ORGANIZATION, quotas_get, 0, SCOPE_ADMIN,
		DOC("getOrganizationQuota", "What an organization may have, and has", "quotas",
			.status = 200, .answer = "Quota")},
	{"PUT", ORGANIZATION, quotas_put, ROUTE_BODY, SCOPE_ADMIN,
		DOC("setOrganizationQuota", "Set the quotas of an organization", "quotas",
			.body = &quotas_fields, .status = 200, .answer = "Quota"),
		"quota.set"},
	{"DELETE", ORGANIZATION, quotas_delete, 0, SCOPE_ADMIN,
		DOC("deleteOrganizationQuota", "Let the default quotas hold for an organization",
			"quotas", .status = 204),
		"quota.delete"},
	{"GET", ORGANIZATION "/{user}", quotas_get, 0, SCOPE_ADMIN,
		DOC("getUserQuota", "What a user may have, and has", "quotas", .status = 200,
			.answer = "Quota")},
	{"PUT", ORGANIZATION "/{user}", quotas_put, ROUTE_BODY, SCOPE_ADMIN,
		DOC("setUserQuota", "Set the quotas of a user", "quotas", .body = &quotas_fields,
			.status = 200, .answer = "Quota"),
		"quota.user.set"},
	{"DELETE", ORGANIZATION "/{user}", quotas_delete, 0, SCOPE_ADMIN,
		DOC("deleteUserQuota", "Let the default quotas hold for a user", "quotas",
			.status = 204),
		"quota.user.delete"},

	{"GET", "/v1/pools", pools_list, 0, SCOPE_ADMIN,
		DOC("listPools", "List the pools of sandboxes that wait for a create", "pools",
			.status = 200, .answer = "PoolList")},

	{"GET", "/v1/orphans", orphans_list, 0, SCOPE_ADMIN,
		DOC("listOrphans", "List sandboxes that have files, but no row in the database",
			"orphans", QUERY(tokens_query), .status = 200, .answer = "OrphanList")},
	{"POST", "/v1/orphans/{id}/adopt", orphans_adopt, ROUTE_BODY, SCOPE_ADMIN,
		DOC("adoptOrphan",
			"Make an orphan a stopped sandbox of an owner, with the default settings",
			"orphans", .body = &orphans_fields, .status = 201, .answer = "Sandbox"),
		"orphan.adopt"},
	{"DELETE", "/v1/orphans/{id}", orphans_purge, 0, SCOPE_ADMIN,
		DOC("purgeOrphan", "Remove the files of an orphan for good", "orphans",
			.status = 204),
		"orphan.purge"},

	{"GET", "/v1/secrets", secrets_list, 0, SCOPE_READ,
		DOC("listSecrets",
			"List the secrets that your sandboxes may use, without their values",
			"secrets", .status = 200, .answer = "SecretList")},
	{"PUT", "/v1/secrets/{secret}", secrets_put, ROUTE_BODY, SCOPE_MANAGE,
		DOC("setSecret", "Set a secret, and the one server that gets it", "secrets",
			.body = &secrets_fields, .status = 200, .answer = "Secret"),
		"secret.set"},
	{"DELETE", "/v1/secrets/{secret}", secrets_delete, 0, SCOPE_MANAGE,
		DOC("deleteSecret", "Remove a secret; no request gets it from then on", "secrets",
			.status = 204),
		"secret.delete"},

	{"GET", "/v1/templates", templates_list, 0, SCOPE_READ,
		DOC("listTemplates", "List the templates that your sandboxes may start from",
			"templates", QUERY(tokens_query), .status = 200, .answer = "TemplateList")},
	{"POST", "/v1/templates", templates_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createTemplate", "Make a template of an image", "templates",
			.body = &templates_fields, .status = 202, .answer = "Template"),
		"template.create"},
	{"GET", "/v1/templates/{template}", templates_get, 0, SCOPE_READ,
		DOC("getTemplate", "Look at a template", "templates", .status = 200,
			.answer = "Template")},
	{"PATCH", "/v1/templates/{template}", templates_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("updateTemplate", "Change the defaults that a template gives its sandboxes",
			"templates", .body = &templates_patch_fields, .needs_body = true,
			.status = 200, .answer = "Template"),
		"template.update"},
	{"DELETE", "/v1/templates/{template}", templates_delete, 0, SCOPE_MANAGE,
		DOC("deleteTemplate", "Remove a template that no sandbox uses", "templates",
			.status = 204),
		"template.delete"},
	{"POST", "/v1/templates/{template}/build", templates_build, ROUTE_BODY, SCOPE_MANAGE,
		DOC("buildTemplate", "Build a template again", "templates",
			.body = &templates_build_fields, .status = 202, .answer = "Template"),
		"template.build"},
	{"GET", "/v1/templates/{template}/log", templates_log, ROUTE_TICKET, SCOPE_READ,
		DOC("followTemplateLog", "Follow the log of a template's build", "templates",
			QUERY(job_log_query), .status = 200, .answer = EVENTS, .also = "204")},
	{"POST", "/v1/templates/{template}/cancel", templates_cancel, 0, SCOPE_MANAGE,
		DOC("cancelTemplate", "Ask for the end of a template's build", "templates",
			.status = 200, .answer = "Template"),
		"template.cancel"},
	{"DELETE", "/v1/build-cache", templates_clear_cache, 0, SCOPE_MANAGE,
		DOC("clearBuildCache", "Forget what steps of your builds have made", "templates",
			.status = 200, .answer = "BuildCacheCleared"),
		"template.clear_cache"},
	{"POST", "/v1/templates/prune", templates_prune, ROUTE_BODY, SCOPE_ADMIN,
		DOC("pruneTemplates", "Remove layers of images that nothing uses", "templates",
			.body = &templates_prune_fields, .status = 200, .answer = "Pruned"),
		"template.prune"},
	{"GET", "/v1/templates/{template}/archive", templates_export, ROUTE_WAITS, SCOPE_READ,
		DOC("exportTemplate", "Get a template as an image in an archive", "templates",
			.status = 200, .answer = TAR)},
	{"PUT", "/v1/templates/{template}/archive", templates_import_archive, ROUTE_RAW_BODY,
		SCOPE_MANAGE,
		DOC("importTemplate", "Make a template of an image in an archive", "templates",
			QUERY(archive_query), .raw_body = ARCHIVE, .status = 200,
			.answer = "Template"),
		"template.import"},
	{"PUT", "/v1/templates/{template}/files", templates_put_files, ROUTE_RAW_BODY, SCOPE_MANAGE,
		DOC("putTemplateFiles", "Send files that a Dockerfile copies", "templates",
			.raw_body = ARCHIVE, .status = 200, .answer = "TemplateFiles"),
		"template.files"},

	{"POST", ONE "/snapshots", snapshots_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createSnapshot", "Keep a copy of all files of a sandbox", "snapshots",
			.body = &snapshots_take_fields, .status = 201, .answer = "Snapshot"),
		"snapshot.create"},
	{"GET", "/v1/snapshots", snapshots_list, 0, SCOPE_READ,
		DOC("listSnapshots", "List snapshots", "snapshots", QUERY(snapshots_query),
			.status = 200, .answer = "SnapshotList")},
	{"GET", "/v1/snapshots/{snapshot}", snapshots_get, 0, SCOPE_READ,
		DOC("getSnapshot", "Look at a snapshot", "snapshots", .status = 200,
			.answer = "Snapshot")},
	{"DELETE", "/v1/snapshots/{snapshot}", snapshots_delete, 0, SCOPE_MANAGE,
		DOC("deleteSnapshot", "Remove a snapshot", "snapshots", .status = 204),
		"snapshot.delete"},
	{"POST", ONE "/restore", snapshots_restore_sandbox, ROUTE_BODY, SCOPE_MANAGE,
		DOC("restoreSandbox", "Give a sandbox the files of a snapshot", "snapshots",
			.body = &snapshots_restore_fields, .status = 200, .answer = "Sandbox"),
		"sandbox.restore"},
	{"POST", ONE "/fork", snapshots_fork_sandbox, ROUTE_BODY, SCOPE_MANAGE,
		DOC("forkSandbox", "Make new sandboxes with the files of one", "snapshots",
			.body = &snapshots_fork_fields, .status = 201, .answer = "Fork"),
		"sandbox.fork"},
	{"POST", ONE "/undo", snapshots_undo, 0, SCOPE_MANAGE,
		DOC("undoSandbox", "Go back to the last checkpoint", "snapshots", .status = 200,
			.answer = "Sandbox"),
		"sandbox.undo"},
	{"GET", ONE "/changes", snapshots_list_changes, ROUTE_WAITS, SCOPE_READ,
		DOC("listChanges", "List the files that a sandbox added, changed and deleted",
			"snapshots", QUERY(changes_query), .status = 200, .answer = "ChangeList")},

	{"POST", "/v1/launches", launches_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createLaunch", "Launch a project: from its files to a preview", "launches",
			.body = &launch_create_fields, .needs_body = true, .status = 200,
			.also = "202", .answer = "Launch", .stream_answer = EVENTS),
		"launch.create"},
	{"GET", "/v1/launches", launches_list, 0, SCOPE_READ,
		DOC("listLaunches", "List launches, the newest first", "launches",
			QUERY(launches_query), .status = 200, .answer = "LaunchList")},
	{"GET", "/v1/launches/stats", launches_get_stats, 0, SCOPE_READ,
		DOC("getLaunchStats", "How launches went, stage by stage", "launches",
			QUERY(launch_stats_query), .status = 200, .answer = "LaunchStats")},
	{"GET", LAUNCH, launches_get_one, 0, SCOPE_READ,
		DOC("getLaunch", "Look at a launch", "launches", .status = 200,
			.answer = "Launch")},
	{"GET", LAUNCH "/events", launches_events, ROUTE_TICKET, SCOPE_READ,
		DOC("followLaunch", "Follow the stages of a launch", "launches",
			QUERY(launch_events_query), .status = 200, .answer = EVENTS,
			.also = "204")},
	{"POST", LAUNCH "/cancel", launches_cancel_one, 0, SCOPE_RUN,
		DOC("cancelLaunch", "Ask for the end of a launch", "launches", .status = 200,
			.answer = "Launch"),
		"launch.cancel"},
	{"POST", LAUNCH "/retry", launches_retry_one, ROUTE_BODY, SCOPE_RUN,
		DOC("retryLaunch", "Launch again what ended, from a stage on", "launches",
			.body = &launch_retry_fields, .status = 200, .also = "202",
			.answer = "Launch", .stream_answer = EVENTS),
		"launch.retry"},
	{"GET", PROJECT "/detection", launches_detect, 0, SCOPE_READ,
		DOC("detectProject", "What a project is made of, and why that is thought",
			"launches", .status = 200, .answer = "Detection")},
	{"POST", PROJECT "/validate", launches_validate, 0, SCOPE_FILES,
		DOC("validateProject", "What would keep a project from running", "launches",
			.status = 200, .answer = "Validation"),
		"project.validate"},
	{"POST", ONE "/launch", launches_create_in_sandbox, ROUTE_BODY, SCOPE_RUN,
		DOC("launchSandbox", "Launch the files of a sandbox", "launches",
			.body = &launch_sandbox_fields, .status = 200, .also = "202",
			.answer = "Launch", .stream_answer = EVENTS),
		"sandbox.launch"},
	{"POST", "/v1/projects", projects_create_one, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createProject", "Make a project", "projects", .body = &project_create_fields,
			.status = 201, .answer = "Project"),
		"project.create"},
	{"GET", "/v1/projects", projects_list, 0, SCOPE_READ,
		DOC("listProjects", "List projects", "projects", QUERY(tokens_query), .status = 200,
			.answer = "ProjectList")},
	{"POST", "/v1/projects/scrub", projects_scrub_all, 0, SCOPE_ADMIN,
		DOC("scrubProjects", "Compare the files of all projects with the database",
			"projects", .status = 200, .answer = "ProjectScrub"),
		"project.scrub"},
	{"GET", PROJECT, projects_get, 0, SCOPE_READ,
		DOC("getProject", "Look at a project", "projects", .status = 200,
			.answer = "Project")},
	{"PATCH", PROJECT, projects_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("changeProject", "Change a project", "projects", .body = &project_patch_fields,
			.status = 200, .answer = "Project"),
		"project.change"},
	{"DELETE", PROJECT, projects_delete, ROUTE_WAITS, SCOPE_MANAGE,
		DOC("deleteProject", "Remove a project with its files", "projects", .status = 204),
		"project.delete"},
	{"POST", PROJECT "/sandboxes", sandboxes_create_in_project, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createProjectSandbox", "Create a sandbox of a project and start it",
			"projects", HEADERS(create_headers), .body = &sandbox_body_fields,
			.status = 201, .answer = "Sandbox", .also = "202"),
		"project.sandbox.create"},
	{"GET", PROJECT "/files", project_files_list, 0, SCOPE_READ,
		DOC("listProjectFiles", "List the files of a project, in order of their paths",
			"projects", QUERY(project_files_query), .status = 200,
			.answer = "ProjectFileList")},
	{"PUT", PROJECT "/files", project_files_put, ROUTE_RAW_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("putProjectFile", "Upload a file, in the place of the one that has its path",
			"projects", QUERY(project_put_query), .raw_body = BYTES, .status = 201,
			.answer = "ProjectFile", .also = "200"),
		"project.file.write"},
	{"POST", PROJECT "/files", project_files_post, ROUTE_RAW_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("uploadProjectFiles", "Upload files as a form", "projects",
			.raw_body = "multipart/form-data", .status = 201,
			.answer = "ProjectUpload"),
		"project.file.upload"},
	{"GET", PROJECT "/files/{file}", project_files_get, ROUTE_WAITS, SCOPE_FILES,
		DOC("getProjectFile", "Download a file", "projects", HEADERS(read_headers),
			.status = 200, .answer = "*/*", .also = "206 304")},
	{"PATCH", PROJECT "/files/{file}", project_files_patch, ROUTE_BODY, SCOPE_FILES,
		DOC("moveProjectFile", "Give a file another path", "projects",
			.body = &project_move_fields, .status = 200, .answer = "ProjectFile"),
		"project.file.move"},
	{"DELETE", PROJECT "/files/{file}", project_files_delete, 0, SCOPE_FILES,
		DOC("deleteProjectFile", "Remove a file", "projects", .status = 204),
		"project.file.delete"},
	{"PUT", PROJECT "/archive", project_archive_put, ROUTE_RAW_BODY | ROUTE_WAITS, SCOPE_FILES,
		DOC("importProject", "Upload the files of a tar, tar.gz or zip", "projects",
			QUERY(project_archive_query), .raw_body = BYTES, .status = 200,
			.answer = "ProjectImport"),
		"project.import"},
	{"GET", PROJECT "/archive", project_archive_get, ROUTE_WAITS, SCOPE_FILES,
		DOC("exportProject", "All files of a project as an archive", "projects",
			QUERY(project_export_query), .status = 200,
			.answer = TAR " application/gzip application/zip")},

	{"POST", "/v1/sandboxes", sandboxes_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createSandbox", "Create a sandbox and start it", "sandboxes",
			HEADERS(create_headers), .body = &sandbox_body_fields, .status = 201,
			.answer = "Sandbox", .also = "202"),
		"sandbox.create"},
	{"GET", "/v1/sandboxes", sandboxes_list, 0, SCOPE_READ,
		DOC("listSandboxes", "List sandboxes", "sandboxes", QUERY(list_query),
			.status = 200, .answer = "SandboxList")},
	{"POST", "/v1/sandboxes/ensure", sandboxes_ensure, ROUTE_BODY, SCOPE_MANAGE,
		DOC("ensureSandbox",
			"Get the sandbox of an id or project, woken or created if need be",
			"sandboxes", .body = &sandbox_body_fields, .status = 200,
			.answer = "Sandbox", .also = "201 202"),
		"sandbox.ensure"},
	{"GET", ONE, sandboxes_get, 0, SCOPE_READ,
		DOC("getSandbox", "Look at a sandbox", "sandboxes", .status = 200,
			.answer = "Sandbox")},
	{"PATCH", ONE, sandboxes_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("updateSandbox", "Change timeouts, labels, ports, privacy or network",
			"sandboxes", .body = &sandbox_patch_fields, .status = 200,
			.answer = "Sandbox"),
		"sandbox.update"},
	{"DELETE", ONE, sandboxes_delete, 0, SCOPE_MANAGE,
		DOC("deleteSandbox", "End a sandbox and forget it; its workspace stays",
			"sandboxes", .status = 204),
		"sandbox.delete"},
	{"POST", ONE "/start", sandboxes_start, 0, SCOPE_MANAGE,
		DOC("startSandbox", "Start a stopped sandbox", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.start"},
	{"POST", ONE "/stop", sandboxes_stop, 0, SCOPE_MANAGE,
		DOC("stopSandbox", "Stop a sandbox; its files stay", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.stop"},
	{"POST", ONE "/pause", sandboxes_pause, 0, SCOPE_MANAGE,
		DOC("pauseSandbox", "Freeze every process of a sandbox", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.pause"},
	{"POST", ONE "/resume", sandboxes_resume, 0, SCOPE_MANAGE,
		DOC("resumeSandbox", "Go on after a pause", "sandboxes", .status = 200,
			.answer = "Sandbox"),
		"sandbox.resume"},
	{"POST", ONE "/reset", sandboxes_reset, 0, SCOPE_MANAGE,
		DOC("resetSandbox", "Empty agent_workspace, outputs and the writable system layer",
			"sandboxes", .status = 200, .answer = "Sandbox"),
		"sandbox.reset"},
	{"POST", ONE "/purge", sandboxes_purge, 0, SCOPE_MANAGE,
		DOC("purgeSandbox",
			"Remove a sandbox with its workspace, also after it was deleted",
			"sandboxes", .status = 204),
		"sandbox.purge"},
	{"GET", ONE "/stats", sandboxes_stats, ROUTE_MEMBER, SCOPE_READ,
		DOC("getSandboxStats", "What a sandbox uses", "sandboxes", .status = 200,
			.answer = "Stats")},
	{"GET", ONE "/network", networks_get, 0, SCOPE_READ,
		DOC("getSandboxNetwork",
			"What a sandbox may reach, what it reached and what was refused",
			"sandboxes", .status = 200, .answer = "Network")},
	{"GET", ONE "/output/search", output_search, 0, SCOPE_READ,
		DOC("searchOutput", "Search what its processes have printed", "processes",
			QUERY(search_query), .status = 200, .answer = "OutputMatches")},
	{"GET", ONE "/stats/history", sandboxes_stats_history, 0, SCOPE_READ,
		DOC("getSandboxStatsHistory", "What it used in the last hour or day", "sandboxes",
			QUERY(history_query), .status = 200, .answer = "StatsHistory")},
	{"GET", ONE "/events", events_of_sandbox, ROUTE_TICKET, SCOPE_READ,
		DOC("followSandboxEvents", "Follow what happens to a sandbox", "sandboxes",
			.status = 200, .answer = EVENTS)},

	{"GET", ONE "/ports", ports_list, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_READ,
		DOC("listPorts", "List what listens in a sandbox, without waking it", "previews",
			.status = 200, .answer = "Ports")},
	{"GET", ONE "/ports/{port}/connect", ports_connect, ROUTE_WEBSOCKET | ROUTE_TICKET,
		SCOPE_RUN,
		DOC("connectPort", "A connection to a port as a WebSocket (subprotocol tcp.v1)",
			"previews", .status = 101, .answer = NULL),
		"port.connect"},
	{"PATCH", ONE "/ports/{port}", preview_ports_patch, ROUTE_BODY, SCOPE_MANAGE,
		DOC("updatePort",
			"Give a port a preview: who may see it, and what its app sees of paths",
			"previews", .body = &preview_ports_fields, .status = 200,
			.answer = "PreviewPort"),
		"preview.update"},
	{"POST", ONE "/ports/{port}/links", preview_links_create, ROUTE_BODY, SCOPE_MANAGE,
		DOC("createPreviewLink", "Make a link that opens the preview of a port", "previews",
			.body = &preview_links_fields, .status = 201, .answer = "PreviewLink"),
		"preview.link"},
	{"GET", ONE "/ports/{port}/links", preview_links_list, 0, SCOPE_READ,
		DOC("listPreviewLinks", "List the links of a port", "previews", .status = 200,
			.answer = "PreviewLinks")},
	{"DELETE", ONE "/ports/{port}/links/{link}", preview_links_delete, 0, SCOPE_MANAGE,
		DOC("deletePreviewLink", "Revoke a link", "previews", .status = 204),
		"preview.revoke"},

	{"POST", ONE "/exec", exec_run, ROUTE_BODY | ROUTE_MEMBER, SCOPE_RUN,
		DOC("execCommand", "Run a command; with Accept: text/event-stream, live", "exec",
			HEADERS(exec_headers), .body = &command_body_fields, .needs_body = true,
			.status = 200, .answer = "ExecResult", .stream_answer = EVENTS,
			.also = "201", .also_answer = "ProcessAnswer"),
		"exec.run"},

	{"POST", ONE "/executions", executions_run, ROUTE_BODY, SCOPE_RUN,
		DOC("executeCode", "Run code for its result", "executions", HEADERS(exec_headers),
			.body = &executions_fields, .needs_body = true, .status = 200,
			.answer = "Execution", .stream_answer = EVENTS, .also = "202"),
		"execution.run"},

	{"POST", ONE "/contexts", contexts_create, ROUTE_BODY, SCOPE_RUN,
		DOC("createContext", "Start an interpreter that keeps its state", "contexts",
			.body = &contexts_fields, .needs_body = true, .status = 201,
			.answer = "Context"),
		"context.create"},
	{"GET", ONE "/contexts", contexts_all, 0, SCOPE_READ,
		DOC("listContexts", "List the contexts of a sandbox, the oldest first", "contexts",
			.status = 200, .answer = "ContextList")},
	{"GET", CONTEXT, contexts_get, 0, SCOPE_READ,
		DOC("getContext", "Look at a context", "contexts", .status = 200,
			.answer = "Context")},
	{"DELETE", CONTEXT, contexts_delete, 0, SCOPE_RUN,
		DOC("deleteContext", "End a context with all that runs in it", "contexts",
			.status = 204),
		"context.delete"},
	{"POST", CONTEXT "/interrupt", contexts_interrupt, 0, SCOPE_RUN,
		DOC("interruptContext", "Interrupt what runs in a context", "contexts",
			.status = 200, .answer = "Context"),
		"context.interrupt"},
	{"POST", CONTEXT "/restart", contexts_restart, 0, SCOPE_RUN,
		DOC("restartContext", "Give a context another interpreter", "contexts",
			.status = 200, .answer = "Context"),
		"context.restart"},

	{"GET", ONE "/dependencies", dependency_get, 0, SCOPE_READ,
		DOC("getDependencies", "Packages that a sandbox has beside its template",
			"sandboxes", .status = 200, .answer = "Dependencies")},
	{"POST", ONE "/dependencies", dependency_add, ROUTE_BODY, SCOPE_RUN,
		DOC("addDependencies", "Install packages of Python and Node for a sandbox",
			"sandboxes", .body = &dependency_request_fields, .needs_body = true,
			.status = 202, .answer = "Dependencies"),
		"dependencies.add"},

	{"GET", ONE "/processes", processes_list, ROUTE_MEMBER, SCOPE_READ,
		DOC("listProcesses", "List processes: those that run, and the last that ended",
			"processes", QUERY(processes_query), .status = 200,
			.answer = "ProcessList")},
	{"GET", PROCESS, processes_get, ROUTE_MEMBER, SCOPE_READ,
		DOC("getProcess", "Look at a process, by its id or its pid", "processes",
			.status = 200, .answer = "ProcessAnswer")},
	{"DELETE", PROCESS, processes_kill, ROUTE_MEMBER, SCOPE_RUN,
		DOC("killProcess", "Kill a process with all that it started, and wait for its end",
			"processes", QUERY(kill_query), .status = 204),
		"process.kill"},
	{"GET", PROCESS "/wait", processes_wait, ROUTE_MEMBER, SCOPE_READ,
		DOC("waitForProcess", "Wait until a process has ended", "processes",
			QUERY(wait_query), .status = 200, .answer = "ProcessAnswer")},
	{"GET", PROCESS "/output", processes_output, ROUTE_TICKET | ROUTE_MEMBER, SCOPE_READ,
		DOC("followProcessOutput",
			"Replay and follow the output of a process; resumes after Last-Event-ID",
			"processes", QUERY(output_query), HEADERS(process_output_headers),
			.status = 200, .answer = "ProcessOutput", .stream_answer = EVENTS,
			.also = "204")},
	{"POST", PROCESS "/stdin", processes_stdin, ROUTE_BODY | ROUTE_MEMBER, SCOPE_RUN,
		DOC("writeProcessInput", "Write to standard input, and close it", "processes",
			.body = &processes_stdin_fields, .status = 204),
		"process.stdin"},
	{"POST", PROCESS "/signal", processes_signal, ROUTE_BODY | ROUTE_MEMBER, SCOPE_RUN,
		DOC("signalProcess", "Send a signal", "processes", .body = &processes_signal_fields,
			.status = 204),
		"process.signal"},
	{"POST", PROCESS "/resize", processes_resize, ROUTE_BODY | ROUTE_MEMBER, SCOPE_RUN,
		DOC("resizeProcessTerminal", "Change the size of its terminal", "processes",
			.body = &processes_resize_fields, .status = 204),
		"process.resize"},
	{"GET", ONE "/terminal", terminals_open, ROUTE_WEBSOCKET | ROUTE_TICKET | ROUTE_MEMBER,
		SCOPE_RUN,
		DOC("openTerminal",
			"A terminal as a WebSocket (subprotocol pty.v1): binary frames are bytes, "
			"text "
			"frames JSON control",
			"processes", QUERY(terminal_query), .status = 101, .answer = NULL),
		"terminal.open"},

	{"GET", ONE "/files", files_read, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("readFile", "Read a file, or a range of it", "files", QUERY(path_query),
			HEADERS(read_headers), .status = 200, .answer = BYTES, .also = "206 304")},
	{"HEAD", ONE "/files", files_head, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("checkFile", "Size and tag of a file", "files", QUERY(path_query),
			HEADERS(read_headers), .status = 200, .answer = BYTES, .also = "206 304")},
	{"PUT", ONE "/files", files_write, ROUTE_RAW_BODY | ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("writeFile", "Write a file, replacing it at a single instant", "files",
			QUERY(write_query), .raw_body = BYTES, .status = 201, .answer = "File",
			.also = "200"),
		"file.write"},
	{"DELETE", ONE "/files", files_delete, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("deleteFile", "Remove a file or directory", "files", QUERY(delete_query),
			.status = 204),
		"file.delete"},
	{"GET", ONE "/files/list", files_list, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("listFiles", "List a directory", "files", QUERY(files_list_query),
			.status = 200, .answer = "FileList")},
	{"GET", ONE "/files/stat", files_stat, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("statFile", "Look at a file without following a link", "files",
			QUERY(path_query), .status = 200, .answer = "File")},
	{"POST", ONE "/files/mkdir", files_mkdir, ROUTE_BODY | ROUTE_WAITS | ROUTE_MEMBER,
		SCOPE_FILES,
		DOC("makeDirectory", "Make a directory with its parents", "files",
			.body = &files_mkdir_fields, .status = 201, .answer = "File",
			.also = "200"),
		"file.mkdir"},
	{"POST", ONE "/files/move", files_move, ROUTE_BODY | ROUTE_WAITS | ROUTE_MEMBER,
		SCOPE_FILES,
		DOC("moveFile", "Rename or move", "files", .body = &files_move_fields,
			.status = 200, .answer = "File"),
		"file.move"},
	{"GET", ONE "/files/watch", watches_open, ROUTE_TICKET | ROUTE_WAITS | ROUTE_MEMBER,
		SCOPE_FILES,
		DOC("watchFiles", "Follow what happens to files", "files", QUERY(watch_query),
			.status = 200, .answer = EVENTS)},
	{"PUT", ONE "/files/archive", archives_unpack, ROUTE_RAW_BODY | ROUTE_WAITS | ROUTE_MEMBER,
		SCOPE_FILES,
		DOC("unpackArchive", "Unpack a tar or tar.gz into a directory", "files",
			QUERY(path_query), .raw_body = ARCHIVE, .status = 200,
			.answer = "Unpacked"),
		"file.unpack"},
	{"GET", ONE "/files/archive", archives_pack, ROUTE_WAITS | ROUTE_MEMBER, SCOPE_FILES,
		DOC("packArchive", "A file or directory as a tar archive", "files",
			QUERY(path_query), .status = 200, .answer = TAR)},
};

const struct route *routes_table(size_t *ret_count)
{
	*ret_count = array_len(table);
	return table;
}

const struct route *routes_pages(void)
{
	static const struct route pages = {
		"GET", "/", console_page, ROUTE_OPEN | ROUTE_FREE_QUERY, 0, NULL, NULL};

	return &pages;
}

bool routes_take_query(const struct route *route, const char *name)
{
	const struct api_doc *doc = route->doc;

	for (size_t i = 0; i < doc->query_count; i++)
		if (strcmp(doc->query[i].name, name) == 0)
			return true;
	return false;
}
