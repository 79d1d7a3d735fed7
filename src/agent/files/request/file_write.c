/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WRITE: the new content is written to a draft without a name, in the target directory, and takes
 * the name at a single instant. A helper that dies on the way leaves nothing behind. The second
 * answer comes when content and name are on the host's disk.
 *
 * On file systems without O_TMPFILE the draft has a hidden name, which is unlinked on every way out
 * but a kill.
 */
#include "agent/files/disk_sync.h"
#include "agent/files/path.h"
#include "agent/files/request/file.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define NAMES_MAX 100
#define MODE_NEW  0644

struct draft {
	int dir; /* O_PATH */
	int fd;
	char name[PATH_DRAFT_MAX]; /* "" while it has none */
};

static void draft_fini(struct draft *draft)
{
	if (draft->name[0])
		unlinkat(draft->dir, draft->name, 0);
	fd_close(draft->fd);
	fd_close(draft->dir);
}

static int draft_open_named(struct draft *draft)
{
	for (int i = 0; i < NAMES_MAX; i++) {
		path_draw_name(draft->name);
		draft->fd = openat(draft->dir, draft->name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (draft->fd >= 0)
			return 0;
		draft->name[0] = '\0';
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

static int draft_open(struct draft *draft, int dir)
{
	draft->dir = path_open(dir, ".", O_PATH | O_DIRECTORY, 0);
	if (draft->dir < 0)
		return draft->dir;
	draft->fd = openat(draft->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (draft->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	return draft_open_named(draft);
}

/* Links the nameless draft as dir/name. By descriptor where the kernel allows it, else by /proc. */
static int draft_link(const struct draft *draft, int dir, const char *name)
{
	char path[40];

	if (linkat(draft->fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT && errno != EPERM)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", draft->fd);
	return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Gives the draft its final place: over what is there, or where nothing is yet. */
static int draft_publish(struct draft *draft, const struct path_place *place, bool replaces)
{
	int r;

	if (!draft->name[0] && !replaces) {
		r = draft_link(draft, place->dir, place->name);
		if (r != -EEXIST)
			return r;
	}
	if (!draft->name[0]) {
		fd_close(draft->dir);
		draft->dir = path_open(place->dir, ".", O_PATH | O_DIRECTORY, 0);
		if (draft->dir < 0)
			return draft->dir;
		path_draw_name(draft->name);
		r = draft_link(draft, draft->dir, draft->name);
		if (r < 0) {
			draft->name[0] = '\0';
			return r;
		}
	}
	if (renameat(draft->dir, draft->name, place->dir, place->name) < 0)
		return -errno;
	draft->name[0] = '\0';
	return 0;
}

/* What is at the place now: 1 and its stat; 0 for nothing; -errno for what cannot be written. */
static int look(const struct path_place *place, struct stat *ret_stat)
{
	if (place->missing[0] ||
		fstatat(place->dir, place->name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
		return place->missing[0] || errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(ret_stat->st_mode))
		return -EISDIR;
	return S_ISREG(ret_stat->st_mode) ? 1 : -EINVAL;
}

/* Refuses a write that does not fit now rather than after the upload. */
static int check_space(int fd, uint64_t size)
{
	struct statfs fs;

	if (size == AGENT_SIZE_UNKNOWN)
		return 0;
	if (size > INT64_MAX)
		return -EFBIG;
	if (fstatfs(fd, &fs) < 0 || fs.f_blocks == 0)
		return 0;
	return size / (uint64_t)fs.f_bsize > (uint64_t)fs.f_bavail ? -ENOSPC : 0;
}

/*
 * Receives all chunks into the draft. 0; -errno when the channel broke; *ret_failure is that of the
 * disk.
 */
static int receive(struct helper_io *helper_io, int fd, uint64_t size, int *ret_failure)
{
	uint64_t total = 0;
	uint32_t len;

	do {
		int r = helper_io_read_u32(helper_io, &len);

		if (r == 0)
			r = helper_io_receive_file(helper_io, fd, len, ret_failure);
		if (r < 0)
			return r;
		total += len;
	} while (len > 0);
	if (size != AGENT_SIZE_UNKNOWN && total != size && *ret_failure == 0)
		*ret_failure = -EINVAL;
	return 0;
}

/* Owner before mode: changing the owner clears setuid bits. */
static int dress(int fd, const struct path_place *place, const struct stat *old,
	const struct payload_file *request)
{
	uint32_t mode = request->mode;
	struct path_owner owner;
	int r = path_owner(place->dir, request->user, &owner);

	if (r < 0)
		return r;
	if (old)
		owner = (struct path_owner){.uid = old->st_uid, .gid = old->st_gid};
	path_give(fd, &owner);
	if (mode == AGENT_MODE_KEEP)
		mode = old ? old->st_mode : MODE_NEW;
	return fchmod(fd, mode & 07777) < 0 ? -errno : 0;
}

/* Gives the draft its name, and brings both to the host's disk. */
static int publish(struct draft *draft, struct path_place *place, bool replaces, uid_t user,
	const struct disk_sync *sync)
{
	int r = path_complete(place, user);

	/* Content that the disk does not take gets no name, and replaces nothing. */
	if (r == 0)
		r = disk_sync_content(sync, draft->fd);
	if (r == 0)
		r = draft_publish(draft, place, replaces);
	return r < 0 ? r : disk_sync_file(sync, draft->fd);
}

static int write_draft(struct helper_io *helper_io, const struct payload_file *request,
	struct path_place *place, struct draft *draft, const struct disk_sync *sync)
{
	struct stat old, new;
	int failure = 0;
	int exists = look(place, &old);
	int r = exists < 0 ? exists : draft_open(draft, place->dir);

	if (r == 0)
		r = check_space(draft->fd, request->size);
	if (r < 0)
		return r;
	if (exists)
		helper_io_put_answer(helper_io, &old, AGENT_FILE_EXISTED, "");
	else
		helper_io_put_nothing(helper_io);
	if (receive(helper_io, draft->fd, request->size, &failure) < 0)
		return 0;
	if (failure < 0)
		return failure;
	r = dress(draft->fd, place, exists ? &old : NULL, request);
	if (r == 0)
		r = publish(draft, place, exists, request->user, sync);
	if (r == 0 && fstat(draft->fd, &new) < 0)
		r = -errno;
	if (r == 0)
		helper_io_put_answer(helper_io, &new, exists ? AGENT_FILE_EXISTED : 0, "");
	return r;
}

int file_write(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	auto_(draft_fini) struct draft draft = {.dir = -1, .fd = -1};
	auto_(disk_sync_end) struct disk_sync sync = {.fd = -1};
	size_t len = strlen(request->path);
	int r;

	if (request->path[len - 1] == '/')
		return -EISDIR;
	r = path_locate_target(request->path, &place);
	disk_sync_begin(&sync);
	return r < 0 ? r : write_draft(helper_io, request, &place, &draft, &sync);
}
