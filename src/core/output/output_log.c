/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The appender's side of kept output, and what its cursors see of it.
 *
 * Only the appending thread changes the list of files, so it reads that without the lock; the lock is for the
 * cursors, and is never held during a system call. Bytes go to the file first and are published after; what a
 * full disk takes of a piece is kept, the rest is a gap, and the next piece begins a new file, because a file
 * has no gaps inside.
 *
 * The oldest file of the tail becomes the new one, if nobody reads it: its pages are there already, and to write
 * over them costs a third of what new ones do.
 *
 * Sizes are counted in blocks, so that the bound holds for what the disk gives away, and so that a log which
 * is cut into many short files cannot have too many of them.
 */
#include "core/output/output_log.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/output/output_budget.h"
#include "core/output/output_log_private.h"
#include "core/output/output_record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SEGMENTS	  8	     /* full ones in a log: four of the head, four of the tail */
#define SEGMENT_MAX_BYTES (4u << 20) /* larger ones take long to find a place in */

struct output_log {
	atomic_int refs;
	int dir_fd;
	uint32_t process;

	/* The appender's alone. */
	uint64_t max_bytes, segment_bytes;
	atomic_ullong used_bytes;     /* by all files, in blocks; others may look */
	struct output_budget *budget; /* of the sandbox; NULL: none */
	int fd;			      /* of the last segment, or -1 */
	bool is_closed;		      /* the last segment takes no more */
	bool is_failing;	      /* the last append was cut: said once */
	int64_t now_ms;		      /* when the last append came */

	atomic_bool has_ended; /* its files were removed */

	pthread_mutex_t lock; /* what follows; the appender may read without */
	struct output_segment **segments;
	size_t count, room;
	uint64_t end;
};

/* --- what it takes --- */

static void charge(struct output_log *log, uint64_t more, uint64_t less)
{
	log->used_bytes += more - less;
	if (log->budget)
		output_budget_charge(log->budget, (int64_t)(more - less));
}

uint32_t output_log_process(const struct output_log *log)
{
	return log->process;
}

int output_log_dir(const struct output_log *log)
{
	return log->dir_fd;
}

uint64_t output_log_used(const struct output_log *log)
{
	return log->used_bytes;
}

/* --- the list --- */

static struct output_segment *last_segment(const struct output_log *log)
{
	return log->count ? log->segments[log->count - 1] : NULL;
}

/* Puts one where its offset belongs: the end, but for the order in which a directory is read. */
static void insert_segment(struct output_log *log, struct output_segment *segment)
{
	size_t at = log->count;

	if (log->count == log->room) {
		log->room = log->room ? log->room * 2 : SEGMENTS;
		log->segments = realloc(log->segments, log->room * sizeof(*log->segments));
		if (!log->segments)
			abort();
	}
	for (; at > 0 && log->segments[at - 1]->first > segment->first; at--)
		log->segments[at] = log->segments[at - 1];
	log->segments[at] = segment;
	log->count++;
	charge(log, output_segment_cost(segment), 0);
}

/* Takes one off the list: nobody can begin to read it any more. */
static struct output_segment *take_segment(struct output_log *log, size_t at)
{
	struct output_segment *segment = log->segments[at];

	pthread_mutex_lock(&log->lock);
	log->count--;
	memmove(log->segments + at, log->segments + at + 1,
		(log->count - at) * sizeof(*log->segments));
	pthread_mutex_unlock(&log->lock);
	charge(log, 0, output_segment_cost(segment));
	return segment;
}

static void remove_segment(struct output_log *log, size_t at)
{
	struct output_segment *segment = take_segment(log, at);
	char name[OUTPUT_SEGMENT_NAME_LEN];

	output_segment_name(name, log->process, segment->first);
	unlinkat(log->dir_fd, name, 0);
	output_segment_unref(segment);
}

/* Decides whether a segment at the end of the list stays for ever, and how large it may become. */
static void classify(struct output_log *log, struct output_segment *segment, uint64_t used_before)
{
	uint64_t head_bytes = log->segment_bytes * (log->max_bytes / log->segment_bytes / 2);
	struct output_segment *before = NULL;

	for (size_t i = 0; i < log->count && log->segments[i] != segment; i++)
		before = log->segments[i];
	segment->is_head = (!before || before->is_head) &&
			   used_before + output_segment_cost(segment) <= head_bytes;
	segment->limit = log->segment_bytes;
	if (segment->is_head && segment->limit > head_bytes - used_before)
		segment->limit = head_bytes - used_before;
}

/* --- opening --- */

