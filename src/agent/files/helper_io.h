/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a helper talks to the daemon: one blocking stream socket, buffered both ways.
 *
 * What is put is sent when enough has gathered, before anything is read, and by helper_io_flush().
 * Functions that return int give 0 or -errno; when the daemon closed the channel it is -EPIPE or
 * -ENODATA, and then the helper has nothing left to do.
 */
#pragma once

#include "base/buf.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct helper_io {
	int fd;
	int failure; /* -errno of the first send that failed; nothing is sent after it */
	struct buf out;
	uint8_t *in;
	size_t in_at;
	size_t in_len;
};

void helper_io_init(struct helper_io *helper_io, int fd);

/* Frees the buffers; the caller keeps the descriptor. */
void helper_io_fini(struct helper_io *helper_io);

void helper_io_put(struct helper_io *helper_io, const void *data, size_t len);
void helper_io_put_u8(struct helper_io *helper_io, uint8_t value);
void helper_io_put_u32(struct helper_io *helper_io, uint32_t value);
void helper_io_put_u64(struct helper_io *helper_io, uint64_t value);
void helper_io_put_str(struct helper_io *helper_io, const char *s);

/* A struct agent_file_answer; flags are AGENT_FILE_*, target is "" where there is none. */
void helper_io_put_answer(
	struct helper_io *helper_io, const struct stat *stat, unsigned flags, const char *target);
void helper_io_put_nothing(struct helper_io *helper_io); /* kind AGENT_FILE_NONE */
void helper_io_put_failure(struct helper_io *helper_io, int errnum, const char *target);

int helper_io_flush(struct helper_io *helper_io) must_check;

/* len bytes of file from offset on. -ENODATA when the file ends before: *ret_sent tells where. */
int helper_io_send_file(struct helper_io *helper_io, int file, uint64_t offset, uint64_t len,
	uint64_t *ret_sent) must_check;

int helper_io_read(struct helper_io *helper_io, void *data, size_t len) must_check;
int helper_io_read_u8(struct helper_io *helper_io, uint8_t *ret_value) must_check;
int helper_io_read_u32(struct helper_io *helper_io, uint32_t *ret_value) must_check;
int helper_io_read_u64(struct helper_io *helper_io, uint64_t *ret_value) must_check;

/* A string below size bytes, with its NUL; -EPROTO if it is longer or has a NUL inside. */
int helper_io_read_str(struct helper_io *helper_io, char *text, size_t size) must_check;

/*
 * Writes the next len bytes to file (at its position), or drops them if file is -1. *ret_failure is
 * the -errno of the first write that failed, after which the rest is still received: both sides
 * stay in step.
 */
int helper_io_receive_file(struct helper_io *helper_io, int file, uint64_t len, int *ret_failure)
	must_check;

/* Sends what was put, then drops what comes until the daemon closes: it may still send. */
void helper_io_drain(struct helper_io *helper_io);

/* Whether the daemon still waits; for work that sends nothing for long. */
bool helper_io_is_wanted(const struct helper_io *helper_io);
