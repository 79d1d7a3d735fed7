/* SPDX-License-Identifier: Apache-2.0 */
/* Words that people bring from other programs, and what they look for in this one. */
#pragma once

#include <stdbool.h>

/* The command that somebody looks for who types that of another program; NULL: none is known. */
const char *foreign_command(const char *name);

/* What to do instead of an option that others have, in a few words; its name without hyphens. NULL: not known. */
const char *foreign_option(const char *name);

/* Whether a program with this name is rather an image, as others take one in its place. */
bool foreign_is_image(const char *name);
