/* SPDX-License-Identifier: Apache-2.0 */
/* envd's process.Process: commands and terminals. Their output comes as events of the API, each of which becomes a message. */
#include "api/e2b/e2b_call.h"
#include "api/e2b/e2b_connect.h"
#include "base/number.h"
#include "core/process/command.h"
#include "core/process/process_table.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define PROCESS	 "/data/{id}/envd/process.Process/"
#define PID_TEXT 16
#define EVENTS	 "text/event-stream"

/* --- words --- */

static json_t *encode(const char *data, size_t len)
{
	auto_free unsigned char *text = mem_new(4 * ((len + 2) / 3) + 1);
	int size = EVP_EncodeBlock(text, (const unsigned char *)data, (int)len);

	return json_stringn((const char *)text, (size_t)size);
}

/* Errors, and nothing else of interest. */
static bool answer_error(struct request *req, const struct e2b_call *call, int status, json_t *body)
{
	bool is_stream = call->row->flags & E2B_STREAM;
	const char *message =
		json_string_value(json_object_get(json_object_get(body, "error"), "message"));

	if (status < 300)
		return false;
	e2b_connect_answer_error(req, is_stream, e2b_connect_code(status, body),
		message ? message : "the server gave no reason");
	json_decref(body);
	return true;
}

static void answer_empty(struct request *req, void *arg, int status, json_t *body)
{
	if (answer_error(req, arg, status, body))
		return;
	json_decref(body);
	request_answer_json(req, 200, json_object());
}

/* What is over cannot be ended any more: to a client it is not there. */
static void answer_signal(struct request *req, void *arg, int status, json_t *body)
{
	answer_empty(req, arg, status == 409 ? 404 : status, body);
}

/* --- starting --- */

static json_t *argv_of(const json_t *process)
{
	json_t *argv = json_array(), *one;
	size_t i;

	json_array_append(argv, json_object_get(process, "cmd"));
	json_array_foreach(json_object_get(process, "args"), i, one)
	{
		json_array_append(argv, one);
	}
	return argv;
}

static void set_terminal(struct e2b_call *call, json_t *exec)
{
	const json_t *size = json_object_get(json_object_get(call->body, "pty"), "size");
	json_int_t columns = e2b_call_number(size, "cols"), rows = e2b_call_number(size, "rows");

	if (!json_object_get(call->body, "pty"))
		return;
	call->is_pty = true;
	json_object_set_new(exec, "pty", json_true());
	if (columns > 0)
		json_object_set_new(exec, "cols", json_integer(columns));
	if (rows > 0)
		json_object_set_new(exec, "rows", json_integer(rows));
}

static int ask_start(struct request *req, struct e2b_call *call, struct err *err)
{
	json_t *process = json_object_get(call->body, "process");
	const char *cwd = json_string_value(json_object_get(process, "cwd"));
	const char *timeout = request_header(req, "Connect-Timeout-Ms");
	char path[E2B_PATH_MAX];
	uint64_t timeout_ms;
	json_t *exec;

	if (!json_is_string(json_object_get(process, "cmd")))
		return err_set(err, ERR_INVALID, "process.cmd must be a text");
	exec = json_pack("{s:o, s:s}", "argv", argv_of(process), "on_disconnect", "keep");
	if (json_object_size(json_object_get(process, "envs")) > 0)
		json_object_set(exec, "env", json_object_get(process, "envs"));
	if (cwd && cwd[0] && e2b_call_resolve(cwd, path))
		json_object_set_new(exec, "cwd", json_string(path));
	if (e2b_call_is_root(req))
		json_object_set_new(exec, "user", json_string("root"));
	if (timeout && number_parse(timeout, 1, COMMAND_TIMEOUT_MAX_MS, &timeout_ms) == 0)
		json_object_set_new(exec, "timeout_ms", json_integer((json_int_t)timeout_ms));
	set_terminal(call, exec);
	if (!call->is_pty)
		json_object_set_new(exec, "stdin_open",
			json_boolean(!json_is_false(json_object_get(call->body, "stdin"))));
	return e2b_call_redirect(req, call,
		&(struct e2b_request){.method = "POST", .body = exec, .accept = EVENTS}, err,
		"/v1/sandboxes/%s/exec", call->id);
}

static void answer_stream(struct request *req, void *arg, int status, json_t *body)
{
	if (answer_error(req, arg, status, body))
		return;
	json_decref(body);
	e2b_connect_answer_error(req, true, "internal", "the process gives no events");
}

