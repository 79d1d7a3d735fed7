/* SPDX-License-Identifier: Apache-2.0 */
#include "output_world.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "fd_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

struct output_disk output_disk = {.left = -1};
int64_t output_now_ms = 1;

int64_t __wrap_clock_wall_ms(void);

int64_t __wrap_clock_wall_ms(void)
{
	return output_now_ms;
}

ssize_t __real_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at);

ssize_t __wrap_pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
	struct iovec less[2] = {{0}};
	long long left = output_disk.left;
	ssize_t n;

	if (left < 0)
		return __real_pwritev64(fd, parts, count, at);
	assert_in_range(count, 1, 2);
	for (int i = 0; i < count; i++) {
		less[i] = parts[i];
		if ((long long)less[i].iov_len > left)
			less[i].iov_len = (size_t)left;
		left -= (long long)less[i].iov_len;
	}
	if (output_disk.left == 0) {
		errno = ENOSPC;
		return -1;
	}
	n = __real_pwritev64(fd, less, count, at);
	if (n > 0)
		output_disk.left -= n;
	return n;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	if (output_disk.headers_fail) {
		errno = ENOSPC;
		return -1;
	}
	return __real_pwrite64(fd, data, len, at);
}

uint64_t next_random(struct world *world)
{
	world->seed = world->seed * 6364136223846793005ull + 1442695040888963407ull;
	return world->seed >> 33;
}

int setup(void **state)
{
	struct world *world = mem_new(sizeof(*world));

	log_open("test", LOG_ERROR);
	output_disk.left = -1;
	output_disk.headers_fail = false;
	world->fds_before = count_fds();
	world->seed = 42;
	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-output-XXXXXX");
	if (!mkdtemp(world->dir))
		return -1;
	world->dir_fd = open(world->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	world->bytes = mem_new(MODEL_MAX);
	world->streams = mem_new(MODEL_MAX);
	*state = world;
	return world->dir_fd < 0 ? -1 : 0;
}

size_t each_file(struct world *world, void (*visit)(struct world *world, const char *name))
{
	DIR *dir = opendir(world->dir);
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (visit)
			visit(world, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return count;
}

static void remove_file(struct world *world, const char *name)
{
	if (unlinkat(world->dir_fd, name, 0) < 0)
		unlinkat(world->dir_fd, name, AT_REMOVEDIR);
}

int teardown(void **state)
{
	struct world *world = *state;
	int fds_before = world->fds_before, fds_after;

	output_log_unref(world->log);
	each_file(world, remove_file);
	fd_close(world->dir_fd);
	rmdir(world->dir);
	free(world->bytes);
	free(world->streams);
	free(world);
	fds_after = count_fds();
	return fds_after == fds_before ? 0 : -1;
}

void open_log(struct world *world, uint64_t max_bytes)
{
	struct err err = {0};

	if (output_log_open(world->dir_fd, PROCESS, max_bytes, &world->log, &err) < 0)
		fail_msg("%s", err.message);
}

void reopen_log(struct world *world, uint64_t max_bytes)
{
	output_log_unref(take_ptr(&world->log));
	open_log(world, max_bytes);
}

void clear(struct world *world)
{
	output_log_unref(take_ptr(&world->log));
	each_file(world, remove_file);
	world->len = 0;
}

void append(struct world *world, int stream, const void *data, size_t len)
{
	assert_true(world->len + len <= MODEL_MAX);
	memcpy(world->bytes + world->len, data, len);
	memset(world->streams + world->len, stream, len);
	output_log_append(world->log, stream, clock_wall_ms(), world->bytes + world->len, len);
	world->len += len;
	assert_int_equal(output_log_end(world->log), world->len);
}

void append_random(struct world *world, int stream, size_t len)
{
	uint8_t *data = mem_new(len + 1);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)next_random(world);
	append(world, stream, data, len);
	free(data);
}

void append_mixed(struct world *world, size_t pieces)
{
	for (size_t i = 0; i < pieces; i++)
		append_random(world, next_random(world) % 3 ? 1 : 2, next_random(world) % 9);
}

bool is_bytes(const struct output_piece *piece)
{
	return piece->kind == OUTPUT_STDOUT || piece->kind == OUTPUT_STDERR;
}

void assert_piece(struct world *world, const struct output_piece *piece, const uint8_t *data)
{
	assert_true(piece->next > piece->offset);
	assert_true(piece->next <= world->len);
	if (!is_bytes(piece))
		return;
	assert_memory_equal(
		data, world->bytes + piece->offset, (size_t)(piece->next - piece->offset));
	for (uint64_t at = piece->offset; at < piece->next; at++)
		assert_int_equal(world->streams[at], piece->kind == OUTPUT_STDOUT ? 1 : 2);
}

void read_all(struct world *world, uint64_t from, size_t size)
{
	struct output_cursor *cursor = output_cursor_new(world->log, from);
	uint8_t *data = mem_new(size);
	struct output_piece piece, before = {.next = from};

	world->kept = 0;
	world->count = 0;
	for (;;) {
		output_cursor_read(cursor, data, size, &piece);
		assert_int_equal(piece.offset, before.next);
		if (is_bytes(&before))
			assert_int_equal(before.is_run_end,
				piece.kind != OUTPUT_NONE && piece.kind != before.kind);
		if (piece.kind == OUTPUT_NONE)
			break;
		assert_piece(world, &piece, data);
		if (is_bytes(&piece))
			world->kept += piece.next - piece.offset;
		if (world->count < PIECES_MAX)
			world->pieces[world->count++] = piece;
		before = piece;
	}
	assert_int_equal(piece.next, world->len);
	output_cursor_free(cursor);
	free(data);
}

size_t count_cuts(const struct world *world, uint64_t *ret_bytes)
{
	size_t count = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < world->count; i++) {
		const struct output_piece *piece = &world->pieces[i];

		if (piece->kind != OUTPUT_CUT)
			continue;
		count++;
		*ret_bytes += piece->next - piece->offset;
	}
	return count;
}

void assert_all_kept(struct world *world)
{
	read_all(world, 0, 65536);
	assert_int_equal(world->kept, world->len);
}

static uint64_t disk_bytes; /* of add_size */

static void add_size(struct world *world, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	disk_bytes += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
}

uint64_t sum_sizes(struct world *world)
{
	disk_bytes = 0;
	each_file(world, add_size);
	return disk_bytes;
}

uint64_t file_size(struct world *world, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(world->dir_fd, name, &st, 0), 0);
	return (uint64_t)st.st_size;
}

void put_file(struct world *world, const char *name, const void *data, size_t len)
{
	int fd = openat(world->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}
