/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper's conversation with the daemon: one blocking stream socket, buffered both ways.
 *
 * What is put is sent when enough has gathered, before anything is read, and by channel_flush().
 * Functions that return int give 0 or -errno; a daemon that went away is -EPIPE or -ENODATA, and
 * then the helper has nothing left to do.
 */
#pragma once

#include "base/buf.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct channel {
	int fd;
	int failure; /* -errno of the first send that failed; nothing is sent after it */
	struct buf out;
	uint8_t *in;
	size_t in_at;
	size_t in_len;
};

void channel_init(struct channel *channel, int fd);

/* Frees the buffers; the descriptor is the caller's. */
void channel_fini(struct channel *channel);

void channel_put(struct channel *channel, const void *data, size_t len);
void channel_put_u8(struct channel *channel, uint8_t value);
void channel_put_u32(struct channel *channel, uint32_t value);
void channel_put_u64(struct channel *channel, uint64_t value);
void channel_put_str(struct channel *channel, const char *s);

/* A struct agent_file_answer; flags are AGENT_FILE_*, target is "" where there is none. */
void channel_put_answer(
	struct channel *channel, const struct stat *stat, unsigned flags, const char *target);
void channel_put_nothing(struct channel *channel); /* kind AGENT_FILE_NONE */
void channel_put_failure(struct channel *channel, int errnum, const char *target);

int channel_flush(struct channel *channel) must_check;

/* len bytes of file from offset on. -ENODATA when the file ends before: *ret_sent tells where. */
int channel_send_file(struct channel *channel, int file, uint64_t offset, uint64_t len,
	uint64_t *ret_sent) must_check;

int channel_read(struct channel *channel, void *data, size_t len) must_check;
int channel_read_u8(struct channel *channel, uint8_t *ret_value) must_check;
int channel_read_u32(struct channel *channel, uint32_t *ret_value) must_check;
int channel_read_u64(struct channel *channel, uint64_t *ret_value) must_check;

/* A string below size bytes, with its NUL; -EPROTO if it is longer or has a NUL inside. */
int channel_read_str(struct channel *channel, char *text, size_t size) must_check;

/*
 * The next len bytes into file (at its position); into nowhere if file is -1. *ret_failure is the
 * -errno of the first write that failed, after which the rest is still received: the conversation
 * stays in step.
 */
int channel_receive_file(struct channel *channel, int file, uint64_t len, int *ret_failure)
	must_check;

/* Sends what was put, then throws away what comes until the daemon closes: it may still send. */
void channel_drain(struct channel *channel);

/* Whether the daemon still wants the answer; for work that says nothing for long. */
bool channel_is_wanted(const struct channel *channel);
