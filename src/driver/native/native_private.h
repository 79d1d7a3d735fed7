/* SPDX-License-Identifier: Apache-2.0 */
/* The native driver inside: native.c has the life of sandboxes, native_files.c layers, trees and snapshots. */
#pragma once

#include "driver/driver.h"
#include "driver/native/agent_controls.h"
#include "driver/native/keeper_client.h"
#include "driver/native/prebuild.h"
#include "driver/native/uid_ranges.h"
#include "wire/keeper.h"

#include <pthread.h>

struct native {
	struct driver base;
	bool limits_disk;
	struct keeper_client keeper;
	struct agent_controls controls;
	pthread_mutex_t lock; /* what follows */
	struct prebuild prebuild;
	struct uid_ranges ranges;
	bool knows_ranges;	      /* of all sandboxes that had files when it was opened */
	char noted_until[ID_LEN + 1]; /* else of those up to this id */
};

static inline struct native *native_from(struct driver *driver)
{
	return (struct native *)driver;
}

struct keeper_request native_request(enum keeper_kind kind, const char *id);

/* --- uid ranges of sandboxes, which their files have (native_ranges.c) --- */

/* One page of what is on disk; the pages of the first who goes through all tell all ranges. */
int native_ranges_list(struct native *native, const char *after, struct keeper_answer *answer,
	struct err *err) must_check;

/* Whether a sandbox has files: 1 with its range, 0, or -errno. */
int native_ranges_find(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
	must_check;

/* The range of a sandbox that is to start: that of its files, or a new one. */
int native_ranges_take(struct native *native, const char *id, uint32_t *ret_slot, struct err *err)
	must_check;

/* The one that the next new sandbox would have. */
uint32_t native_ranges_next(struct native *native);
void native_ranges_release(struct native *native, const char *id);

/* --- driver_ops (native_files.c) --- */

int native_files_write_layer(
	struct driver *driver, const char *layer, int *ret_stream, struct err *err);
int native_files_commit_layer(struct driver *driver, const char *layer, struct err *err);
int native_files_drop_layer(struct driver *driver, const char *layer, struct err *err);
int native_files_list_layers(struct driver *driver, bool stacks, const char *after,
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1], struct err *err);
int native_files_read_tree(struct driver *driver, enum driver_tree tree, const char *name,
	bool has_content, int *ret_stream, struct err *err);
int native_files_read_changes(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, int *ret_stream, struct err *err);
int native_files_show_layer(
	struct driver *driver, const char *id, const char *layer, struct err *err);
int native_files_show_project(
	struct driver *driver, const char *id, const char *project, struct err *err);
int native_files_stack_layers(struct driver *driver, const char *stack, const char *const layers[],
	size_t count, struct err *err);
int native_files_drop_stack(struct driver *driver, const char *stack, struct err *err);
int native_files_list_snapshots(struct driver *driver, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err);
int native_files_take_snapshot(struct driver *driver, const char *id, const char *snapshot,
	enum driver_copy copy, uint64_t *ret_bytes, struct err *err);
int native_files_load_snapshot(
	struct driver *driver, const char *id, const char *snapshot, bool takes, struct err *err);
int native_files_drop_snapshot(struct driver *driver, const char *snapshot, struct err *err);
