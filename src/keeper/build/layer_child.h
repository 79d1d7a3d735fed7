/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that write and read trees of files for the daemon.
 *
 * One writes a layer of an image. The daemon tells it what to make, from an archive of
 * foreign origin, so it is confined as a sandbox is: root of a user namespace of its own, with the
 * new layer's directory, mapped to it, as the only thing that it sees, under the seccomp filter. It
 * runs the agent's program (agent/files/layer/layer_writer.h).
 *
 * One reads a layer, or what a sandbox has written (agent/files/layer/tree_reader.h): the tree is all that
 * it sees, read-only, as root of the uid range that owns it.
 */
#pragma once

#include "keeper/build/build.h"
#include "keeper/rootfs/layer_store.h"

/*
 * In a child that has the descriptors which all helpers share, and conn: answers conn with the
 * daemon's end of the stream, or with the reason why not; becomes the writer. Returns on failure.
 */
void layer_child_run(const struct build_context *context, const struct layer_store *layers,
	const char *name, int conn);

/* The same for the reader that a TREE_READ asks for. */
void layer_child_read(const struct build_context *context, const struct layer_store *layers,
	const struct keeper_request *request, int conn);

/*
 * In a child: shows a layer to the sandbox whose first process is pid, in a uid range. The process
 * may end meanwhile and its number may be another's, which has no such range.
 */
int layer_child_show(const struct build_context *context, pid_t pid, uint32_t slot,
	const char *layer, struct err *err) must_check;

/* The same for a directory of the host, read-only at a place. */
int layer_child_show_dir(const struct build_context *context, pid_t pid, uint32_t slot, int dir_fd,
	const char *place, struct err *err) must_check;
