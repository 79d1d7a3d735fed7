/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper's conversation with the daemon: one blocking stream socket, buffered both ways.
 *
 * What is put is sent when enough has gathered, before anything is read, and by dialog_flush().
 * Functions that return int give 0 or -errno; a daemon that went away is -EPIPE or -ENODATA, and
 * then the helper has nothing left to do.
 */
#pragma once

#include "base/buf.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct dialog {
	int fd;
	int failure; /* -errno of the first send that failed; nothing is sent after it */
	struct buf out;
	uint8_t *in;
	size_t in_at;
	size_t in_len;
};

void dialog_init(struct dialog *dialog, int fd);

/* Frees the buffers; the descriptor is the caller's. */
void dialog_fini(struct dialog *dialog);

void dialog_put(struct dialog *dialog, const void *data, size_t len);
void dialog_put_u8(struct dialog *dialog, uint8_t value);
void dialog_put_u32(struct dialog *dialog, uint32_t value);
void dialog_put_u64(struct dialog *dialog, uint64_t value);
void dialog_put_str(struct dialog *dialog, const char *s);

/* A struct agent_file_answer; flags are AGENT_FILE_*, target is "" where there is none. */
void dialog_put_answer(
	struct dialog *dialog, const struct stat *stat, unsigned flags, const char *target);
void dialog_put_nothing(struct dialog *dialog); /* kind AGENT_FILE_NONE */
void dialog_put_failure(struct dialog *dialog, int errnum, const char *target);

int dialog_flush(struct dialog *dialog) must_check;

/* len bytes of file from offset on. -ENODATA when the file ends before: *ret_sent tells where. */
int dialog_send_file(struct dialog *dialog, int file, uint64_t offset, uint64_t len,
	uint64_t *ret_sent) must_check;

int dialog_read(struct dialog *dialog, void *data, size_t len) must_check;
int dialog_read_u8(struct dialog *dialog, uint8_t *ret_value) must_check;
int dialog_read_u32(struct dialog *dialog, uint32_t *ret_value) must_check;
int dialog_read_u64(struct dialog *dialog, uint64_t *ret_value) must_check;

/* A string below size bytes, with its NUL; -EPROTO if it is longer or has a NUL inside. */
int dialog_read_str(struct dialog *dialog, char *text, size_t size) must_check;

/*
 * The next len bytes into file (at its position); into nowhere if file is -1. *ret_failure is the
 * -errno of the first write that failed, after which the rest is still received: the conversation
 * stays in step.
 */
int dialog_receive_file(struct dialog *dialog, int file, uint64_t len, int *ret_failure) must_check;

/* Sends what was put, then throws away what comes until the daemon closes: it may still send. */
void dialog_drain(struct dialog *dialog);

/* Whether the daemon still wants the answer; for work that says nothing for long. */
bool dialog_is_wanted(const struct dialog *dialog);
