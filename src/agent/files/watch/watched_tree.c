/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/watch/watched_tree.h"

#include "agent/files/path.h"
#include "agent/machine/dirents.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <unistd.h>

#define TREE_MASK                                                                                  \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE |        \
		IN_ATTRIB | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

enum agent_file_kind watched_tree_kind(mode_t mode)
{
	return S_ISREG(mode)   ? AGENT_FILE_REGULAR
	       : S_ISDIR(mode) ? AGENT_FILE_DIRECTORY
	       : S_ISLNK(mode) ? AGENT_FILE_SYMLINK
			       : AGENT_FILE_OTHER;
}

/* Opens a directory of the tree by its path; -ESTALE if another one is there by now. */
static int open_node(struct watched_tree *tree, const struct dir_node *node, int flags)
{
	char path[AGENT_PATH_MAX];
	auto_fd int fd = -1;
	struct stat stat;
	int r = dir_tree_path(node, "", path);

	if (r < 0)
		return r;
	fd = path_open(tree->root, path[0] ? path : ".", flags | O_DIRECTORY | O_NOFOLLOW,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return -ESTALE;
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat) < 0)
		return -errno;
	if (stat.st_dev != node->device || stat.st_ino != node->inode)
		return -ESTALE;
	return take_fd(&fd);
}

/* By way of the working directory: inotify takes no descriptors, and /proc may not be there. */
int watched_tree_watch(int inotify, int dir, uint32_t mask)
{
	int wd = fchdir(dir) < 0 ? -1 : inotify_add_watch(inotify, ".", mask);
	int r = wd < 0 ? -errno : wd;

	/* Otherwise this process would keep the directory in use after it is removed. */
	return chdir("/") < 0 ? -errno : r;
}

static void remove_watch(void *arg, int wd)
{
	struct watched_tree *tree = arg;

	/* Most are gone with their directory; then the kernel says EINVAL. */
	inotify_rm_watch(tree->inotify, wd);
}

void watched_tree_forget(struct watched_tree *tree, struct dir_node *node)
{
	if (node && node != tree->dirs.root)
		dir_tree_remove(&tree->dirs, node, remove_watch, tree);
}

/*
 * Files that the kernel makes up, such as procfs, are not watched: they never rest, and may never
 * end.
 */
static bool is_made_up(int dir)
{
	static const long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC};
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0)
		return false;
	for (size_t i = 0; i < array_len(kinds); i++) {
		if ((long)fs.f_type == kinds[i])
			return true;
	}
	return false;
}

/* A directory was watched: makes the tree have it at parent and name. */
static void settle(struct watched_tree *tree, struct dir_node *parent, const char *name, int wd,
	const struct stat *stat)
{
	struct dir_node *known = dir_tree_find(&tree->dirs, wd);
	struct dir_node *old = dir_tree_child(&tree->dirs, parent, name);

	if (!known) {
		known = dir_tree_add(&tree->dirs, parent, name, wd, stat);
		known->is_unread = true;
	} else if (known != old) {
		/* The same directory mounted twice can be above itself. */
		if (dir_tree_is_within(parent, known))
			return;
		/* Before the old one is removed: it may be below that. */
		dir_tree_move(&tree->dirs, known, parent, name);
	}
	known->round = tree->round;
	known->device = stat->st_dev;
	known->inode = stat->st_ino;
	if (old != known)
		watched_tree_forget(tree, old);
}

/*
 * Watches the directory name in dir, which is the one of parent. -ENOSPC if there is no room for
 * another; that it is gone, or nothing to watch, is no failure.
 */
