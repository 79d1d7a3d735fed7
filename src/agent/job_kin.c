/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/job_kin.h"

#include "agent/lineage.h"

#include <errno.h>
#include <signal.h>

void job_kin_close(struct job_table *table, struct job *job)
{
	group_close(&table->groups, &job->group);
	if (table->groups.leftovers.len > 0)
		job_try_again_later(table);
}

void job_kin_tell(struct job_table *table, struct job *job, uint32_t count)
{
	bool is_sent = report_survivors(table->link, job->id, count);

	job->none_sent = is_sent && count == 0;
}

void job_kin_tell_none(struct job_table *table, struct job *job)
{
	if (!job->ended || group_is_real(&job->group) || job->none_sent)
		return;
	if (job->is_forgotten || (job->had_survivors && job->end_sent))
		job_kin_tell(table, job, 0);
}

bool job_kin_look(struct job_table *table, struct job *job)
{
	uint32_t count = group_count(&job->group);

	if (count > 0 && !job->had_survivors) {
		job->had_survivors = true;
		job_kin_tell(table, job, count);
		if (group_watch(&table->groups, &job->group, table->epoll_fd, job->id) < 0)
			job_try_again_later(table);
		/* The last one may have gone before the watch began. */
		count = group_count(&job->group);
	}
	if (count > 0)
		return true;
	job_kin_close(table, job);
	job_kin_tell_none(table, job);
	return !job->is_forgotten;
}

/*
 * Where there are no groups. The number of a process that was reaped is only given out again when
 * nobody is left in its session. So as long as no process has it, that session can still be reached.
 */
static void signal_lineage(const struct job *job, int signal)
{
	if (!job->ended || (kill(job->pid, 0) < 0 && errno == ESRCH))
		lineage_signal(job->pid, signal);
}

void job_kin_signal(struct job_table *table, struct job *job, int signal)
{
	if (table->groups.dir_fd < 0) {
		signal_lineage(job, signal);
	} else if (signal != SIGKILL) {
		group_signal(&job->group, signal);
	} else if (group_kill(&table->groups, &job->group)) {
		/* Who was being born at the first time is there at the second, as a rule. */
		(void)group_kill(&table->groups, &job->group);
		job->is_killing = true;
		job_try_again_later(table);
	}
}

bool job_kin_try_again(struct job_table *table, struct job *job)
{
	bool is_unwatched = job->had_survivors && job->group.events_fd < 0;

	if (!group_is_real(&job->group) || (!job->is_killing && !is_unwatched))
		return true;
	if (job->is_killing)
		job->is_killing = group_kill(&table->groups, &job->group);
	if (job->is_killing || is_unwatched)
		job_try_again_later(table);
	return !job->ended || job_kin_look(table, job);
}
