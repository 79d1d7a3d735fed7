/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/layer_capture.h"

#include "base/fail_point.h"
#include "core/engine/sandbox_handle.h"
#include "core/template/image/tree_stream.h"
#include "image/layer_tar.h"

#include <errno.h>
#include <string.h>

/* With all that is below; and the files that keeper/rootfs/layer_store.c puts above every image. */
static const char *const left_out[] = {"tmp", "workspace", "proc", "sys", "dev", "etc/resolv.conf",
	"etc/hosts", "etc/hostname", ".dockerenv"};

static bool is_at_or_below(const char *path, const char *place)
{
	size_t len = strlen(place);

	return strncmp(path, place, len) == 0 && (!path[len] || path[len] == '/');
}

bool layer_capture_takes(const char *path)
{
	for (size_t i = 0; i < array_len(left_out); i++) {
		if (is_at_or_below(path, left_out[i]))
			return false;
	}
	return path[0];
}

struct capture {
	const struct image_pull *pull;
	const char *below; /* NULL: the root */
	const char *place; /* all that counts, under its own path; NULL: all does */
	struct blob_writer *writer;
	struct layer_tar *tar;
	uint64_t changes;     /* entries that are no mere directories on the way */
	bool takes;	      /* the content of this file */
	const char *skeleton; /* where the workspace goes */
	bool dates_directories;
};

/* What is read, of which the workspace goes elsewhere; NULL: none. */
struct captured_trees {
	enum driver_tree system;
	const char *below; /* of the system; NULL: all of it */
	const char *place; /* the same, but under its own path */
	const enum driver_tree *workspace;
	const char *skeleton;
	bool were_copied; /* directories are as new as the copy, which tells nothing */
};

static int write_blob(void *arg, const void *data, size_t len, struct err *err)
{
	struct capture *capture = arg;

	return blob_writer_add(capture->writer, data, len, err);
}

/* The path as the layer has it; NULL if it is outside. */
static const char *inner_path(const struct capture *capture, const char *path)
{
	size_t len = capture->below ? strlen(capture->below) : 0;

	if (capture->place && !is_at_or_below(path, capture->place))
		return NULL;
	if (!capture->below)
		return path;
	return strncmp(path, capture->below, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static int take_entry(void *arg, const struct layer_entry *found, struct err *err)
{
	struct capture *capture = arg;
	const char *path = inner_path(capture, found->path);
	struct layer_entry entry = *found;

	capture->takes =
		path && layer_capture_takes(path) &&
		!(capture->below && (found->kind == LAYER_WHITEOUT || found->kind == LAYER_OPAQUE));
	if (!capture->takes)
		return 0;
	entry.path = path;
	if (entry.kind == LAYER_HARDLINK) {
		entry.target = inner_path(capture, found->target);
		if (!entry.target || !layer_capture_takes(entry.target))
			return err_explain(err, ERR_UNPROCESSABLE, "invalid_layer",
				"copy the file instead",
				"/%.120s is a hard link to /%.80s, which no template can have",
				found->path, found->target);
	}
	if (entry.kind == LAYER_DIRECTORY && !capture->dates_directories)
		entry.mtime_ns = 0;
	capture->changes++;
	return layer_tar_entry(capture->tar, &entry, err);
}

static int take_workspace_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	struct capture *capture = arg;
	struct layer_entry moved = *entry;
	auto_free char *path =
		mem_printf("%s%s%s", capture->skeleton, entry->path[0] ? "/" : "", entry->path);
	auto_free char *target = mem_printf("%s/%s", capture->skeleton, entry->target);

	/* The files of a project are not the workspace's own. */
	capture->takes = !is_at_or_below(entry->path, "project_files");
	if (!capture->takes)
		return 0;
	if (strlen(path) >= LAYER_PATH_MAX || strlen(target) >= LAYER_PATH_MAX)
		return err_explain(err, ERR_UNPROCESSABLE, "invalid_layer", "give it a shorter one",
			"%.120s of the workspace has too long a name", entry->path);
	moved.path = path;
	if (entry->kind == LAYER_HARDLINK)
		moved.target = target;
	capture->changes++;
	return layer_tar_entry(capture->tar, &moved, err);
}

static int take_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct capture *capture = arg;

	return capture->takes ? layer_tar_content(capture->tar, offset, data, len, err) : 0;
}

