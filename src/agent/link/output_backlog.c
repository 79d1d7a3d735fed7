/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link/output_backlog.h"

#include "wire/agent.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define RING_MIN  4096u
#define RUN_UNIT  4u /* one byte more of a run; below it the stream */
#define RING_STEP 4u /* 4 KiB to 1 MiB in five steps: few copies on the way to the top */

/* Twice what a full window of one-byte runs needs: acknowledged runs are dropped by halves. */
#define RUNS_BYTES_MAX (2 * sizeof(struct run) * (AGENT_OUTPUT_WINDOW + 2))

#define RUN_MS 10 /* bytes that come later have a time of their own, as in the daemon's log */

/* Bytes of one stream that were read within RUN_MS. */
struct run {
	uint32_t len;	/* times RUN_UNIT, and the stream */
	uint32_t at_ms; /* when the first of them was read */
};

void output_backlog_init(struct output_backlog *backlog)
{
	*backlog = (struct output_backlog){.runs = BUF_INIT(RUNS_BYTES_MAX)};
}

void output_backlog_fini(struct output_backlog *backlog)
{
	free(backlog->ring);
	buf_fini(&backlog->runs);
	output_backlog_init(backlog);
}

static size_t used(const struct output_backlog *backlog)
{
	return (size_t)(backlog->end - backlog->start);
}

static size_t position(const struct output_backlog *backlog, uint64_t offset)
{
	return (size_t)(offset & (backlog->ring_size - 1));
}

static struct run *runs(const struct output_backlog *backlog)
{
	return (struct run *)(void *)backlog->runs.data;
}

static size_t run_count(const struct output_backlog *backlog)
{
	return backlog->runs.len / sizeof(struct run);
}

/* The len bytes from offset on, as the ring holds them. */
static void view(
	const struct output_backlog *backlog, uint64_t offset, size_t len, struct iovec parts[2])
{
	size_t at = position(backlog, offset);
	size_t first = backlog->ring_size - at;

	if (first > len)
		first = len;
	parts[0] = (struct iovec){.iov_base = backlog->ring + at, .iov_len = first};
	parts[1] = (struct iovec){.iov_base = backlog->ring, .iov_len = len - first};
}

static void grow(struct output_backlog *backlog)
{
	size_t size = backlog->ring_size ? backlog->ring_size * RING_STEP : RING_MIN;
	struct output_backlog bigger = *backlog;
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

size_t output_backlog_space(struct output_backlog *backlog, uint8_t **ret_at)
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

/* Whether bytes that are read now belong to a run. */
static bool continues(const struct run *run, uint32_t stream, uint32_t now_ms)
{
	return run->len % RUN_UNIT == stream && now_ms - run->at_ms < RUN_MS;
}

void output_backlog_add(struct output_backlog *backlog, enum output_backlog_stream stream,
	size_t len, uint32_t now_ms)
{
	struct run run = {.len = (uint32_t)len * RUN_UNIT + (uint32_t)stream, .at_ms = now_ms};
	size_t count = run_count(backlog);

	assert(len > 0 && used(backlog) + len <= backlog->ring_size);
	backlog->end += len;
	if (count > backlog->run_first && continues(&runs(backlog)[count - 1], stream, now_ms)) {
		runs(backlog)[count - 1].len += (uint32_t)len * RUN_UNIT;
		return;
	}
	/* There is room for a full window of runs: failing means that no memory is left. */
	if (buf_append(&backlog->runs, &run, sizeof(run)) < 0)
		abort();
}

bool output_backlog_next(
	struct output_backlog *backlog, size_t max, struct output_backlog_piece *ret_piece)
{
	struct run run;
	size_t len;

	if (backlog->sent == backlog->end)
		return false;
	run = runs(backlog)[backlog->run_sent];
	if (backlog->run_done == run.len / RUN_UNIT) {
		run = runs(backlog)[++backlog->run_sent];
		backlog->run_done = 0;
	}
	len = run.len / RUN_UNIT - backlog->run_done;
	if (len > max)
		len = max;
	*ret_piece = (struct output_backlog_piece){
		.offset = backlog->sent,
		.stream = (enum output_backlog_stream)(run.len % RUN_UNIT),
		.at_ms = run.at_ms,
		.len = len,
	};
	view(backlog, backlog->sent, len, ret_piece->parts);
	return true;
}

void output_backlog_send(struct output_backlog *backlog, size_t len)
{
	assert(len <= backlog->end - backlog->sent);
	backlog->sent += len;
	backlog->run_done += (uint32_t)len;
}

void output_backlog_rewind(struct output_backlog *backlog)
{
	backlog->sent = backlog->start;
	backlog->run_sent = backlog->run_first;
	backlog->run_done = 0;
}

/* Drops len acknowledged bytes from the front of the runs. */
static void shorten_runs(struct output_backlog *backlog, size_t len)
{
	while (len > 0) {
		struct run *run = &runs(backlog)[backlog->run_first];
		size_t n = run->len / RUN_UNIT < len ? run->len / RUN_UNIT : len;

		run->len -= (uint32_t)n * RUN_UNIT;
		len -= n;
		if (backlog->run_sent == backlog->run_first)
			backlog->run_done -= (uint32_t)n;
		if (run->len / RUN_UNIT == 0 && backlog->run_first + 1 < run_count(backlog)) {
			backlog->run_first++;
			if (backlog->run_sent < backlog->run_first) {
				backlog->run_sent = backlog->run_first;
				backlog->run_done = 0;
			}
		}
	}
	if (backlog->run_first * 2 > run_count(backlog)) {
		buf_consume(&backlog->runs, backlog->run_first * sizeof(struct run));
		backlog->run_sent -= backlog->run_first;
		backlog->run_first = 0;
	}
}

int output_backlog_ack(struct output_backlog *backlog, uint64_t offset)
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
		struct output_backlog_piece piece;

		if (!output_backlog_next(backlog, (size_t)(offset - backlog->sent), &piece))
			break;
		output_backlog_send(backlog, piece.len);
	}
	shorten_runs(backlog, (size_t)(offset - backlog->start));
	backlog->start = offset;
	return 0;
}
