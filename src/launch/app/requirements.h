/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Python's requirements, which may name others of the app (-r, -c). */
#pragma once

#include "launch/app/file_set.h"

/*
 * What a file in a directory says, and behind it what all say that it leads to, each once, as far as they are in the set:
 * a new text; NULL if it is not there. Paths are relative to the file that has them.
 */
char *requirements_read(const struct file_set *set, const char *dir, const char *name);

/* The path that a line leads to, and its length; NULL if it leads to no file. */
const char *requirements_path(const char *line, size_t *ret_len);
