/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST .../exec: runs a command and answers when it has ended, or streams it as it goes.
 *
 * The handler only starts it. From then on no thread waits: the request is held, and what the agent
 * reports (on the reactor's thread) fills the answer or the event stream. A client that goes away
 * takes its command with it.
 *
 * Both forms are one struct execution, referenced by the request and by the process as its sink.
 */
#include "api/handlers.h"
#include "api/sandbox_body.h"
#include "api/text.h"
#include "base/number.h"
#include "core/process.h"
#include "http/stream.h"
#include "wire/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_MAX    (128 * 1024 - 1) /* the kernel's limit for one argument */
#define INPUT_MAX      (1 << 20)
#define TIMEOUT_MAX_MS (7ll * 86400 * 1000)
#define STREAM_BUFFER  (256u << 10)
#define HEARTBEAT_MS   15000
#define SANDBOX_UID    1000
#define DEFAULT_CWD    "/workspace"
#define DEFAULT_PATH   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* --- the body --- */

struct exec_body {
	const char *command, *cwd, *user, *input, *input_base64;
	const json_t *argv, *env;
	int64_t timeout_ms;
};

static const char *check_argv(const json_t *argv)
{
	size_t i;
	json_t *entry;

	if (json_string_length(json_array_get(argv, 0)) == 0)
		return "must begin with the name of a program";
	json_array_foreach((json_t *)argv, i, entry)
	{
		if (json_string_length(entry) > COMMAND_MAX)
			return "has an argument that is too long";
	}
	return NULL;
}

static const char *check_cwd(const json_t *cwd)
{
	return json_string_value(cwd)[0] == '/' ? NULL : "must be an absolute path";
}

static const struct field exec_rows[] = {
	{"command", FIELD_STRING, offsetof(struct exec_body, command), 1, COMMAND_MAX, 0,
		"A line for /bin/sh. Either this or argv."},
	{"argv", FIELD_STRING_LIST, offsetof(struct exec_body, argv), 1, AGENT_ARGS_MAX, 0,
		"Program and arguments, run without a shell.", .check = check_argv},
	{"cwd", FIELD_STRING, offsetof(struct exec_body, cwd), 1, AGENT_PATH_MAX - 1, 0,
		"Working directory; /workspace if left out.", .check = check_cwd},
	{"env", FIELD_STRING_MAP, offsetof(struct exec_body, env), 0, 256, 0,
		"Environment, on top of the sandbox's.", .check = sandbox_check_env},
	{"user", FIELD_STRING, offsetof(struct exec_body, user), 1, 16, 0,
		"sandbox (uid 1000, the default), root, or a uid up to 65534."},
	{"stdin", FIELD_STRING, offsetof(struct exec_body, input), 0, INPUT_MAX, 0,
		"Standard input; empty if left out."},
	{"stdin_base64", FIELD_STRING, offsetof(struct exec_body, input_base64), 0, INPUT_MAX, 0,
		"Standard input that is not text. Either this or stdin."},
	{"timeout_ms", FIELD_INTEGER, offsetof(struct exec_body, timeout_ms), 1, TIMEOUT_MAX_MS,
		FIELD_NULLABLE,
		"Kills the command and its children after so long; never if left out."},
};

const struct fields exec_fields = FIELDS(exec_rows);

/* Everything a process_spec points to, alive until the process was started. */
struct command {
	struct process_spec spec;
	const char **argv;
	char **env;
	uint8_t *input; /* decoded, or NULL */
};

static void command_fini(struct command *command)
{
	for (char **entry = command->env; entry && *entry; entry++)
		free(*entry);
	free(command->env);
	free(command->argv);
	free(command->input);
}

/* Names are looked up here and nowhere else: /etc/passwd inside belongs to the sandbox. */
static int read_user(const char *name, uint32_t *ret_uid, struct err *err)
{
	uint64_t uid;

	if (!name || strcmp(name, "sandbox") == 0)
		uid = SANDBOX_UID;
	else if (strcmp(name, "root") == 0)
		uid = 0;
	else if (number_parse(name, 0, 65534, &uid) < 0)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field user must be sandbox, root, or a uid from 0 to 65534");
	*ret_uid = (uint32_t)uid;
	return 0;
}

static void make_env(
	const json_t *sandbox_env, const json_t *own_env, uint32_t uid, char ***ret_env)
{
	const char *user = uid == 0 ? "root" : uid == SANDBOX_UID ? "sandbox" : "nobody";
	const char *home = uid == 0 ? "/root" : uid == SANDBOX_UID ? "/home/sandbox" : "/tmp";
	json_t *env = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "PATH", DEFAULT_PATH, "HOME",
		home, "USER", user, "LOGNAME", user, "SHELL", "/bin/bash", "LANG", "C.UTF-8");
	char **entries;
	const char *name;
	json_t *value;
	size_t i = 0;

	json_object_update(env, (json_t *)sandbox_env);
	if (own_env)
		json_object_update(env, (json_t *)own_env);
	entries = mem_new((json_object_size(env) + 1) * sizeof(char *));
	json_object_foreach(env, name, value) entries[i++] =
		mem_printf("%s=%s", name, json_string_value(value));
	json_decref(env);
	*ret_env = entries;
}

