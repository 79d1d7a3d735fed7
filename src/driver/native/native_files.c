/* SPDX-License-Identifier: Apache-2.0 */
/* What the native driver does about layers, trees of files and snapshots. */
#include "driver/native/native_private.h"

#include <stdio.h>
#include <string.h>

static int call_for_layer(struct driver *driver, enum keeper_kind kind, const char *stack,
	const char *layer, unsigned index, int *ret_stream, struct err *err)
{
	struct keeper_request request = {.kind = kind, .index = index};
	struct keeper_answer answer;

	snprintf(request.stack, sizeof(request.stack), "%s", stack);
	snprintf(request.layer, sizeof(request.layer), "%s", layer);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, ret_stream, err);
}

int native_files_write_layer(
	struct driver *driver, const char *layer, int *ret_stream, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_WRITE, "", layer, 0, ret_stream, err);
}

int native_files_commit_layer(struct driver *driver, const char *layer, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_COMMIT, "", layer, 0, NULL, err);
}

int native_files_drop_layer(struct driver *driver, const char *layer, struct err *err)
{
	return call_for_layer(driver, KEEPER_LAYER_DROP, "", layer, 0, NULL, err);
}

int native_files_list_layers(struct driver *driver, bool stacks, const char *after,
	char names[DRIVER_LAYER_PAGE][DRIVER_LAYER_NAME_LEN + 1], struct err *err)
{
	struct keeper_request request = {.kind = KEEPER_LAYER_LIST, .is_stack = stacks};
	struct keeper_answer answer;
	int r;

	snprintf(request.layer, sizeof(request.layer), "%s", after);
	r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
	if (r < 0)
		return r;
	memcpy(names, answer.digests, sizeof(answer.digests));
	return (int)answer.count;
}

static const struct {
	enum keeper_tree tree;
	bool is_snapshot;
} trees[] = {
	[DRIVER_TREE_SYSTEM] = {KEEPER_TREE_SYSTEM, false},
	[DRIVER_TREE_WORKSPACE] = {KEEPER_TREE_WORKSPACE, false},
	[DRIVER_TREE_LAYER] = {KEEPER_TREE_LAYER, false},
	[DRIVER_TREE_SNAPSHOT_SYSTEM] = {KEEPER_TREE_SYSTEM, true},
	[DRIVER_TREE_SNAPSHOT_WORKSPACE] = {KEEPER_TREE_WORKSPACE, true},
	[DRIVER_TREE_CHANGES] = {KEEPER_TREE_CHANGES, false},
	[DRIVER_TREE_SNAPSHOT_CHANGES] = {KEEPER_TREE_CHANGES, true},
};

static int call_for_tree(struct native *native, enum driver_tree tree, const char *name,
	const char *stack, bool has_content, int *ret_stream, struct err *err)
{
	struct keeper_request request = {
		.kind = KEEPER_TREE_READ, .tree = trees[tree].tree, .has_content = has_content};
	struct keeper_answer answer;
	int r = 0;

	snprintf(request.stack, sizeof(request.stack), "%s", stack);
	if (tree == DRIVER_TREE_LAYER) {
		snprintf(request.layer, sizeof(request.layer), "%s", name);
	} else if (trees[tree].is_snapshot) {
		snprintf(request.snapshot, sizeof(request.snapshot), "%s", name);
	} else {
		snprintf(request.id, sizeof(request.id), "%s", name);
		r = native_ranges_find(native, name, &request.slot, err);
	}
	return r < 0 ? r : keeper_client_call(&native->keeper, &request, &answer, ret_stream, err);
}

int native_files_read_tree(struct driver *driver, enum driver_tree tree, const char *name,
	bool has_content, int *ret_stream, struct err *err)
{
	return call_for_tree(native_from(driver), tree, name, "", has_content, ret_stream, err);
}

int native_files_read_changes(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, int *ret_stream, struct err *err)
{
	return call_for_tree(native_from(driver), tree, name, stack, false, ret_stream, err);
}

int native_files_show_layer(
	struct driver *driver, const char *id, const char *layer, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_LAYER_SHOW, id);
	struct keeper_answer answer;

	snprintf(request.layer, sizeof(request.layer), "%s", layer);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

int native_files_show_project(
	struct driver *driver, const char *id, const char *project, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_PROJECT_SHOW, id);
	struct keeper_answer answer;

	snprintf(request.project, sizeof(request.project), "%s", project);
	return keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
}

int native_files_stack_layers(struct driver *driver, const char *stack, const char *const layers[],
	size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = call_for_layer(
			driver, KEEPER_STACK_ADD, stack, layers[i], (unsigned)i, NULL, err);
	return r < 0 ? r : call_for_layer(driver, KEEPER_STACK_COMMIT, stack, "", 0, NULL, err);
}

int native_files_drop_stack(struct driver *driver, const char *stack, struct err *err)
{
	return call_for_layer(driver, KEEPER_STACK_DROP, stack, "", 0, NULL, err);
}

static int call_for_snapshot(struct native *native, enum keeper_kind kind, const char *id,
	const char *snapshot, uint32_t slot, bool is_temporary, struct keeper_answer *answer,
	struct err *err)
{
	struct keeper_request request = native_request(kind, id);

	request.slot = slot;
	request.is_temporary = is_temporary;
	snprintf(request.snapshot, sizeof(request.snapshot), "%s", snapshot);
	return keeper_client_call(&native->keeper, &request, answer, NULL, err);
}

int native_files_list_snapshots(struct driver *driver, const char *after,
	char ids[DRIVER_PAGE][ID_LEN + 1], struct err *err)
{
	struct keeper_answer answer;
	int r = call_for_snapshot(
		native_from(driver), KEEPER_SNAPSHOT_LIST, "", after, 0, false, &answer, err);

	if (r < 0)
		return r;
	memcpy(ids, answer.ids, sizeof(answer.ids));
	return (int)answer.count;
}

int native_files_take_snapshot(struct driver *driver, const char *id, const char *snapshot,
	enum driver_copy copy, uint64_t *ret_bytes, struct err *err)
{
	struct keeper_request request = native_request(KEEPER_SNAPSHOT_TAKE, id);
	struct keeper_answer answer;
	int r;

	request.is_temporary = copy != DRIVER_COPY_KEPT;
	request.is_next = copy == DRIVER_COPY_NEXT;
	snprintf(request.snapshot, sizeof(request.snapshot), "%s", snapshot);
	r = keeper_client_call(&native_from(driver)->keeper, &request, &answer, NULL, err);
	if (r == 0)
		*ret_bytes = answer.stats.disk_bytes;
	return r;
}

int native_files_load_snapshot(
	struct driver *driver, const char *id, const char *snapshot, bool takes, struct err *err)
{
	struct native *native = native_from(driver);
	struct keeper_answer answer;
	uint32_t slot;
	int r = native_ranges_take(native, id, &slot, err);

	if (r == 0)
		r = call_for_snapshot(
			native, KEEPER_SNAPSHOT_COPY, id, snapshot, slot, takes, &answer, err);
	return r < 0 ? r
		     : call_for_snapshot(
			       native, KEEPER_SNAPSHOT_PLACE, id, snapshot, 0, false, &answer, err);
}

int native_files_drop_snapshot(struct driver *driver, const char *snapshot, struct err *err)
{
	struct keeper_answer answer;

	return call_for_snapshot(
		native_from(driver), KEEPER_SNAPSHOT_DROP, "", snapshot, 0, false, &answer, err);
}
