/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/image_copy.h"

#include "base/fd.h"
#include "keeper/disk/ext4_image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_ROOM   (64ull << 20) /* stays free beside a copy */
#define CACHE_SHARE 32		  /* of the memory of the host, for one copy */
#define PIECE	    (4ull << 20)
#define CACHED_STEP (256ul << 10) /* stays in the cache of a processor */
#define COPIERS	    2

/* How the pieces of a file are copied, and which of them. */
struct plan {
	int from, to;
	bool is_direct;	   /* past the cache */
	bool is_begun;	   /* to be written, as far as it is copied */
	char *buffer;	   /* of a piece */
	unsigned mine, of; /* every of-th piece of the file, from the mine-th on */
};

uint64_t image_copy_bytes_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static int check_room(int from, struct err *err)
{
	struct statfs host;

	if (fstatfs(from, &host) < 0 ||
		host.f_bavail * (uint64_t)host.f_bsize >= image_copy_bytes_of(from) + HOST_ROOM)
		return 0;
	return err_explain(err, ERR_NO_SPACE, NULL,
		"remove snapshots or workspaces that nobody needs, or make the file system of the "
		"data directory larger",
		"the disk of the host has no room for a copy of %llu MiB",
		(unsigned long long)(image_copy_bytes_of(from) >> 20));
}

bool image_copy_is_told_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

enum image_copy_way image_copy_choose(int from, enum image_copy_way small)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return image_copy_bytes_of(from) > memory / CACHE_SHARE ? IMAGE_COPY_DIRECT : small;
}

static int copy_step(const struct plan *plan, off_t at, size_t len)
{
	ssize_t n = pread(plan->from, plan->buffer, len, at);

	if (n != (ssize_t)len)
		return n < 0 ? -errno : -EIO;
	n = pwrite(plan->to, plan->buffer, len, at);
	if (n != (ssize_t)len)
		return n < 0 ? -errno : -ENOSPC; /* the rest did not fit */
	return 0;
}

/* Data goes on until `end`; what is read ahead of a hole would be zeros. */
static void read_ahead(const struct plan *plan, off_t at, size_t len, off_t end)
{
	off_t next = at + (off_t)(plan->of * PIECE);

	readahead(plan->from, at, len);
	if (next < end)
		readahead(plan->from, next,
			(uint64_t)(end - next) < PIECE ? (size_t)(end - next) : PIECE);
}

/* The disk reads the next piece and writes the last one while this one is copied. */
static int copy_cached(const struct plan *plan, off_t at, size_t len, off_t end)
{
	int r = 0;

	read_ahead(plan, at, len, end);
	for (size_t done = 0; r == 0 && done < len; done += CACHED_STEP)
		r = copy_step(plan, at + (off_t)done,
			len - done < CACHED_STEP ? len - done : CACHED_STEP);
	if (r == 0 && plan->is_begun)
		(void)!sync_file_range(plan->to, at, (off_t)len, SYNC_FILE_RANGE_WRITE);
	return r;
}

