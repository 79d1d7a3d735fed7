/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WS .../terminal: a terminal of a sandbox. A new one is a shell on a PTY, a process like any other whose
 * output is kept; so a lost connection leaves it running, and a client attaches to it again by its name,
 * with what it missed. While clients are attached, the program waits for the fastest of them, as at any
 * terminal.
 *
 * What a client gets of the past has no questions to its terminal in it (replay_filter.h).
 *
 * Binary frames are bytes, both ways. Text frames are JSON: from here `start`, `cut` and `exit`; from the
 * client `resize` and `signal`.
 */
#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/process/process_body.h"
#include "api/process/replay_filter.h"
#include "base/screen_state.h"
#include "core/output/output_cursor.h"
#include "core/process/process_table.h"
#include "http/server/request/body.h"
#include "http/websocket/websocket.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define PROTOCOL      "pty.v1"
#define SEND_CAPACITY (64u * 1024)
#define PIECE_MAX     (16u * 1024)
#define SCROLLBACK    (256u * 1024)
#define MODES_SCAN                                                                                 \
	(8u << 20) /* of the first output, and as much before the scrollback, for modes */
#define MODES_MAX     512
#define INPUT_HIGH    (256u * 1024) /* typed ahead: the client is not read from until it is taken */
#define DIMENSION_MAX 1000

/* One client of a terminal; referenced by its websocket and its watch of the process. */
struct terminal {
	atomic_int refs;
	struct sandbox *sandbox;
	struct process *process;     /* NULL: it had ended when the client came */
	struct request *_Atomic req; /* of a new shell, until it runs */
	char *cwd;		     /* for messages */
	struct output_log *log;

	pthread_mutex_t lock; /* what follows */
	struct websocket *websocket;
	struct output_cursor *cursor;
	uint8_t *piece; /* read, but not sent: piece_len bytes of it */
	size_t piece_len;
	uint64_t piece_end; /* offset one past it */
	/* Output up to here was there when the client came; its questions are taken out. */
	uint64_t replay_end;
	struct replay_filter *replay; /* while it is being sent */
	char *note;		      /* a text to be sent before anything else */
	char *modes;		      /* what was switched on before what is sent again, or NULL */
	uint32_t number, pid;
	bool has_ended, is_done, is_paused;
	struct process_end end;
};

static void terminal_unref(void *arg)
{
	struct terminal *terminal = arg;

	if (atomic_fetch_sub(&terminal->refs, 1) > 1)
		return;
	websocket_unref(terminal->websocket);
	output_cursor_free(terminal->cursor);
	output_log_unref(terminal->log);
	process_unref(terminal->process);
	sandbox_unref(terminal->sandbox);
	pthread_mutex_destroy(&terminal->lock);
	free(terminal->replay);
	free(terminal->piece);
	free(terminal->note);
	free(terminal->modes);
	free(terminal->cwd);
	free(terminal);
}

static struct terminal *terminal_new(struct sandbox *sandbox)
{
	struct terminal *terminal = mem_new(sizeof(*terminal));

	terminal->refs = 1;
	terminal->sandbox = sandbox_ref(sandbox);
	pthread_mutex_init(&terminal->lock, NULL);
	return terminal;
}

/* --- to the client; the lock is held --- */

static void note(struct terminal *terminal, json_t *message)
{
	free(terminal->note);
	terminal->note = json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(message);
}

static void note_end(struct terminal *terminal)
{
	json_t *message = process_body_encode_end(&terminal->end);

	json_object_set_new(message, "type", json_string("exit"));
	note(terminal, message);
}

