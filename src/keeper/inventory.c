/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/inventory.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define USAGE_DEPTH_MAX 512
#define USAGE_FILES_MAX 2000000

/* Keeps the max smallest distinct ids. */
static uint32_t insert_id(
	char ids[][KEEPER_ID_LEN + 1], uint32_t count, uint32_t max, const char *id)
{
	uint32_t at = 0;

	while (at < count && strcmp(ids[at], id) < 0)
		at++;
	if (at == max || (at < count && strcmp(ids[at], id) == 0))
		return count;
	if (count < max)
		count++;
	memmove(ids[at + 1], ids[at], (count - 1 - at) * sizeof(ids[0]));
	memcpy(ids[at], id, sizeof(ids[0]));
	return count;
}

/* Once for all parts of the list: nobody could do anything about it by its name. */
static void note_stranger(const char *name, const char *after)
{
	if (after[0] == '\0')
		log_warning(
			"\"%s\" among the directories of sandboxes is not ours; it stays as it is",
			name);
}

static uint32_t list_dir(
	int fd, const char *after, char ids[][KEEPER_ID_LEN + 1], uint32_t count, uint32_t max)
{
	DIR *list = directory_list(fd);
	const struct dirent *entry;

	while ((entry = directory_next(list))) {
		char id[KEEPER_ID_LEN + 1];

		/* "<id>.workspace" counts as the id: its build was cut short. */
		snprintf(id, sizeof(id), "%s", entry->d_name);
		if (!keeper_is_id(entry->d_name, '.'))
			note_stranger(entry->d_name, after);
		else if (strcmp(id, after) > 0)
			count = insert_id(ids, count, max, id);
	}
	directory_end(list);
	return count;
}

uint32_t inventory_list(const struct storage *storage, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max)
{
	uint32_t count = list_dir(storage->workspaces_fd, after, ids, 0, max);

	for (unsigned i = 0; i < STORAGE_SHARDS; i++) {
		auto_fd int fd = storage_open_shard(storage, i);

		if (fd >= 0)
			count = list_dir(fd, after, ids, count, max);
	}
	return count;
}

static void add_usage(int dirfd, int depth, struct keeper_stats *stats)
{
	DIR *list = directory_list(dirfd);
	const struct dirent *entry;

	while (stats->disk_files < USAGE_FILES_MAX && (entry = directory_next(list))) {
		struct stat st;

		if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		stats->disk_files++;
		stats->disk_bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < USAGE_DEPTH_MAX) {
			auto_fd int sub = directory_open(dirfd, entry->d_name);

			if (sub >= 0)
				add_usage(sub, depth + 1, stats);
		}
	}
	directory_end(list);
}

void inventory_usage(const struct storage *storage, const char *id, struct keeper_stats *stats)
{
	auto_fd int shard = storage_open_shard_of(storage, id, NULL);
	auto_fd int layer = shard < 0 ? -1 : directory_open(shard, id);
	auto_fd int upper = layer < 0 ? -1 : directory_open(layer, "upper");
	auto_fd int workspace = directory_open(storage->workspaces_fd, id);

	if (upper >= 0)
		add_usage(upper, 0, stats);
	if (workspace >= 0)
		add_usage(workspace, 0, stats);
}