static int copy_pieces(const struct plan *plan)
{
	off_t at = 0;

	while ((at = lseek(plan->from, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(plan->from, at, SEEK_HOLE);

		if (end < 0)
			return -errno;
		while (at < end) {
			uint64_t left = (uint64_t)(end - at);
			/* By position, which both copiers see alike: holes may appear while they work. */
			uint64_t number = (uint64_t)at / PIECE;
			uint64_t room = (number + 1) * PIECE - (uint64_t)at;
			size_t len = left < room ? left : room;
			int r = 0;

			if (number % plan->of == plan->mine)
				r = plan->is_direct ? copy_step(plan, at, len)
						    : copy_cached(plan, at, len, end);
			if (r == 0 && image_copy_is_told_to_end())
				r = -EINTR;
			if (r < 0)
				return r;
			at += (off_t)len;
		}
	}
	return errno == ENXIO ? 0 : -errno; /* no data beyond */
}

/* A copier of its own, which ends with this process. */
static pid_t fork_copier(const struct plan *plan)
{
	pid_t parent = getpid(), pid = fork();
	int r;

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	r = copy_pieces(plan);
	_exit(r < 0 ? -r : 0); /* an errno fits into a status */
}

static int join_copier(pid_t pid, bool has_failed)
{
	int status;

	if (has_failed)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int share_copy(const struct plan *plan)
{
	struct plan other = *plan, own = *plan;
	pid_t pid;
	int r, r2;

	other.of = own.of = COPIERS;
	other.mine = 1;
	pid = fork_copier(&other); /* the buffer is a copy of its own there */
	if (pid < 0)
		return copy_pieces(plan);
	r = copy_pieces(&own);
	r2 = join_copier(pid, r < 0);
	return r < 0 ? r : r2;
}

static bool set_direct(int fd, bool is_on)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, is_on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Past the cache. -EINVAL if the file system cannot do that. */
static int copy_past_cache(struct plan *plan)
{
	int r = -EINVAL;

	plan->is_direct = true;
	if (set_direct(plan->from, true) && set_direct(plan->to, true))
		r = share_copy(plan);
	plan->is_direct = false;
	/* Others read and write them by other sizes than those of blocks. */
	if (!set_direct(plan->from, false) || !set_direct(plan->to, false))
		return -EIO;
	return r;
}

/*
 * Gives the copy its blocks at once. Else ext4 does that for each block that is written, which takes a third of the
 * time of a copy through the cache, and is done by one copier at a time. What was not written reads as a hole until it is.
 */
static int allocate(int from, int to)
{
	off_t at = 0;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(from, at, SEEK_HOLE);

		if (end < 0)
			return -errno;
		if (fallocate(to, FALLOC_FL_KEEP_SIZE, at, end - at) < 0)
			return errno == EOPNOTSUPP ? 0 : -errno;
		at = end;
	}
	return errno == ENXIO ? 0 : -errno; /* no data beyond */
}

static int copy_data(int from, int to, enum image_copy_way way)
{
	/* One that goes past the cache comes to it where the host's file system has no other way. */
	struct plan plan = {.from = from,
		.to = to,
		.is_begun = way == IMAGE_COPY_BEGUN || way == IMAGE_COPY_DIRECT,
		.of = 1};
	int r;

	r = allocate(from, to);
	if (r < 0)
		return r;
	r = -EINVAL;
	plan.buffer = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (plan.buffer == MAP_FAILED)
		return -ENOMEM;
	if (way == IMAGE_COPY_DIRECT)
		r = copy_past_cache(&plan);
	if (r == -EINVAL)
		r = share_copy(&plan);
	munmap(plan.buffer, PIECE);
	return r;
}

/* The copy gets its size and, if one is wanted, a loop device. */
static int prepare(int from, int to, enum image_copy_way way, int *ret_loop_fd, struct err *err)
{
	struct stat st;

	if (fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0)
		return err_sys(err, "size a copy of a disk");
	return way == IMAGE_COPY_ATTACHED ? ext4_image_attach(to, ret_loop_fd, err) : 0;
}

int image_copy_make(int from, int dirfd, enum image_copy_way way, int *ret_fd, int *ret_loop_fd,
	struct err *err)
{
	auto_fd int loop = -1;
	auto_fd int to = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r;

	if (to < 0)
		return err_sys(err, "make a copy of a disk");
	if (ioctl(to, FICLONE, from) < 0) {
		if ((r = check_room(from, err)) < 0 || (r = prepare(from, to, way, &loop, err)) < 0)
			return r;
		r = copy_data(from, to, way);
		if (r < 0)
			return err_from(err, r, "copy a disk");
	}
	if (loop >= 0)
		*ret_loop_fd = take_fd(&loop);
	*ret_fd = take_fd(&to);
	return 0;
}
