/* SPDX-License-Identifier: Apache-2.0 */
/* Single files and whole archives between here and a sandbox or a project, as streams. */
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

/* --- by the path of a request (`target`), whatever it leads to --- */

/* Sends what fd holds. *ret_answer is a new reference; may be NULL. */
int transfer_send_fd(struct client *client, const char *target, int fd, json_t **ret_answer,
	struct err *err) must_check;

/* Sends the files of a directory to the archive of a project, without what installing them makes, and .git: the names of
 * these directories, ended by NULL. */
extern const char *const transfer_project_skipped[];
int transfer_send_project(struct client *client, const char *target, const char *local,
	json_t **ret_answer, struct err *err) must_check;

int transfer_receive_fd(struct client *client, const char *target, int fd, struct err *err)
	must_check;

/* A file that appears whole or not at all; a mode of 0: that of new files. */
int transfer_receive_file(struct client *client, const char *target, mode_t mode,
	const struct destination *to, struct err *err) must_check;

/* What a tar has, into a directory, which is made if need be. */
int transfer_receive_tree(struct client *client, const char *target, const struct destination *to,
	struct err *err) must_check;

/*
 * A file, or with is_tree what a tar has, to where a user wants it: a directory, in which it gets its own name, or a new name;
 * to standard output ("-"), or what is no directory, as it comes.
 */
int transfer_receive(struct client *client, const char *target, const char *name, bool is_tree,
	const char *to, struct err *err) must_check;
