/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File work in a sandbox: each request gets a channel, a socket to a helper process inside that does
 * the one thing and ends (wire/agent.h has the table). The helper sees the sandbox's files as the
 * sandbox does, so a path cannot lead anywhere else; and it is hostile input like the agent.
 */
#pragma once

#include "base/buf.h"
#include "core/sandbox.h"
#include "wire/agent.h"

#define CHANNEL_TARGET_MAX 4096

struct channel_answer {
	struct agent_file_answer file;
	char target[CHANNEL_TARGET_MAX]; /* a link's target, or the offending name; "" for none */
};

/*
 * Sends a request (its packed arguments after the op) and opens its channel: a blocking socket whose
 * reads and writes give up after a while. Wakes the sandbox if need be.
 */
int channel_open(struct sandbox *sandbox, enum agent_file_op op, const struct buf *arguments,
	int *ret_fd, struct err *err) must_check;

/*
 * Sends a request whose first argument is a path, `more` behind it if given, and reads the first
 * answer. The channel is closed again unless ret_fd wants it.
 */
int channel_ask(struct sandbox *sandbox, enum agent_file_op op, const char *path,
	const struct buf *more, struct channel_answer *ret_answer, int *ret_fd, struct err *err)
	must_check;

/* Reads a packed string of less than AGENT_PATH_MAX bytes. -EPROTO if it is longer. */
int channel_read_str(int fd, char text[AGENT_PATH_MAX]) must_check;

/* Reads an answer. -errno without err for a broken channel is never returned: err is always set. An
 * answer with errnum != 0 is an error too, described with the path. */
int channel_read_answer(
	int fd, const char *path, struct channel_answer *ret_answer, struct err *err) must_check;

/* What a channel that failed with -errno in the middle means to a client. */
int channel_broken(int r, struct err *err);

/* What a failed file operation on path means to a client. */
int channel_describe(int errnum, const char *path, struct err *err);
