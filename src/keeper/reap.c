/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/reap.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/freeze.h"
#include "keeper/rootfs/virtual_sys.h"
#include "keeper/sandbox/reply.h"
#include "keeper/sandbox_stats.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

void reap_finish(struct keeper *keeper, struct sandbox_entry *entry)
{
	/* Its members use its disk and its network. */
	if (entry->has_owner && sandbox_table_visit_members(&keeper->table, entry->id, NULL) > 0)
		return;
	if (cgroup_has_processes(&keeper->context.cgroups, entry->group)) {
		keeper->unclean = true;
		return;
	}
	fail_point("kill.groups_empty");
	cgroup_removals_add(&keeper->removals, entry->group);
	if (!entry->has_owner) {
		prebuild_forget(&keeper->prebuilds, entry);
		return;
	}
	trash_wake_remover(&keeper->trash_remover); /* its build may have discarded something */
	if (entry->kill_waiter >= 0) {
		if (!entry->primary[0])
			disk_park(&keeper->context.disks, entry->id);
		reply_killed(entry->kill_waiter, entry);
		sandbox_table_remove(&keeper->table, entry);
	} else if (keeper->stopping) {
		sandbox_table_remove(&keeper->table, entry);
	}
}

void reap_retry(struct keeper *keeper)
{
	keeper->unclean = false;
	for (size_t i = keeper->table.count; i-- > 0;) {
		struct sandbox_entry *entry = keeper->table.sorted[i];

		if (entry->pid == 0)
			reap_finish(keeper, entry);
	}
}

/* A child whose build failed has left the reason on its lifeline. It is only ever shown as text. */
static void read_build_error(struct sandbox_entry *entry)
{
	struct err err;
	int r = fdpass_recv_packet(entry->lifeline, &err, sizeof(err), MSG_DONTWAIT);

	/* It never read the link we sent, which the kernel reports first, as a reset. */
	if (r == -ECONNRESET)
		r = fdpass_recv_packet(entry->lifeline, &err, sizeof(err), MSG_DONTWAIT);
	if (r <= 0 || err.kind <= ERR_NONE || err.kind >= ERR_KIND_COUNT)
		return;
	err.code[sizeof(err.code) - 1] = '\0';
	err.message[sizeof(err.message) - 1] = '\0';
	err.remedy[sizeof(err.remedy) - 1] = '\0';
	entry->err = err;
}

/* Those who wait for the end of a sandbox wait for its members too. */
static void finish_primary(struct keeper *keeper, const char *id)
{
	struct sandbox_entry *primary = sandbox_table_find(&keeper->table, id);

	if (primary && primary->pid == 0)
		reap_finish(keeper, primary);
}

static void handle_exit(struct keeper *keeper, pid_t pid, int status)
{
	struct sandbox_entry *entry = sandbox_table_find_pid(&keeper->table, pid);
	char primary[KEEPER_ID_LEN + 1];
	struct err ignored;

	if (!entry) {
		if (!disk_reaped(&keeper->context.disks, pid, status)) {
			helpers_reaped(&keeper->helpers, pid, status);
			snapshot_store_reaped(&keeper->snapshots, pid, status);
		}
		return;
	}
	entry->pid = 0;
	entry->wait_status = status;
	memcpy(primary, entry->primary, sizeof(primary));
	sandbox_table_visit_members(&keeper->table, entry->id, reap_kill);
	fail_point("kill.reaped");
	freeze_abandon(keeper, entry);
	cpus_give_back(&keeper->cpus, &entry->cpus);
	virtual_sys_discard(keeper->context.sources.mount_area_fd, entry->group);
	read_build_error(entry);
	/* It ended by itself: how is of interest, and gone with its groups. */
	if (entry->kill_waiter < 0 && sandbox_stats_read(keeper, entry, &entry->last, &ignored) < 0)
		log_debug("no statistics of %s: %s", entry->id, ignored.message);
	sandbox_table_release(entry);
	prebuild_release_range(&keeper->prebuilds, entry->slot);
	reap_finish(keeper, entry);
	if (primary[0])
		finish_primary(keeper, primary);
}

void reap_reap(struct keeper *keeper, pid_t first)
{
	int status;
	pid_t pid;

	/* By its number: the kernel looks for any child at all of them in turn. */
	if (first > 0 && waitpid(first, &status, WNOHANG) == first)
		handle_exit(keeper, first, status);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		handle_exit(keeper, pid, status);
}

void reap_kill(const struct sandbox_entry *entry)
{
	/* A child that we have not reaped keeps its number, so this can hit no stranger. */
	if (entry->pid && kill(entry->pid, SIGKILL) < 0)
		log_error("kill sandbox %s: %s", entry->id, strerror(errno));
}