static void take_file(void *arg, const char *name, uint64_t first)
{
	struct output_log *log = arg;
	struct output_segment *segment = output_segment_load(log->dir_fd, name, first);

	if (segment)
		insert_segment(log, segment);
}

static int read_last(struct output_log *log, struct output_segment *segment)
{
	uint64_t before = output_segment_cost(segment);
	int r = output_segment_recover(segment, log->dir_fd, log->process, &log->end);

	charge(log, output_segment_cost(segment), before);
	return r;
}

static int read_files(struct output_log *log)
{
	uint64_t used = 0;
	int r = output_segment_list(log->dir_fd, log->process, take_file, log);

	if (r < 0 || log->count == 0)
		return r;
	r = read_last(log, last_segment(log));
	for (size_t i = 0; i < log->count; i++) {
		classify(log, log->segments[i], used);
		used += output_segment_cost(log->segments[i]);
	}
	return r;
}

int output_log_open(int dir_fd, uint32_t process, uint64_t max_bytes, struct output_log **ret_log,
	struct err *err)
{
	struct output_log *log = mem_new(sizeof(*log));
	int r;

	assert(max_bytes >= OUTPUT_LOG_MIN_BYTES);
	log->refs = 1;
	log->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	log->process = process;
	log->max_bytes = max_bytes;
	log->segment_bytes = max_bytes / SEGMENTS / OUTPUT_SEGMENT_BLOCK * OUTPUT_SEGMENT_BLOCK;
	if (log->segment_bytes > SEGMENT_MAX_BYTES)
		log->segment_bytes = SEGMENT_MAX_BYTES;
	log->fd = -1;
	pthread_mutex_init(&log->lock, NULL);
	r = log->dir_fd < 0 ? -errno : read_files(log);
	if (r < 0) {
		output_log_unref(log);
		return err_from(err, r, "open the kept output of process %" PRIu32, process);
	}
	*ret_log = log;
	return 0;
}

void output_log_join(struct output_log *log, struct output_budget *budget)
{
	assert(!log->budget);
	output_budget_join(budget, log);
	log->budget = output_budget_ref(budget);
}

struct output_log *output_log_ref(struct output_log *log)
{
	atomic_fetch_add(&log->refs, 1);
	return log;
}

void output_log_unref(struct output_log *log)
{
	if (!log || atomic_fetch_sub(&log->refs, 1) > 1)
		return;
	if (log->budget)
		output_budget_leave(log->budget, log);
	output_budget_unref(log->budget);
	for (size_t i = 0; i < log->count; i++)
		output_segment_unref(log->segments[i]);
	free(log->segments);
	fd_close(log->fd);
	fd_close(log->dir_fd);
	pthread_mutex_destroy(&log->lock);
	free(log);
}

