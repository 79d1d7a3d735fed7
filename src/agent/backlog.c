/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/backlog.h"

#include "wire/agent.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define RING_MIN  4096u
#define RING_STEP 4u /* 4 KiB to 1 MiB in five steps: few copies on the way to the top */

/* Twice what a full window of one-byte runs needs: acknowledged runs are dropped by halves. */
#define RUNS_BYTES_MAX (2 * sizeof(uint32_t) * (AGENT_OUTPUT_WINDOW + 2))

void backlog_init(struct backlog *backlog)
{
	*backlog = (struct backlog){.runs = BUF_INIT(RUNS_BYTES_MAX)};
}

void backlog_fini(struct backlog *backlog)
{
	free(backlog->ring);
	buf_fini(&backlog->runs);
	backlog_init(backlog);
}

static size_t used(const struct backlog *backlog)
{
	return (size_t)(backlog->end - backlog->start);
}

static size_t position(const struct backlog *backlog, uint64_t offset)
{
	return (size_t)(offset & (backlog->ring_size - 1));
}

static uint32_t *runs(const struct backlog *backlog)
{
	return (uint32_t *)(void *)backlog->runs.data;
}

static size_t run_count(const struct backlog *backlog)
{
	return backlog->runs.len / sizeof(uint32_t);
}

/* The len bytes from offset on, as the ring holds them. */
static void view(const struct backlog *backlog, uint64_t offset, size_t len, struct iovec parts[2])
{
	size_t at = position(backlog, offset);
	size_t first = backlog->ring_size - at;

	if (first > len)
		first = len;
	parts[0] = (struct iovec){.iov_base = backlog->ring + at, .iov_len = first};
	parts[1] = (struct iovec){.iov_base = backlog->ring, .iov_len = len - first};
}

static void grow(struct backlog *backlog)
{
	size_t size = backlog->ring_size ? backlog->ring_size * RING_STEP : RING_MIN;
	struct backlog bigger = *backlog;
	struct iovec parts[2];
	size_t at;

	bigger.ring_size = size;
	bigger.ring = mem_new(size);
	if (used(backlog) > 0) {
		view(backlog, backlog->start, used(backlog), parts);
		at = position(&bigger, backlog->start);
		for (size_t i = 0; i < 2; i++) {
			/* The new ring may wrap elsewhere than the old one. */
			for (size_t done = 0; done < parts[i].iov_len;) {
				size_t n = parts[i].iov_len - done;

				if (n > size - at)
					n = size - at;
				memcpy(bigger.ring + at, (uint8_t *)parts[i].iov_base + done, n);
				done += n;
				at = (at + n) & (size - 1);
			}
		}
	}
	free(backlog->ring);
	*backlog = bigger;
}

size_t backlog_space(struct backlog *backlog, uint8_t **ret_at)
{
	size_t at, contiguous, room;

	if (used(backlog) == AGENT_OUTPUT_WINDOW)
		return 0;
	if (used(backlog) == backlog->ring_size)
		grow(backlog);
	at = position(backlog, backlog->end);
	contiguous = backlog->ring_size - at;
	room = backlog->ring_size - used(backlog);
	*ret_at = backlog->ring + at;
	return contiguous < room ? contiguous : room;
}

void backlog_add(struct backlog *backlog, enum backlog_stream stream, size_t len)
{
	uint32_t is_stderr = stream == BACKLOG_STDERR;
	uint32_t run = (uint32_t)len * 2 + is_stderr;
	size_t count = run_count(backlog);

	assert(len > 0 && used(backlog) + len <= backlog->ring_size);
	backlog->end += len;
	if (count > backlog->run_first && (runs(backlog)[count - 1] & 1) == is_stderr) {
		runs(backlog)[count - 1] += (uint32_t)len * 2;
		return;
	}
	/* There is room for a full window of runs: failing means that no memory is left. */
	if (buf_append(&backlog->runs, &run, sizeof(run)) < 0)
		abort();
}

bool backlog_next(struct backlog *backlog, size_t max, struct backlog_piece *ret_piece)
{
	uint32_t run;
	size_t len;

	if (backlog->sent == backlog->end)
		return false;
	run = runs(backlog)[backlog->run_sent];
	if (backlog->run_done == run / 2) {
		run = runs(backlog)[++backlog->run_sent];
		backlog->run_done = 0;
	}
	len = run / 2 - backlog->run_done;
	if (len > max)
		len = max;
	*ret_piece = (struct backlog_piece){
		.offset = backlog->sent,
		.stream = run & 1 ? BACKLOG_STDERR : BACKLOG_STDOUT,
		.len = len,
	};
	view(backlog, backlog->sent, len, ret_piece->parts);
	return true;
}

void backlog_send(struct backlog *backlog, size_t len)
{
	assert(len <= backlog->end - backlog->sent);
	backlog->sent += len;
	backlog->run_done += (uint32_t)len;
}

void backlog_rewind(struct backlog *backlog)
{
	backlog->sent = backlog->start;
	backlog->run_sent = backlog->run_first;
	backlog->run_done = 0;
}

/* Drops len acknowledged bytes from the front of the runs. */
static void shorten_runs(struct backlog *backlog, size_t len)
{
	while (len > 0) {
		uint32_t *run = &runs(backlog)[backlog->run_first];
		size_t n = *run / 2 < len ? *run / 2 : len;

		*run -= (uint32_t)n * 2;
		len -= n;
		if (backlog->run_sent == backlog->run_first)
			backlog->run_done -= (uint32_t)n;
		if (*run / 2 == 0 && backlog->run_first + 1 < run_count(backlog)) {
			backlog->run_first++;
			if (backlog->run_sent < backlog->run_first) {
				backlog->run_sent = backlog->run_first;
				backlog->run_done = 0;
			}
		}
	}
	if (backlog->run_first * 2 > run_count(backlog)) {
		buf_consume(&backlog->runs, backlog->run_first * sizeof(uint32_t));
		backlog->run_sent -= backlog->run_first;
		backlog->run_first = 0;
	}
}

int backlog_ack(struct backlog *backlog, uint64_t offset)
{
	if (offset > backlog->end)
		return -EPROTO;
	if (offset <= backlog->start)
		return 0;
	if (offset == backlog->end) {
		free(backlog->ring);
		buf_fini(&backlog->runs);
		backlog->ring = NULL;
		backlog->ring_size = 0;
		backlog->start = backlog->sent = offset;
		backlog->run_first = backlog->run_sent = 0;
		backlog->run_done = 0;
		return 0;
	}
	/* A daemon that came back may already have bytes that this link did not carry yet. */
	while (backlog->sent < offset) {
		struct backlog_piece piece;

		if (!backlog_next(backlog, (size_t)(offset - backlog->sent), &piece))
			break;
		backlog_send(backlog, piece.len);
	}
	shorten_runs(backlog, (size_t)(offset - backlog->start));
	backlog->start = offset;
	return 0;
}