static int watch_at(struct watched_tree *tree, struct dir_node *parent, int dir, const char *name)
{
	auto_fd int fd = path_open(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat stat;
	int wd;

	/* If it was moved, there is an event to say so. */
	if (fd < 0 || fstat(fd, &stat) < 0 || (stat.st_dev != parent->device && is_made_up(fd)))
		return 0;
	if (tree->dirs.count >= WATCHED_TREE_MAX)
		return -ENOSPC;
	wd = watched_tree_watch(tree->inotify, fd, TREE_MASK);
	if (wd == -ENOSPC || wd == -ENOMEM)
		return -ENOSPC;
	if (wd >= 0 && wd != tree->foreign_wd)
		settle(tree, parent, name, wd, &stat);
	return 0;
}

static enum agent_file_kind kind_of_entry(const struct dirents *dirents, const char *name)
{
	struct stat stat;

	switch (dirents->type) {
	case DT_REG:
		return AGENT_FILE_REGULAR;
	case DT_DIR:
		return AGENT_FILE_DIRECTORY;
	case DT_LNK:
		return AGENT_FILE_SYMLINK;
	case DT_UNKNOWN:
		if (fstatat(dirents->dir, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
			return AGENT_FILE_NONE;
		return watched_tree_kind(stat.st_mode);
	default:
		return AGENT_FILE_OTHER;
	}
}

static bool push_todo(struct watched_tree *tree, int wd)
{
	return buf_append(&tree->todo, &wd, sizeof(wd)) == 0;
}

/* What reading a directory does besides watching those in it. */
#define READ_TELLS 1u /* reports the entries of a directory that was never read as created */
#define READ_ALL   2u /* reads directories in it again that were read before */

/* Reads one directory, watches those in it, and puts them on the list. */
static int read_directory(struct watched_tree *tree, struct dir_node *node, unsigned how)
{
	auto_fd int dir = open_node(tree, node, O_RDONLY);
	struct dirents dirents;
	const char *name;

	/* It was moved since: either an event says where to, or the next look finds it. */
	if (dir == -ESTALE)
		tree->is_stale = true;
	if (dir < 0)
		return 0;
	dirents_begin(&dirents, dir, tree->entries);
	while (dirents_next(&dirents, &name) > 0) {
		enum agent_file_kind kind = kind_of_entry(&dirents, name);
		struct dir_node *child;
		int r;

		if ((how & READ_TELLS) && node->is_unread && kind != AGENT_FILE_NONE)
			tree->found(tree->arg, node, name, kind);
		if (kind != AGENT_FILE_DIRECTORY || !tree->is_recursive)
			continue;
		r = watch_at(tree, node, dir, name);
		if (r < 0)
			return r;
		child = dir_tree_child(&tree->dirs, node, name);
		if (child && (child->is_unread || (how & READ_ALL)) && !push_todo(tree, child->wd))
			return -ENOSPC;
	}
	node->is_unread = false;
	return 0;
}

/* Reads the directories of the list, and those that they bring onto it. */
static int read_todo(struct watched_tree *tree, unsigned how)
{
	int r = 0;

	while (tree->todo.len > 0 && r == 0) {
		struct dir_node *node;
		int wd;

		tree->todo.len -= sizeof(wd);
		memcpy(&wd, tree->todo.data + tree->todo.len, sizeof(wd));
		node = dir_tree_find(&tree->dirs, wd);
		if (node)
			r = read_directory(tree, node, how);
		if (r == 0 && !tree->is_wanted(tree->arg))
			r = -EPIPE;
	}
	buf_fini(&tree->todo);
	return r;
}

void watched_tree_follow(struct watched_tree *tree, struct dir_node *parent, const char *name)
{
	auto_fd int dir = -1;
	struct dir_node *node;
	int r;

	if (!tree->is_recursive)
		return;
	dir = open_node(tree, parent, O_PATH);
	if (dir == -ESTALE)
		tree->is_stale = true;
	if (dir < 0)
		return;
	r = watch_at(tree, parent, dir, name);
	node = dir_tree_child(&tree->dirs, parent, name);
	if (r == 0 && node && node->is_unread && push_todo(tree, node->wd))
		r = read_todo(tree, READ_TELLS);
	if (r == -ENOSPC)
		tree->is_full = true;
}

void watched_tree_synchronize(struct watched_tree *tree, bool tells)
{
	struct dir_node *root = tree->dirs.root;

	tree->is_stale = false;
	root->round = ++tree->round;
	if (!push_todo(tree, root->wd) || read_todo(tree, READ_ALL | (tells ? READ_TELLS : 0)) < 0)
		tree->is_full = true;
	else if (!tree->is_stale) /* else the reading may only have skipped them */
		dir_tree_remove_unmet(&tree->dirs, tree->round, remove_watch, tree);
}

int watched_tree_open(struct watched_tree *tree, const struct stat *root)
{
	int wd = watched_tree_watch(tree->inotify, tree->root, TREE_MASK);

	if (wd < 0)
		return wd;
	tree->todo = BUF_INIT(WATCHED_TREE_MAX * sizeof(int));
	tree->entries = mem_new(DIRENTS_LEN);
	dir_tree_add(&tree->dirs, NULL, "", wd, root);
	if (!tree->is_recursive)
		return 0;
	return push_todo(tree, wd) ? read_todo(tree, 0) : -ENOSPC;
}

void watched_tree_close(struct watched_tree *tree)
{
	dir_tree_fini(&tree->dirs);
	buf_fini(&tree->todo);
	free(tree->entries);
	tree->entries = NULL;
}