static void put_data(
	const struct e2b_call *call, const char *event, const json_t *data, struct buf *out)
{
	json_t *text = json_object_get(data, "data"), *bytes = json_object_get(data, "data_base64");

	bytes = text ? encode(json_string_value(text), json_string_length(text))
		     : json_incref(bytes);
	e2b_connect_put(out,
		json_pack("{s:{s:{s:o}}}", "event", "data", call->is_pty ? "pty" : event, bytes));
}

static void put_exit(const json_t *data, struct buf *out)
{
	const json_t *how = json_object_get(data, "termination");
	const char *reason = json_string_value(json_object_get(how, "reason"));
	const char *signal_name = json_string_value(json_object_get(how, "signal"));
	int code = (int)json_integer_value(json_object_get(data, "exit_code"));
	bool is_exit = reason && strcmp(reason, "exited") == 0;
	char status[64];
	json_t *end;

	if (is_exit)
		snprintf(status, sizeof(status), "exit status %d", code);
	else
		snprintf(status, sizeof(status), "signal: %.40s",
			signal_name ? signal_name
			: reason    ? reason
				    : "killed");
	end = json_pack("{s:i, s:b, s:s}", "exitCode", is_exit ? code : -1, "exited", is_exit,
		"status", status);
	if (!is_exit || code != 0)
		json_object_set_new(end, "error", json_string(status));
	e2b_connect_put(out, json_pack("{s:{s:o}}", "event", "end", end));
}

static void tell_event(void *arg, const char *event, const json_t *data, struct buf *out)
{
	const struct e2b_call *call = arg;

	if (!event)
		e2b_connect_put_end(out, NULL, NULL);
	else if (!event[0])
		e2b_connect_put(out, json_pack("{s:{s:{}}}", "event", "keepalive"));
	else if (strcmp(event, "start") == 0)
		e2b_connect_put(out, json_pack("{s:{s:{s:O}}}", "event", "start", "pid",
					     json_object_get(data, "pid")));
	else if (strcmp(event, "stdout") == 0 || strcmp(event, "stderr") == 0)
		put_data(call, event, data, out);
	else if (strcmp(event, "exit") == 0)
		put_exit(data, out);
}

/* --- those that run --- */

/* The process that a call is about, as a part of a path. */
static int read_pid(const struct e2b_call *call, char pid[PID_TEXT], struct err *err)
{
	json_int_t number = e2b_call_number(json_object_get(call->body, "process"), "pid");

	if (number <= 0 || number > UINT32_MAX)
		return err_set(err, ERR_INVALID, "process.pid must be the number of a process");
	snprintf(pid, PID_TEXT, "%lld", (long long)number);
	return 0;
}

static int ask_process(struct request *req, struct e2b_call *call, const struct e2b_request *to,
	const char *verb, struct err *err)
{
	char pid[PID_TEXT];
	int r = read_pid(call, pid, err);

	if (r < 0) {
		json_decref(to->body);
		return r;
	}
	return e2b_call_redirect(
		req, call, to, err, "/v1/sandboxes/%s/processes/%s/%s", call->id, pid, verb);
}

/* Of a terminal its output has another name. */
static int handle_output(struct request *req, void *context, struct err *err)
{
	struct e2b_call *call = request_redirect_arg(req);
	struct process_record record;
	struct process *process;
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = process_table_find(
			sandbox, request_param(req, "process"), &process, &record, err);
	if (r < 0)
		return r;
	call->is_pty = record.is_pty;
	process_unref(process);
	process_record_fini(&record);
	return processes_output(req, context, err);
}

static int ask_connect(struct request *req, struct e2b_call *call, struct err *err)
{
	return ask_process(req, call,
		&(struct e2b_request){.method = "GET", .handle = handle_output}, "output", err);
}

static int ask_input(struct request *req, struct e2b_call *call, struct err *err)
{
	json_t *input = json_object_get(call->body, "input");
	json_t *data = json_object_get(input, "stdin");

	if (!data)
		data = json_object_get(input, "pty");
	if (!json_is_string(data))
		return err_set(err, ERR_INVALID, "input must have stdin or pty");
	return ask_process(req, call,
		&(struct e2b_request){
			.method = "POST", .body = json_pack("{s:O}", "data_base64", data)},
		"stdin", err);
}

