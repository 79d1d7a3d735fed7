/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/watch/watched_target.h"

#include "agent/files/path.h"
#include "agent/files/watch/watched_tree.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>

/* Of the parent: for the loss of the watched directory, or for all that happens to the watched file. */
#define PARENT_MASK                                                                                \
	(IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
#define FILE_MASK (PARENT_MASK | IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

static int locate(struct watched_target *target, const char *path, struct stat *ret_stat)
{
	auto_(path_place_fini) struct path_place place = PATH_PLACE_INIT;
	int r;

	if (path[strspn(path, "/")] == '\0') {
		target->root = path_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	} else {
		r = path_locate_target(path, &place);
		if (r < 0)
			return r;
		if (place.missing[0])
			return -ENOENT;
		target->root = path_open(place.dir, place.name, O_PATH | O_NOFOLLOW, 0);
		target->parent = take_fd(&place.dir);
		strcpy(target->name, place.name);
	}
	if (target->root < 0)
		return target->root;
	return fstat(target->root, ret_stat) < 0 ? -errno : 0;
}

int watched_target_open(
	struct watched_target *target, const char *path, int inotify, struct stat *ret_stat)
{
	int r = locate(target, path, ret_stat);

	if (r < 0)
		return r;
	target->is_file = !S_ISDIR(ret_stat->st_mode);
	if (target->parent < 0)
		return 0;
	target->parent_wd = watched_tree_watch(
		inotify, target->parent, target->is_file ? FILE_MASK : PARENT_MASK);
	return target->parent_wd < 0 ? target->parent_wd : 0;
}

void watched_target_close(struct watched_target *target)
{
	fd_close(target->root);
	fd_close(target->parent);
}

bool watched_target_look(const struct watched_target *target, struct stat *ret_stat)
{
	return fstatat(target->parent, target->name, ret_stat, AT_SYMLINK_NOFOLLOW) == 0;
}
