/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over four descriptors: what is typed, the WebSocket, the signals that end us (held by the
 * client) and those of the terminal. Output is written as it comes and blocks us, so that a slow
 * terminal holds the sandbox back and not our memory; typing is not read while too much of it waits.
 */
#include "cli/terminal/process/remote_shell.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/screen_state.h"
#include "cli/cli.h"
#include "cli/remote/query.h"
#include "cli/remote/websocket_client.h"
#include "cli/terminal/input/detach_keys.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/process/live_exec.h"
#include "cli/terminal/process/reconnect.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL     "pty.v1"
#define HANGUP_MS    500
#define TYPED_MAX    (16u * 1024) /* of one read */
#define WAITING_MAX  (64u * 1024)
#define CTRL_C	     0x03
#define SESSION_DONE 1

struct session {
	struct client *client;
	struct process_ref ref;
	const struct remote_shell *shell;
	struct websocket_client *websocket;
	struct terminal terminal;
	struct screen_state screen;
	struct detach_keys keys;
	struct buf typed; /* and not sent */
	struct reconnect reconnect;
	uint64_t held_until_ms; /* when a held back key is let go */
	uint64_t offset;	/* of the next byte of output */
	bool has_offset;
	bool is_started; /* on this connection: it takes what is typed */
	bool is_lost;	 /* the connection, and the user was told */
	bool has_left;	 /* by the keys */
	json_t *result;
};

static void session_fini(struct session *s)
{
	websocket_client_free(s->websocket);
	terminal_close(&s->terminal);
	buf_fini(&s->typed);
	json_decref(s->result);
}

int remote_shell_check(const char *advice, struct err *err)
{
	if (terminal_is_there())
		return 0;
	return err_explain(
		err, ERR_INVALID, "not_a_terminal", advice, "standard input is not a terminal");
}

/* Says something in the middle of the session, on a line of its own. */
static int tell(struct session *s, const char *text, struct err *err)
{
	terminal_restore(&s->terminal);
	fputs("\r\n", stderr);
	cli_note("%s", text);
	return terminal_make_raw(&s->terminal, err);
}

static int on_start(struct session *s, const json_t *message, struct err *err)
{
	const char *name = json_string_value(json_object_get(message, "process"));
	const char *modes = json_string_value(json_object_get(message, "modes"));
	const json_t *from = json_object_get(message, "from");
	int r;

	if (!name || !process_ref_is_name(name) || !json_is_integer(from) ||
		json_integer_value(from) < 0)
		return err_set(err, ERR_INTERNAL, "the daemon did not name the process");
	snprintf(s->ref.process, sizeof(s->ref.process), "%s", name);
	s->offset = (uint64_t)json_integer_value(from);
	s->has_offset = s->is_started = true;
	if (s->is_lost) {
		s->is_lost = false;
		return tell(s, "the connection is back", err);
	}
	r = terminal_make_raw(&s->terminal, err);
	/* What was switched on before the part of the output that comes now. */
	if (r == 0 && modes) {
		screen_state_feed(&s->screen, (const uint8_t *)modes, strlen(modes));
		r = cli_write(STDOUT_FILENO, modes, strlen(modes), err);
	}
	return r;
}

static int on_cut(struct session *s, const json_t *message, struct err *err)
{
	json_int_t to = json_integer_value(json_object_get(message, "to"));
	char text[128], size[FORMAT_SIZE_LEN];

	if (to < 0 || (uint64_t)to <= s->offset)
		return 0;
	format_size((uint64_t)to - s->offset, size);
	snprintf(text, sizeof(text), "[%s of output are no longer kept]", size);
	s->offset = (uint64_t)to;
	return tell(s, text, err);
}

static int on_text(struct session *s, const char *data, size_t len, struct err *err)
{
	json_auto_t *message = json_loadb(data, len, 0, NULL);
	const char *type = json_string_value(json_object_get(message, "type"));

	if (!type)
		return err_set(err, ERR_INTERNAL, "the daemon sent a message in no known form");
	if (strcmp(type, "start") == 0)
		return on_start(s, message, err);
	if (strcmp(type, "cut") == 0)
		return on_cut(s, message, err);
	if (strcmp(type, "exit") == 0 && !s->result)
		s->result = json_incref(message);
	return 0;
}

