/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the names in a directory as the kernel gives them: in a buffer of the caller, without
 * opendir().
 */
#pragma once

#include "base/mem.h"

#include <stddef.h>

#define DIRENTS_LEN 4096

struct dirents {
	int dir;
	char *entries;
	size_t at;
	size_t len;
	unsigned char type; /* of the last name: DT_DIR and so on, DT_UNKNOWN if it cannot tell */
};

/* entries is a buffer of DIRENTS_LEN bytes from malloc; dir is read from its present position. */
void dirents_begin(struct dirents *dirents, int dir, char *entries);

/* 1 and a name (never "." or "..", valid until the next call); 0 at the end; -errno. */
int dirents_next(struct dirents *dirents, const char **ret_name) must_check;
