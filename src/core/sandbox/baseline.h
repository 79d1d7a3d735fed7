/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a new sandbox had from its first moment on: the files that came from a skeleton, a snapshot or
 * a fork. A list of them is kept for as long as its workspace, so that its changes
 * (core/snapshot/changes.h) are those since its creation. One without a list had nothing.
 *
 * A list is what a reader of files sent (core/template/image/tree_stream.h), in a file for each tree.
 * It is not waited for until it is on the host's disk: after a failure of the host one that is not
 * whole is none. What stays of a crash goes when the daemon starts.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/template/image/tree_stream.h"

enum baseline_part { BASELINE_SYSTEM, BASELINE_WORKSPACE };

/*
 * Lists the files of a sandbox (or of a snapshot, whose id may be taken for one) under an id, which has
 * that list from now on. image: what the record says of the image below. A failure is logged.
 */
void baseline_note(
	struct engine *engine, const char *sandbox_id, const json_t *image, const char *id);
void baseline_note_snapshot(
	struct engine *engine, const char *snapshot, const json_t *image, const char *id);

/* Gives id the list of another one; whether that has one. */
bool baseline_share(struct engine *engine, const char *from, const char *id);

/* Its workspace is gone; or only what it had written to its system. */
void baseline_drop(struct engine *engine, const char *id);
void baseline_drop_system(struct engine *engine, const char *id);

/* A part of the list of a sandbox; NULL if it has none. */
struct tree_stream *baseline_open(struct engine *engine, const char *id, enum baseline_part part);

/* When the daemon starts: removes lists of what is gone. */
void baseline_settle(struct engine *engine);