static int ask_close(struct request *req, struct e2b_call *call, struct err *err)
{
	return ask_process(req, call,
		&(struct e2b_request){.method = "POST", .body = json_pack("{s:b}", "close", 1)},
		"stdin", err);
}

static int ask_signal(struct request *req, struct e2b_call *call, struct err *err)
{
	const json_t *value = json_object_get(call->body, "signal");
	const char *name = json_string_value(value);
	bool is_kill = name ? strcmp(name, "SIGNAL_SIGKILL") == 0 : json_integer_value(value) == 9;
	bool is_term = name ? strcmp(name, "SIGNAL_SIGTERM") == 0 : json_integer_value(value) == 15;

	if (!is_kill && !is_term)
		return err_set(err, ERR_INVALID, "signal must be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
	return ask_process(req, call,
		&(struct e2b_request){.method = "POST",
			.body = json_pack("{s:s}", "signal", is_kill ? "SIGKILL" : "SIGTERM")},
		"signal", err);
}

static int ask_resize(struct request *req, struct e2b_call *call, struct err *err)
{
	const json_t *size = json_object_get(json_object_get(call->body, "pty"), "size");

	return ask_process(req, call,
		&(struct e2b_request){.method = "POST",
			.body = json_pack("{s:I, s:I}", "cols", e2b_call_number(size, "cols"),
				"rows", e2b_call_number(size, "rows"))},
		"resize", err);
}

static int ask_list(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		"/v1/sandboxes/%s/processes?status=running&limit=1000", call->id);
}

static json_t *describe(const json_t *process)
{
	json_t *argv = json_object_get(process, "argv"), *args = json_copy(argv);
	json_t *command = json_array_get(argv, 0);

	if (!json_is_array(args)) {
		json_decref(args);
		args = json_array();
	}
	json_array_remove(args, 0);
	return json_pack("{s:{s:O, s:o, s:{}, s:O*}, s:O}", "config", "cmd",
		command ? command : json_object_get(process, "command"), "args", args, "envs",
		"cwd", json_object_get(process, "cwd"), "pid", json_object_get(process, "pid"));
}

static void answer_list(struct request *req, void *arg, int status, json_t *body)
{
	json_t *processes, *one;
	size_t i;

	if (answer_error(req, arg, status, body))
		return;
	processes = json_array();
	json_array_foreach(json_object_get(body, "processes"), i, one)
	{
		if (json_is_integer(json_object_get(one, "pid")))
			json_array_append_new(processes, describe(one));
	}
	request_answer_json(req, 200, json_pack("{s:o}", "processes", processes));
	json_decref(body);
}

/* --- whether the sandbox is there --- */

static int ask_health(struct request *req, struct e2b_call *call, struct err *err)
{
	return e2b_call_redirect(req, call, &(struct e2b_request){.method = "GET"}, err,
		"/v1/sandboxes/%s", call->id);
}

static void answer_health(struct request *req, void *arg, int status, json_t *body)
{
	const char *state = json_string_value(json_object_get(body, "status"));

	(void)arg;
	if (status == 200 && state && strcmp(state, "running") == 0)
		request_answer_empty(req, 204);
	else
		request_answer_json(req, 502,
			json_pack(
				"{s:i, s:s}", "code", 502, "message", "The sandbox does not run"));
	json_decref(body);
}

#define UNARY  E2B_CONNECT
#define STREAM (E2B_CONNECT | E2B_STREAM)

const struct e2b_row e2b_process_rows[] = {
	{"GET", "/data/{id}/envd/health", ask_health, answer_health},
	{"POST", PROCESS "Start", ask_start, answer_stream, tell_event, E2B_CONNECT_STREAM, STREAM},
	{"POST", PROCESS "Connect", ask_connect, answer_stream, tell_event, E2B_CONNECT_STREAM,
		STREAM},
	{"POST", PROCESS "List", ask_list, answer_list, .flags = UNARY},
	{"POST", PROCESS "SendInput", ask_input, answer_empty, .flags = UNARY},
	{"POST", PROCESS "CloseStdin", ask_close, answer_empty, .flags = UNARY},
	{"POST", PROCESS "SendSignal", ask_signal, answer_signal, .flags = UNARY},
	{"POST", PROCESS "Update", ask_resize, answer_empty, .flags = UNARY},
};
const size_t e2b_process_count = array_len(e2b_process_rows);
