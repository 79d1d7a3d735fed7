/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/file_requests.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "keeper/build/layer_child.h"
#include "keeper/connection.h"
#include "keeper/disk/disk_list.h"
#include "keeper/disk/disk_usage.h"
#include "keeper/mount/mounts.h"
#include "keeper/namespace/userns.h"
#include "keeper/sandbox/reply.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int count(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return disk_usage_count(&keeper->context.disks, request->id, &reply->stats, err);
}

void file_requests_usage(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	connection_delegate(keeper, request, conn, count);
}

static int find_slot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return disk_usage_find_slot(&keeper->context.disks, &keeper->context.userns.ranges,
		request->id, &reply->slot, err);
}

void file_requests_owner(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	connection_delegate(keeper, request, conn, find_slot);
}

void file_requests_failed(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	(void)request;
	reply.count = disk_list_failed(&keeper->context.disks, reply.ids, KEEPER_LIST_MAX);
	reply_send(conn, &reply, NULL, 0);
}

void file_requests_stored(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count =
		disk_list_list(&keeper->context.storage, request->id, reply.ids, KEEPER_LIST_MAX);
	for (uint32_t i = 0; i < reply.count; i++) {
		const struct sandbox_entry *entry =
			sandbox_table_find(&keeper->table, reply.ids[i]);

		reply.slots[i] = entry && entry->pid
					 ? entry->slot
					 : disk_usage_known_slot(&keeper->context.disks,
						   &keeper->context.userns.ranges, reply.ids[i]);
	}
	reply_send(conn, &reply, NULL, 0);
}

static int clean(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	uint32_t base = userns_base(&keeper->context.userns.ranges, request->slot);

	int r;

	(void)reply;
	r = disk_usage_clean(&keeper->context.disks, request, base, err);
	return r < 0 ? r : fail_point_check("clean.cleaned", err);
}

