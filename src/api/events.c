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

#define EVENT_BUFFER (64u << 10)

struct event_feed {
	struct event_bus *bus;
	struct engine *engine;
	struct stream *stream;
	struct subscription *subscription; /* of one sandbox */
	struct event_follower *follower;   /* of all */
	atomic_uint missed;
};

static void put(struct event_feed *feed, const struct buf *text)
{
	if (text->failed || stream_offer(feed->stream, text->data, text->len) < 0)
		atomic_fetch_add(&feed->missed, 1);
}

static void put_event(void *arg, const struct event *event)
{
	struct event_feed *feed = arg;
	auto_(buf_fini) struct buf text = BUF_INIT(EVENT_BUFFER);
	unsigned missed = atomic_load(&feed->missed);

	if (missed > 0)
		buf_printf(&text, "event: missed\ndata: {\"count\":%u}\n\n", missed);
	buf_printf(&text, "id: %llu\nevent: %s\ndata: %s\n\n", (unsigned long long)event->sequence,
		event->type, event->json);
	if (text.failed || stream_offer(feed->stream, text.data, text.len) < 0)
		atomic_fetch_add(&feed->missed, 1);
	else
		atomic_fetch_sub(&feed->missed, missed);
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
	free(feed);
}

/* Kept by the request. */
static struct event_feed *feed_new(struct request *req, const struct api *api)
{
	struct event_feed *feed = mem_new(sizeof(*feed));

	feed->bus = api->bus;
	feed->engine = api->engine;
	feed->stream = stream_new(EVENT_BUFFER, NULL, NULL);
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

HANDLER(events_of_owner)
{
	const struct api *api = context;
	const char *topics = request_query(req, "topics");
	struct owner owner = api_owner(req);
	struct event_filter filter = {.owner = &owner, .topics = topics};
	auto_(buf_fini) struct buf text = BUF_INIT(EVENT_BUFFER);
	struct event_feed *feed;
	int r = topics ? event_bus_check_topics(topics, err) : 0;

	if (r < 0)
		return r;
	feed = feed_new(req, api);
	buf_printf(&text, "event: following\ndata: {\"topics\":%s%s%s}\n\n", topics ? "\"" : "",
		topics ? topics : "null", topics ? "\"" : "");
	put(feed, &text);
	/* Before the client has got the first event: what it reads of the state after that is not missed. */
	feed->follower = event_bus_follow(api->bus, &filter, put_event, feed);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}
