/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the user's machine that is being written with what a sandbox sends. It has a name of its own until it is
 * whole; then it takes the place of whatever had its name, of a symbolic link too, which is never written through.
 */
#pragma once

#include "base/err.h"
#include "base/fd.h"

#include <stdbool.h>
#include <sys/stat.h>

#define NEW_FILE_NAME_MAX 32

struct new_file {
	int dir_fd; /* borrowed */
	int fd;
	char temporary[NEW_FILE_NAME_MAX]; /* "" once it is gone or has its name */
};

#define NEW_FILE_INIT ((struct new_file){.dir_fd = -1, .fd = -1})

/* A name that nothing has, for what is to be renamed later. */
void new_file_draw_name(char name[NEW_FILE_NAME_MAX]);

int new_file_open(int dir_fd, struct new_file *ret, struct err *err) must_check;

/* Gives it its name, these permissions as far as the umask lets them, and a time (NULL: now). */
int new_file_commit(struct new_file *file, const char *name, mode_t mode,
	const struct timespec *mtime, struct err *err) must_check;

/* Takes half a file away. */
void new_file_fini(struct new_file *file);

/* The permissions that a file or directory from a sandbox has here: never set-user-id and the like. */
mode_t new_file_mode(mode_t mode);
