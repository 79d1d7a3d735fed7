/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw body on its way in: pumped to a descriptor by the connection's thread, or put into a ring
 * that a handler empties.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct request;

/* The connection takes *size bytes; leaves there how many were not taken. Size 0: the body's end.
 * False when the connection should be closed. */
bool upload_pump(struct request *req, const char *data, size_t *size);
bool upload_fill(struct request *req, const char *data, size_t *size);

/* The handler's side of the ring. */
ssize_t upload_read(struct request *req, void *data, size_t size);

/* The connection is over, and then the request. */
void upload_cut(struct request *req);
void upload_fini(struct request *req);