static int on_message(void *arg, bool is_text, const uint8_t *data, size_t len, struct err *err)
{
	struct session *s = arg;

	if (is_text)
		return on_text(s, (const char *)data, len, err);
	/* Counted first: what is half written is not asked for again. */
	s->offset += len;
	screen_state_feed(&s->screen, data, len);
	return cli_write(STDOUT_FILENO, data, len, err);
}

static char *target(const struct session *s)
{
	auto_(buf_fini) struct buf path = BUF_INIT(16384);
	struct terminal_size size = terminal_size();
	char number[24];

	buf_printf(&path, "/v1/sandboxes/%s/terminal?cols=%d&rows=%d", s->ref.sandbox, size.cols,
		size.rows);
	if (s->ref.process[0]) {
		query_add(&path, "process", s->ref.process);
	} else {
		query_add(&path, "user", s->shell->user);
		query_add(&path, "cwd", s->shell->cwd);
	}
	if (s->has_offset || s->shell->is_new) {
		snprintf(number, sizeof(number), "%" PRIu64, s->offset);
		query_add(&path, "from", number);
	}
	return path.failed ? NULL : buf_take_str(&path);
}

static int connect_terminal(struct session *s, struct err *err)
{
	auto_free char *path = target(s);
	int r;

	if (!path)
		return err_set(err, ERR_TOO_LARGE, "the user or directory is too long");
	s->is_started = false;
	r = websocket_client_open(s->client, path, PROTOCOL, on_message, s, &s->websocket, err);
	if (r == 0)
		reconnect_connected(&s->reconnect);
	return r;
}

static int send_size(struct session *s, struct err *err)
{
	struct terminal_size size = terminal_size();
	char text[80];

	if (!s->is_started)
		return 0;
	snprintf(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%d,\"rows\":%d}", size.cols,
		size.rows);
	return websocket_client_send(s->websocket, true, text, strlen(text), err);
}

static int on_terminal_signal(struct session *s, struct err *err)
{
	enum terminal_event event;
	int r = terminal_take_signal(&s->terminal, &event, err);

	return r == 0 && event == TERMINAL_RESIZED ? send_size(s, err) : r;
}

/* The terminal is gone. The signal that says so may be a moment later, and is the better answer. */
static int on_hangup(struct session *s, struct err *err)
{
	struct pollfd signal = {.fd = interrupt_fd(client_interrupt(s->client)), .events = POLLIN};
	int r = poll(&signal, 1, HANGUP_MS) > 0 ? interrupt_check(client_interrupt(s->client), err)
						: 0;

	if (r != 0)
		return r;
	return err_explain(err, ERR_UNAVAILABLE, "interrupted", NULL, "the terminal went away");
}

/* SESSION_DONE after the keys to detach, or when the terminal is gone. */
static int read_typed(struct session *s, struct err *err)
{
	uint8_t bytes[TYPED_MAX];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		return on_hangup(s, err);
	s->has_left = detach_keys_filter(&s->keys, bytes, (size_t)n, &s->typed);
	s->held_until_ms = clock_steady_ms() + DETACH_KEYS_HOLD_MS;
	return s->has_left ? SESSION_DONE : 0;
}

static bool has_room(const struct session *s)
{
	size_t queued = s->websocket ? websocket_client_queued(s->websocket) : 0;

	return s->typed.len + queued + TYPED_MAX + 1 <= WAITING_MAX;
}

static int send_typed(struct session *s, struct err *err)
{
	int r = 0;

	if (s->keys.is_holding && clock_steady_ms() >= s->held_until_ms)
		detach_keys_release(&s->keys, &s->typed);
	if (!s->is_started || s->typed.len == 0)
		return 0;
	for (size_t at = 0; at < s->typed.len && r == 0; at += TYPED_MAX) {
		size_t len = s->typed.len - at < TYPED_MAX ? s->typed.len - at : TYPED_MAX;

		r = websocket_client_send(s->websocket, false, s->typed.data + at, len, err);
	}
	s->typed.len = 0;
	return r;
}

