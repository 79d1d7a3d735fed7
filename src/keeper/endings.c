/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/endings.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/figures.h"
#include "keeper/pausing.h"
#include "keeper/reply.h"
#include "keeper/view.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

void endings_finish(struct keeper *keeper, struct held *held)
{
	if (cgroup_remove(&keeper->context.cgroups, held->group) < 0) {
		keeper->unclean = true;
		return;
	}
	if (!held->has_owner) {
		birth_forget(&keeper->births, held);
		return;
	}
	crew_poke(&keeper->janitor); /* its build may have thrown something away */
	if (held->kill_waiter >= 0) {
		disk_park(&keeper->context.disks, held->id);
		reply_killed(held->kill_waiter, held);
		roster_remove(&keeper->roster, held);
	} else if (keeper->stopping) {
		roster_remove(&keeper->roster, held);
	}
}

void endings_retry(struct keeper *keeper)
{
	keeper->unclean = false;
	for (size_t i = keeper->roster.count; i-- > 0;) {
		struct held *held = keeper->roster.sorted[i];

		if (held->pid == 0)
			endings_finish(keeper, held);
	}
}

/* A child whose build failed has left the reason on its lifeline. It is only ever shown as text. */
static void read_build_error(struct held *held)
{
	struct err err;
	ssize_t n = recv(held->lifeline, &err, sizeof(err), MSG_DONTWAIT);

	/* It never read the link we sent, which the kernel reports first, as a reset. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(held->lifeline, &err, sizeof(err), MSG_DONTWAIT);
	if (n != (ssize_t)sizeof(err) || err.kind <= ERR_NONE || err.kind >= ERR_KIND_COUNT)
		return;
	err.code[sizeof(err.code) - 1] = '\0';
	err.message[sizeof(err.message) - 1] = '\0';
	err.remedy[sizeof(err.remedy) - 1] = '\0';
	held->err = err;
}

static void bury(struct keeper *keeper, pid_t pid, int status)
{
	struct held *held = roster_find_pid(&keeper->roster, pid);
	struct err ignored;

	if (!held) {
		if (!disk_reaped(&keeper->context.disks, pid, status))
			crew_reaped(&keeper->crew, pid, status);
		return;
	}
	held->pid = 0;
	held->wait_status = status;
	pausing_abandon(keeper, held);
	cpus_give_back(&keeper->cpus, &held->cpus);
	view_discard(keeper->context.sources.shelf_fd, held->group);
	read_build_error(held);
	/* It ended by itself: how is of interest, and gone with its groups. */
	if (held->kill_waiter < 0 && figures_read(keeper, held, &held->last, &ignored) < 0)
		log_debug("no figures of %s: %s", held->id, ignored.message);
	roster_release(held);
	endings_finish(keeper, held);
}

void endings_reap(struct keeper *keeper, pid_t first)
{
	int status;
	pid_t pid;

	/* By its number: the kernel looks for any child at all of them in turn. */
	if (first > 0 && waitpid(first, &status, WNOHANG) == first)
		bury(keeper, first, status);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		bury(keeper, pid, status);
}

void endings_kill(const struct held *held)
{
	/* A child that we have not reaped keeps its number, so this can hit no stranger. */
	if (held->pid && kill(held->pid, SIGKILL) < 0)
		log_error("kill sandbox %s: %s", held->id, strerror(errno));
}
