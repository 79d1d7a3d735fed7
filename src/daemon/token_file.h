/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the first administrator's token. It is the authority: whoever can read it is the administrator. So it
 * must be what we once wrote: a token of our making, in a file of the owner that nobody else can read. What others could
 * read must be taken for known to them, and is refused rather than mended.
 */
#pragma once

#include "auth/secret.h"
#include "base/err.h"

#include <sys/types.h>

/* Reads <data_dir>/token, which is in data_fd, or makes it. The path is for messages. */
int token_file_open(int data_fd, const char *data_dir, uid_t owner, char ret_token[SECRET_TEXT_MAX],
	struct err *err) must_check;
