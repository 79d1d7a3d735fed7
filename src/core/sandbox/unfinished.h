/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of what is under way with the files of a sandbox, one directory entry for each id. A daemon that
 * starts removes files only if there is such a mark: a row that is missing says nothing, since the
 * database may be an older one, or empty.
 *
 * A mark is a symbolic link whose target is a word: it is made by one system call, so no crash leaves half
 * of it. It leads nowhere, and nobody follows it.
 */
#pragma once

#include "base/err.h"

struct engine;

enum unfinished {
	UNFINISHED_NOTHING,
	UNFINISHED_CREATE,   /* nothing was there before: all of it goes */
	UNFINISHED_RECREATE, /* the workspace was there before, and stays */
	UNFINISHED_DELETE,   /* the row is gone, the system layer could not be removed */
	UNFINISHED_PURGE,    /* its owner wants nothing of it to stay, and some of it may be gone */
};

/* Marks a sandbox; another mark of its id gives way. */
int unfinished_mark(struct engine *engine, const char *id, enum unfinished what, struct err *err)
	must_check;
void unfinished_clear(struct engine *engine, const char *id);
int unfinished_read(struct engine *engine, const char *id, enum unfinished *ret_what,
	struct err *err) must_check;

/* Calls each for all marks; it may clear that one. Ends with its first failure. */
int unfinished_each(struct engine *engine,
	int (*each)(struct engine *engine, const char *id, enum unfinished what, struct err *err),
	struct err *err) must_check;
