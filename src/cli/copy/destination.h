/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a copy out of a sandbox goes on the user's machine. No step on the way there is a symbolic link: an earlier copy
 * may have brought it out of the sandbox, and who names a directory below that one does not see where it leads.
 */
#pragma once

#include "base/err.h"
#include "base/fd.h"

#include <stdbool.h>

struct destination {
	int dir_fd;
	char *name; /* in that directory; NULL: the directory itself */
	char *text; /* as the user gave it, for messages */
};

#define DESTINATION_INIT ((struct destination){.dir_fd = -1})

/*
 * A copy of `source` goes into the directory `path` under its own name; or, if path is no directory and names none, to
 * that very place.
 */
int destination_open(const char *path, bool names_a_dir, const char *source,
	struct destination *ret, struct err *err) must_check;
void destination_fini(struct destination *destination);

/*
 * What is to be written into and not to be replaced: a device or pipe, named itself and not by a link, or a descriptor
 * of ours by its name in /dev or /proc. 1 with a new descriptor, or 0 if path is something else.
 */
int destination_open_special(const char *path, int *ret_fd, struct err *err) must_check;
