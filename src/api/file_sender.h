/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a file as an answer: a thread of its own reads it, as fast as the client takes it. */
#pragma once

#include "http/server/request/request.h"

struct share;

/* Sends so many bytes from where the file stands. Takes over the file, also on failure, and the share, which is given back at the end, on success alone. */
int file_sender_answer(struct request *req, int status, const char *type, int file_fd,
	uint64_t size, struct share *share, struct err *err) must_check;
