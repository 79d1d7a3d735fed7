/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail_point.h"

#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CRASHES 0
#define FAILS	1 /* also */

static const struct {
	const char *name;
	uint32_t can_fail;
} points[] = {
	{"create.row_written", FAILS},
	{"create.undo_stopped", CRASHES},
	{"create.undo_cleaned", CRASHES},
	{"create.row_committed", CRASHES},
	{"late_create.image_taken", CRASHES},
	{"member.rows_added", CRASHES},
	{"create.key_reserved", CRASHES},
	{"create.key_answered", CRASHES},
	{"pool.row_added", CRASHES},
	{"pool.sandbox_made", CRASHES},
	{"pool.ready_written", CRASHES},
	{"pool.drained", CRASHES},
	{"claim.row_written", FAILS},
	{"claim.committed", CRASHES},
	{"claim.limits_set", CRASHES},
	{"claim.applied", CRASHES},
	{"run.before_row", FAILS},
	{"run.row_written", CRASHES},
	{"run.commands_started", CRASHES},
	{"run.driver_started", CRASHES},
	{"run.agent_met", CRASHES},
	{"run.prepared", CRASHES},
	{"start.claim_written", CRASHES},
	{"start.claimed", CRASHES},
	{"end.agent_asked", CRASHES},
	{"end.driver_stopped", CRASHES},
	{"end.link_closed", CRASHES},
	{"stop.before_row", FAILS},
	{"stop.row_written", CRASHES},
	{"settle.link_closed", CRASHES},
	{"pause.before_row", FAILS},
	{"pause.row_written", CRASHES},
	{"pause.freezer_written", CRASHES},
	{"reset.row_written", CRASHES},
	{"reset.cleaned", FAILS},
	{"restore.row_written", CRASHES},
	{"delete.cleaned", CRASHES},
	{"delete.row_deleted", CRASHES},
	{"purge.marked", CRASHES},
	{"purge.cleaned", FAILS},
	{"purge.logs_removed", CRASHES},
	{"purge.rows_deleted", CRASHES},
	{"purge.held", CRASHES},
	{"purge.rows_half_deleted", FAILS},
	{"change.resized", CRASHES},
	{"change.row_written", CRASHES},
	{"process.log_opened", FAILS},
	{"process.row_inserted", CRASHES},
	{"process.sent", CRASHES},
	{"process.end_claimed", CRASHES},
	{"process.end_written", CRASHES},
	{"process.end_reported", CRASHES},
	{"project.content_written", CRASHES},
	{"project.rows_written", CRASHES},
	{"project.linked", CRASHES},
	{"project.file_deleted", CRASHES},
	{"project.file_moved", CRASHES},
	{"project.set_aside", CRASHES},
	{"project.row_deleted", CRASHES},
	{"upload.received", CRASHES},
	{"upload.written", CRASHES},
	{"upload.opened", CRASHES},
	{"migration.due", CRASHES},
	{"migration.applied", FAILS},
	{"migration.committed", CRASHES},
	{"reconcile.unfinished_stopped", CRASHES},
	{"reconcile.unfinished_cleaned", CRASHES},
	{"reconcile.purge_cleaned", CRASHES},
	{"reconcile.lost_row_written", CRASHES},
	{"reconcile.link_made", CRASHES},
	{"reconcile.adopted", CRASHES},
	{"reconcile.rows_settled", CRASHES},
	{"reconcile.strangers_dropped", CRASHES},
	{"audit.entries_written", CRASHES},
	{"audit.entries_dropped", CRASHES},
	{"audit.entry_kept", CRASHES},
	{"daemon.token_written", FAILS},
	{"daemon.keeper_started", CRASHES},
	{"daemon.server_opened", CRASHES},
	{"keeper.disks_opened", CRASHES},
	{"keeper.groups_swept", CRASHES},
	{"keeper.disk_resized", CRASHES},
	{"keeper.limits_set", CRASHES},
	{"keeper.renamed", CRASHES},
	{"build.groups_joined", CRASHES},
	{"build.disk_opened", FAILS},
	{"build.storage_prepared", FAILS},
	{"build.root_entered", FAILS},
	{"build.network_joined", FAILS},
	{"build.confined", CRASHES},
	{"build.groups_made", FAILS},
	{"build.child_cloned", CRASHES},
	{"build.network_sent", CRASHES},
	{"build.begun", CRASHES},
	{"build.link_sent", CRASHES},
	{"build.ahead_handed_over", CRASHES},
	{"disk.pool_disk_moved", CRASHES},
	{"disk.pool_disk_named", CRASHES},
	{"disk.mounted", FAILS},
	{"disk.pool_disk_linked", CRASHES},
	{"disk.refurnished", CRASHES},
	{"disk.cleared_up", CRASHES},
	{"disk.unmounted", CRASHES},
	{"disk.let_go", CRASHES},
	{"disk.thrown_away", CRASHES},
	{"kill.groups_empty", CRASHES},
	{"kill.groups_removed", CRASHES},
	{"kill.reaped", CRASHES},
	{"clean.cleaned", FAILS},
	{"clean.layer_discarded", CRASHES},
	{"trash.in_shredder", CRASHES},
	{"collect.marked", CRASHES},
	{"collect.dropped", CRASHES},
	{"blob.synced", CRASHES},
	{"layer.begun", CRASHES},
	{"layer.unpacked", CRASHES},
	{"layer.renamed", CRASHES},
	{"layer.stacked", CRASHES},
	{"capture.packed", CRASHES},
	{"export.packed", CRASHES},
	{"template.made", CRASHES},
	{"template.kept", CRASHES},
	{"snapshot.row_written", CRASHES},
	{"snapshot.taken", CRASHES},
	{"snapshot.hidden", CRASHES},
	{"snapshot.dropped", CRASHES},
	{"snapshot.frozen", FAILS},
	{"snapshot.copied", CRASHES},
	{"snapshot.written", CRASHES},
	{"snapshot.loaded", FAILS},
	{"snapshot.mapped", CRASHES},
	{"snapshot.mounted", CRASHES},
	{"snapshot.placed", CRASHES},
};

