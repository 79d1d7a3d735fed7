/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/trash.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/mount/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 20000000 /* or less */

/* A name in the trash that nothing else has: inode and time together do not come twice. */
static void new_name(uint64_t inode, char name[64])
{
	snprintf(name, 64, "%llx-%llx", (unsigned long long)inode,
		(unsigned long long)clock_steady_us());
}

int trash_discard(const struct trash *trash, int dirfd, const char *name, struct err *err)
{
	struct stat st;
	char to[64];

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", name);
	new_name(st.st_ino, to);
	if (renameat(dirfd, name, trash->waiting_fd, to) < 0)
		return err_sys(err, "move %s into the trash", name);
	return 0;
}

/*
 * Empties one directory that is being removed; directories in it move up beside it, so that a tree of any
 * depth is taken apart without recursion and with two descriptors.
 */
static void flatten(const struct trash *trash, const char *name)
{
	auto_fd int fd = directory_open(trash->removing_fd, name);
	DIR *list = fd < 0 ? NULL : directory_list(fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		char to[64];

		if (unlinkat(fd, entry->d_name, 0) == 0 ||
			unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0)
			continue;
		new_name(entry->d_ino, to);
		if (renameat(fd, entry->d_name, trash->removing_fd, to) < 0)
			log_warning("an entry of the trash cannot be removed: %s", strerror(errno));
	}
	directory_end(list);
}

/* Removes what it can of what is being removed; whether it removed anything. */
static bool remove_entries(const struct trash *trash)
{
	DIR *list = directory_list(trash->removing_fd);
	const struct dirent *entry;
	bool progress = false;

	while ((entry = directory_next(list))) {
		const char *name = entry->d_name;

		if (unlinkat(trash->removing_fd, name, 0) < 0) {
			flatten(trash, name);
			if (unlinkat(trash->removing_fd, name, AT_REMOVEDIR) < 0)
				continue;
		}
		progress = true;
	}
	directory_end(list);
	return progress;
}

/* Moves what waits to where it is removed; whether there was anything. */
static bool take_waiting(const struct trash *trash)
{
	DIR *list = directory_list(trash->waiting_fd);
	const struct dirent *entry;
	bool progress = false;

	while ((entry = directory_next(list))) {
		if (renameat(trash->waiting_fd, entry->d_name, trash->removing_fd, entry->d_name) ==
			0)
			progress = true;
	}
	directory_end(list);
	return progress;
}

void trash_empty(const struct trash *trash)
{
	bool progress;

	do {
		progress = take_waiting(trash);
		fail_point("trash.in_shredder");
		progress |= remove_entries(trash);
	} while (progress);
}

static void run_remover(const void *arg, int wake_fd)
{
	char bytes[64];

	do
		trash_empty(arg);
	while (read(wake_fd, bytes, sizeof(bytes)) > 0);
}

/* Whether the trash may be touched again with no other time: file systems count in ticks. */
static bool is_recent(int64_t touched_ns)
{
	struct timespec now;
	int64_t age_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = now.tv_sec * 1000000000ll + now.tv_nsec - touched_ns;
	return age_ns < TICK_NS;
}

void trash_wake_remover(struct trash_remover *remover)
{
	struct stat st;
	int64_t touched_ns;

	if (fstat(remover->trash->waiting_fd, &st) < 0)
		return;
	touched_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	if (touched_ns == remover->seen_ns)
		return;
	remover->seen_ns = is_recent(touched_ns) ? 0 : touched_ns;
	helpers_wake(&remover->helper);
}

void trash_start_remover(
	struct trash_remover *remover, const struct trash *trash, struct helpers *helpers)
{
	*remover = (struct trash_remover){.trash = trash,
		.helper = {.name = "trash remover", .work = run_remover, .arg = trash}};
	helpers_add(helpers, &remover->helper);
}
