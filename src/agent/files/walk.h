/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over everything below a directory, in byte order of the components of its path: each
 * directory before what is in it, siblings by name. Symbolic links are met, not followed.
 *
 * It keeps at most names_max names, over all levels together, however large the directories are: a
 * level keeps the smallest of its names, and is read again when they are used up. Two descriptors
 * are open at a time, however deep it goes. An entry with a relative path of AGENT_PATH_MAX or more
 * is left out: no request could name it. An entry that changes meanwhile is met, or is not, but
 * never ends the walk.
 */
#pragma once

#include "base/mem.h"
#include "wire/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct walk_level {
	char **names; /* sorted */
	size_t count;
	size_t next;	 /* those before it are done, and freed but for the last of them */
	bool is_partial; /* there are names beyond the last */
	size_t path_len; /* of the directory's own path */
};

struct walk {
	int root; /* not ours */
	int dir;  /* of the innermost level */
	struct walk_level *levels;
	size_t depth;
	size_t depth_max;
	size_t names_held;
	size_t names_max;
	bool is_descending; /* the next step goes into what was met last */
	const char *after;  /* what is left of the cursor */
	char *entries;	    /* scratch of getdents */
	char path[AGENT_PATH_MAX];
};

struct walk_entry {
	const char *path; /* relative to the root; valid until the next step, as all of it */
	const char *name; /* in dir */
	int dir;
	struct stat stat;
};

/*
 * Begins below root, depth_max levels deep, after the relative path `after` ("" for the beginning).
 * Root and after must outlive the walk.
 */
int walk_open(struct walk *walk, int root, size_t depth_max, size_t names_max, const char *after)
	must_check;
void walk_close(struct walk *walk);

/* 1 and the next entry; 0 at the end; -errno. */
int walk_next(struct walk *walk, struct walk_entry *ret_entry) must_check;

/* Skips what is below the entry that was met last. */
void walk_prune(struct walk *walk);