/* Takes the questions out of the part of a piece that is sent again. What is held back of it comes with the next. */
static void filter_replay(struct terminal *terminal, const struct output_piece *piece)
{
	size_t len = (size_t)(piece->next - piece->offset), old = len, done;
	uint8_t *filtered;

	if (piece->next > terminal->replay_end)
		old = terminal->replay_end > piece->offset
			      ? (size_t)(terminal->replay_end - piece->offset)
			      : 0;
	filtered = mem_new(PIECE_MAX + REPLAY_FILTER_HELD_MAX);
	done = replay_filter_run(terminal->replay, terminal->piece, old, filtered);
	if (piece->next >= terminal->replay_end) {
		done += replay_filter_finish(terminal->replay, filtered + done);
		free(take_ptr(&terminal->replay));
		memcpy(filtered + done, terminal->piece + old, len - old);
		done += len - old;
	}
	free(terminal->piece);
	terminal->piece = filtered;
	terminal->piece_len = done;
}

/* Reads on; false if there is nothing to send. */
static bool read_next(struct terminal *terminal)
{
	struct output_piece piece = {.kind = OUTPUT_NONE};
	/* Looked at first: all that was written before the end is in the log by then. */
	bool has_ended = terminal->has_ended;

	if (!terminal->piece)
		terminal->piece = mem_new(PIECE_MAX);
	if (terminal->cursor)
		output_cursor_read(terminal->cursor, terminal->piece, PIECE_MAX, &piece);
	switch (piece.kind) {
	case OUTPUT_STDOUT:
	case OUTPUT_STDERR:
		terminal->piece_len = (size_t)(piece.next - piece.offset);
		terminal->piece_end = piece.next;
		if (terminal->replay)
			filter_replay(terminal, &piece);
		return true;
	case OUTPUT_RESULT: /* not of a terminal */
		terminal->piece_len = 0;
		terminal->piece_end = piece.next;
		return true;
	case OUTPUT_CUT:
		if (terminal->replay)
			*terminal->replay = (struct replay_filter){0};
		note(terminal, json_pack("{s:s, s:I, s:I}", "type", "cut", "from",
				       (json_int_t)piece.offset, "to", (json_int_t)piece.next));
		return true;
	case OUTPUT_NONE:
		break;
	}
	free(take_ptr(&terminal->piece)); /* a quiet terminal costs no memory */
	if (!has_ended || terminal->is_done)
		return false;
	terminal->is_done = true;
	note_end(terminal);
	return true;
}

/* Sends as much as the client takes. */
static void pump(struct terminal *terminal)
{
	uint64_t consumed = 0;
	int r = 0;

	while (terminal->websocket && r == 0) {
		if (terminal->note) {
			r = websocket_send(
				terminal->websocket, true, terminal->note, strlen(terminal->note));
			if (r == 0)
				free(take_ptr(&terminal->note));
		} else if (terminal->piece_len > 0) {
			r = websocket_send(
				terminal->websocket, false, terminal->piece, terminal->piece_len);
			if (r == 0) {
				terminal->piece_len = 0;
				consumed = terminal->piece_end;
			}
		} else if (!read_next(terminal)) {
			break;
		}
	}
	if (consumed > 0 && terminal->process) {
		process_note_shown(terminal->process, consumed);
		process_consumed(terminal->process, consumed);
	}
	if (terminal->websocket && terminal->is_done && !terminal->note)
		websocket_close(terminal->websocket, WEBSOCKET_NORMAL, "exited");
}

static void pump_locked(struct terminal *terminal)
{
	pthread_mutex_lock(&terminal->lock);
	pump(terminal);
	pthread_mutex_unlock(&terminal->lock);
}

/* --- from the process --- */

static void process_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	(void)stream;
	(void)data;
	(void)len;
	pump_locked(arg);
}

static void process_drained(void *arg)
{
	struct terminal *terminal = arg;

	pthread_mutex_lock(&terminal->lock);
	if (terminal->is_paused && terminal->websocket) {
		terminal->is_paused = false;
		websocket_pause(terminal->websocket, false);
	}
	pthread_mutex_unlock(&terminal->lock);
}

static void note_exit(struct terminal *terminal, const struct process_end *end)
{
	pthread_mutex_lock(&terminal->lock);
	terminal->has_ended = true;
	terminal->end = *end;
	pump(terminal);
	pthread_mutex_unlock(&terminal->lock);
}

