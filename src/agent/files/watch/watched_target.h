/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon asked to watch: a directory or one file, and the directory that it is in.
 *
 * One file is watched by its parent directory, because programs replace files rather than write to
 * them, and a watch of the file itself would stay with the old one. The parent of a directory is
 * watched too, only for its loss: this process keeps the directory open, and the kernel reports the
 * deletion of a directory itself only after the last user is gone.
 */
#pragma once

#include "base/mem.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct watched_target {
	bool is_file;
	int root;   /* O_PATH: the target */
	int parent; /* O_PATH; -1 for "/" */
	int parent_wd;
	char name[NAME_MAX + 1]; /* in its parent */
};

#define WATCHED_TARGET_NONE ((struct watched_target){.root = -1, .parent = -1, .parent_wd = -1})

/* Finds the target, through a symbolic link if it is one, and watches its parent. */
int watched_target_open(struct watched_target *target, const char *path, int inotify,
	struct stat *ret_stat) must_check;
void watched_target_close(struct watched_target *target);

/* Looks at what has its name now. False if nothing has. */
bool watched_target_look(const struct watched_target *target, struct stat *ret_stat) must_check;
