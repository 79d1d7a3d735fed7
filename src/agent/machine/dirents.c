/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/machine/dirents.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry { /* struct linux_dirent64 */
	uint64_t inode;
	int64_t offset;
	uint16_t len;
	uint8_t type;
	char name[];
};

void dirents_begin(struct dirents *dirents, int dir, char *entries)
{
	*dirents = (struct dirents){.dir = dir, .entries = entries};
}

int dirents_next(struct dirents *dirents, const char **ret_name)
{
	for (;;) {
		struct entry *entry;

		if (dirents->at == dirents->len) {
			long n = syscall(
				SYS_getdents64, dirents->dir, dirents->entries, DIRENTS_LEN);

			if (n <= 0)
				return n < 0 ? -errno : 0;
			dirents->at = 0;
			dirents->len = (size_t)n;
		}
		entry = (struct entry *)(void *)(dirents->entries + dirents->at);
		dirents->at += entry->len;
		if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
			continue;
		dirents->type = entry->type;
		*ret_name = entry->name;
		return 1;
	}
}
