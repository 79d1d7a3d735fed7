/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of events: `start` is 0; others have the offset of the log behind what they tell, and `end` one more. */
#include "api/execution/execution_events.h"

#include "api/execution/execution_body.h"
#include "api/log_events.h"
#include "api/sse.h"
#include "core/execution/language.h"
#include "core/execution/result_reader.h"
#include "http/stream.h"

#include <errno.h>
#include <stdatomic.h>

#define EVENTS_MAX (32u << 20) /* the largest event is one that shows something */

struct execution_feed {
	atomic_int refs;
	const struct api *api;
	struct execution *execution;
	struct stream *stream;
	bool cancels;

	/* The connection's thread only. */
	struct log_events events;
	struct result_reader reader;
	uint64_t line_end; /* offset behind the line that is read */
	uint64_t from;	   /* where the client wants to go on */
	char id[ID_LEN + 1];
	bool is_plain, has_start, has_begun, is_done;
};

static void feed_unref(void *arg)
{
	struct execution_feed *feed = arg;

	if (atomic_fetch_sub(&feed->refs, 1) > 1)
		return;
	stream_unref(feed->stream);
	log_events_fini(&feed->events);
	execution_end_reading(feed->execution);
	result_reader_fini(&feed->reader);
	execution_unref(feed->execution);
	free(feed);
}

/* --- making events --- */

/* A line of results, as an event with the same member. */
static void put_frame(void *arg, const char *kind, json_t *value, size_t len)
{
	struct execution_feed *feed = arg;
	bool is_error = strcmp(kind, "error") == 0;
	json_t *data;

	(void)len;
	if (!is_error && strcmp(kind, "result") != 0 && strcmp(kind, "display") != 0)
		return;
	data = is_error ? json_incref(value) : json_pack("{s:O}", kind, value);
	sse_put_event(&feed->events.out, feed->line_end, is_error ? "error" : "result", data);
	json_decref(data);
}

/* Line by line, so that each has its own number. */
static void take_result(void *arg, const uint8_t *data, size_t len)
{
	struct execution_feed *feed = arg;
	uint64_t at = feed->events.at;

	if (feed->is_plain)
		return;
	while (len > 0) {
		const uint8_t *newline = memchr(data, '\n', len);
		size_t part = newline ? (size_t)(newline - data) + 1 : len;

		feed->line_end = at += part;
		result_reader_put(&feed->reader, data, part);
		data += part;
		len -= part;
	}
}

static void put_start(struct execution_feed *feed, const struct execution_record *record)
{
	json_t *data = execution_body_encode(feed->api, record);

	sse_put_event(&feed->events.out, 0, "start", data);
	json_decref(data);
	feed->has_start = false;
}

/* All but what was streamed. */
static void put_end(struct execution_feed *feed, const struct execution_record *record)
{
	static const char *const streamed[] = {
		"stdout", "stdout_base64", "stderr", "stderr_base64", "results"};
	json_t *data = execution_body_encode(feed->api, record);
	json_t *result = json_object_get(data, "result");

	if (feed->is_plain && result && !json_is_null(result)) {
		json_t *value = json_pack("{s:O}", "result", result);

		sse_put_event(&feed->events.out, feed->events.at, "result", value);
		json_decref(value);
	}
	for (size_t i = 0; i < array_len(streamed); i++)
		json_object_del(data, streamed[i]);
	sse_put_event(&feed->events.out, feed->events.at + 1, "end", data);
	json_decref(data);
	feed->is_done = true;
}

/* One that waits for its turn in a context has no log yet. */
static bool has_begun(struct execution_feed *feed)
{
	uint64_t from;
	struct output_log *log;

	if (feed->has_begun)
		return true;
	log = execution_log(feed->execution, &from);
	if (!log)
		return false;
	output_cursor_free(feed->events.cursor);
	feed->events.at = feed->from > from ? feed->from : from;
	feed->events.cursor = output_cursor_new(log, feed->events.at);
	feed->has_begun = true;
	return true;
}

/* In a context what follows in the log is of the next execution. */
static bool has_more_output(struct execution_feed *feed)
{
	feed->events.end = execution_log_end(feed->execution);
	return has_begun(feed) && log_events_put_next(&feed->events);
}

/* Puts what comes next; whether there was anything. */
static bool produce(void *arg)
{
	struct execution_feed *feed = arg;
	struct execution_record record;
	bool has_more = true;

	if (feed->is_done)
		return false;
	/* Looked at first: all that was written before the end is in the log by then. */
	execution_read(feed->execution, &record);
	if (feed->has_start) {
		put_start(feed, &record);
	} else if (!has_more_output(feed)) {
		log_events_put_rest(&feed->events);
		has_more = record.ended_at_ms > 0;
		if (has_more)
			put_end(feed, &record);
	}
	execution_record_fini(&record);
	return has_more;
}

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct execution_feed *feed = arg;
	size_t n = log_events_take(&feed->events, data, size, produce, feed);

	return n == 0 && feed->is_done ? -ENODATA : (ssize_t)n;
}

/* --- events of the execution --- */

static void poke(void *arg)
{
	struct execution_feed *feed = arg;

	stream_poke(feed->stream);
}

static void on_over(void *arg, const struct execution_record *record)
{
	(void)record;
	poke(arg);
}

static const struct execution_events watch_events = {
	.output = poke, .over = on_over, .release = feed_unref};

/* The client went away, or has got all. */
static void gone(void *arg)
{
	struct execution_feed *feed = arg;
	struct execution_record record;

	execution_unwatch(feed->execution, feed);
	execution_read(feed->execution, &record);
	if (feed->cancels && record.ended_at_ms == 0 && !atomic_load(&feed->api->is_leaving))
		execution_cancel(feed->execution);
	execution_record_fini(&record);
	feed_unref(feed);
}

static const struct stream_events stream_events = {.pull = pull, .gone = gone};

void execution_events_answer(struct request *req, const struct execution_events_spec *spec)
{
	struct execution_feed *feed = mem_new(sizeof(*feed));
	struct execution_record record;

	feed->refs = 2; /* the stream's and the watch's */
	feed->api = spec->api;
	feed->execution = execution_ref(spec->execution);
	execution_begin_reading(feed->execution);
	feed->cancels = spec->cancels;
	execution_read(spec->execution, &record);
	feed->has_start = spec->from == 0;
	feed->is_plain = language_find(record.language)->is_plain;
	feed->from = spec->from;
	log_events_init(&feed->events, NULL, 0);
	if (record.context_id[0])
		memcpy(feed->id, record.id, sizeof(feed->id));
	execution_record_fini(&record);
	feed->events.out = BUF_INIT(EVENTS_MAX);
	feed->events.result = take_result;
	feed->events.arg = feed;
	result_reader_init(&feed->reader, put_frame, feed);
	feed->reader.marker = feed->id[0] ? feed->id : NULL;
	feed->stream = stream_new_pulled(&stream_events, feed);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	if (!execution_watch(spec->execution, &watch_events, feed))
		feed_unref(feed);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
}
