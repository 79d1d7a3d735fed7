/* SPDX-License-Identifier: Apache-2.0 */
#include "core/verdict.h"

#include "core/process_state.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

__attribute__((format(printf, 2, 3))) static void set_detail(
	struct process_end *how, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(how->how.detail, sizeof(how->how.detail), fmt, ap);
	va_end(ap);
}

/* Whose memory it was: the kernel names the victim, the driver remembers it. */
static void describe_oom(struct process *process, struct process_end *how, uint32_t kills)
{
	struct driver *driver = engine_driver(process->sandbox->engine);
	struct driver_stats stats = {0};
	struct err ignored;

	if (driver->ops->stats(driver, process->sandbox->id, &stats, &ignored) < 0 ||
		!stats.oom_victim[0])
		set_detail(how, "out of memory: the kernel killed %u of the sandbox's processes",
			kills);
	else
		set_detail(how, "out of memory: the kernel killed %s at a limit of %llu bytes",
			stats.oom_victim, (unsigned long long)stats.memory_limit_bytes);
}

/* What ended it beyond what it says itself: the limits it ran into. */
static void judge_limits(
	struct process *process, const struct verdict_facts *facts, struct process_end *how)
{
	bool failed = how->how.signal != 0 || how->exit_code != 0;
	bool was_killed =
		how->how.signal == SIGKILL || how->exit_code == VERDICT_SIGNAL_BASE + SIGKILL;

	if (facts->oom_kills > 0) {
		if (was_killed)
			how->how.reason = END_OOM;
		describe_oom(process, how, facts->oom_kills);
	} else if (facts->refused_forks > 0) {
		if (failed)
			how->how.reason = END_PIDS_LIMIT;
		set_detail(how, "the limit of processes was hit %u times while it ran",
			facts->refused_forks);
	} else if (failed && (facts->flags & AGENT_EXITED_DISK_FULL)) {
		how->how.reason = END_DISK_FULL;
		set_detail(how, "a disk it could write to was full at its end");
	}
}

void verdict_reach(struct process *process, int status, const struct verdict_facts *facts,
	struct process_end *how)
{
	struct sandbox *sandbox = process->sandbox;
	enum end_reason sandbox_reason;
	bool killed;

	pthread_mutex_lock(&process->lock);
	killed = process->killed;
	pthread_mutex_unlock(&process->lock);
	pthread_mutex_lock(&sandbox->state);
	sandbox_reason = sandbox->ending ? sandbox->end_reason : END_NONE;
	pthread_mutex_unlock(&sandbox->state);
	how->how.reason = WIFSIGNALED(status) ? END_SIGNAL : END_EXITED;
	how->how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	how->exit_code =
		WIFSIGNALED(status) ? VERDICT_SIGNAL_BASE + how->how.signal : WEXITSTATUS(status);
	if (sandbox_reason != END_NONE) {
		how->how.reason = sandbox_reason;
	} else if (process->timed_out) {
		how->how.reason = END_TIMEOUT;
		how->exit_code = VERDICT_TIMEOUT;
	} else if (killed && how->how.signal == SIGKILL) {
		how->how.reason = END_KILLED;
	} else {
		judge_limits(process, facts, how);
	}
}
