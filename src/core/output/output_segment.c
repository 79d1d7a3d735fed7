/* SPDX-License-Identifier: Apache-2.0 */
#include "core/output/output_segment.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/output/output_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t output_segment_blocks(uint64_t size)
{
	return (size + OUTPUT_SEGMENT_BLOCK - 1) / OUTPUT_SEGMENT_BLOCK * OUTPUT_SEGMENT_BLOCK;
}

uint64_t output_segment_cost_at(const struct output_segment *segment, uint64_t size)
{
	uint64_t blocks = output_segment_blocks(size);

	return blocks > segment->blocks ? blocks : segment->blocks;
}

uint64_t output_segment_cost(const struct output_segment *segment)
{
	return output_segment_cost_at(segment, segment->size);
}

bool output_segment_is_empty(const struct output_segment *segment)
{
	return segment->size == OUTPUT_MARK_LEN;
}

size_t output_segment_header_len(const struct output_segment *segment, int stream, int64_t now_ms)
{
	bool continues = segment->open < segment->size && segment->open_stream == stream &&
			 now_ms >= segment->open_at_ms &&
			 now_ms - segment->open_at_ms < OUTPUT_RECORD_MS;

	return continues ? 0 : OUTPUT_RECORD_HEADER;
}

void output_segment_name(char name[OUTPUT_SEGMENT_NAME_LEN], uint32_t process, uint64_t first)
{
	snprintf(name, OUTPUT_SEGMENT_NAME_LEN, "%" PRIu32 "-%" PRIx64, process, first);
}

/* Whether a file is one of a process, and its first offset: exactly as output_segment_name makes it. */
static bool parse_name(const char *name, uint32_t process, uint64_t *ret_first)
{
	const char *dash = strchr(name, '-');
	char again[OUTPUT_SEGMENT_NAME_LEN];
	uint64_t first;

	if (!dash || strlen(name) >= sizeof(again))
		return false;
	first = strtoull(dash + 1, NULL, 16);
	output_segment_name(again, process, first);
	if (first > OUTPUT_OFFSET_MAX || strcmp(name, again) != 0)
		return false;
	*ret_first = first;
	return true;
}

struct output_segment *output_segment_new(uint64_t first, uint64_t size, uint64_t file_size)
{
	struct output_segment *segment = mem_new(sizeof(*segment));

	segment->refs = 1;
	segment->first = first;
	segment->size = segment->open = size;
	segment->blocks = output_segment_blocks(file_size);
	return segment;
}

void output_segment_unref(struct output_segment *segment)
{
	if (atomic_fetch_sub(&segment->refs, 1) == 1)
		free(segment);
}

int output_segment_open(int dir_fd, uint32_t process, uint64_t first, int flags)
{
	char name[OUTPUT_SEGMENT_NAME_LEN];
	int fd;

	output_segment_name(name, process, first);
	fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int output_segment_list(int dir_fd, uint32_t process,
	void (*found)(void *arg, const char *name, uint64_t first), void *arg)
{
	/* A descriptor of its own: the place in a directory belongs to the open file. */
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t first;
	int r;

	if (!dir) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	while (errno = 0, (entry = readdir(dir))) {
		if (parse_name(entry->d_name, process, &first))
			found(arg, entry->d_name, first);
	}
	r = -errno;
	closedir(dir);
	return r;
}

uint32_t output_segment_last(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint32_t last = 0;

	if (!dir)
		fd_close(fd);
	while (dir && (entry = readdir(dir))) {
		unsigned long number = strtoul(entry->d_name, NULL, 10);
		uint64_t first;

		if (number <= UINT32_MAX && number > last &&
			parse_name(entry->d_name, (uint32_t)number, &first))
			last = (uint32_t)number;
	}
	if (dir)
		closedir(dir);
	return last;
}

struct output_segment *output_segment_load(int dir_fd, const char *name, uint64_t first)
{
	struct output_segment *segment;
	struct stat st;
	/* Not to be held up by what is no file, should there be any. */
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	segment = output_segment_new(
		first, output_mark_read(fd, (uint64_t)st.st_size), (uint64_t)st.st_size);
	segment->open = UINT64_MAX;
	return segment;
}

int output_segment_recover(
	struct output_segment *segment, int dir_fd, uint32_t process, uint64_t *ret_end)
{
	auto_free struct output_window *window = mem_new(sizeof(*window));
	uint8_t length[OUTPUT_RECORD_LENGTH];
	auto_fd int fd = output_segment_open(dir_fd, process, segment->first, O_RDWR);
	struct output_record record = {0};
	uint64_t at = OUTPUT_MARK_LEN, offset = segment->first;
	int r;

	if (fd < 0)
		return fd;
	while (!record.is_open && output_record_read(window, fd, segment->size, at, &record)) {
		segment->open = at;
		segment->open_offset = offset;
		segment->open_stream = record.stream;
		segment->open_header = record.header;
		segment->open_at_ms = record.at_ms;
		at += record.header + record.len;
		offset += record.len;
	}
	r = at < segment->size ? output_mark_write(fd, at) : 0;
	if (r < 0)
		return r;
	/* What was cut short goes on growing, so it must not say a length that it will have one day. */
	output_record_encode(length, record.stream, OUTPUT_RECORD_OPEN);
	if (record.is_cut && pwrite(fd, length, sizeof(length),
				     (off_t)(segment->open + record.header - sizeof(length))) < 0)
		return -errno;
	segment->size = at;
	if (!record.is_open)
		segment->open = at;
	*ret_end = offset;
	return 0;
}

static void remove_file(void *arg, const char *name, uint64_t first)
{
	(void)first;
	unlinkat(*(int *)arg, name, 0);
}

void output_segment_remove_all(int dir_fd, uint32_t process)
{
	int r = output_segment_list(dir_fd, process, remove_file, &dir_fd);

	if (r < 0)
		log_warning(
			"remove the kept output of process %" PRIu32 ": %s", process, strerror(-r));
}
