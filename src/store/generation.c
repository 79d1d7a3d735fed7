/* SPDX-License-Identifier: Apache-2.0 */
#include "store/generation.h"

#include "base/fd.h"
#include "base/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID	  "/proc/sys/kernel/random/boot_id"
#define STAMP_LEN 128 /* always as long, and within a sector: it is replaced as a whole */

void generation_init(struct generation *generation)
{
	char text[64];

	*generation = (struct generation){0};
	/* A boot that is not known is never the one of the stamp. */
	if (fd_read_file(AT_FDCWD, BOOT_ID, text, sizeof(text)) < 0)
		return;
	snprintf(generation->boot, sizeof(generation->boot), "%.36s", text);
}

uint64_t generation_floor(const struct generation *generation, int fd)
{
	char text[STAMP_LEN + 1], boot[sizeof(generation->boot)];
	uint64_t written, durable;
	ssize_t n = pread(fd, text, STAMP_LEN, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "generation %" SCNu64 " durable %" SCNu64 " boot %36s", &written, &durable,
		    boot) != 3)
		return 0;
	return strcmp(boot, generation->boot) == 0 ? written : durable;
}

int generation_write(const struct generation *generation, int fd, bool is_synced)
{
	char text[STAMP_LEN + 1];
	size_t len = format_append(text, sizeof(text), 0,
		"generation %" PRIu64 " durable %" PRIu64 " boot %s", generation->written,
		generation->durable, generation->boot[0] ? generation->boot : "unknown");
	ssize_t n;

	memset(text + len, ' ', STAMP_LEN - len);
	text[STAMP_LEN - 1] = '\n';
	n = pwrite(fd, text, STAMP_LEN, 0);
	if (n != STAMP_LEN)
		return n < 0 ? -errno : -ENOSPC;
	return is_synced && fdatasync(fd) < 0 ? -errno : 0;
}