static const char **make_argv(const struct exec_body *body)
{
	size_t count = body->argv ? json_array_size(body->argv) : 3;
	const char **argv = mem_new((count + 1) * sizeof(char *));

	if (body->command) {
		argv[0] = "/bin/sh";
		argv[1] = "-c";
		argv[2] = body->command;
		return argv;
	}
	for (size_t i = 0; i < count; i++)
		argv[i] = json_string_value(json_array_get(body->argv, i));
	return argv;
}

/* Standard input: text as it is, base64 decoded, or none. */
static int read_input(const struct exec_body *body, struct command *command, struct err *err)
{
	ssize_t len;

	command->spec.input = body->input;
	command->spec.input_len = body->input ? strlen(body->input) : 0;
	if (!body->input_base64)
		return 0;
	len = text_decode_base64(body->input_base64, &command->input);
	if (len < 0 || body->input)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field stdin_base64 must be base64, without stdin beside it");
	command->spec.input = command->input;
	command->spec.input_len = (size_t)len;
	return 0;
}

static int command_decode(const struct request *req, struct sandbox *sandbox,
	struct command *ret_command, struct err *err)
{
	struct exec_body body = {0};
	struct command command = {0};
	struct sandbox_record record;
	int r;

	fields_clear(&exec_fields, &body);
	r = fields_decode(&exec_fields, request_body(req), &body, err);
	if (r == 0 && !body.command == !body.argv)
		r = err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"exactly one of the fields command and argv must be given");
	if (r == 0)
		r = read_user(body.user, &command.spec.uid, err);
	if (r == 0)
		r = read_input(&body, &command, err);
	if (r < 0) {
		command_fini(&command);
		return r;
	}
	command.spec.gid = command.spec.uid;
	command.spec.cwd = body.cwd ? body.cwd : DEFAULT_CWD;
	command.spec.timeout_ms = body.timeout_ms > 0 ? (uint64_t)body.timeout_ms : 0;
	command.argv = make_argv(&body);
	sandbox_read(sandbox, &record);
	make_env(record.env, body.env, command.spec.uid, &command.env);
	sandbox_record_fini(&record);
	command.spec.argv = command.argv;
	command.spec.env = (const char *const *)command.env;
	*ret_command = command;
	return 0;
}

/* --- the execution --- */

/* Output that the client has not taken yet, in order. */
struct piece {
	struct piece *next;
	int stream;
	size_t len;
	uint8_t data[];
};

struct execution {
	atomic_int refs;
	struct request *req; /* until it was released */
	struct process *process;
	char *cwd, *program; /* for messages */

	pthread_mutex_t lock; /* what follows */
	struct buf output[2]; /* buffered form: stdout, stderr */
	bool truncated;
	struct stream *stream; /* streaming form */
	uint64_t sequence;
	struct piece *first, **last;
	uint8_t carry[2][4]; /* the beginning of a character */
	size_t carry_len[2];
	json_t *exit; /* the last event, once it is known */
};

static void execution_unref(void *arg)
{
	struct execution *execution = arg;

	if (atomic_fetch_sub(&execution->refs, 1) > 1)
		return;
	while (execution->first) {
		struct piece *next = execution->first->next;

		free(execution->first);
		execution->first = next;
	}
	process_unref(execution->process);
	stream_unref(execution->stream);
	json_decref(execution->exit);
	buf_fini(&execution->output[0]);
	buf_fini(&execution->output[1]);
	pthread_mutex_destroy(&execution->lock);
	free(execution->cwd);
	free(execution->program);
	free(execution);
}

static json_t *end_to_json(const struct process_end *end)
{
	return json_pack("{s:i, s:f, s:{s:s, s:o, s:n, s:f, s:I}}", "exit_code", end->exit_code,
		"duration_ms", (double)end->duration_us / 1000, "termination", "reason",
		end_reason_name(end->reason), "signal", api_signal_to_json(end->signal), "detail",
		"cpu_ms", (double)end->cpu_us / 1000, "peak_memory_bytes",
		(json_int_t)end->peak_memory_bytes);
}

