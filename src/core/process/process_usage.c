/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process_usage.h"

#include "base/clock.h"
#include "core/engine/sandbox_state.h"
#include "core/process/process_state.h"
#include "wire/pack.h"

#include <errno.h>
#include <stdio.h>

#define FRESH_US    5000000ull /* an answer that a decision may rest on */
#define PATIENCE_US 5000000ull /* for an answer */
#define SHOWN_US    (2 * PROCESS_USAGE_ROUND_MS * 1000ull)

static bool counts(const struct process *process)
{
	const struct process_record *record = &process->record;

	return record->is_background && !record->start[0] && record->ended_at_ms == 0;
}

/* Per cent of a core since the answer of the round before the last, or since its start. The lock is held. */
static unsigned percent(const struct process *process)
{
	const struct process_usage *usage = &process->usage;
	uint64_t since_us = usage->before[0].at_us ? usage->before[0].at_us : process->started_us;
	uint64_t cpu_us = usage->cpu_us - usage->before[0].cpu_us;

	return usage->at_us > since_us ? (unsigned)(cpu_us * 100 / (usage->at_us - since_us)) : 0;
}

/* The lock is held; the link's is a leaf. */
static void ask(struct process *process, uint64_t now_us)
{
	process->usage.asked_us = now_us;
	process_tell(process, AGENT_USAGE, NULL, 0);
}

static enum process_activity check(struct process *process, uint64_t now_us)
{
	struct process_usage *usage = &process->usage;

	if (process->record.keeps_awake)
		return PROCESS_ACTIVITY_BUSY;
	if (usage->at_us && now_us - usage->at_us < FRESH_US)
		return percent(process) >= 1 ? PROCESS_ACTIVITY_BUSY : PROCESS_ACTIVITY_NONE;
	if (usage->asked_us <= usage->at_us)
		ask(process, now_us);
	return now_us - usage->asked_us < PATIENCE_US ? PROCESS_ACTIVITY_ASKED
						      : PROCESS_ACTIVITY_NONE;
}

enum process_activity process_usage_check(struct sandbox *sandbox)
{
	enum process_activity most = PROCESS_ACTIVITY_NONE;
	uint64_t now_us = clock_steady_us();

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		enum process_activity one = PROCESS_ACTIVITY_NONE;

		pthread_mutex_lock(&p->lock);
		if (counts(p))
			one = check(p, now_us);
		pthread_mutex_unlock(&p->lock);
		if (one > most)
			most = one;
	}
	pthread_mutex_unlock(&sandbox->state);
	return most;
}

void process_usage_sample(struct sandbox *sandbox)
{
	uint64_t now_us = clock_steady_us();

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p; p = p->next) {
		struct process_usage *usage = &p->usage;

		pthread_mutex_lock(&p->lock);
		if (counts(p)) {
			usage->before[0] = usage->before[1];
			usage->before[1].at_us = usage->at_us;
			usage->before[1].cpu_us = usage->cpu_us;
			ask(p, now_us);
		}
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&sandbox->state);
}

bool process_usage_explain(struct sandbox *sandbox, char text[PROCESS_USAGE_TEXT_MAX])
{
	uint64_t now_us = clock_steady_us();
	bool is_found = false;

	pthread_mutex_lock(&sandbox->state);
	for (struct process *p = sandbox->processes; p && !is_found; p = p->next) {
		pthread_mutex_lock(&p->lock);
		if (counts(p) && p->record.keeps_awake) {
			is_found = true;
			snprintf(text, PROCESS_USAGE_TEXT_MAX, "process p%u is to keep it awake",
				p->record.number);
		} else if (counts(p) && p->usage.at_us && now_us - p->usage.at_us < SHOWN_US &&
			   percent(p) >= 1) {
			is_found = true;
			snprintf(text, PROCESS_USAGE_TEXT_MAX, "process p%u uses %u%% of a core",
				p->record.number, percent(p));
		}
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&sandbox->state);
	return is_found;
}

int process_usage_take(struct process *process, struct unpack *in)
{
	uint64_t cpu_us = unpack_u64(in);

	if (!unpack_done(in))
		return -EPROTO;
	pthread_mutex_lock(&process->lock);
	/* Processor time only grows, whatever an agent says. */
	if (cpu_us >= process->usage.cpu_us && cpu_us < INT64_MAX / 100)
		process->usage.cpu_us = cpu_us;
	process->usage.at_us = clock_steady_us();
	pthread_mutex_unlock(&process->lock);
	return 0;
}