static int shorter(int a_ms, int b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

/* Waits for any of the four, for at most wait_ms; reads what was typed and the signals. */
static int wait_and_read(struct session *s, int wait_ms, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = has_room(s) ? STDIN_FILENO : -1, .events = POLLIN},
		{.fd = interrupt_fd(client_interrupt(s->client)), .events = POLLIN},
		{.fd = s->terminal.signal_fd, .events = POLLIN},
		{.fd = -1},
	};
	int r;

	if (s->websocket) {
		fds[3].fd = websocket_client_fd(s->websocket);
		fds[3].events = websocket_client_events(s->websocket);
	}
	if (s->keys.is_holding)
		wait_ms = shorter(wait_ms, DETACH_KEYS_HOLD_MS);
	if (poll(fds, array_len(fds), wait_ms) <= 0)
		return 0;
	r = interrupt_check(client_interrupt(s->client), err);
	if (r == 0 && fds[2].revents)
		r = on_terminal_signal(s, err);
	if (r == 0 && fds[0].revents)
		r = read_typed(s, err);
	return r;
}

/* While there is a connection: SESSION_DONE at the end of the process or of our stay. */
static int converse(struct session *s, struct err *err)
{
	for (;;) {
		int r = websocket_client_step(s->websocket, err);

		if (s->result)
			return SESSION_DONE;
		/* Before the wait: what was typed while there was no connection waits for its start. */
		if (r == 0)
			r = send_typed(s, err);
		if (r == 0)
			r = wait_and_read(s, websocket_client_wait_ms(s->websocket), err);
		if (r != 0)
			return r;
	}
}

/* While there is none: nobody else can take a Ctrl-C, so it is for us. */
static int pause_before_retry(struct session *s, int delay_ms, struct err *err)
{
	uint64_t until_ms = clock_steady_ms() + (uint64_t)delay_ms;
	uint64_t now_ms;

	while ((now_ms = clock_steady_ms()) < until_ms) {
		size_t before = s->typed.len;
		int r = wait_and_read(s, (int)(until_ms - now_ms), err);

		if (r != 0)
			return r;
		if (s->typed.len > before &&
			memchr(s->typed.data + before, CTRL_C, s->typed.len - before))
			return err_explain(err, ERR_UNAVAILABLE, "connection_lost", NULL,
				"gave up on the connection to %s", client_url(s->client));
	}
	return 0;
}

/* Makes the lost connection again: 0 when it is there. r is why it was lost. */
static int reconnect(struct session *s, int r, struct err *err)
{
	websocket_client_free(take_ptr(&s->websocket));
	s->is_started = false;
	while (r < 0) {
		int delay_ms;
		int paused;

		if (!reconnect_is_for(err) || !s->has_offset)
			return r;
		delay_ms = reconnect_delay_ms(&s->reconnect);
		if (delay_ms == 0)
			return r;
		if (!s->is_lost &&
			tell(s, "the connection is lost; trying again (Ctrl-C gives up)", err) < 0)
			return r;
		s->is_lost = true;
		paused = pause_before_retry(s, delay_ms, err);
		if (paused != 0)
			return paused;
		r = connect_terminal(s, err);
	}
	return 0;
}

static int run_session(struct session *s, struct err *err)
{
	int r = connect_terminal(s, err);

	while (r == 0) {
		r = converse(s, err);
		if (r < 0)
			r = reconnect(s, r, err);
	}
	return r < 0 ? r : 0;
}

/* The program far away may still show a full screen; the user is back at a shell. */
static void restore_screen(struct session *s)
{
	auto_(buf_fini) struct buf undo = BUF_INIT(1024);
	struct err ignored;

	screen_state_undo(&s->screen, &undo);
	if (undo.len > 0 && cli_write(STDOUT_FILENO, undo.data, undo.len, &ignored) < 0)
		return;
}

int remote_shell_run(
	struct client *client, struct remote_shell *shell, int *ret_exit, struct err *err)
{
	auto_(session_fini) struct session s = {
		.client = client,
		.ref = shell->ref,
		.shell = shell,
		.terminal = TERMINAL_INIT,
		.typed = BUF_INIT(WAITING_MAX),
	};
	int r = terminal_open(&s.terminal, err);

	if (r == 0)
		r = interrupt_hold(client_interrupt(client), err);
	if (r < 0)
		return r;
	interrupt_watch(client_interrupt(client), true);
	r = run_session(&s, err);
	restore_screen(&s);
	terminal_restore(&s.terminal);
	shell->has_left = r == 0 && s.has_left;
	if (r == 0 && s.result)
		return live_exec_report(s.result, shell->mode, ret_exit, err);
	if (s.has_offset && (s.has_left || reconnect_is_for(err) ||
				    (client_interrupt(client)->signal && !shell->ends_with_us))) {
		fputs("\n", stderr);
		process_ref_tell(client, &s.ref, "attach");
	}
	*ret_exit = 0;
	return r;
}
