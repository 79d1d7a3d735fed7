/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/late_copy.h"

#include "base/fail_point.h"
#include "base/log.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Only root may read or write such an attribute. */
#define MARK "trusted.sandlot.late"

/* How many bytes are no holes: 0, or -errno. */
static int count_data(int fd, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	off_t at = 0;

	while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(fd, at, SEEK_HOLE);

		if (end < 0)
			return -errno;
		bytes += (uint64_t)(end - at);
		at = end;
	}
	if (errno != ENXIO) /* no data beyond */
		return -errno;
	*ret_bytes = bytes;
	return 0;
}

int late_copy_mark(int fd)
{
	uint64_t bytes;
	int r = count_data(fd, &bytes);

	if (r < 0)
		return r;
	return fsetxattr(fd, MARK, &bytes, sizeof(bytes), 0) < 0 ? -errno : 0;
}

/* What cannot be read says nothing against a copy. */
enum late_copy late_copy_look(int fd)
{
	uint64_t wanted, found;

	if (fgetxattr(fd, MARK, &wanted, sizeof(wanted)) != sizeof(wanted))
		return LATE_COPY_WRITTEN;
	return count_data(fd, &found) == 0 && found < wanted ? LATE_COPY_TORN : LATE_COPY_WHOLE;
}

int late_copy_write(int fd, struct err *err)
{
	if (fsync(fd) < 0)
		return err_sys(err, "write a copy of a disk");
	fail_point("snapshot.written");
	if (fremovexattr(fd, MARK) < 0)
		log_warning("a copy of a disk stays marked: %s", strerror(errno));
	return 0;
}
