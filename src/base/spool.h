/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are gathered and then read once. A little is held in memory, more goes to a file without a
 * name: so a thousand of them that grow to a megabyte each cost the memory of none.
 */
#pragma once

#include "base/buf.h"

struct spool {
	struct buf head; /* until it is full; empty once there is a file */
	int dir_fd;	 /* borrowed: where the file is made */
	int fd;		 /* -1: all is in the head */
	size_t len;
	size_t max;
	bool is_cut; /* more came than fits, or than the disk took */
};

void spool_init(struct spool *spool, int dir_fd, size_t max);
void spool_fini(struct spool *spool);

void spool_put(struct spool *spool, const void *data, size_t len);

/* All of it, spool->len bytes in memory that is the caller's; NULL if it cannot be read back. */
uint8_t *spool_take(struct spool *spool);
