/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw body on its way in: pumped to a descriptor by the connection's thread, or put into a ring
 * that a handler empties.
 */
#pragma once

#include "http/request.h"

#include <sys/types.h>

struct upload_ring;

struct upload {
	int fd;
	request_finish_fn finish; /* set: request_receive_to_fd() was called */
	void *arg;
	bool complete;
	/* The chunk that is being written: its length in front, and how much of both is out. */
	uint8_t prefix[4];
	uint32_t chunk;
	uint32_t written;
	struct upload_ring *ring; /* set: request_read() was called */
	bool is_reader;		  /* counted among the server's readers */
	bool was_refused;	  /* too many of them */
	bool was_cut;		  /* the handler was told that the client is gone */
};

/* The connection takes *size bytes; leaves there how many were not taken. Size 0: the body's end.
 * False when the connection should be closed. */
bool upload_pump(struct request *req, const char *data, size_t *size);
bool upload_fill(struct request *req, const char *data, size_t *size);

/* The handler has returned after request_receive_to_fd(). */
void upload_start(struct request *req);

/* The handler's side of the ring. */
ssize_t upload_read(struct request *req, void *data, size_t size);

/* The handler has returned, or the connection is over. */
void upload_end_reading(struct request *req);
void upload_cut(struct request *req);
void upload_fini(struct request *req);
