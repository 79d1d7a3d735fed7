/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with several names, so that of a tree that is sent the second name is a link and not a copy.
 * Beyond LINK_NAMES_MAX files the rest are copies.
 */
#pragma once

#include "base/mem.h"

#include <stddef.h>
#include <sys/stat.h>

#define LINK_NAMES_MAX 65536

struct link_names {
	struct link_name *places; /* open addressing, doubled at half full */
	size_t count;
	size_t size;
};

void link_names_fini(struct link_names *names);

/* The name under which the file was met before; if it was not, remembers name and returns NULL. */
const char *link_names_meet(struct link_names *names, const struct stat *stat, const char *name);