uint64_t output_log_clear(int dir_fd, uint32_t process)
{
	char name[OUTPUT_SEGMENT_NAME_LEN];
	struct output_log *log;
	struct err ignored;
	auto_fd int fd = -1;
	uint64_t end = 0;

	if (output_log_open(dir_fd, process, OUTPUT_LOG_MIN_BYTES, &log, &ignored) == 0) {
		end = output_log_end(log);
		output_log_unref(log);
	}
	output_segment_remove_all(dir_fd, process);
	output_segment_name(name, process, end);
	if (end > 0)
		fd = openat(
			dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 && output_mark_write(fd, OUTPUT_MARK_LEN) == 0 ? OUTPUT_SEGMENT_BLOCK : 0;
}

/* --- appending --- */

/* No more for the last file; one that got nothing goes. */
static void close_segment(struct output_log *log)
{
	struct output_segment *segment = last_segment(log);

	fd_close(take_fd(&log->fd));
	log->is_closed = true;
	if (segment && output_segment_is_empty(segment))
		remove_segment(log, log->count - 1);
}

/* The oldest that may go; the number of files if there is none. */
static size_t oldest_of_tail(const struct output_log *log)
{
	size_t oldest = 0;

	while (oldest < log->count && log->segments[oldest]->is_head)
		oldest++;
	return oldest;
}

/*
 * Gives the oldest file of the tail a new name, if the bound leaves no room for one more, it is no larger than
 * one may be now, and nobody reads it. Its descriptor, or -1. Before it has that name, it says that nothing in
 * it is valid.
 */
static int reuse_file(struct output_log *log, const char *name)
{
	size_t oldest = oldest_of_tail(log);
	struct output_segment *segment;
	char old_name[OUTPUT_SEGMENT_NAME_LEN];
	bool is_fit;
	auto_fd int fd = -1;

	if (log->used_bytes + log->segment_bytes <= log->max_bytes || oldest == log->count)
		return -1;
	segment = take_segment(log, oldest);
	is_fit = output_segment_cost(segment) <= log->segment_bytes &&
		 atomic_load(&segment->refs) == 1;
	output_segment_name(old_name, log->process, segment->first);
	output_segment_unref(segment);
	if (is_fit)
		fd = openat(log->dir_fd, old_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && output_mark_write(fd, OUTPUT_MARK_LEN) == 0 &&
		renameat(log->dir_fd, old_name, log->dir_fd, name) == 0)
		return take_fd(&fd);
	unlinkat(log->dir_fd, old_name, 0);
	return -1;
}

/* Begins a file at the end of the log. */
static int begin_segment(struct output_log *log)
{
	struct output_segment *segment;
	char name[OUTPUT_SEGMENT_NAME_LEN];
	struct stat st = {0};
	int fd;

	output_segment_name(name, log->process, log->end);
	fd = reuse_file(log, name);
	if (fd < 0 && log->budget && !output_budget_reserve(log->budget, log, OUTPUT_SEGMENT_BLOCK))
		return -EDQUOT;
	if (fd < 0)
		fd = openat(log->dir_fd, name,
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		st.st_size = 0;
	segment = output_segment_new(log->end, OUTPUT_MARK_LEN, (uint64_t)st.st_size);
	classify(log, segment, log->used_bytes);
	log->fd = fd;
	log->is_closed = false;
	pthread_mutex_lock(&log->lock);
	insert_segment(log, segment);
	pthread_mutex_unlock(&log->lock);
	return 0;
}

/* Makes the last file one that takes bytes of a stream: how many, or -errno. */
static int64_t prepare_segment(struct output_log *log, int stream)
{
	struct output_segment *segment = last_segment(log);
	int r;

	if (segment && !log->is_closed) {
		uint64_t full =
			segment->size + output_segment_header_len(segment, stream, log->now_ms);
		bool has_room = full < segment->limit && segment->blocks <= segment->limit;

		if (log->fd < 0 && has_room)
			log->fd = output_segment_open(
				log->dir_fd, log->process, segment->first, O_WRONLY);
		if (log->fd >= 0 && has_room)
			return (int64_t)(segment->limit - full);
		close_segment(log);
	}
	r = begin_segment(log);
	return r < 0 ? r
		     : (int64_t)(last_segment(log)->limit - OUTPUT_MARK_LEN - OUTPUT_RECORD_HEADER);
}

/*
 * Removes the oldest of the tail until there is room for len bytes more in the last file. Whether there is: all logs of
 * the sandbox together have a bound too.
 */
static bool make_room(struct output_log *log, size_t len)
{
	struct output_segment *last = last_segment(log);
	uint64_t more = output_segment_cost_at(last, last->size + len) - output_segment_cost(last);
	size_t oldest = oldest_of_tail(log);

	while (oldest < log->count && log->used_bytes + more > log->max_bytes &&
		log->segments[oldest] != last)
		remove_segment(log, oldest);
	return !log->budget || output_budget_reserve(log->budget, log, more);
}

bool output_log_can_shorten(const struct output_log *log, bool last_too)
{
	return log->count > (last_too ? 0 : 1);
}

void output_log_shorten(struct output_log *log)
{
	size_t oldest = oldest_of_tail(log);

	if (oldest + 1 >= log->count) /* nothing of the tail but the last */
		oldest = 0;
	if (log->count == 1) {
		fd_close(take_fd(&log->fd));
		log->is_closed = true;
	}
	remove_segment(log, oldest);
}

void output_log_end_for_good(struct output_log *log)
{
	atomic_store(&log->has_ended, true);
}

/* Writes down how long the open record has become, since another one is to follow. */
static int end_record(struct output_log *log, struct output_segment *segment)
{
	uint8_t length[OUTPUT_RECORD_LENGTH];
	uint64_t begin = segment->open + segment->open_header;
	ssize_t n;

	if (segment->open == segment->size)
		return 0;
	output_record_encode(length, segment->open_stream, segment->size - begin);
	n = pwrite(log->fd, length, sizeof(length), (off_t)(begin - sizeof(length)));
	if (n != sizeof(length))
		return n < 0 ? -errno : -EIO;
	pthread_mutex_lock(&log->lock);
	segment->open = segment->size;
	pthread_mutex_unlock(&log->lock);
	return 0;
}

static void publish(struct output_log *log, struct output_segment *segment, int stream,
	size_t header, size_t len)
{
	uint64_t before = output_segment_cost(segment);

	pthread_mutex_lock(&log->lock);
	if (header > 0) {
		segment->open = segment->size;
		segment->open_offset = log->end;
		segment->open_stream = stream;
		segment->open_header = header;
		segment->open_at_ms = log->now_ms;
	}
	segment->size += header + len;
	log->end += len;
	pthread_mutex_unlock(&log->lock);
	charge(log, output_segment_cost(segment), before);
}

/* Writes as much as the last file takes; how much that was, or -errno if it was nothing. */
static ssize_t write_some(struct output_log *log, int stream, const uint8_t *data, size_t len)
{
	uint8_t header[OUTPUT_RECORD_HEADER];
	struct iovec parts[] = {{header, 0}, {(void *)data, len}};
	struct output_segment *segment = last_segment(log);
	ssize_t n;
	int r;

	if (output_segment_header_len(segment, stream, log->now_ms) > 0) {
		r = end_record(log, segment);
		if (r < 0)
			return r;
		output_record_encode_open(header, stream, log->now_ms);
		parts[0].iov_len = sizeof(header);
	}
	do
		n = pwritev(log->fd, parts, 2, (off_t)segment->size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n <= parts[0].iov_len)
		return -ENOSPC;
	r = output_mark_write(log->fd, segment->size + (uint64_t)n);
	if (r < 0)
		return r;
	n -= (ssize_t)parts[0].iov_len;
	publish(log, segment, stream, parts[0].iov_len, (size_t)n);
	return n;
}

/* Moves the end over bytes that are not kept. */
static void leave_gap(struct output_log *log, uint64_t end)
{
	pthread_mutex_lock(&log->lock);
	log->end = end;
	pthread_mutex_unlock(&log->lock);
	close_segment(log);
}

void output_log_append(
	struct output_log *log, int stream, int64_t at_ms, const void *data, size_t len)
{
	const uint8_t *at = data;
	ssize_t n = -EDQUOT;

	assert(stream >= 1 && stream <= 3);
	log->now_ms = at_ms;
	while (len > 0 && !atomic_load(&log->has_ended)) {
		int64_t room = prepare_segment(log, stream);
		size_t part = room > 0 && (uint64_t)room < len ? (size_t)room : len;

		if (room < 0) {
			n = room;
			break;
		}
		if (make_room(
			    log, output_segment_header_len(last_segment(log), stream, log->now_ms) +
					 part))
			n = write_some(log, stream, at, part);
		else
			n = -EDQUOT;
		if (n < 0)
			break;
		at += n;
		len -= (size_t)n;
	}
	if (len > 0) {
		/* A bound that is reached is no news for whoever runs the daemon. */
		if (!log->is_failing && n != -EDQUOT)
			log_warning("output of process %" PRIu32 " cannot be kept: %s",
				log->process, strerror((int)-n));
		leave_gap(log, log->end + len);
	}
	log->is_failing = len > 0;
}

void output_log_skip(struct output_log *log, uint64_t offset)
{
	if (offset <= log->end || offset > OUTPUT_OFFSET_MAX)
		return;
	leave_gap(log, offset);
	if (atomic_load(&log->has_ended))
		return;
	/* The name of an empty file keeps the offset over the daemon's death. If there is none, so be it. */
	(void)!begin_segment(log);
}

/* --- looking --- */

uint64_t output_log_end(struct output_log *log)
{
	uint64_t end;

	pthread_mutex_lock(&log->lock);
	end = log->end;
	pthread_mutex_unlock(&log->lock);
	return end;
}

/* How many files begin at or before an offset. The lock is held. */
static size_t count_until(const struct output_log *log, uint64_t offset)
{
	size_t low = 0, high = log->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (log->segments[middle]->first <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void output_log_look(struct output_log *log, uint64_t offset, struct output_segment **segment,
	struct output_view *ret_view)
{
	struct output_view view = {0};
	struct output_segment *seen = *segment;
	size_t next;

	pthread_mutex_lock(&log->lock);
	next = count_until(log, seen ? seen->first : offset);
	if (!seen && next > 0) {
		seen = log->segments[next - 1];
		atomic_fetch_add(&seen->refs, 1);
	}
	view.is_last = next == log->count;
	view.until = view.is_last ? log->end : log->segments[next]->first;
	if (seen) {
		view.size = seen->size;
		view.open = seen->open;
		view.open_offset = seen->open_offset;
		view.open_stream = seen->open_stream;
		view.open_header = seen->open_header;
		view.open_at_ms = seen->open_at_ms;
	}
	pthread_mutex_unlock(&log->lock);
	*segment = seen;
	*ret_view = view;
}

int output_log_open_segment(struct output_log *log, const struct output_segment *segment)
{
	return output_segment_open(log->dir_fd, log->process, segment->first, O_RDONLY);
}
