/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a tree below a directory of the user's machine, entry by entry, as a sandbox says: that is, as an attacker says.
 *
 * Nothing is written outside of the directory. A name is relative and has no ".."; each directory on the way is opened
 * by its descriptor without following links (with openat and O_NOFOLLOW for each component, which every kernel and
 * every seccomp filter knows, and which is as strict as openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). Files
 * and links replace what has their name. A symbolic link is made with the target it has, wherever that leads, and is
 * never followed: also not one that an earlier copy brought.
 */
#pragma once

#include "cli/copy/new_file.h"

#include <stddef.h>

struct tree_writer_dir;

struct tree_writer {
	int root_fd;	/* borrowed */
	int dir_fd;	/* of the last entry, since the next is mostly in the same; -1: none yet */
	char *dir_name; /* relative to the root */
	struct tree_writer_dir *dirs; /* that get their modes and times at the end */
	size_t dir_count;
};

void tree_writer_init(struct tree_writer *writer, int root_fd);

/* Sets the modes and times of the directories that were made. */
void tree_writer_fini(struct tree_writer *writer);

int tree_writer_add_dir(struct tree_writer *writer, const char *name, mode_t mode,
	const struct timespec *mtime, struct err *err) must_check;

/* Opens a file, to be written and committed under *ret_leaf, which points into name. */
int tree_writer_add_file(struct tree_writer *writer, const char *name, struct new_file *ret_file,
	const char **ret_leaf, struct err *err) must_check;

int tree_writer_add_symlink(struct tree_writer *writer, const char *name, const char *target,
	const struct timespec *mtime, struct err *err) must_check;

/* The target is a file of the tree. */
int tree_writer_add_hardlink(struct tree_writer *writer, const char *name, const char *target,
	struct err *err) must_check;

/*
 * Opens the directory of that name, which is one component, and makes it if need be. A symbolic link of that name gives
 * way to it.
 */
int tree_writer_open_dir(
	int parent_fd, const char *name, int *ret_fd, bool *ret_is_new, struct err *err) must_check;
