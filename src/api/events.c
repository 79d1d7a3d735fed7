/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of events (core/engine/event_bus.h): those of one sandbox, and all of an owner. A client that does not read
 * fast enough misses events, and is told how many.
 */
#include "api/handlers.h"
#include "api/sse.h"
#include "core/preview/subscription.h"
#include "core/sandbox/sandbox.h"
#include "http/stream.h"

#include <stdatomic.h>

#define EVENT_BUFFER (256u << 10)
#define BACKLOG_MAX  (4u << 20) /* more than is ever kept */

struct event_feed {
	struct event_bus *bus;
	struct engine *engine;
	struct stream *stream;
	struct subscription *subscription; /* of one sandbox */
	struct event_follower *follower;   /* of all */
	struct buf backlog; /* what a follower is told before all else, in one piece */
	bool is_caught_up;
	atomic_uint missed;
	atomic_uint_fast64_t last; /* the number of the last one that it got */
};

static void put(struct event_feed *feed, const struct buf *text)
{
	if (text->failed || stream_offer(feed->stream, text->data, text->len) < 0)
		atomic_fetch_add(&feed->missed, 1);
}

static void print_event(struct buf *text, const struct event *event)
{
	if (event->sequence > 0)
		buf_printf(text, "id: %llu\n", (unsigned long long)event->sequence);
	buf_printf(text, "event: %s\ndata: %s\n\n", event->type, event->json);
}

static void put_event(void *arg, const struct event *event)
{
	struct event_feed *feed = arg;
	auto_(buf_fini) struct buf text = BUF_INIT(EVENT_BUFFER);
	unsigned missed = atomic_load(&feed->missed);

	if (missed > 0)
		buf_printf(&text, "event: missed\ndata: {\"count\":%u,\"since\":%llu}\n\n", missed,
			(unsigned long long)atomic_load(&feed->last));
	print_event(&text, event);
	if (text.failed || stream_offer(feed->stream, text.data, text.len) < 0) {
		atomic_fetch_add(&feed->missed, 1);
		return;
	}
	atomic_fetch_sub(&feed->missed, missed);
	atomic_store(&feed->last, event->sequence);
}

/* A follower's first events are gathered until it has caught up: an empty stream takes them whole, however many. */
static void put_followed(void *arg, const struct event *event)
{
	struct event_feed *feed = arg;

	if (!event) {
		put(feed, &feed->backlog);
		buf_fini(&feed->backlog);
		feed->is_caught_up = true;
	} else if (feed->is_caught_up) {
		put_event(feed, event);
	} else {
		print_event(&feed->backlog, event);
		if (event->sequence > 0)
			atomic_store(&feed->last, event->sequence);
	}
}

/* Of a sandbox whose ports are watched for what is published of them. */
static void pass_over(void *arg, const struct event *event)
{
	(void)arg;
	(void)event;
}

static void end_stream(void *arg)
{
	struct event_feed *feed = arg;

	stream_finish(feed->stream);
}

static void feed_free(void *arg)
{
	struct event_feed *feed = arg;

	if (feed->subscription)
		engine_unsubscribe(feed->engine, feed->subscription);
	event_bus_leave(feed->bus, feed->follower);
	stream_unref(feed->stream);
	buf_fini(&feed->backlog);
	free(feed);
}

static void release_sandbox(void *sandbox)
{
	sandbox_unref(sandbox);
}

/* Kept by the request. */
static struct event_feed *feed_new(struct request *req, const struct api *api)
{
	struct event_feed *feed = mem_new(sizeof(*feed));

	feed->bus = api->bus;
	feed->engine = api->engine;
	feed->stream = stream_new(EVENT_BUFFER, NULL, NULL);
	feed->backlog = (struct buf)BUF_INIT(BACKLOG_MAX);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	request_keep(req, feed, feed_free);
	return feed;
}

HANDLER(events_of_sandbox)
{
	struct sandbox_record record;
	struct event_feed *feed;
	struct sandbox *sandbox;
	auto_(buf_fini) struct buf text = BUF_INIT(EVENT_BUFFER);
	int r = api_sandbox(req, context, &sandbox, err);

	if (r < 0)
		return r;
	feed = feed_new(req, context);
	sandbox_read(sandbox, &record);
	buf_printf(&text, "event: status\ndata: {\"sandbox\":\"%s\",\"status\":\"%s\"}\n\n",
		record.id, sandbox_status_name(record.status));
	sandbox_record_fini(&record);
	put(feed, &text);
	feed->subscription = engine_subscribe(sandbox, put_event, end_stream, feed);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}

/* The sandbox that the query names, if it does; kept by the request. */
static int find_sandbox(
	struct request *req, struct api *api, struct sandbox **ret_sandbox, struct err *err)
{
	const char *name = request_query(req, "sandbox");
	struct owner owner = api_owner(req);
	int r = name ? api_check_ready(api, err) : 0;

	if (r < 0 || !name)
		return r;
	r = sandbox_get(api->engine, &owner, name, ret_sandbox, err);
	if (r == 0)
		request_keep(req, *ret_sandbox, release_sandbox);
	return r;
}

HANDLER(events_of_owner)
{
	struct api *api = context;
	const char *topics = request_query(req, "topics");
	struct owner owner = api_owner(req);
	struct event_filter filter = {.owner = &owner, .topics = topics};
	auto_free char *greeting = mem_printf("{\"topics\":%s%s%s}", topics ? "\"" : "",
		topics ? topics : "null", topics ? "\"" : "");
	struct sandbox *sandbox = NULL;
	struct event_feed *feed;
	int r = topics ? event_bus_check_topics(topics, err) : 0;

	if (r == 0)
		r = api_query_from(req, &filter.after, &filter.resumes, err);
	if (r == 0)
		r = find_sandbox(req, api, &sandbox, err);
	if (r < 0)
		return r;
	feed = feed_new(req, api);
	filter.greeting = greeting;
	filter.subject = sandbox ? sandbox_id(sandbox) : NULL;
	/* Before the client has got the first event: what it reads of the state after that is not missed. */
	feed->follower = event_bus_follow(api->bus, &filter, put_followed, feed);
	if (sandbox)
		feed->subscription = engine_subscribe(sandbox, pass_over, end_stream, feed);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}
