/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File work in a sandbox: each request gets a channel, a socket to a helper process inside that does
 * the one thing and ends (wire/agent.h has the table). The helper sees the sandbox's files as the
 * sandbox does, so a path cannot lead anywhere else; and it is hostile input like the agent.
 */
#pragma once

#include "base/buf.h"
#include "core/engine/sandbox_handle.h"
#include "wire/agent.h"

#define FILE_CHANNEL_TARGET_MAX 4096

struct file_channel_answer {
	struct agent_file_answer file;
	char target
		[FILE_CHANNEL_TARGET_MAX]; /* a link's target, or the offending name; "" for none */
};

/*
 * Sends a request (its packed arguments after the op) and opens its channel: a blocking socket whose
 * reads and writes give up after a while. Wakes the sandbox if need be.
 */
int file_channel_open(struct sandbox *sandbox, enum agent_file_op op, const struct buf *arguments,
	int *ret_fd, struct err *err) must_check;

/* The same over the link of a sandbox that runs, as a user by number; for who holds its life. */
int file_channel_open_on(struct sandbox *sandbox, struct agent_link *link, uint32_t user,
	enum agent_file_op op, const struct buf *arguments, int *ret_fd, struct err *err)
	must_check;

/*
 * Sends a request whose first argument is a path, `more` behind it if given, and reads the first
 * answer. The channel is closed again unless ret_fd wants it.
 */
int file_channel_ask(struct sandbox *sandbox, enum agent_file_op op, const char *path,
	const struct buf *more, struct file_channel_answer *ret_answer, int *ret_fd,
	struct err *err) must_check;

/*
 * Reads a small file whole, with a NUL behind it that does not count; the caller frees it. ERR_TOO_LARGE past max bytes.
 */
int file_channel_load(struct sandbox *sandbox, const char *path, size_t max, char **ret_text,
	size_t *ret_len, struct err *err) must_check;

/*
 * Writes a small file whole, with these permission bits (AGENT_MODE_KEEP: those it has, or the usual ones), replacing it at
 * a single instant.
 */
int file_channel_store(struct sandbox *sandbox, const char *path, uint32_t mode, const void *data,
	size_t len, struct file_channel_answer *ret_answer, struct err *err) must_check;

/* Reads a packed string of less than AGENT_PATH_MAX bytes. -EPROTO if it is longer, or holds a NUL byte. */
int file_channel_read_str(int fd, char text[AGENT_PATH_MAX]) must_check;

/* The same of a relative path. -EPROTO too if it is empty or not plain (core/files/relative_path.h). */
int file_channel_read_path(int fd, char path[AGENT_PATH_MAX]) must_check;

/* Reads an answer. -errno without err for a broken channel is never returned: err is always set. An
 * answer with errnum != 0 is an error too, described with the path. */
int file_channel_read_answer(int fd, const char *path, struct file_channel_answer *ret_answer,
	struct err *err) must_check;

/* What a channel that failed with -errno in the middle means to a client. */
int file_channel_broken(int r, struct err *err);

/* What a failed file operation on path means to a client. */
int file_channel_describe(int errnum, const char *path, struct err *err);
