/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the program keeps for its user, where the XDG specification wants them. */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <sys/types.h>

/* `file` below the directory that the variable names, or below that part of HOME; a new string, NULL without either. */
char *home_file_path(const char *variable, const char *below_home, const char *file);

/* Makes the directories of an absolute path, as mkdir -p does. */
int home_file_make_parents(char *path, mode_t mode, struct err *err) must_check;
