/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/process/input_pump.h"

#include "base/clock.h"
#include "cli/terminal/process/reconnect.h"
#include "cli/text/base64.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Taken whole or not at all, so it must fit a process's input queue even when that is half full. */
#define PIECE_MAX	(32u * 1024)
#define FIRST_DELAY_MS	2
#define DELAY_MAX_MS	100
#define SEND_TIMEOUT_MS 30000

int input_pump_init(struct input_pump *pump, const struct client *client,
	const struct process_ref *process, struct err *err)
{
	*pump = (struct input_pump){.process = process, .piece = BUF_INIT(PIECE_MAX)};
	return client_clone(client, &pump->client, err);
}

void input_pump_fini(struct input_pump *pump)
{
	client_free(pump->client);
	pump->client = NULL;
	buf_fini(&pump->piece);
}

int input_pump_fd(const struct input_pump *pump)
{
	return pump->is_done || pump->must_wait || pump->at_end ? -1 : STDIN_FILENO;
}

int input_pump_wait_ms(const struct input_pump *pump)
{
	uint64_t now_ms = clock_steady_ms();

	if (pump->is_done || !pump->must_wait)
		return -1;
	return pump->retry_at_ms > now_ms ? (int)(pump->retry_at_ms - now_ms) : 0;
}

static int read_piece(struct input_pump *pump, struct err *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t n;

	if (poll(&in, 1, 0) <= 0)
		return 0;
	if (buf_reserve(&pump->piece, PIECE_MAX) < 0)
		return err_set(err, ERR_INTERNAL, "no memory for standard input");
	n = read(STDIN_FILENO, pump->piece.data, PIECE_MAX);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	/* A terminal that hung up, or no standard input at all, is an end like any other. */
	if (n < 0 && errno != EIO && errno != EBADF)
		return err_sys(err, "read standard input");
	if (n <= 0)
		pump->at_end = true;
	else
		pump->piece.len = (size_t)n;
	return 1;
}

static int post(struct input_pump *pump, struct err *err)
{
	auto_(buf_fini) struct buf encoded = BUF_INIT(2 * PIECE_MAX);
	auto_free char *path = process_ref_path(pump->process, "/stdin");
	json_auto_t *body = NULL;
	struct client_call call = {.method = "POST", .path = path, .timeout_ms = SEND_TIMEOUT_MS};
	int r = base64_encode(pump->piece.data, pump->piece.len, &encoded);

	if (r < 0)
		return err_from(err, r, "encode standard input");
	body = json_pack("{s:s%,s:b}", "data_base64", encoded.data ? (char *)encoded.data : "",
		encoded.len, "close", pump->at_end);
	call.body = body;
	return client_json(pump->client, &call, NULL, err);
}

/* What a failed request means for the piece: nobody took it, or nobody can tell. */
static int judge(struct input_pump *pump, int r, struct err *err)
{
	if (err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT) {
		pump->is_done = true;
		return 0;
	}
	if (err->kind == ERR_TIMEOUT || strcmp(err->code, "connection_lost") == 0)
		return err_explain(err, ERR_INTERNAL, "input_lost", NULL,
			"the connection was lost while input was sent: it is not known whether all "
			"of it arrived");
	if (!reconnect_is_for(err))
		return r;
	pump->delay_ms = pump->must_wait ? pump->delay_ms * 2 : FIRST_DELAY_MS;
	if (pump->delay_ms > DELAY_MAX_MS)
		pump->delay_ms = DELAY_MAX_MS;
	pump->must_wait = true;
	pump->retry_at_ms = clock_steady_ms() + (uint64_t)pump->delay_ms;
	return 0;
}

int input_pump_step(struct input_pump *pump, struct err *err)
{
	int r;

	if (pump->is_done || (pump->must_wait && clock_steady_ms() < pump->retry_at_ms))
		return 0;
	if (!pump->must_wait) {
		r = read_piece(pump, err);
		if (r <= 0)
			return r;
	}
	r = post(pump, err);
	if (r < 0)
		return judge(pump, r, err);
	pump->must_wait = false;
	pump->piece.len = 0;
	pump->is_done = pump->at_end;
	return 0;
}
