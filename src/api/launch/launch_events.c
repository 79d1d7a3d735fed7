/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch as server-sent events: each line of its job's log (launch/pipeline.h) is a `stage`, and the launch itself the
 * `end`. The id of an event is the offset behind its line, so that a client can go on after it.
 */
#include "api/handlers.h"
#include "api/launch/launch_body.h"
#include "api/log_events.h"
#include "api/sse.h"
#include "core/job/job.h"
#include "http/stream.h"
#include "launch/launches.h"

#include <errno.h>
#include <stdio.h>

#define LINE_MAX_BYTES (16u << 10)
#define READ_BYTES     4096

/* A client that follows. Made for a request, and ended with its stream. */
struct launch_feed {
	struct api *api;
	struct owner owner;
	char id[ID_LEN + 1];
	struct stream *stream;
	struct job_follower *follower;
	struct output_cursor *cursor;
	struct log_events
		events; /* whose buffer is used; the connection's thread only, as what follows */
	struct buf line;
	bool is_done;
};

static void changed(void *arg)
{
	struct launch_feed *feed = arg;

	stream_poke(feed->stream);
}

static void put_line(struct launch_feed *feed, uint64_t next)
{
	json_auto_t *event = feed->line.failed ? NULL
					       : json_loadb((const char *)feed->line.data,
							 feed->line.len, 0, NULL);

	if (event)
		sse_put_event(&feed->events.out, next, "stage", event);
	feed->line.len = 0;
	feed->line.failed = false;
	feed->events.at = next;
}

/* Puts the lines of what comes next; whether there was anything. */
static bool put_lines(struct launch_feed *feed)
{
	char data[READ_BYTES];
	struct output_piece piece;

	output_cursor_read(feed->cursor, data, sizeof(data), &piece);
	if (piece.kind == OUTPUT_NONE)
		return false;
	if (piece.kind == OUTPUT_CUT) {
		feed->line.len = 0;
		return true;
	}
	for (uint64_t i = 0; i < piece.next - piece.offset; i++) {
		if (data[i] == '\n')
			put_line(feed, piece.offset + i + 1);
		else
			buf_append(&feed->line, &data[i], 1);
	}
	return true;
}

static void put_end(struct launch_feed *feed)
{
	struct launch_record record;
	struct err ignored;
	json_t *data;

	if (launches_get(feed->api->launches, &feed->owner, feed->id, &record, &ignored) < 0)
		return;
	data = launch_to_json(feed->api, &record);
	sse_put_event(&feed->events.out, feed->events.at + 1, "end", data);
	json_decref(data);
	launch_record_fini(&record);
}

static bool produce(void *arg)
{
	struct launch_feed *feed = arg;
	struct job_record record;
	bool is_over;

	if (feed->is_done)
		return false;
	/* Looked at first: all that was written before the end is in the log by then. */
	job_follower_read(feed->follower, &record);
	is_over = !job_state_is_active(record.state);
	job_record_fini(&record);
	while (put_lines(feed)) {
		if (feed->events.out.len > 0)
			return true;
	}
	if (is_over)
		put_end(feed);
	feed->is_done = is_over;
	return is_over;
}

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct launch_feed *feed = arg;
	size_t n = log_events_take(&feed->events, data, size, produce, feed);

	return n == 0 && feed->is_done ? -ENODATA : (ssize_t)n;
}

static void gone(void *arg)
{
	struct launch_feed *feed = arg;

	job_unfollow(feed->follower);
	output_cursor_free(feed->cursor);
	log_events_fini(&feed->events);
	buf_fini(&feed->line);
	stream_unref(feed->stream);
	free(feed);
}

static const struct stream_events stream_events = {.pull = pull, .gone = gone};

int launch_events_answer(struct request *req, struct api *api, const struct owner *owner,
	const char *id, struct err *err)
{
	struct launch_feed *feed;
	struct output_log *log;
	uint64_t from;
	bool given;
	int r = api_query_from(req, &from, &given, err);

	if (r < 0)
		return r;
	feed = mem_new(sizeof(*feed));
	feed->api = api;
	feed->owner = *owner;
	feed->line = BUF_INIT(LINE_MAX_BYTES);
	snprintf(feed->id, sizeof(feed->id), "%s", id);
	feed->stream = stream_new_pulled(&stream_events, feed);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	r = job_follow(api->jobs, owner, id, changed, feed, &feed->follower, err);
	if (r < 0) {
		stream_unref(feed->stream);
		free(feed);
		return r;
	}
	log = job_follower_log(feed->follower);
	if (from > output_log_end(log)) { /* it has seen the end */
		log_events_init(&feed->events, NULL, 0);
		gone(feed);
		request_answer_empty(req, 204);
		return 0;
	}
	feed->cursor = output_cursor_new(log, from);
	log_events_init(&feed->events, NULL, from);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}
