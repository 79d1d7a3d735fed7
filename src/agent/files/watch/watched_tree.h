/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches (inotify) a directory and, if wanted, each one below it, while other processes make, move
 * and remove directories.
 *
 * The kernel's events are a little old when they are read: a directory that was made may be
 * elsewhere by now, with something else in its place. Whenever an event says that a directory is at
 * a path, the path is therefore opened and watched as it is *now*; since the kernel gives a
 * directory that is watched already the same number again, this says which directory it really is,
 * and `dirs` is made to agree. Where the way to a path is not what `dirs` believes, nothing is
 * guessed: the tree is stale, and the caller synchronizes it as a whole when all events are read.
 *
 * A new directory is watched first and read second, so that nothing in it is missed; its entries
 * are given to `found`, and may come as events too.
 */
#pragma once

#include "agent/files/watch/dir_tree.h"
#include "base/buf.h"

#define WATCHED_TREE_MAX 131072 /* directories; about 25 MB, and a kilobyte each of the kernel's */

struct watched_tree {
	/* Set by the caller. */
	int inotify;	/* not ours */
	int root;	/* O_PATH; not ours */
	int foreign_wd; /* a watch of the same inotify that is none of the tree's; or -1 */
	bool is_recursive;
	/* Something was in a directory before that was watched. */
	void (*found)(void *arg, const struct dir_node *node, const char *name,
		enum agent_file_kind kind);
	bool (*is_wanted)(void *arg); /* whether to go on with reading directories */
	void *arg;

	struct dir_tree dirs;
	bool is_stale; /* to be synchronized */
	bool is_full;  /* a directory could not be watched; for the caller to clear */
	uint32_t round;
	struct buf todo; /* numbers of watches (int) of directories to be read */
	char *entries;	 /* scratch of getdents */
};

/* Watches a directory (a descriptor, O_PATH will do). The number of the watch, or -errno. */
int watched_tree_watch(int inotify, int dir, uint32_t mask) must_check;

/* Begins with the root and, if it is recursive, all below. -ENOSPC if these are too many. */
int watched_tree_open(struct watched_tree *tree, const struct stat *root) must_check;
void watched_tree_close(struct watched_tree *tree); /* also for a tree that was not opened */

/* Called when a directory came to be at parent and name. */
void watched_tree_follow(struct watched_tree *tree, struct dir_node *parent, const char *name);

/* Removes a directory and all below it from the tree. NULL and the root stay as they are. */
void watched_tree_forget(struct watched_tree *tree, struct dir_node *node);

/* Reads the whole tree again and watches what is there; with `tells` it reports what it finds. */
void watched_tree_synchronize(struct watched_tree *tree, bool tells);

/* The kind of a file, by its mode. */
enum agent_file_kind watched_tree_kind(mode_t mode);