static void process_ended(void *arg, const struct process_end *end)
{
	note_exit(arg, end);
}

/* --- from the client --- */

static void opened(void *arg, struct websocket *websocket)
{
	struct terminal *terminal = arg;

	pthread_mutex_lock(&terminal->lock);
	terminal->websocket = websocket_ref(websocket);
	pump(terminal);
	pthread_mutex_unlock(&terminal->lock);
}

static void type_in(struct terminal *terminal, const uint8_t *data, size_t len)
{
	size_t waiting = 0;
	struct err ignored;

	/* What is typed after the end is for nobody. */
	if (!terminal->process ||
		process_write(terminal->process, data, len, false, &waiting, &ignored) < 0)
		return;
	if (waiting < INPUT_HIGH)
		return;
	pthread_mutex_lock(&terminal->lock);
	terminal->is_paused = true;
	websocket_pause(terminal->websocket, true);
	pthread_mutex_unlock(&terminal->lock);
}

static int resize(struct terminal *terminal, const json_t *message)
{
	json_int_t columns = json_integer_value(json_object_get(message, "cols"));
	json_int_t rows = json_integer_value(json_object_get(message, "rows"));
	struct err ignored;

	if (columns < 1 || columns > DIMENSION_MAX || rows < 1 || rows > DIMENSION_MAX)
		return -EINVAL;
	if (terminal->process)
		(void)!process_resize(
			terminal->process, (uint16_t)columns, (uint16_t)rows, &ignored);
	return 0;
}

static int send_signal(struct terminal *terminal, const json_t *message)
{
	int signal_number = api_signal_parse(json_object_get(message, "signal"));
	struct err ignored;

	if (signal_number <= 0)
		return -EINVAL;
	if (terminal->process)
		(void)!process_signal(terminal->process, signal_number, false, &ignored);
	return 0;
}

static const struct {
	const char *type;
	int (*take)(struct terminal *terminal, const json_t *message);
} controls[] = {{"resize", resize}, {"signal", send_signal}};

static int take_control(struct terminal *terminal, const char *text, size_t len)
{
	json_t *message = NULL;
	const char *type;
	struct err ignored;
	int r = body_parse(text, len, &message, &ignored);

	if (r < 0)
		return r;
	type = json_string_value(json_object_get(message, "type"));
	r = -EINVAL;
	for (size_t i = 0; type && i < array_len(controls); i++) {
		if (strcmp(controls[i].type, type) == 0)
			r = controls[i].take(terminal, message);
	}
	json_decref(message);
	return r;
}

static void take_message(void *arg, bool is_text, const uint8_t *data, size_t len)
{
	struct terminal *terminal = arg;

	if (!is_text)
		type_in(terminal, data, len);
	else if (take_control(terminal, (const char *)data, len) < 0)
		websocket_close(terminal->websocket, WEBSOCKET_REFUSED, "not a control message");
}

static void room(void *arg)
{
	pump_locked(arg);
}

static void gone(void *arg)
{
	struct terminal *terminal = arg;

	if (terminal->process) {
		process_unwatch(terminal->process, terminal);
		process_unpace(terminal->process);
	}
	pthread_mutex_lock(&terminal->lock);
	websocket_unref(take_ptr(&terminal->websocket));
	pthread_mutex_unlock(&terminal->lock);
	terminal_unref(terminal);
}

static const struct websocket_events websocket_events = {
	.open = opened, .message = take_message, .room = room, .gone = gone};

/* --- opening --- */

