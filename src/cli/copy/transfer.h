/* SPDX-License-Identifier: Apache-2.0 */
/* Single files and whole archives between here and a sandbox, as streams. */
#pragma once

#include "base/err.h"
#include "cli/copy/destination.h"
#include "cli/remote/client.h"

#include <stdbool.h>
#include <sys/types.h>

/* What is at a path in the sandbox. */
struct transfer_stat {
	bool exists;
	bool is_dir;
	int64_t size; /* -1: not known */
	mode_t mode;  /* 0: not known */
};

int transfer_stat(struct client *client, const char *id, const char *path,
	struct transfer_stat *ret, struct err *err) must_check;

/* Sends what fd holds to a file; a mode of 0 leaves it to the daemon. */
int transfer_put_fd(struct client *client, const char *id, const char *path, int fd, mode_t mode,
	struct err *err) must_check;

/* Sends a directory's content into one. */
int transfer_put_tree(struct client *client, const char *id, const char *path, const char *local,
	struct err *err) must_check;

/* Writes a file (or, of a directory, its tar archive) to fd. */
int transfer_get_fd(struct client *client, const char *id, const char *path,
	const struct transfer_stat *stat, int fd, struct err *err) must_check;

/* Gets a file: it appears whole or not at all, in the place of what had its name. */
int transfer_get_file(struct client *client, const char *id, const char *path,
	const struct transfer_stat *stat, const struct destination *to, struct err *err) must_check;

/* Gets a directory's content into a directory, which is made if need be. */
int transfer_get_tree(struct client *client, const char *id, const char *path,
	const struct destination *to, struct err *err) must_check;
