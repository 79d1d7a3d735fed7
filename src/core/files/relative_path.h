/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relative paths that an agent reports: of listings, archives and changes of files.
 *
 * Clients join them to the path that they asked for, and unpack archives with them. An agent is hostile
 * input, so a path is believed only in its plain form, in which it can lead nowhere but below.
 */
#pragma once

#include <stdbool.h>

/* Names joined by single slashes, none of them "." or "..", no slash at an end. "" is plain too. */
bool relative_path_is_plain(const char *path);

/* Byte order of the components: a directory before what is in it, that before its next sibling. */
int relative_path_compare(const char *a, const char *b);
