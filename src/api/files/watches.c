/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET .../files/watch: what happens to files, as server-sent events.
 *
 * The handler waits until the directories are watched and answers with a stream. From then on no thread
 * waits: changes come on the event loop's thread (core/files/file_changes.h) and go into the stream; a client that
 * does not read stops that, and one that leaves ends the watch inside the sandbox.
 */
#include "api/files/file_entry.h"
#include "api/handlers.h"
#include "api/text.h"
#include "core/files/file_changes.h"
#include "core/files/file_channel.h"
#include "core/sandbox/sandbox.h"
#include "http/stream.h"
#include "wire/pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define STREAM_BUFFER (64u << 10)

struct file_watcher {
	atomic_int refs; /* the request's and the feed's */
	struct file_changes *feed;
	struct stream *stream;
	char path[AGENT_PATH_MAX];

	pthread_mutex_t lock; /* what follows */
	uint64_t sequence;
	bool has_ended; /* and its last event waits for room, if it is not finished */
	bool is_finished;
};

static void watcher_unref(void *arg)
{
	struct file_watcher *watcher = arg;

	if (atomic_fetch_sub(&watcher->refs, 1) > 1)
		return;
	file_changes_unref(watcher->feed);
	stream_unref(watcher->stream);
	pthread_mutex_destroy(&watcher->lock);
	free(watcher);
}

/* Offers one event, whose data is taken over. The lock is held. */
static int offer_event(struct file_watcher *watcher, const char *name, json_t *data)
{
	auto_free char *json = json_dumps(data, JSON_COMPACT);
	auto_free char *text = mem_printf("id: %llu\nevent: %s\ndata: %s\n\n",
		(unsigned long long)watcher->sequence + 1, name, json);
	int r = stream_offer(watcher->stream, text, strlen(text));

	if (r == 0)
		watcher->sequence++;
	json_decref(data);
	return r;
}

/* Sets object[name] to the absolute path of a change. */
static void set_path(
	const struct file_watcher *watcher, json_t *object, const char *name, const char *path)
{
	const char *joint = path[0] && strcmp(watcher->path, "/") != 0 ? "/" : "";
	auto_free char *full = mem_printf("%s%s%s", watcher->path, joint, path);

	text_set(object, name, (const uint8_t *)full, strlen(full));
}

/* {path} */
static json_t *make_data(const struct file_watcher *watcher, const char *path)
{
	json_t *data = json_object();

	set_path(watcher, data, "path", path);
	return data;
}

static const char *const event_names[] = {
	[AGENT_CREATED] = "created",
	[AGENT_MODIFIED] = "modified",
	[AGENT_DELETED] = "deleted",
	[AGENT_MOVED] = "moved",
	[AGENT_CHANGE_LOST] = "overflow",
};

static int take_change(void *arg, const struct file_changes_change *change)
{
	struct file_watcher *watcher = arg;
	json_t *data;
	int r;

	if (change->what == AGENT_CHANGE_LOST) {
		data = json_object();
	} else {
		data = make_data(watcher, change->path);
		if (change->what == AGENT_MOVED)
			set_path(watcher, data, "to", change->to);
		json_object_set_new(data, "type", json_string(file_entry_type(change->kind)));
	}
	pthread_mutex_lock(&watcher->lock);
	r = offer_event(watcher, event_names[change->what], data);
	pthread_mutex_unlock(&watcher->lock);
	/* Of a client that is gone the stream tells; until it has, changes go nowhere. */
	return r == -EAGAIN ? r : 0;
}

/* The last event, as soon as there is room for it. */
static void finish(struct file_watcher *watcher)
{
	pthread_mutex_lock(&watcher->lock);
	if (watcher->has_ended && !watcher->is_finished &&
		offer_event(watcher, "gone", make_data(watcher, "")) != -EAGAIN) {
		watcher->is_finished = true;
		stream_finish(watcher->stream);
	}
	pthread_mutex_unlock(&watcher->lock);
}

static void watch_ended(void *arg)
{
	struct file_watcher *watcher = arg;

	pthread_mutex_lock(&watcher->lock);
	watcher->has_ended = true;
	pthread_mutex_unlock(&watcher->lock);
	finish(watcher);
	watcher_unref(watcher);
}

static const struct file_changes_sink feed_sink = {.change = take_change, .ended = watch_ended};

static void stream_room(void *arg)
{
	struct file_watcher *watcher = arg;

	file_changes_resume(watcher->feed);
	finish(watcher);
}

static void client_gone(void *arg)
{
	struct file_watcher *watcher = arg;

	file_changes_close(watcher->feed);
}

static const struct stream_events stream_events = {.room = stream_room, .gone = client_gone};

static struct file_watcher *make_watcher(const char *path)
{
	struct file_watcher *watcher = mem_new(sizeof(*watcher));

	watcher->refs = 2;
	memcpy(watcher->path, path, sizeof(watcher->path));
	pthread_mutex_init(&watcher->lock, NULL);
	watcher->stream = stream_new(STREAM_BUFFER, &stream_events, watcher);
	stream_set_heartbeat(watcher->stream, API_HEARTBEAT_MS);
	return watcher;
}

/* Opens the channel and waits until everything is watched. */
static int open_channel(
	struct sandbox *sandbox, const char *path, bool recursive, int *ret_fd, struct err *err)
{
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(8);
	int r;

	pack_u8(&more, recursive);
	r = file_channel_ask(sandbox, AGENT_FILE_WATCH, path, &more, &answer, ret_fd, err);
	buf_fini(&more);
	/* inotify says "no space" when it means watches. */
	if (r < 0 && strcmp(err->code, "out_of_disk") == 0)
		return err_explain(err, ERR_CONFLICT, "too_many_directories",
			"watch a smaller tree, or raise fs.inotify.max_user_watches on the host",
			"there are too many directories below %s to be watched", path);
	return r;
}

HANDLER(watches_open)
{
	struct api *api = context;
	struct file_watcher *watcher;
	char path[AGENT_PATH_MAX];
	struct sandbox *sandbox;
	bool recursive;
	int fd, r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = api_query_boolean(req, "recursive", &recursive, err)) < 0 ||
		(r = open_channel(sandbox, path, recursive, &fd, err)) < 0)
		return r;
	watcher = make_watcher(path);
	request_keep(req, watcher, watcher_unref);
	/* An empty stream takes it; and nobody else offers before the feed is open. */
	(void)!offer_event(watcher, "ready", make_data(watcher, ""));
	r = file_changes_open(api->engine, fd, &feed_sink, watcher, &watcher->feed, err);
	if (r < 0) {
		watcher_unref(watcher); /* the feed's */
		return r;
	}
	request_answer_stream(req, 200, "text/event-stream", watcher->stream);
	return 0;
}