static int answer(struct terminal *terminal, struct request *req, uint64_t from, struct err *err)
{
	char name[PROCESS_NAME_MAX];
	int r;

	process_name_format(terminal->number, name);
	pthread_mutex_lock(&terminal->lock);
	if (terminal->log)
		terminal->cursor = output_cursor_new(terminal->log, from);
	note(terminal, json_pack("{s:s, s:s, s:I, s:I, s:s*}", "type", "start", "process", name,
			       "pid", (json_int_t)terminal->pid, "from", (json_int_t)from, "modes",
			       terminal->modes));
	pthread_mutex_unlock(&terminal->lock);
	atomic_fetch_add(&terminal->refs, 1); /* until `gone`, and so is the pace */
	if (terminal->process)
		process_pace(terminal->process);
	r = request_answer_websocket(
		req, PROTOCOL, SEND_CAPACITY, &websocket_events, terminal, err);
	if (r < 0 && terminal->process)
		process_unpace(terminal->process);
	if (r < 0)
		terminal_unref(terminal);
	return r;
}

/* A new shell runs: now there is something to connect the client with. */
static void shell_started(void *arg, uint32_t pid)
{
	struct terminal *terminal = arg;
	struct request *req = atomic_exchange(&terminal->req, NULL);
	struct process_record record;
	struct err err;

	if (!req)
		return;
	process_read(terminal->process, &record);
	terminal->number = record.number;
	terminal->pid = pid;
	process_record_fini(&record);
	if (process_log(terminal->process))
		terminal->log = output_log_ref(process_log(terminal->process));
	if (answer(terminal, req, 0, &err) < 0)
		request_release_error(req, &err);
	else
		request_release(req);
}

static void shell_ended(void *arg, const struct process_end *end)
{
	struct terminal *terminal = arg;
	struct request *req;
	struct err err;

	if (command_body_explain(terminal->cwd, end, &err) < 0) {
		req = atomic_exchange(&terminal->req, NULL);
		if (req)
			request_release_error(req, &err);
		return;
	}
	shell_started(terminal, 0); /* if it never ran */
	note_exit(terminal, end);
}

static const struct process_events shell_events = {.started = shell_started,
	.output = process_output,
	.drained = process_drained,
	.ended = shell_ended,
	.release = terminal_unref};

/* It left before its shell ran: nobody knows of that yet. */
static void client_gone(void *arg)
{
	struct terminal *terminal = arg;

	process_kill(terminal->process, true);
}

static int open_shell(struct request *req, struct sandbox *sandbox, struct err *err)
{
	struct terminal *terminal;
	struct command_spec spec;
	struct command command;
	int r = command_body_of_terminal(req, &spec, err);

	if (r == 0)
		r = command_make(sandbox, &spec, &command, err);
	if (r < 0)
		return r;
	terminal = terminal_new(sandbox);
	request_keep(req, terminal, terminal_unref);
	terminal->req = req;
	terminal->cwd = mem_strdup(command.spec.cwd);
	r = process_new(sandbox, &terminal->process, err);
	if (r < 0) {
		command_fini(&command);
		return r;
	}
	atomic_fetch_add(&terminal->refs, 1);
	if (!process_watch(terminal->process, &shell_events, terminal))
		abort(); /* it does not run yet */
	request_hold(req, client_gone, terminal);
	r = process_run(terminal->process, &command.spec, err);
	command_fini(&command);
	if (r < 0 && atomic_exchange(&terminal->req, NULL))
		request_release_error(req, err);
	return 0;
}

static const struct process_events attached_events = {.output = process_output,
	.drained = process_drained,
	.ended = process_ended,
	.release = terminal_unref};

static int find_log(struct terminal *terminal, const struct process_record *record, struct err *err)
{
	if (!terminal->process)
		return process_table_open_log(
			terminal->sandbox, record->number, &terminal->log, err);
	if (process_log(terminal->process))
		terminal->log = output_log_ref(process_log(terminal->process));
	return 0;
}

static int find_start(
	const struct request *req, struct terminal *terminal, uint64_t *ret_from, struct err *err)
{
	uint64_t end = terminal->log ? output_log_end(terminal->log) : 0;
	uint64_t tail = terminal->log ? output_cursor_tail(terminal->log, SCROLLBACK) : 0;

	return api_query_number(req, "from", 0, end, tail, ret_from, err);
}