static int read_trees(struct capture *capture, const struct captured_trees *trees, const char *name,
	struct err *err)
{
	const struct layer_sink system = {
		.entry = take_entry, .content = take_content, .arg = capture};
	const struct layer_sink workspace = {
		.entry = take_workspace_entry, .content = take_content, .arg = capture};
	struct driver *driver = capture->pull->driver;
	int r = tree_stream_run(driver, trees->system, name, true, &system, err);

	if (r == 0 && trees->workspace)
		r = tree_stream_run(driver, *trees->workspace, name, true, &workspace, err);
	return r;
}

static int read_all(struct capture *capture, const struct captured_trees *trees, const char *name,
	struct err *err)
{
	const struct layer_tar_output output = {.write = write_blob, .arg = capture};
	int r = layer_tar_open(&output, false, &capture->tar, err);

	if (r == 0)
		r = read_trees(capture, trees, name, err);
	if (r == 0)
		r = layer_tar_finish(capture->tar, err);
	layer_tar_close(capture->tar);
	return r;
}

int layer_capture_install(
	const struct image_pull *pull, const struct digest *diff_id, struct err *err)
{
	struct layer_installed installed;
	int r = layer_install(pull->installs, pull->driver, pull->blobs,
		&(struct layer_order){.owner = pull->owner,
			.blob = diff_id,
			.diff_id = diff_id,
			.begin = pull->begin,
			.may_grow = pull->may_grow,
			.arg = pull->arg},
		&installed, err);

	if (r < 0)
		return r;
	if (pull->note_layer)
		pull->note_layer(pull->arg, diff_id, &installed);
	return 0;
}

int layer_capture_empty(const struct image_pull *pull, struct digest *ret_diff_id, struct err *err)
{
	static const uint8_t end[1024]; /* of a tar */
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct digest diff_id;
	int r = blob_writer_open(pull->blobs, NULL, sizeof(end), &writer, err);

	if (r == 0)
		r = blob_writer_add(writer, end, sizeof(end), err);
	if (r == 0)
		r = blob_writer_commit(writer, &diff_id, err);
	if (r == 0)
		r = layer_capture_install(pull, &diff_id, err);
	if (r == 0)
		*ret_diff_id = diff_id;
	return r;
}

static int capture(const struct image_pull *pull, const struct captured_trees *trees,
	const char *name, struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
{
	struct capture capture = {.pull = pull,
		.below = trees->below,
		.place = trees->place,
		.skeleton = trees->skeleton,
		.dates_directories = !trees->were_copied};
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	struct digest diff_id;
	int r = blob_writer_open(pull->blobs, NULL, LAYER_INSTALL_BYTES_MAX, &writer, err);

	if (r < 0)
		return r;
	capture.writer = writer;
	r = read_all(&capture, trees, name, err);
	if (r < 0)
		return r;
	*ret_bytes = blob_writer_length(writer);
	if (capture.changes == 0) {
		ret_diff_id->text[0] = '\0';
		*ret_bytes = 0;
		return 0;
	}
	r = blob_writer_commit(writer, &diff_id, err);
	fail_point("capture.packed");
	if (r == 0)
		r = layer_capture_install(pull, &diff_id, err);
	if (r == 0)
		*ret_diff_id = diff_id;
	return r;
}

int layer_capture_run(const struct image_pull *pull, const char *sandbox_id, const char *below,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
{
	return capture(pull, &(struct captured_trees){.system = DRIVER_TREE_SYSTEM, .below = below},
		sandbox_id, ret_diff_id, ret_bytes, err);
}

int layer_capture_copied(const struct image_pull *pull, const char *sandbox_id,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
{
	return capture(pull,
		&(struct captured_trees){.system = DRIVER_TREE_SYSTEM, .were_copied = true},
		sandbox_id, ret_diff_id, ret_bytes, err);
}

int layer_capture_snapshot(const struct image_pull *pull, const char *snapshot_id,
	const char *skeleton, struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
{
	const enum driver_tree workspace = DRIVER_TREE_SNAPSHOT_WORKSPACE;

	return capture(pull,
		&(struct captured_trees){.system = DRIVER_TREE_SNAPSHOT_SYSTEM,
			.workspace = &workspace,
			.skeleton = skeleton},
		snapshot_id, ret_diff_id, ret_bytes, err);
}

int layer_capture_place(const struct image_pull *pull, const char *sandbox_id, const char *place,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
{
	return capture(pull, &(struct captured_trees){.system = DRIVER_TREE_SYSTEM, .place = place},
		sandbox_id, ret_diff_id, ret_bytes, err);
}