/* A command that never ran is the client's mistake, the sandbox's limits, or a shell's 127. */
static int explain(
	const struct execution *execution, const struct process_end *end, struct err *err)
{
	switch (end->outcome) {
	case PROCESS_BAD_CWD:
		return err_explain(err, ERR_INVALID, "cwd_not_found", NULL,
			"field cwd: the directory %s cannot be entered: %s", execution->cwd,
			strerror(end->errnum));
	case PROCESS_REFUSED:
		if (end->errnum == ESHUTDOWN)
			return err_explain(err, ERR_CONFLICT, "sandbox_ended", "try again",
				"the sandbox is being stopped");
		return err_explain(err, ERR_UNAVAILABLE, "process_refused",
			"end other processes in it, or raise its limits",
			"the sandbox has no room for another process: %s", strerror(end->errnum));
	default:
		return 0;
	}
}

static void put_output(struct execution *execution, int stream, const uint8_t *data, size_t len)
{
	struct buf *buf = &execution->output[stream - 1];
	size_t room = buf->max - buf->len;

	pthread_mutex_lock(&execution->lock);
	if (len > room)
		execution->truncated = true;
	buf_append(buf, data, len < room ? len : room);
	pthread_mutex_unlock(&execution->lock);
}

/* What a shell would say about a program that cannot be run. */
static void put_not_run(struct execution *execution, int errnum)
{
	auto_free char *line =
		mem_printf("cannot run %s: %s\n", execution->program, strerror(errnum));

	put_output(execution, 2, (const uint8_t *)line, strlen(line));
}

/* --- the buffered form --- */

static void buffered_started(void *arg, uint32_t pid)
{
	(void)arg;
	(void)pid;
}

static void buffered_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct execution *execution = arg;

	put_output(execution, stream, data, len);
	process_consumed(execution->process, len);
}

static void set_output(json_t *answer, const char *name, const struct buf *output)
{
	size_t len = output->len;

	if (len == output->max)
		len -= text_unfinished(output->data, len);
	text_set(answer, name, output->data, len);
}

static void buffered_ended(void *arg, const struct process_end *end)
{
	struct execution *execution = arg;
	struct err err;
	json_t *answer;

	if (explain(execution, end, &err) < 0) {
		request_release_error(execution->req, &err);
		execution_unref(execution);
		return;
	}
	if (end->outcome == PROCESS_NOT_RUN)
		put_not_run(execution, end->errnum);
	answer = end_to_json(end);
	set_output(answer, "stdout", &execution->output[0]);
	set_output(answer, "stderr", &execution->output[1]);
	json_object_set_new(answer, "truncated", json_boolean(execution->truncated));
	request_answer_json(execution->req, 200, answer);
	request_release(execution->req);
	execution_unref(execution);
}

static const struct process_sink buffered_sink = {
	.started = buffered_started, .output = buffered_output, .ended = buffered_ended};

static void client_gone(void *arg)
{
	struct execution *execution = arg;

	process_kill(execution->process);
}

/* --- the streaming form --- */

/* Offers one event; the lock is held. */
static int offer_event(struct execution *execution, const char *name, const json_t *data)
{
	auto_free char *json = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(12));
	auto_free char *text = mem_printf("id: %llu\nevent: %s\ndata: %s\n\n",
		(unsigned long long)execution->sequence + 1, name, json);
	int r = stream_offer(execution->stream, text, strlen(text));

	if (r == 0)
		execution->sequence++;
	return r;
}

/* Offers output together with what was carried over; an unfinished character is carried on. */
static int offer_output(
	struct execution *execution, int stream, const uint8_t *data, size_t len, bool last)
{
	size_t carried = execution->carry_len[stream - 1];
	auto_free uint8_t *whole = mem_new(carried + len + 1);
	size_t total = carried + len, keep;
	json_t *event = json_object();
	int r = 0;

	memcpy(whole, execution->carry[stream - 1], carried);
	if (len > 0)
		memcpy(whole + carried, data, len);
	keep = last ? 0 : text_unfinished(whole, total);
	if (total > keep) {
		text_set(event, "data", whole, total - keep);
		r = offer_event(execution, stream == 1 ? "stdout" : "stderr", event);
	}
	if (r == 0) {
		memcpy(execution->carry[stream - 1], whole + total - keep, keep);
		execution->carry_len[stream - 1] = keep;
	}
	json_decref(event);
	return r;
}

