/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of libmicrohttpd; their argument is the loop that runs it. */
#pragma once

#include <microhttpd.h>

struct request;

/* The request line is there. */
void *exchange_open(void *arg, const char *target, struct MHD_Connection *connection);

/* The headers are there, then pieces of the body, then its end; again after every resume. */
enum MHD_Result exchange_step(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context);

/* The connection leaves HTTP: the request is over now, and not when the library says so later. */
void exchange_leave(struct request *req);

/* It is over, for whatever reason. */
void exchange_end(void *arg, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode code);
