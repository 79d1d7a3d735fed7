/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spool.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_MAX (32u * 1024)

void spool_init(struct spool *spool, int dir_fd, size_t max, uint64_t disk_reserve)
{
	*spool = (struct spool){.head = BUF_INIT(HEAD_MAX),
		.dir_fd = dir_fd,
		.fd = -1,
		.max = max,
		.disk_reserve = disk_reserve};
}

void spool_fini(struct spool *spool)
{
	buf_fini(&spool->head);
	fd_close(spool->fd);
	spool->fd = -1;
}

/* Moves what is in memory to a file. */
static int open_file(struct spool *spool)
{
	auto_fd int fd = openat(spool->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || fd_write_full(fd, spool->head.data, spool->head.len) < 0)
		return -1;
	buf_fini(&spool->head);
	spool->fd = take_fd(&fd);
	return 0;
}

/* Whether the disk took the bytes. */
static bool write_file(struct spool *spool, const void *data, size_t len)
{
	if (fd_free_bytes(spool->dir_fd) < spool->disk_reserve)
		return false;
	if (spool->fd < 0 && open_file(spool) < 0)
		return false;
	return pwrite(spool->fd, data, len, (off_t)spool->len) == (ssize_t)len;
}

void spool_put(struct spool *spool, const void *data, size_t len)
{
	if (len > spool->max - spool->len) {
		len = spool->max - spool->len;
		spool->is_cut = true;
	}
	if (len == 0)
		return;
	if (spool->fd < 0 && spool->head.len + len <= HEAD_MAX) {
		buf_append(&spool->head, data, len);
	} else if (!write_file(spool, data, len)) {
		spool->is_cut = true;
		spool->max = spool->len;
		return;
	}
	spool->len += len;
}

uint8_t *spool_take(struct spool *spool)
{
	uint8_t *data = malloc(spool->len + 1);

	if (!data)
		return NULL;
	if (spool->fd < 0) {
		if (spool->len > 0)
			memcpy(data, spool->head.data, spool->len);
	} else if (pread(spool->fd, data, spool->len, 0) != (ssize_t)spool->len) {
		free(data);
		return NULL;
	}
	return data;
}
