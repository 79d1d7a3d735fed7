/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an app that installing its packages makes: they are neither looked at nor copied. */
#pragma once

#include "launch/app/file_set.h"

/* The length of the directory in a path that installing makes, by its name; 0: there is none. */
size_t made_files_named(const char *path);

/* The same, of virtual environments whatever they are called too. */
size_t made_files_length(const struct file_set *set, const char *path);
