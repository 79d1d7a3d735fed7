/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/disk_list.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/mount/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define USAGE_DEPTH_MAX 512
#define USAGE_FILES_MAX 2000000

/* Logged once for all parts of the list: the operator cannot ask for it by name. */
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

		if (entry->d_name[0] == '.') /* the daemon's stamp (store/generation.h) */
			continue;
		/* "<id>.workspace" counts as the id: its build was cut short. */
		snprintf(id, sizeof(id), "%s", entry->d_name);
		if (!keeper_is_id(entry->d_name, '.'))
			note_stranger(entry->d_name, after);
		else if (strcmp(id, after) > 0)
			count = directory_keep_first(ids[0], sizeof(ids[0]), count, max, id);
	}
	directory_end(list);
	return count;
}

uint32_t disk_list_list(const struct storage *storage, const char *after,
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

/* The owner of a directory: 1 with its uid, 0 if it belongs to root, or -errno. */
static int owner_at(int dirfd, const char *name, uint32_t *ret_uid)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_uid == 0)
		return 0;
	*ret_uid = st.st_uid;
	return 1;
}

int disk_list_home_owner(int home_fd, uint32_t *ret_uid)
{
	int r = owner_at(home_fd, "workspace", ret_uid);

	return r == 1 ? r : owner_at(home_fd, "upper", ret_uid);
}

int disk_list_owner(const struct storage *storage, const char *id, uint32_t *ret_uid)
{
	auto_fd int shard = storage_open_shard_of(storage, id, NULL);
	auto_fd int layer = shard < 0 ? -1 : directory_open(shard, id);
	char unfinished[KEEPER_ID_LEN + 16];
	int r = owner_at(storage->workspaces_fd, id, ret_uid);

	if (r != 1 && layer >= 0)
		r = owner_at(layer, "upper", ret_uid) == 1;
	snprintf(unfinished, sizeof(unfinished), "%s.workspace", id);
	if (r < 0 && shard >= 0)
		r = owner_at(shard, unfinished, ret_uid);
	return r;
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

void disk_list_usage(const struct storage *storage, const char *id, struct keeper_stats *stats)
{
	auto_fd int shard = storage_open_shard_of(storage, id, NULL);
	auto_fd int layer = shard < 0 ? -1 : directory_open(shard, id);
	auto_fd int workspace = directory_open(storage->workspaces_fd, id);
	static const char *const parts[] = {"upper", "members", "volumes"};

	for (size_t i = 0; layer >= 0 && i < array_len(parts); i++) {
		auto_fd int part = directory_open(layer, parts[i]);

		if (part >= 0)
			add_usage(part, 0, stats);
	}
	if (workspace >= 0)
		add_usage(workspace, 0, stats);
}
