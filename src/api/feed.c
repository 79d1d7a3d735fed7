/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of events: `start` is 0, output is the offset one past its last byte, `exit` one more than
 * the end. So each number says where to go on. A character that is cut in two by the end of what is there
 * waits for its rest; when its stream is interrupted by the other one it goes out as base64.
 */
#include "api/feed.h"

#include "api/process_body.h"
#include "api/sse.h"
#include "core/output_cursor.h"
#include "http/stream.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PIECE_MAX (32u * 1024)
#define EVENT_MAX (PIECE_MAX * 6 + 4096)

struct feed {
	atomic_int refs;
	struct sandbox *sandbox;
	struct process *process; /* NULL: nothing of it runs any more */
	struct output_log *log;
	struct stream *stream;
	bool follows, is_pacing, cancels;
	const struct api *api;

	pthread_mutex_t lock; /* what follows */
	struct output_cursor *cursor;
	struct buf out; /* events, sent up to out_done */
	size_t out_done;
	bool has_start; /* is still to be sent */
	bool is_done;	/* nothing more comes after `out` */
	bool has_ended;
	uint32_t number, pid;
	uint64_t at; /* offset of the next byte to be sent */
	struct process_end end;
	uint8_t carry[4]; /* the beginning of a character */
	size_t carry_len;
	bool carry_is_stderr;
};

void feed_unref(struct feed *feed)
{
	if (!feed || atomic_fetch_sub(&feed->refs, 1) > 1)
		return;
	stream_unref(feed->stream);
	output_cursor_free(feed->cursor);
	output_log_unref(feed->log);
	buf_fini(&feed->out);
	process_unref(feed->process);
	sandbox_unref(feed->sandbox);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}

static void release(void *arg)
{
	feed_unref(arg);
}

/* --- making events; the lock is held --- */

static void put_start(struct feed *feed)
{
	char name[PROCESS_NAME_MAX];
	json_t *data;

	process_name_format(feed->number, name);
	data = json_pack("{s:s, s:I}", "process", name, "pid", (json_int_t)feed->pid);
	sse_put_event(&feed->out, 0, "start", data);
	json_decref(data);
	feed->has_start = false;
}

static void put_carry(struct feed *feed)
{
	if (feed->carry_len == 0)
		return;
	feed->at += sse_put_output(
		&feed->out, feed->carry_is_stderr, feed->at, feed->carry, feed->carry_len, false);
	feed->carry_len = 0;
}

static void put_cut(struct feed *feed, const struct output_piece *piece)
{
	json_t *data = json_pack(
		"{s:I, s:I}", "from", (json_int_t)piece->offset, "to", (json_int_t)piece->next);

	sse_put_event(&feed->out, piece->next, "cut", data);
	json_decref(data);
	feed->at = piece->next;
}

static void put_exit(struct feed *feed)
{
	json_t *data = process_body_encode_end(&feed->end);

	sse_put_event(&feed->out, feed->at + 1, "exit", data);
	json_decref(data);
}

/* data has room for the carry before the piece's len bytes. */
static void put_piece(
	struct feed *feed, const struct output_piece *piece, uint8_t *data, size_t len)
{
	bool is_stderr = piece->kind == OUTPUT_STDERR;
	size_t carried, done;

	if (feed->carry_is_stderr != is_stderr)
		put_carry(feed);
	carried = feed->carry_len;
	memcpy(data - carried, feed->carry, carried);
	done = sse_put_output(
		&feed->out, is_stderr, feed->at, data - carried, carried + len, !piece->is_run_end);
	feed->at += done;
	feed->carry_len = carried + len - done;
	assert(feed->carry_len <= sizeof(feed->carry));
	feed->carry_is_stderr = is_stderr;
	memcpy(feed->carry, data + len - feed->carry_len, feed->carry_len);
}

