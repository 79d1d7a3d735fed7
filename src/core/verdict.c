/* SPDX-License-Identifier: Apache-2.0 */
#include "core/verdict.h"

#include "core/process_state.h"
#include "model/system_call.h"
#include "model/template.h"

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

/* "mount(2) 3 times, bpf(2) once", as far as there is room. */
static void list_denied(const struct termination *end, char *text, size_t size)
{
	size_t len = 0;

	for (uint32_t i = 0; i < end->denied_count && len < size; i++) {
		const struct denied_call *call = &end->denied[i];
		char spare[SYSTEM_CALL_DIGITS], times[24] = "once";

		if (call->times != 1)
			snprintf(times, sizeof(times), "%u times", call->times);
		len += (size_t)snprintf(text + len, size - len, "%s%s(2) %s", i ? ", " : "",
			system_call_name(call->number, spare), times);
	}
}

static const char *profile_of(struct sandbox *sandbox)
{
	const struct template *template;

	pthread_mutex_lock(&sandbox->state);
	template = template_find(sandbox->record.template_name);
	pthread_mutex_unlock(&sandbox->state);
	/* A template that is gone since had the profile of most. */
	return template_profile_name(template ? template->profile : TEMPLATE_PROFILE_DEFAULT);
}

/*
 * Which profile refused what it was denied. A program that works without has been told EPERM and got
 * over it; for one that failed it may well be why.
 */
static void judge_denials(const struct process *process, struct process_end *how)
{
	char list[sizeof(how->how.detail)];

	if (how->how.denied_count == 0)
		return;
	snprintf(how->how.profile, sizeof(how->how.profile), "%s", profile_of(process->sandbox));
	if (how->exit_code == 0 || how->how.detail[0])
		return;
	list_denied(&how->how, list, sizeof(list));
	set_detail(how, "the profile `%s` refused %s", how->how.profile, list);
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
	judge_denials(process, how);
}
