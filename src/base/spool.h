/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers bytes that are then read once. A few are kept in memory, more go to a file without a
 * name: so a thousand spools that grow to a megabyte each take no memory for it. They do not grow
 * beyond memory while the disk has less free than its reserve.
 */
#pragma once

#include "base/buf.h"

struct spool {
	struct buf head; /* until it is full; empty once there is a file */
	int dir_fd;	 /* borrowed: where the file is made */
	int fd;		 /* -1: all is in the head */
	size_t len;
	size_t max;
	uint64_t disk_reserve;
	bool is_cut; /* more came than fits, or than the disk took */
};

void spool_init(struct spool *spool, int dir_fd, size_t max, uint64_t disk_reserve);
void spool_fini(struct spool *spool);

void spool_put(struct spool *spool, const void *data, size_t len);

/*
 * Returns all bytes, spool->len of them, in memory that the caller frees; NULL if they cannot be
 * read back.
 */
uint8_t *spool_take(struct spool *spool);
