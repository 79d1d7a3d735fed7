/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a layer of what a sandbox has changed: its system layer is read (core/template/image/tree_stream.h),
 * written as a tar into the blob store, whose digest is the diff id, and installed like a layer of any
 * image. What belongs to the sandbox and not to the system stays out: the workspace, /tmp, kernel
 * file systems, and the files of its network.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/template/image/image_pull.h"

/*
 * *ret_diff_id is empty if nothing was changed. The sandbox does not run. With `below` only what is below that
 * directory (relative, plain) is taken, as if the directory were the root: a first layer, so nothing in it is gone.
 */
int layer_capture_run(const struct image_pull *pull, const char *sandbox_id, const char *below,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err) must_check;

/* The same of files that were copied there: directories have no times, so that the same files are the same layer. */
int layer_capture_copied(const struct image_pull *pull, const char *sandbox_id,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err) must_check;

/*
 * The same of a snapshot, whose workspace is in the layer too, as the directory `skeleton` (a
 * relative path).
 */
int layer_capture_snapshot(const struct image_pull *pull, const char *snapshot_id,
	const char *skeleton, struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err)
	must_check;

/* The same of what is at and below a directory, where it is. */
int layer_capture_place(const struct image_pull *pull, const char *sandbox_id, const char *place,
	struct digest *ret_diff_id, uint64_t *ret_bytes, struct err *err) must_check;

/* A layer of nothing, for an image that begins without files. */
int layer_capture_empty(const struct image_pull *pull, struct digest *ret_diff_id, struct err *err)
	must_check;

/* Whether a path of a sandbox is part of its system, so that a layer may have it. */
bool layer_capture_takes(const char *path);

/* Installs a layer from a plain tar that is in the blob store, and notes it for the owner. */
int layer_capture_install(
	const struct image_pull *pull, const struct digest *diff_id, struct err *err) must_check;
