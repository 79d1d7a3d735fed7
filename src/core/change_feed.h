/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a watch of files in a sandbox reports (AGENT_FILE_WATCH in wire/agent.h), without a thread that
 * waits for it: its channel is read on the reactor's thread, one change at a time.
 *
 * The helper behind the channel is hostile input. Memory for one feed is bounded, and a sink that has no
 * room stops the reading: then the helper waits, and at last the kernel's queue inside overflows, which
 * the helper reports as AGENT_CHANGE_LOST.
 */
#pragma once

#include "core/engine.h"
#include "wire/agent.h"

struct change_feed;

struct change_feed_change {
	enum agent_change what;
	enum agent_file_kind kind;
	char path[AGENT_PATH_MAX]; /* relative to what is watched; "" is itself */
	char to[AGENT_PATH_MAX];   /* of AGENT_MOVED */
};

/* Both are called on the reactor's thread, and must not block. */
struct change_feed_sink {
	/* 0 if it was taken, -EAGAIN to be given it again after change_feed_resume(). Never of
	 * AGENT_CHANGE_GONE, which is the end. */
	int (*change)(void *arg, const struct change_feed_change *change);
	/* No more will come: what was watched is gone, the sandbox ended, or the feed was closed.
	 * Exactly once, last of all. */
	void (*ended)(void *arg);
};

/* Takes over fd, the channel after its first answer, also on failure. */
int change_feed_open(struct engine *engine, int fd, const struct change_feed_sink *sink, void *arg,
	struct change_feed **ret_feed, struct err *err) must_check;
void change_feed_unref(struct change_feed *feed);

/* There is room again. Any thread. */
void change_feed_resume(struct change_feed *feed);

/* Ends the watch inside; `ended` will be called unless it was. Any thread. */
void change_feed_close(struct change_feed *feed);

/*
 * Takes the first change off data: its length; 0 if more bytes are needed; -EPROTO for what no honest
 * helper says, a path that leads out of what is watched among it.
 */
int change_feed_parse(const uint8_t *data, size_t len, struct change_feed_change *ret_change)
	must_check;
