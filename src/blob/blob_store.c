/* SPDX-License-Identifier: Apache-2.0 */
#include "blob/blob_store.h"

#include "base/disk_room.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_SUFFIX  ".part"
#define READY_SUFFIX ".ready"
#define NAME_SIZE    (DIGEST_LEN + 32)
#define READ_SIZE    (256u << 10)
#define LOOK_BYTES   (1u << 20) /* how often a writer looks for room */
#define ROOM_AHEAD   (8u << 20) /* other writers take some of it before it looks again */

struct blob_store {
	int dir_fd;
	uint64_t reserve;
};

struct blob_writer {
	struct blob_store *store;
	struct digest expected; /* empty text: not known */
	char part[NAME_SIZE];
	int fd;
	uint64_t len;
	uint64_t max;
	uint64_t since_look; /* bytes; at first as many as it takes to look */
	bool is_kept;	     /* the part stays when the writer ends */
	struct digest_stream *hash;
};

int blob_store_open(int dir_fd, struct blob_store **ret_store, struct err *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, "open the directory of blobs");
	*ret_store = mem_new(sizeof(**ret_store));
	(*ret_store)->dir_fd = fd;
	return 0;
}

void blob_store_close(struct blob_store *store)
{
	if (!store)
		return;
	fd_close(store->dir_fd);
	free(store);
}

void blob_store_set_reserve(struct blob_store *store, uint64_t bytes)
{
	store->reserve = bytes;
}

