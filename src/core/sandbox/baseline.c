/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/baseline.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/engine/sandbox_state.h"
#include "store/sandbox/store_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_LEN 64
#define BYTES_MAX    (64ll << 20) /* of one list: some 500,000 files */
#define UNFINISHED   ".new"

static const struct {
	const char *suffix;
	enum driver_tree sandbox, snapshot;
	bool has_changes;
} parts[] = {
	[BASELINE_SYSTEM] = {".system", DRIVER_TREE_CHANGES, DRIVER_TREE_SNAPSHOT_CHANGES, true},
	[BASELINE_WORKSPACE] = {".workspace", DRIVER_TREE_WORKSPACE, DRIVER_TREE_SNAPSHOT_WORKSPACE,
		false},
};

static void name_of(const char *id, enum baseline_part part, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "%s%s", id, parts[part].suffix);
}

/* --- making --- */

static int save(struct engine *engine, enum driver_tree tree, const char *from, const char *stack,
	const char *name, struct err *err)
{
	static atomic_uint made;
	int dirfd = engine->config.baselines_fd, r;
	char draft[NAME_MAX_LEN];
	auto_fd int fd = -1;

	snprintf(draft, sizeof(draft), "%u%s", atomic_fetch_add(&made, 1), UNFINISHED);
	fd = openat(dirfd, draft, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "make a list of files");
	r = tree_stream_save(engine->config.driver, tree, from, stack, fd, BYTES_MAX, err);
	if (r == 0 && renameat(dirfd, draft, dirfd, name) < 0)
		r = err_sys(err, "name a list of files");
	if (r < 0)
		unlinkat(dirfd, draft, 0);
	return r;
}

static void note(struct engine *engine, bool is_snapshot, const char *from, const json_t *image,
	const char *id)
{
	const char *stack = json_string_value(json_object_get(image, "stack"));
	char name[NAME_MAX_LEN];
	struct err err;

	if (!driver_can(engine->config.driver, DRIVER_LAYERS))
		return;
	for (size_t i = 0; i < array_len(parts); i++) {
		enum driver_tree tree = is_snapshot ? parts[i].snapshot : parts[i].sandbox;

		name_of(id, (enum baseline_part)i, name);
		if (save(engine, tree, from, stack ? stack : "", name, &err) < 0)
			log_warning("what %s began with will count among its changes: %s", id,
				err.message);
	}
}

void baseline_note(
	struct engine *engine, const char *sandbox_id, const json_t *image, const char *id)
{
	note(engine, false, sandbox_id, image, id);
}

void baseline_note_snapshot(
	struct engine *engine, const char *snapshot, const json_t *image, const char *id)
{
	note(engine, true, snapshot, image, id);
}

bool baseline_share(struct engine *engine, const char *from, const char *id)
{
	int dirfd = engine->config.baselines_fd;
	char name[NAME_MAX_LEN], other[NAME_MAX_LEN];
	bool has = true;

	for (size_t i = 0; i < array_len(parts); i++) {
		name_of(from, (enum baseline_part)i, name);
		name_of(id, (enum baseline_part)i, other);
		if (linkat(dirfd, name, dirfd, other, 0) == 0 || errno == EEXIST)
			continue;
		if (errno != ENOENT)
			log_warning("what %s began with will count among its changes: %s", id,
				strerror(errno));
		has = false;
	}
	return has;
}

/* --- removing --- */

static void drop(struct engine *engine, const char *id, enum baseline_part part)
{
	char name[NAME_MAX_LEN];

	name_of(id, part, name);
	if (unlinkat(engine->config.baselines_fd, name, 0) < 0 && errno != ENOENT)
		log_warning("the list %s stays: %s", name, strerror(errno));
}

void baseline_drop_system(struct engine *engine, const char *id)
{
	drop(engine, id, BASELINE_SYSTEM);
}

void baseline_drop(struct engine *engine, const char *id)
{
	drop(engine, id, BASELINE_SYSTEM);
	drop(engine, id, BASELINE_WORKSPACE);
}

/* An error counts as a yes: the list may be somebody's. */
static bool is_used(struct engine *engine, const char *name)
{
	struct store *store = engine->config.store;
	struct workspace_record workspace;
	char id[ID_LEN + 1];
	struct err err;

	snprintf(id, sizeof(id), "%s", name);
	if (strlen(name) <= ID_LEN || name[ID_LEN] != '.' || !id_is_valid(id))
		return false;
	return store_workspace_get(store, NULL, id, &workspace, &err) != -ENOENT ||
	       store_snapshot_is_known(store, id, &err) != 0;
}

void baseline_settle(struct engine *engine)
{
	int fd = openat(engine->config.baselines_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!list) {
		fd_close(fd);
		return;
	}
	while ((entry = readdir(list))) {
		if (entry->d_name[0] != '.' && !is_used(engine, entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	}
	closedir(list);
}

/* --- reading --- */

struct tree_stream *baseline_open(struct engine *engine, const char *id, enum baseline_part part)
{
	auto_fd int fd = -1;
	char name[NAME_MAX_LEN];

	name_of(id, part, name);
	fd = openat(engine->config.baselines_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !tree_stream_is_whole(fd))
		return NULL;
	return tree_stream_open_saved(take_fd(&fd), parts[part].has_changes);
}