static struct fail_point_row *rows; /* NULL until the file is open */

void fail_point_open(const char *data_dir)
{
	char path[PATH_MAX];
	auto_fd int fd = -1;
	void *place;

	snprintf(path, sizeof(path), "%s/" FAIL_POINT_FILE, data_dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*rows) * array_len(points)) < 0)
		return;
	place = mmap(
		NULL, sizeof(*rows) * array_len(points), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (place == MAP_FAILED)
		return;
	rows = place;
	for (size_t i = 0; i < array_len(points); i++) {
		snprintf(rows[i].name, sizeof(rows[i].name), "%s", points[i].name);
		rows[i].can_fail = points[i].can_fail;
	}
}

static struct fail_point_row *find(const char *name, uint32_t can_fail)
{
	for (size_t i = 0; i < array_len(points); i++) {
		if (strcmp(points[i].name, name) == 0 && points[i].can_fail == can_fail)
			return &rows[i];
	}
	log_error("fail point %s is not in the table", name);
	abort();
}

/* Counts a hit; returns what to do now. Of two threads that come at once only one acts. */
static enum fail_point_action reach(struct fail_point_row *row)
{
	uint32_t action, skip;

	atomic_fetch_add(&row->hits, 1);
	action = atomic_load(&row->action);
	if (action == FAIL_POINT_NONE)
		return FAIL_POINT_NONE;
	skip = atomic_load(&row->skip);
	while (skip > 0) {
		if (atomic_compare_exchange_weak(&row->skip, &skip, skip - 1))
			return FAIL_POINT_NONE;
	}
	if (!atomic_compare_exchange_strong(&row->action, &action, FAIL_POINT_NONE))
		return FAIL_POINT_NONE;
	row->acted_pid = (uint32_t)getpid();
	return (enum fail_point_action)action;
}

static int act(const char *name, uint32_t can_fail, struct err *err)
{
	struct fail_point_row *row;
	int errnum;

	if (!rows)
		return 0;
	row = find(name, can_fail);
	errnum = (int)row->errnum;
	switch (reach(row)) {
	case FAIL_POINT_CRASH:
		/* Not by a signal: the first process of a PID namespace cannot kill itself. */
		_exit(FAIL_POINT_STATUS);
	case FAIL_POINT_STOP:
		kill(getpid(), SIGSTOP);
		return 0;
	case FAIL_POINT_FAIL:
		assert(can_fail);
		return err_from(err, -errnum, "fail point %s", name);
	default:
		return 0;
	}
}

void fail_point(const char *name)
{
	(void)!act(name, CRASHES, NULL);
}

int fail_point_check(const char *name, struct err *err)
{
	return act(name, FAILS, err);
}
