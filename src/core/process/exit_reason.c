/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/exit_reason.h"

#include "base/clock.h"
#include "base/format.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_network.h"
#include "core/process/process_state.h"
#include "model/process/system_call.h"
#include "model/template/template.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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
	char limit[FORMAT_SIZE_LEN];
	struct err ignored;

	if (driver->ops->stats(driver, process->sandbox->id, &stats, &ignored) == 0)
		format_size(stats.memory_limit_bytes, limit);
	if (!stats.oom_victim[0])
		set_detail(how, "out of memory: the kernel killed %u of the sandbox's processes",
			kills);
	else
		set_detail(how, "out of memory: the kernel killed %s at a limit of %s",
			stats.oom_victim, limit);
}

/* What ended it beyond what it says itself: the limits it ran into. */
static void judge_limits(
	struct process *process, const struct exit_reason_facts *facts, struct process_end *how)
{
	bool failed = how->how.signal != 0 || how->exit_code != 0;
	bool was_killed =
		how->how.signal == SIGKILL || how->exit_code == EXIT_REASON_SIGNAL_BASE + SIGKILL;

	if (facts->oom_kills > 0) {
		if (was_killed)
			how->how.reason = END_OOM;
		describe_oom(process, how, facts->oom_kills);
	} else if (facts->refused_forks > 0) {
		if (failed)
			how->how.reason = END_PIDS_LIMIT;
		set_detail(how, "the limit of processes was hit %u time%s while it ran",
			facts->refused_forks, facts->refused_forks == 1 ? "" : "s");
	} else if (failed && (facts->flags & AGENT_EXITED_DISK_FULL)) {
		how->how.reason = END_DISK_FULL;
		set_detail(how, "a disk it could write to was full");
	} else if (failed && (facts->flags & AGENT_EXITED_DISK_WAS_FULL)) {
		/* A disk that is full is no reason for a program that wanted nothing of it. */
		set_detail(
			how, "a disk it could write to was full at its end; that may not be why");
	}
}

/* "mount(2) 3 times, bpf(2) once", as far as there is room; "" if nothing was refused that a program needs. */
static void list_denied(const struct termination *end, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';

	for (uint32_t i = 0; i < end->denied_count; i++) {
		const struct denied_call *call = &end->denied[i];
		char digits[SYSTEM_CALL_DIGITS], times[24] = "once";

		if (system_call_is_hint(call->number))
			continue;
		if (call->times != 1)
			snprintf(times, sizeof(times), "%u times", call->times);
		len = format_append(text, size, len, "%s%s(2) %s", len ? ", " : "",
			system_call_name(call->number, digits), times);
	}
}

static const char *profile_of(struct sandbox *sandbox)
{
	enum template_profile profile;

	pthread_mutex_lock(&sandbox->state);
	profile = template_profile_of(&sandbox->record);
	pthread_mutex_unlock(&sandbox->state);
	return template_profile_name(profile);
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
	if (list[0])
		set_detail(how, "the profile `%s` refused %s", how->how.profile, list);
}

/* Whether it reaches nothing; and what its owner calls it, for commands that are told. */
static bool has_no_network(struct sandbox *sandbox, char ret_name[SANDBOX_NAME_MAX])
{
	bool leads_out;

	pthread_mutex_lock(&sandbox->state);
	leads_out = network_leads_out(sandbox->record.network);
	snprintf(ret_name, SANDBOX_NAME_MAX, "%s",
		sandbox->record.name[0] ? sandbox->record.name : sandbox->id);
	pthread_mutex_unlock(&sandbox->state);
	return !leads_out;
}

/*
 * What the network refused while it ran, and the rule that would allow it. Egress cannot tell who in a sandbox
 * asked, so this is said and no reason made of it.
 */
static void judge_network(const struct process *process, const struct exit_reason_facts *facts,
	struct process_end *how)
{
	int64_t since_ms =
		clock_wall_ms() - (int64_t)((clock_steady_us() - process->started_us) / 1000);
	struct sandbox_network_report report;
	char name[SANDBOX_NAME_MAX];
	size_t count = 0;
	bool has_none;

	if (how->exit_code == 0 || how->how.detail[0])
		return;
	has_none = has_no_network(process->sandbox, name);
	sandbox_network_read(process->sandbox, &report);
	while (count < report.denial_count && report.denials[count].at_ms >= since_ms)
		count++;
	if (count > 0) {
		const struct egress_denial *last = &report.denials[0];

		const char *others = count > 1 ? " and others" : "";
		const char *why = last->reason == EGRESS_PRIVATE_ADDRESS &&
						  strcmp(last->target, last->rule) != 0
					  ? " (the name resolves to a private address)"
					  : "";

		if (last->rule[0])
			set_detail(how,
				"the network refused %s%s%s; the rule %s would allow it: sandlot "
				"egress %s --allow %s",
				last->target, why, others, last->rule, name, last->rule);
		else
			set_detail(how, "the network refused %s%s%s", last->target, why, others);
	} else if ((facts->flags & AGENT_EXITED_NO_NETWORK) && has_none) {
		set_detail(how,
			"its network has the mode none; to change that: sandlot egress %s --mode "
			"internet",
			name);
	}
	sandbox_network_report_fini(&report);
}

void exit_reason_reach(struct process *process, int status, const struct exit_reason_facts *facts,
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
	how->exit_code = WIFSIGNALED(status) ? EXIT_REASON_SIGNAL_BASE + how->how.signal
					     : WEXITSTATUS(status);
	if (sandbox_reason != END_NONE) {
		how->how.reason = sandbox_reason;
	} else if (process->timed_out) {
		how->how.reason = END_TIMEOUT;
		how->exit_code = EXIT_REASON_TIMEOUT;
	} else if (killed && how->how.signal == SIGKILL) {
		how->how.reason = END_KILLED;
	} else {
		judge_limits(process, facts, how);
	}
	judge_network(process, facts, how);
	judge_denials(process, how);
}