bool blob_store_has(const struct blob_store *store, const struct digest *digest)
{
	return faccessat(store->dir_fd, digest_hex(digest), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int blob_store_read(
	const struct blob_store *store, const struct digest *digest, int *ret_fd, struct err *err)
{
	int fd = openat(store->dir_fd, digest_hex(digest), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no blob %s", digest->text);
	if (fd < 0)
		return err_sys(err, "open blob %s", digest->text);
	*ret_fd = fd;
	return 0;
}

int blob_store_load(const struct blob_store *store, const struct digest *digest, size_t max,
	char **ret_data, size_t *ret_len, struct err *err)
{
	auto_fd int fd = -1;
	auto_free char *data = NULL;
	struct stat st;
	int r = blob_store_read(store, digest, &fd, err);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at blob %s", digest->text);
	if ((uint64_t)st.st_size > max) {
		char most[FORMAT_SIZE_LEN];

		format_size(max, most);
		return err_set(err, ERR_TOO_LARGE, "blob %s has more than %s", digest->text, most);
	}
	data = mem_new((size_t)st.st_size + 1);
	r = fd_read_full(fd, data, (size_t)st.st_size);
	if (r < 0)
		return err_from(err, r, "read blob %s", digest->text);
	*ret_data = take_ptr(&data);
	*ret_len = (size_t)st.st_size;
	return 0;
}

int blob_store_remove(const struct blob_store *store, const struct digest *digest, struct err *err)
{
	if (unlinkat(store->dir_fd, digest_hex(digest), 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove blob %s", digest->text);
	return 0;
}

static DIR *open_listing(const struct blob_store *store)
{
	int fd = openat(store->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(fd);
	return dir;
}

static bool is_part(const char *name)
{
	size_t len = strlen(name), suffix = sizeof(PART_SUFFIX) - 1;

	return len > suffix && strcmp(name + len - suffix, PART_SUFFIX) == 0;
}

/* One that has the name of its digest, which a later writer continues. */
static bool can_be_continued(const char *name)
{
	return strlen(name) == DIGEST_LEN - strlen(DIGEST_PREFIX) + strlen(PART_SUFFIX);
}

/* A part that a writer holds is locked. */
static void sweep_part(const struct blob_store *store, const char *name, int64_t before_s)
{
	auto_fd int fd = openat(store->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
		(st.st_mtim.tv_sec < before_s || !can_be_continued(name)) &&
		flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(store->dir_fd, name, 0);
}

void blob_store_sweep(const struct blob_store *store, int64_t before_s)
{
	DIR *dir = open_listing(store);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (is_part(entry->d_name))
			sweep_part(store, entry->d_name, before_s);
	}
	if (dir)
		closedir(dir);
}

int blob_store_walk(const struct blob_store *store,
	int (*found)(void *arg, const struct digest *digest, uint64_t size), void *arg,
	struct err *err)
{
	DIR *dir = open_listing(store);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return err_sys(err, "list the blobs");
	while (r == 0 && (entry = readdir(dir))) {
		char text[NAME_SIZE];
		struct digest digest;
		struct stat st;

		if (strlen(entry->d_name) != DIGEST_LEN - strlen(DIGEST_PREFIX))
			continue;
		snprintf(text, sizeof(text), DIGEST_PREFIX "%s", entry->d_name);
		if (digest_parse(text, &digest, NULL) < 0 ||
			fstatat(store->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = found(arg, &digest, (uint64_t)st.st_size);
	}
	closedir(dir);
	return r;
}

static int open_part(struct blob_writer *writer)
{
	writer->fd = openat(writer->store->dir_fd, writer->part,
		O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->fd < 0)
		return -errno;
	return flock(writer->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

/* Another writer has the part of this blob, or the digest is not known: a part of its own. */
static int open_own_part(struct blob_writer *writer)
{
	uint64_t random;

	fd_close(writer->fd);
	writer->is_kept = false;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(writer->part, sizeof(writer->part), "%016llx" PART_SUFFIX,
		(unsigned long long)random);
	return open_part(writer);
}

/* Hashes what an earlier writer left. */
static int continue_part(struct blob_writer *writer, struct err *err)
{
	auto_free uint8_t *data = mem_new(READ_SIZE);

	while (true) {
		ssize_t n = read(writer->fd, data, READ_SIZE);

		if (n < 0)
			return err_sys(err, "read a part of a blob");
		if (n == 0)
			return 0;
		digest_stream_add(writer->hash, data, (size_t)n);
		writer->len += (uint64_t)n;
	}
}

int blob_writer_open(struct blob_store *store, const struct digest *digest, uint64_t max,
	struct blob_writer **ret_writer, struct err *err)
{
	auto_(blob_writer_closep) struct blob_writer *writer = mem_new(sizeof(*writer));
	int r = -EAGAIN;

	writer->store = store;
	writer->fd = -1;
	writer->max = max;
	writer->since_look = LOOK_BYTES;
	writer->hash = digest_stream_new();
	if (digest) {
		writer->expected = *digest;
		writer->is_kept = true;
		snprintf(writer->part, sizeof(writer->part), "%s" PART_SUFFIX, digest_hex(digest));
		r = open_part(writer);
	}
	if (r == -EAGAIN)
		r = open_own_part(writer);
	if (r < 0)
		return err_from(err, r, "make a file for a blob");
	r = continue_part(writer, err);
	if (r == 0 && writer->len > max)
		r = blob_writer_restart(writer, err);
	if (r < 0)
		return r;
	*ret_writer = take_ptr(&writer);
	return 0;
}

uint64_t blob_writer_length(const struct blob_writer *writer)
{
	return writer->len;
}

int blob_writer_restart(struct blob_writer *writer, struct err *err)
{
	if (ftruncate(writer->fd, 0) < 0 || lseek(writer->fd, 0, SEEK_SET) < 0)
		return err_sys(err, "empty a part of a blob");
	digest_stream_free(writer->hash);
	writer->hash = digest_stream_new();
	writer->len = 0;
	return 0;
}

static int look_for_room(struct blob_writer *writer, size_t len, struct err *err)
{
	writer->since_look += len;
	if (writer->since_look < LOOK_BYTES)
		return 0;
	writer->since_look = 0;
	return disk_room_check(writer->store->dir_fd, writer->store->reserve, ROOM_AHEAD, err);
}

int blob_writer_add(struct blob_writer *writer, const void *data, size_t len, struct err *err)
{
	int r;

	if (len > writer->max - writer->len) {
		char most[FORMAT_SIZE_LEN];

		format_size(writer->max, most);
		return err_explain(err, ERR_TOO_LARGE, "blob_too_large", NULL,
			"a blob has more than the %s that it may have", most);
	}
	r = look_for_room(writer, len, err);
	if (r == 0) {
		r = fd_write_full(writer->fd, data, len);
		if (r < 0)
			err_from(err, r, "write a blob");
	}
	/* Parts are kept to be continued, but not in the way of what others need. */
	if (r == -ENOSPC)
		writer->is_kept = false;
	if (r < 0)
		return r;
	digest_stream_add(writer->hash, data, len);
	writer->len += len;
	return 0;
}

int blob_writer_commit(struct blob_writer *writer, struct digest *ret_digest, struct err *err)
{
	struct digest digest;

	digest_stream_read(writer->hash, &digest);
	if (writer->expected.text[0] && !digest_equals(&digest, &writer->expected)) {
		writer->is_kept = false;
		return err_explain(err, ERR_INVALID, "digest_mismatch",
			"the source is damaged or lies; try another one",
			"the content of %s is really %s", writer->expected.text, digest.text);
	}
	if (fsync(writer->fd) < 0)
		return err_sys(err, "sync blob %s", digest.text);
	fail_point("blob.synced");
	if (renameat(writer->store->dir_fd, writer->part, writer->store->dir_fd,
		    digest_hex(&digest)) < 0 ||
		fsync(writer->store->dir_fd) < 0)
		return err_sys(err, "keep blob %s", digest.text);
	writer->part[0] = '\0';
	*ret_digest = digest;
	return 0;
}

int blob_writer_set_aside(struct blob_writer *writer, struct blob_part *ret_part, struct err *err)
{
	struct blob_part part = {0};

	digest_stream_read(writer->hash, &part.digest);
	snprintf(part.name, sizeof(part.name), "%.16s" READY_SUFFIX, writer->part);
	/* Written out from now on, so that the sync of many finds most of it done. */
	(void)!sync_file_range(writer->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (renameat(writer->store->dir_fd, writer->part, writer->store->dir_fd, part.name) < 0)
		return err_sys(err, "set a blob aside");
	writer->part[0] = '\0';
	*ret_part = part;
	return 0;
}

void blob_store_drop_part(const struct blob_store *store, struct blob_part *part)
{
	if (part->name[0])
		unlinkat(store->dir_fd, part->name, 0);
	part->name[0] = '\0';
}

static int sync_part(const struct blob_store *store, const struct blob_part *part, struct err *err)
{
	auto_fd int fd = openat(store->dir_fd, part->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_sys(err, "sync blob %s", part->digest.text);
	return 0;
}

int blob_store_name_parts(const struct blob_store *store, struct blob_part *const parts[],
	size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (parts[i]->name[0] && blob_store_has(store, &parts[i]->digest))
			blob_store_drop_part(store, parts[i]);
		else if (parts[i]->name[0])
			r = sync_part(store, parts[i], err);
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!parts[i]->name[0])
			continue;
		if (renameat(store->dir_fd, parts[i]->name, store->dir_fd,
			    digest_hex(&parts[i]->digest)) < 0)
			return err_sys(err, "keep blob %s", parts[i]->digest.text);
		parts[i]->name[0] = '\0';
	}
	if (r == 0 && fsync(store->dir_fd) < 0)
		r = err_sys(err, "sync the blobs");
	return r;
}

void blob_store_drop_ready(const struct blob_store *store)
{
	DIR *dir = open_listing(store);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), suffix = strlen(READY_SUFFIX);

		if (len > suffix && strcmp(entry->d_name + len - suffix, READY_SUFFIX) == 0)
			unlinkat(store->dir_fd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

int blob_store_link(const struct blob_store *store, const struct digest *digest, bool is_executable,
	int dir_fd, const char *name, struct err *err)
{
	const char *own = digest_hex(digest);
	struct stat st;
	mode_t mode;

	if (fstatat(store->dir_fd, own, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "look at blob %s", digest->text);
	mode = 0444 | (is_executable || (st.st_mode & 0100) ? 0111 : 0);
	if (((st.st_mode & 0777) != mode && fchmodat(store->dir_fd, own, mode, 0) < 0) ||
		linkat(store->dir_fd, own, dir_fd, name, 0) < 0)
		return err_sys(err, "link blob %s", digest->text);
	return 0;
}

bool blob_store_is_link(
	const struct blob_store *store, const struct digest *digest, int dir_fd, const char *name)
{
	struct stat own, other;

	return fstatat(store->dir_fd, digest_hex(digest), &own, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dir_fd, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
	       own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

void blob_writer_close(struct blob_writer *writer)
{
	if (!writer)
		return;
	if (writer->part[0] && !writer->is_kept)
		unlinkat(writer->store->dir_fd, writer->part, 0);
	fd_close(writer->fd);
	digest_stream_free(writer->hash);
	free(writer);
}

void blob_writer_closep(struct blob_writer **writer)
{
	blob_writer_close(*writer);
}