/* What comes next, into `out`; whether there was anything. */
static bool produce(struct feed *feed)
{
	uint8_t data[sizeof(feed->carry) + PIECE_MAX] not_cleared;
	struct output_piece piece = {.kind = OUTPUT_NONE};
	/* Looked at first: all that was written before the end is in the log by then. */
	bool has_ended = feed->has_ended;

	if (feed->is_done)
		return false;
	if (feed->has_start) {
		put_start(feed);
		return true;
	}
	if (feed->cursor)
		output_cursor_read(feed->cursor, data + sizeof(feed->carry), PIECE_MAX, &piece);
	switch (piece.kind) {
	case OUTPUT_STDOUT:
	case OUTPUT_STDERR:
		put_piece(feed, &piece, data + sizeof(feed->carry),
			(size_t)(piece.next - piece.offset));
		break;
	case OUTPUT_CUT:
		put_carry(feed);
		put_cut(feed, &piece);
		break;
	case OUTPUT_NONE:
		if (!has_ended && feed->follows)
			return false;
		put_carry(feed);
		if (has_ended)
			put_exit(feed);
		feed->is_done = true;
		break;
	}
	return true;
}

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct feed *feed = arg;
	uint64_t consumed = 0;
	ssize_t n = 0;

	pthread_mutex_lock(&feed->lock);
	while ((size_t)n < size) {
		size_t left = feed->out.len - feed->out_done;
		size_t part = left < size - (size_t)n ? left : size - (size_t)n;

		if (left > 0) {
			memcpy(data + n, feed->out.data + feed->out_done, part);
			feed->out_done += part;
			n += (ssize_t)part;
			continue;
		}
		feed->out.len = feed->out_done = 0;
		if (!produce(feed)) {
			buf_fini(&feed->out); /* a quiet stream costs no memory */
			break;
		}
		consumed = feed->at + feed->carry_len;
	}
	if (n == 0 && feed->is_done)
		n = -ENODATA;
	pthread_mutex_unlock(&feed->lock);
	if (consumed > 0 && feed->is_pacing)
		process_consumed(feed->process, consumed);
	return n;
}

/* --- events of the process --- */

static void on_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct feed *feed = arg;

	(void)stream;
	(void)data;
	(void)len;
	stream_poke(feed->stream);
}

static void on_ended(void *arg, const struct process_end *end)
{
	struct feed *feed = arg;

	pthread_mutex_lock(&feed->lock);
	feed->has_ended = true;
	feed->end = *end;
	pthread_mutex_unlock(&feed->lock);
	stream_poke(feed->stream);
}

static const struct process_events process_events = {
	.output = on_output, .ended = on_ended, .release = release};

/* The client went away, or has got all. */
static void gone(void *arg)
{
	struct feed *feed = arg;
	bool has_ended;

	pthread_mutex_lock(&feed->lock);
	has_ended = feed->has_ended;
	pthread_mutex_unlock(&feed->lock);
	if (feed->process && !has_ended) {
		process_unwatch(feed->process, feed);
		if (feed->cancels && !atomic_load(&feed->api->is_leaving))
			process_kill(feed->process, true);
		/* Also then: what it had written is still to be taken before its end is told. */
		if (feed->is_pacing)
			process_unpace(feed->process);
	}
	feed_unref(feed);
}

static const struct stream_events stream_events = {.pull = pull, .gone = gone};

/* --- life --- */

struct feed *feed_new(const struct feed_spec *spec)
{
	struct feed *feed = mem_new(sizeof(*feed));

	feed->refs = 1;
	feed->sandbox = sandbox_ref(spec->sandbox);
	feed->process = spec->process ? process_ref(spec->process) : NULL;
	feed->log = spec->log ? output_log_ref(spec->log) : NULL;
	feed->follows = spec->follows;
	feed->is_pacing = spec->is_pacing;
	feed->cancels = spec->cancels;
	feed->api = spec->api;
	feed->has_start = spec->has_start;
	feed->at = spec->from;
	feed->out = BUF_INIT(EVENT_MAX);
	pthread_mutex_init(&feed->lock, NULL);
	if (feed->log)
		feed->cursor = output_cursor_new(feed->log, spec->from);
	if (spec->record) {
		feed->number = spec->record->number;
		feed->pid = spec->record->pid;
		feed->has_ended = spec->record->ended_at_ms > 0;
		feed->end = process_body_end(spec->record);
	}
	feed->stream = stream_new_pulled(&stream_events, feed);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	return feed;
}

void feed_watch(struct feed *feed)
{
	struct process_record record;

	atomic_fetch_add(&feed->refs, 1);
	if (feed->process && process_watch(feed->process, &process_events, feed))
		return;
	if (feed->process) { /* it has ended meanwhile */
		process_read(feed->process, &record);
		pthread_mutex_lock(&feed->lock);
		feed->has_ended = true;
		feed->end = process_body_end(&record);
		pthread_mutex_unlock(&feed->lock);
		process_record_fini(&record);
	}
	feed_unref(feed);
}

void feed_started(struct feed *feed, uint32_t number, uint32_t pid)
{
	struct output_log *log = process_log(feed->process);

	pthread_mutex_lock(&feed->lock);
	feed->number = number;
	feed->pid = pid;
	if (!feed->log && log) {
		feed->log = output_log_ref(log);
		feed->cursor = output_cursor_new(log, 0);
	}
	pthread_mutex_unlock(&feed->lock);
}

void feed_answer(struct feed *feed, struct request *req)
{
	atomic_fetch_add(&feed->refs, 1); /* until `gone` */
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
}
