/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of events: `start` is 0, output as log_events.h says, `exit` one more than the end. */
#include "api/process/output_events.h"

#include "api/log_events.h"
#include "api/process/process_body.h"
#include "api/sse.h"
#include "http/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

struct output_events {
	atomic_int refs;
	struct sandbox *sandbox;
	struct process *process; /* NULL: nothing of it runs any more */
	struct output_log *log;
	struct stream *stream;
	bool follows, is_pacing, cancels;
	const struct api *api;

	pthread_mutex_t lock; /* what follows */
	struct log_events events;
	bool has_start; /* is still to be sent */
	bool is_done;	/* nothing more comes after what `events` has */
	bool has_ended;
	uint32_t number, pid;
	struct process_end end;
};

void output_events_unref(struct output_events *feed)
{
	if (!feed || atomic_fetch_sub(&feed->refs, 1) > 1)
		return;
	stream_unref(feed->stream);
	log_events_fini(&feed->events);
	output_log_unref(feed->log);
	process_unref(feed->process);
	sandbox_unref(feed->sandbox);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}

static void release(void *arg)
{
	output_events_unref(arg);
}

/* --- making events; the lock is held --- */

static void put_start(struct output_events *feed)
{
	char name[PROCESS_NAME_MAX];
	json_t *data;

	process_name_format(feed->number, name);
	data = json_pack("{s:s, s:I}", "process", name, "pid", (json_int_t)feed->pid);
	sse_put_event(&feed->events.out, 0, "start", data);
	json_decref(data);
	feed->has_start = false;
}

static void put_exit(struct output_events *feed)
{
	json_t *data = process_body_encode_end(&feed->end);

	sse_put_event(&feed->events.out, feed->events.at + 1, "exit", data);
	json_decref(data);
}

/* Puts what comes next; whether there was anything. */
static bool produce(void *arg)
{
	struct output_events *feed = arg;
	/* Looked at first: all that was written before the end is in the log by then. */
	bool has_ended = feed->has_ended;

	if (feed->is_done)
		return false;
	if (feed->has_start) {
		put_start(feed);
		return true;
	}
	if (log_events_put_next(&feed->events))
		return true;
	if (!has_ended && feed->follows)
		return false;
	log_events_put_rest(&feed->events);
	if (has_ended)
		put_exit(feed);
	feed->is_done = true;
	return true;
}

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct output_events *feed = arg;
	uint64_t before, consumed;
	ssize_t n;

	pthread_mutex_lock(&feed->lock);
	before = feed->events.at + feed->events.carry_len;
	n = (ssize_t)log_events_take(&feed->events, data, size, produce, feed);
	consumed = feed->events.at + feed->events.carry_len;
	if (n == 0 && feed->is_done)
		n = -ENODATA;
	pthread_mutex_unlock(&feed->lock);
	if (consumed > before && feed->is_pacing)
		process_consumed(feed->process, consumed);
	return n;
}

/* --- events of the process --- */

static void on_output(void *arg, int stream, const uint8_t *data, size_t len)
{
	struct output_events *feed = arg;

	(void)stream;
	(void)data;
	(void)len;
	stream_poke(feed->stream);
}

static void on_ended(void *arg, const struct process_end *end)
{
	struct output_events *feed = arg;

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
	struct output_events *feed = arg;
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
	output_events_unref(feed);
}

static const struct stream_events stream_events = {.pull = pull, .gone = gone};

/* --- life --- */

struct output_events *output_events_new(const struct output_events_spec *spec)
{
	struct output_events *feed = mem_new(sizeof(*feed));

	feed->refs = 1;
	feed->sandbox = sandbox_ref(spec->sandbox);
	feed->process = spec->process ? process_ref(spec->process) : NULL;
	feed->log = spec->log ? output_log_ref(spec->log) : NULL;
	feed->follows = spec->follows;
	feed->is_pacing = spec->is_pacing;
	feed->cancels = spec->cancels;
	feed->api = spec->api;
	feed->has_start = spec->has_start;
	pthread_mutex_init(&feed->lock, NULL);
	log_events_init(&feed->events, feed->log, spec->from);
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

void output_events_watch(struct output_events *feed)
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
	output_events_unref(feed);
}

void output_events_started(struct output_events *feed, uint32_t number, uint32_t pid)
{
	struct output_log *log = process_log(feed->process);

	pthread_mutex_lock(&feed->lock);
	feed->number = number;
	feed->pid = pid;
	if (!feed->log && log) {
		feed->log = output_log_ref(log);
		log_events_fini(&feed->events);
		log_events_init(&feed->events, log, 0);
	}
	pthread_mutex_unlock(&feed->lock);
}

void output_events_answer(struct output_events *feed, struct request *req)
{
	atomic_fetch_add(&feed->refs, 1); /* until `gone` */
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
}
