/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of files below a directory of this machine, by inotify. Paths are relative to it. What changes is gathered until
 * it has been quiet for a moment, so that an editor that writes a file in several steps has changed it once.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdbool.h>

struct dir_watch;

/* Watches a directory and all below it, without directories of the names in `skipped` (ended by NULL, borrowed). */
int dir_watch_new(const char *dir, const char *const *skipped, struct dir_watch **ret_watch,
	struct err *err) must_check;
void dir_watch_free(struct dir_watch *watch);

static inline void dir_watch_freep(struct dir_watch **watchp)
{
	dir_watch_free(*watchp);
}

/* Can be read when something has changed. */
int dir_watch_fd(const struct dir_watch *watch);

/* Takes in what has changed so far, without waiting. */
int dir_watch_gather(struct dir_watch *watch, struct err *err) must_check;

/* The paths that have changed since the last call, as the keys of an object, which is the caller's. *ret_is_lost: there
 * were more than the kernel could tell, so anything may have changed. */
json_t *dir_watch_take(struct dir_watch *watch, bool *ret_is_lost);
