/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files without a row that are not a sandbox's (orphan.h): snapshots, and layers and stacks of images. An older database
 * was put back, or it was lost. They are looked up on disk when somebody asks, and stay until an operator purges them.
 */
#pragma once

#include "core/engine/engine.h"

enum orphan_files_kind {
	ORPHAN_FILES_SNAPSHOT,
	ORPHAN_FILES_STACK, /* before layers: a layer that a stack has cannot be purged */
	ORPHAN_FILES_LAYER,
	ORPHAN_FILES_KIND_COUNT,
};

/* "snapshot" */
const char *orphan_files_kind_name(enum orphan_files_kind kind);

struct orphan_files {
	enum orphan_files_kind kind;
	char name[DRIVER_LAYER_NAME_LEN + 1]; /* of a snapshot its id */
};

/* Lists some, by kind and in order, after one ({0}: from the first), at most max: how many. */
int orphan_files_list(struct engine *engine, const struct orphan_files *after,
	struct orphan_files files[], size_t max, struct err *err) must_check;

/* Removes some for good, by name. ERR_NOT_FOUND if there are none, or they have a row. */
int orphan_files_purge(struct engine *engine, const char *name, struct err *err) must_check;