/* Sends what waits, as far as there is room; after the last piece, the exit. */
static void flush(struct execution *execution)
{
	size_t consumed = 0;
	int r = 0;

	pthread_mutex_lock(&execution->lock);
	while (execution->first && r == 0) {
		struct piece *piece = execution->first;

		r = offer_output(execution, piece->stream, piece->data, piece->len, false);
		if (r < 0)
			break;
		consumed += piece->len;
		execution->first = piece->next;
		if (!execution->first)
			execution->last = &execution->first;
		free(piece);
	}
	if (execution->exit && !execution->first && r == 0) {
		for (int stream = 1; stream <= 2 && r == 0; stream++)
			r = offer_output(execution, stream, NULL, 0, true);
		if (r == 0)
			r = offer_event(execution, "exit", execution->exit);
		if (r == 0) {
			json_decref(take_ptr(&execution->exit));
			stream_finish(execution->stream);
		}
	}
	pthread_mutex_unlock(&execution->lock);
	if (consumed > 0)
		process_consumed(execution->process, consumed);
}

static void stream_room(void *arg)
{
	flush(arg);
}

static const struct stream_events stream_events = {.room = stream_room, .gone = client_gone};

static void streaming_started(void *arg, uint32_t pid)
{
	struct execution *execution = arg;
	json_t *event = json_pack("{s:I}", "pid", (json_int_t)pid);
	struct request *req = take_ptr(&execution->req);

	pthread_mutex_lock(&execution->lock);
	/* An empty stream takes it; if the client is gone, its own event says so. */
	(void)!offer_event(execution, "start", event);
	pthread_mutex_unlock(&execution->lock);
	json_decref(event);
	request_answer_stream(req, 200, "text/event-stream", execution->stream);
	request_release(req);
}

static void streaming_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct execution *execution = arg;
	struct piece *piece = mem_new(sizeof(*piece) + len);

	piece->stream = stream;
	piece->len = len;
	memcpy(piece->data, data, len);
	pthread_mutex_lock(&execution->lock);
	*execution->last = piece;
	execution->last = &piece->next;
	pthread_mutex_unlock(&execution->lock);
	flush(execution);
}

/* It never ran, so there is no stream yet: the answer is an error, or a stream with just its end. */
static void streaming_not_run(struct execution *execution, const struct process_end *end)
{
	struct err err;

	if (explain(execution, end, &err) < 0) {
		request_release_error(take_ptr(&execution->req), &err);
		return;
	}
	streaming_started(execution, 0);
	if (end->outcome == PROCESS_NOT_RUN) {
		put_not_run(execution, end->errnum);
		pthread_mutex_lock(&execution->lock);
		(void)!offer_output(
			execution, 2, execution->output[1].data, execution->output[1].len, true);
		pthread_mutex_unlock(&execution->lock);
	}
}

static void streaming_ended(void *arg, const struct process_end *end)
{
	struct execution *execution = arg;

	if (execution->req)
		streaming_not_run(execution, end);
	pthread_mutex_lock(&execution->lock);
	execution->exit = end_to_json(end);
	pthread_mutex_unlock(&execution->lock);
	flush(execution);
	execution_unref(execution);
}

static const struct process_sink streaming_sink = {
	.started = streaming_started, .output = streaming_output, .ended = streaming_ended};

/* --- the handler --- */

static struct execution *make_execution(
	const struct api *api, struct request *req, const struct command *command, bool streaming)
{
	struct execution *execution = mem_new(sizeof(*execution));

	execution->refs = 2; /* the request's and the sink's */
	execution->req = req;
	execution->cwd = mem_strdup(command->spec.cwd);
	execution->program = mem_strdup(command->spec.argv[0]);
	execution->output[0] = BUF_INIT(api->exec_output_max);
	execution->output[1] = BUF_INIT(api->exec_output_max);
	execution->last = &execution->first;
	pthread_mutex_init(&execution->lock, NULL);
	if (streaming) {
		execution->stream = stream_new(STREAM_BUFFER, &stream_events, execution);
		stream_set_heartbeat(execution->stream, HEARTBEAT_MS);
	}
	return execution;
}

static bool wants_stream(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

HANDLER(exec_run)
{
	struct api *api = context;
	struct execution *execution;
	struct sandbox *sandbox;
	struct command command;
	bool streaming = wants_stream(req);
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = command_decode(req, sandbox, &command, err)) < 0)
		return r;
	execution = make_execution(api, req, &command, streaming);
	request_keep(req, execution, execution_unref);
	r = process_new(sandbox, streaming ? &streaming_sink : &buffered_sink, execution,
		&execution->process, err);
	if (r < 0) {
		execution_unref(execution); /* the sink's: it was never used */
		command_fini(&command);
		return r;
	}
	/* Before the start: its end may be reported before process_run returns. */
	request_hold(req, client_gone, execution);
	r = process_run(execution->process, &command.spec, err);
	command_fini(&command);
	if (r < 0) {
		execution_unref(execution);
		request_release_error(req, err);
	}
	return 0;
}
