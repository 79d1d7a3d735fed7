/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a file watch in a sandbox reports (AGENT_FILE_WATCH in wire/agent.h) without a thread
 * of its own: the channel is read on the event loop's thread, one change at a time.
 *
 * The helper behind the channel is hostile input. The memory of one watch is bounded, and a sink
 * that has no room stops the reading. Then the helper waits, and at last the kernel's queue inside
 * overflows, which the helper reports as AGENT_CHANGE_LOST.
 */
#pragma once

#include "core/engine/engine.h"
#include "wire/agent.h"

struct file_changes;

struct file_changes_change {
	enum agent_change what;
	enum agent_file_kind kind;
	char path[AGENT_PATH_MAX]; /* relative to what is watched; "" is itself */
	char to[AGENT_PATH_MAX];   /* of AGENT_MOVED */
};

/* Both are called on the event loop's thread, and must not block. */
struct file_changes_sink {
	/* 0 if it was taken, -EAGAIN to be given it again after file_changes_resume(). Never of
	 * AGENT_CHANGE_GONE, which is the end. */
	int (*change)(void *arg, const struct file_changes_change *change);
	/*
	 * No more changes come: the watched directory is gone, the sandbox ended, or the watch was
	 * closed. Called exactly once, last of all.
	 */
	void (*ended)(void *arg);
};

/* Takes over fd, the channel after its first answer, also on failure. */
int file_changes_open(struct engine *engine, int fd, const struct file_changes_sink *sink,
	void *arg, struct file_changes **ret_changes, struct err *err) must_check;
void file_changes_unref(struct file_changes *changes);

/* There is room again. Any thread. */
void file_changes_resume(struct file_changes *changes);

/* Ends the watch inside; `ended` will be called unless it was. Any thread. */
void file_changes_close(struct file_changes *changes);

/*
 * Takes the first change off data: its length; 0 if more bytes are needed; -EPROTO for what no honest
 * helper says, a path that leads out of what is watched among it.
 */
int file_changes_parse(const uint8_t *data, size_t len, struct file_changes_change *ret_change)
	must_check;
