/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A .dockerignore: which files beside a Dockerfile are not sent. Of its patterns the last that fits a file, or a directory
 * above it, counts; one that begins with ! takes files in again. ** stands for any number of directories.
 */
#pragma once

#include <stdbool.h>

/* Whether a file or directory is left out. `text` is the list, or NULL; `name` is relative, without "." and "..". */
bool ignore_list_has(const char *text, const char *name);

/* Whether something in a directory that is left out can be taken in again. */
bool ignore_list_takes_in(const char *text);
