/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a multipart/form-data body (RFC 7578), as its bytes come: memory is bounded, whatever the body is.
 * A body that is not in order is refused where that shows.
 */
#pragma once

#include "base/err.h"

#define MULTIPART_BOUNDARY_MAX 70   /* as RFC 2046 has it */
#define MULTIPART_NAME_MAX     2048 /* of a name or file name, with NUL */

struct multipart;

struct multipart_part {
	char name[MULTIPART_NAME_MAX];
	bool is_file;
	char file_name[MULTIPART_NAME_MAX]; /* of a file: as it was sent, with its directories */
};

/* Each is told in its turn; what they return below 0 ends the parsing. */
struct multipart_events {
	int (*begin)(void *arg, const struct multipart_part *part, struct err *err);
	int (*data)(void *arg, const void *data, size_t len, struct err *err);
	int (*end)(void *arg, struct err *err);
};

/* By the Content-Type of the request. ERR_MEDIA_TYPE if it is another; ERR_INVALID without a boundary. */
int multipart_open(const char *content_type, const struct multipart_events *events, void *arg,
	struct multipart **ret_multipart, struct err *err) must_check;
void multipart_close(struct multipart *multipart);
void multipart_closep(struct multipart **multipart);

/* The next bytes of the body. */
int multipart_feed(struct multipart *multipart, const void *data, size_t len, struct err *err)
	must_check;

/* The body is over; ERR_INVALID if its last boundary did not come. */
int multipart_finish(struct multipart *multipart, struct err *err) must_check;