/*
 * A client that comes anew gets the end of the output. A program that took the whole screen before that is still
 * there: without its modes the client's terminal would show it over other text, and tell it nothing of the mouse.
 */
static void find_modes(struct terminal *terminal, uint64_t from)
{
	auto_(buf_fini) struct buf modes = BUF_INIT(MODES_MAX);
	auto_free uint8_t *data = mem_new(PIECE_MAX);
	struct output_cursor *cursor = output_cursor_new(terminal->log, 0);
	struct screen_state state = {0};
	struct output_piece piece = {0};
	bool is_far = from > 2 * (uint64_t)MODES_SCAN;

	do {
		output_cursor_read(cursor, data, PIECE_MAX, &piece);
		if (piece.kind == OUTPUT_STDOUT) {
			uint64_t end = piece.next < from ? piece.next : from;

			screen_state_feed(&state, data, (size_t)(end - piece.offset));
		}
		if (is_far && piece.next >= MODES_SCAN) {
			is_far = false;
			output_cursor_free(cursor);
			cursor = output_cursor_new(terminal->log, from - MODES_SCAN);
		}
	} while (piece.kind != OUTPUT_NONE && piece.next < from);
	output_cursor_free(cursor);
	screen_state_redo(&state, &modes);
	terminal->modes = modes.len > 0 ? buf_take_str(&modes) : NULL;
}

static int attach(struct request *req, struct terminal *terminal,
	const struct process_record *record, struct err *err)
{
	uint64_t from;
	int r;

	terminal->number = record->number;
	terminal->pid = record->pid;
	if (!record->is_pty)
		return err_explain(err, ERR_CONFLICT, "not_a_terminal",
			"follow it with GET .../processes/{id}/output",
			"process p%u has no terminal", record->number);
	if ((r = find_log(terminal, record, err)) < 0 ||
		(r = find_start(req, terminal, &from, err)) < 0)
		return r;
	/* Who asked before anybody was there, as `exec -it` attaches after the start, still waits for the answer. */
	if (terminal->log)
		terminal->replay_end = terminal->process ? process_shown(terminal->process)
							 : output_log_end(terminal->log);
	if (from > 0 && terminal->process && !request_query(req, "from"))
		find_modes(terminal, from);
	if (from < terminal->replay_end)
		terminal->replay = mem_new(sizeof(*terminal->replay));
	if ((r = answer(terminal, req, from, err)) < 0)
		return r;
	atomic_fetch_add(&terminal->refs, 1);
	if (terminal->process && process_watch(terminal->process, &attached_events, terminal)) {
		pump_locked(terminal); /* what came before it was watched */
		return 0;
	}
	terminal_unref(terminal);
	if (terminal->process) { /* it has ended meanwhile */
		struct process_record ended;
		struct process_end end;

		process_read(terminal->process, &ended);
		end = process_body_end(&ended);
		process_record_fini(&ended);
		note_exit(terminal, &end);
	} else {
		struct process_end end = process_body_end(record);

		note_exit(terminal, &end);
	}
	return 0;
}

static int open_attached(struct request *req, struct sandbox *sandbox, struct err *err)
{
	struct terminal *terminal = terminal_new(sandbox);
	struct process_record record;
	int r;

	request_keep(req, terminal, terminal_unref);
	r = process_table_find(
		sandbox, request_query(req, "process"), &terminal->process, &record, err);
	if (r < 0)
		return r;
	r = attach(req, terminal, &record, err);
	process_record_fini(&record);
	return r;
}

HANDLER(terminals_open)
{
	struct sandbox *sandbox;
	int r = api_sandbox(req, context, &sandbox, err);

	if (r == 0)
		r = request_check_websocket(req, PROTOCOL, err);
	if (r < 0)
		return r;
	return request_query(req, "process") ? open_attached(req, sandbox, err)
					     : open_shell(req, sandbox, err);
}