void file_requests_clean(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err = {0};

	if (entry && entry->pid)
		reply_result(
			conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
	else if (disk_usage_is_quick(&keeper->context.disks, request))
		reply_result(conn, clean(keeper, request, NULL, &err), &err);
	else
		connection_delegate(keeper, request, conn, clean);
	trash_wake_remover(&keeper->trash_remover);
}

/* Runs in a child, because it waits until the disk is unmounted. */
static void lend_disk(const struct keeper *keeper, const char *id, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	int fd = -1, r = disk_lend(&keeper->context.disks, id, keeper->daemon_uid, &fd, &reply.err);

	if (r < 0)
		reply.result = r;
	else
		reply.count = (uint32_t)r;
	reply_send(conn, &reply, &fd, reply.count);
}

void file_requests_check(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err = {0};
	pid_t pid;

	if (entry && entry->pid) {
		reply_result(
			conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
		return;
	}
	pid = helpers_fork_asked(&keeper->helpers, &conn, &err);
	if (pid == 0) {
		lend_disk(keeper, request->id, conn);
		_exit(0);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	connection_close(keeper, conn);
}

/* Answers conn and becomes the writer of the layer: the child ends with it. */
void file_requests_layer_write(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		layer_child_run(&keeper->context, &keeper->layers, request->layer, conn);
		_exit(1);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	connection_close(keeper, conn);
}

/* Answers conn and becomes the reader of the files. */
void file_requests_tree_read(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		layer_child_read(&keeper->context, &keeper->layers, request, conn);
		_exit(1);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	connection_close(keeper, conn);
}

/* In a child. */
static int show_layer(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	auto_fd int dir = -1;
	int r = layer_store_read(&keeper->layers, request->layer, &dir, err);

	(void)reply;
	return r < 0 ? r
		     : layer_child_show(
			       &keeper->context, entry->pid, entry->slot, request->layer, err);
}

void file_requests_layer_show(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (reply_find_running(&keeper->table, request->id, conn))
		connection_delegate(keeper, request, conn, show_layer);
}

/*
 * Opens the files of a project. The daemon makes that directory, so nothing but a directory of the daemon's own, reached
 * without a link, is shown.
 */
static int open_project(const struct keeper *keeper, const char *project, struct err *err)
{
	char path[sizeof(KEEPER_PROJECT_FILES) + KEEPER_ID_LEN];
	auto_fd int dir = -1;
	struct stat st;

	snprintf(path, sizeof(path), KEEPER_PROJECT_FILES, project);
	dir = mounts_open_beneath(keeper->context.storage.data_fd, path, O_PATH | O_DIRECTORY);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(err, "open the files of project %s", project);
	if (st.st_uid != keeper->daemon_uid)
		return err_set(
			err, ERR_DENIED, "the files of project %s are not the daemon's", project);
	return take_fd(&dir);
}

/* In a child. */
static int show_project(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	auto_fd int dir = open_project(keeper, request->project, err);

	(void)reply;
	return dir < 0 ? dir
		       : layer_child_show_dir(&keeper->context, entry->pid, entry->slot, dir,
				 KEEPER_PROJECT_PLACE, err);
}

void file_requests_project_show(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (reply_find_running(&keeper->table, request->id, conn))
		connection_delegate(keeper, request, conn, show_project);
}

/* Renames that are synced: in a child, because the disk may be slow. */
static int change_layers(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct layer_store *layers = &keeper->layers;
	const struct storage *storage = &keeper->context.storage;

	(void)reply;
	switch (request->kind) {
	case KEEPER_LAYER_COMMIT:
		return layer_store_commit(layers, request->layer, err);
	case KEEPER_LAYER_DROP:
		return layer_store_drop(layers, storage, request->layer, err);
	case KEEPER_STACK_ADD:
		return layer_store_stack_add(
			layers, request->stack, request->layer, request->index, err);
	case KEEPER_STACK_COMMIT:
		return layer_store_stack_commit(layers, request->stack, err);
	default:
		return layer_store_stack_drop(layers, storage, request->stack, err);
	}
}

/*
 * A sandbox that was built ahead from a stack that goes is of no use, and from one of the same name that came after it
 * neither: its files are gone.
 */
void file_requests_layers(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (request->kind == KEEPER_STACK_DROP || request->kind == KEEPER_STACK_COMMIT)
		prebuild_drop_stack(&keeper->prebuilds, request->stack);
	connection_delegate(keeper, request, conn, change_layers);
	trash_wake_remover(&keeper->trash_remover);
}

static int list_layers(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)err;
	reply->count = layer_store_list(&keeper->layers, request->is_stack, request->layer,
		reply->digests, KEEPER_DIGESTS_MAX);
	return 0;
}

void file_requests_layer_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	connection_delegate(keeper, request, conn, list_layers);
}

/* --- snapshots --- */

/* Answers that a sandbox runs, if it does. */
static bool refuse_running(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err;

	if (!entry || !entry->pid)
		return false;
	reply_result(conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
	return true;
}

static int take_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return snapshot_store_take(&keeper->snapshots, request->id, request->snapshot,
		request->is_next	? SNAPSHOT_NEXT
		: request->is_temporary ? SNAPSHOT_TEMPORARY
					: SNAPSHOT_KEPT,
		&reply->stats.disk_bytes, err);
}

/* The keeper holds the disk too, so that it can thaw it. */
void file_requests_snapshot_take(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	int home = disk_open_mounted(&keeper->context.disks, request->id);

	snapshot_store_watch(&keeper->snapshots,
		connection_delegate(keeper, request, conn, take_snapshot), home);
}

static int drop_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)reply;
	return snapshot_store_drop(&keeper->snapshots, request->snapshot, err);
}

void file_requests_snapshot_drop(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	connection_delegate(keeper, request, conn, drop_snapshot);
	trash_wake_remover(&keeper->trash_remover);
}

static int list_snapshots(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)err;
	reply->count = snapshot_store_list(
		&keeper->snapshots, request->snapshot, reply->ids, KEEPER_LIST_MAX);
	return 0;
}

void file_requests_snapshot_list(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	connection_delegate(keeper, request, conn, list_snapshots);
}

static int copy_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)reply;
	return snapshot_store_copy(&keeper->snapshots, request->snapshot, request->is_temporary,
		request->id, userns_base(&keeper->context.userns.ranges, request->slot), err);
}

void file_requests_snapshot_copy(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (!refuse_running(keeper, request, conn))
		connection_delegate(keeper, request, conn, copy_snapshot);
}

void file_requests_snapshot_place(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};

	if (!refuse_running(keeper, request, conn))
		reply_result(conn,
			snapshot_store_place(
				&keeper->snapshots, request->snapshot, request->id, &err),
			&err);
	trash_wake_remover(&keeper->trash_remover);
}
