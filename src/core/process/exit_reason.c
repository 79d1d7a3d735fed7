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
	format_end_at_word(how->how.detail, sizeof(how->how.detail));
}

/* The limits of a sandbox, and how a person changes one of them. */
struct limits {
	struct resources resources;
	char name[SANDBOX_NAME_MAX];
	bool is_member; /* whose limits cannot be changed */
};

static void read_limits(struct sandbox *sandbox, struct limits *ret)
{
	pthread_mutex_lock(&sandbox->state);
	ret->resources = sandbox->record.resources;
	ret->is_member = sandbox->record.parent[0] != '\0';
	snprintf(ret->name, sizeof(ret->name), "%s",
		sandbox->record.name[0] ? sandbox->record.name : sandbox->id);
	pthread_mutex_unlock(&sandbox->state);
}

static void add_advice(struct process_end *how, const struct limits *limits, const char *option)
{
	char *detail = how->how.detail;

	if (!limits->is_member)
		format_append(detail, sizeof(how->how.detail), strlen(detail),
			"; to change it: sandlot update %s %s", limits->name, option);
}

/* Whose memory it was: the kernel names the victim, the driver remembers it. */
static void describe_oom(struct process *process, struct process_end *how, uint32_t kills)
{
	struct driver *driver = engine_driver(process->sandbox->engine);
	struct driver_stats stats = {0};
	char limit[FORMAT_SIZE_LEN];
	struct limits limits;
	struct err ignored;

	read_limits(process->sandbox, &limits);
	if (driver->ops->stats(driver, process->sandbox->id, &stats, &ignored) < 0 ||
		stats.memory_limit_bytes == 0)
		stats.memory_limit_bytes = limits.resources.memory_bytes;
	format_size(stats.memory_limit_bytes, limit);
	if (!stats.oom_victim[0])
		set_detail(how,
			"out of memory: the kernel killed %u of the sandbox's processes at a limit "
			"of %s",
			kills, limit);
	else
		set_detail(how, "out of memory: the kernel killed %s at a limit of %s",
			stats.oom_victim, limit);
	add_advice(how, &limits, "--memory SIZE");
}

static void describe_refused_forks(
	struct process *process, struct process_end *how, uint32_t refused)
{
	struct limits limits;

	read_limits(process->sandbox, &limits);
	set_detail(how, "the limit of processes, %llu, was hit %u time%s while it ran",
		(unsigned long long)limits.resources.pids, refused, refused == 1 ? "" : "s");
	add_advice(how, &limits, "--pids N");
}

/* It may be /dev/shm, say: nobody can tell whose write it was. */
static void describe_full_disk(struct process *process, struct process_end *how)
{
	char size[FORMAT_SIZE_LEN];
	struct limits limits;

	read_limits(process->sandbox, &limits);
	format_size(limits.resources.disk_bytes, size);
	set_detail(
		how, "a disk it could write to was full; the limit of the sandbox's is %s", size);
	add_advice(how, &limits, "--disk SIZE");
}

/* What was refused to it meanwhile may be why it took so long, and is told behind. */
void exit_reason_describe_timeout(const struct process *process, struct process_end *how)
{
	char more[sizeof(how->how.detail)], over[64] = "its timeout was over";
	uint64_t ms = process->record.timeout_ms;
	bool is_seconds = ms % 1000 == 0;

	if (ms > 0)
		snprintf(over, sizeof(over), "its timeout of %llu %s was over",
			(unsigned long long)(is_seconds ? ms / 1000 : ms), is_seconds ? "s" : "ms");
	snprintf(more, sizeof(more), "%s", how->how.detail);
	if (!more[0])
		set_detail(how, "%s", over);
	else if (strlen(over) + strlen("; ") + strlen(more) < sizeof(how->how.detail))
		set_detail(how, "%s; %s", over, more);
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
		describe_refused_forks(process, how, facts->refused_forks);
	} else if (failed && (facts->flags & AGENT_EXITED_DISK_FULL)) {
		how->how.reason = END_DISK_FULL;
		describe_full_disk(process, how);
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

/* What a refusal says beside its target and what would allow it, at most. */
#define REFUSAL_WORDS 96

static void describe_refusal(struct process_end *how, const struct egress_denial *last,
	const char *name, bool has_others)
{
	const char *others = has_others ? " and others" : "";
	const char *why =
		last->reason == EGRESS_PRIVATE_ADDRESS && strcmp(last->target, last->rule) != 0
			? " (the name resolves to a private address)"
			: "";
	char remedy[TERMINATION_DETAIL_MAX] = "";

	if (last->rule[0])
		snprintf(remedy, sizeof(remedy),
			"; the rule %s would allow it: sandlot egress %s --allow %s", last->rule,
			name, last->rule);
	/* Half a command must not be there to be followed. */
	if (strlen(last->target) + strlen(remedy) > sizeof(remedy) - REFUSAL_WORDS)
		snprintf(remedy, sizeof(remedy),
			"; sandlot egress %s has the rule that would allow it", name);
	set_detail(how, "the network refused %s%s%s%s", last->target, why, others, remedy);
}

/*
 * What the network refused while it ran, and the rule that would allow it. Egress cannot tell who in a sandbox
 * asked, so this is said and no reason made of it. The same holds for names that could not be looked up.
 */
static void judge_network(const struct process *process, const struct exit_reason_facts *facts,
	struct process_end *how)
{
	int64_t since_ms =
		clock_wall_ms() - (int64_t)((clock_steady_us() - process->started_us) / 1000);
	const struct egress_denial *last = NULL, *failed = NULL; /* newest first */
	struct sandbox_network_report report;
	char name[SANDBOX_NAME_MAX];
	size_t count = 0;
	bool has_none;

	if (how->exit_code == 0 || how->how.detail[0])
		return;
	has_none = has_no_network(process->sandbox, name);
	sandbox_network_read(process->sandbox, &report);
	for (size_t i = 0; i < report.denial_count && report.denials[i].at_ms >= since_ms; i++) {
		const struct egress_denial *denial = &report.denials[i];

		if (!egress_denial_is_refusal(denial->reason)) {
			failed = failed ? failed : denial;
			continue;
		}
		last = last ? last : denial;
		count++;
	}
	if (last) {
		describe_refusal(how, last, name, count > 1);
	} else if (failed) {
		set_detail(how, "the name %s %s", failed->target,
			failed->reason == EGRESS_NO_SUCH_NAME
				? "does not exist, say the name servers"
				: "could not be looked up: no name server of this host answers");
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
	if (how->how.reason == END_TIMEOUT)
		exit_reason_describe_timeout(process, how);
}
