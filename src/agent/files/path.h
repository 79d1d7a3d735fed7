/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the paths that users name into descriptors. The kernel does all resolving (openat2, no
 * magic links); the strings are only cut at slashes.
 *
 * A place is where something is, or would be: a directory that exists, the directories below it
 * that do not exist yet, and a name.
 */
#pragma once

#include "base/mem.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct path_place {
	int dir;       /* O_PATH */
	char *missing; /* relative directories below it, "" for none */
	char name[NAME_MAX + 1];
};

struct path_owner {
	uid_t uid;
	gid_t gid;
};

#define PATH_DRAFT_MAX 32

#define PATH_PLACE_INIT ((struct path_place){.dir = -1})

void path_place_fini(struct path_place *place);

/* openat2 with O_CLOEXEC and RESOLVE_NO_MAGICLINKS, not for creating. Descriptor or -errno. */
int path_open(int dirfd, const char *path, int flags, uint64_t resolve) must_check;

/*
 * Opens for reading, without waiting, and only what is a regular file: -EISDIR or -EINVAL
 * otherwise. Nothing else is ever opened: not even for a moment does a FIFO get a reader or a
 * device a user.
 */
int path_open_regular(
	int dirfd, const char *path, int flags, uint64_t resolve, struct stat *ret_stat) must_check;

/*
 * Finds where path is, without following its last component. -EBUSY for "/", -EINVAL for "." and
 * ".." at the end, -ENOENT if a parent is missing.
 */
int path_locate(const char *path, struct path_place *ret_place) must_check;

/* Does the same, but parents may be missing. */
int path_locate_new(const char *path, struct path_place *ret_place) must_check;

/* Does the same as path_locate_new, and follows a symbolic link in the last place. */
int path_locate_target(const char *path, struct path_place *ret_place) must_check;

/*
 * Creates what is missing of a place, 0755 and owned as path_owner() says, and puts the last of it
 * in place->dir.
 */
int path_complete(struct path_place *place, uid_t user) must_check;

/* The same for directories named one below the other from dir on; a new O_PATH descriptor. */
int path_make_dirs(int dir, const char *dirs, uint64_t resolve, uid_t user) must_check;

/*
 * Who gets what is made in the directory fd: its owner. In a directory of root that all users may enter, such
 * as /tmp or /opt, that is `user`, whom commands run as, who could do little with a file of root's.
 */
int path_owner(int fd, uid_t user, struct path_owner *ret_owner) must_check;

/* Gives fd (O_PATH or not) to owner, if this is allowed: a user namespace may not have it. */
void path_give(int fd, const struct path_owner *owner);

/* The text of the link name in dir ("" for dir itself being the link); "" when it is none. */
void path_read_link(int dir, const char *name, char target[PATH_MAX]);

/* A hidden name that nothing has, for what takes its own name when it is whole. */
void path_draw_name(char name[PATH_DRAFT_MAX]);
