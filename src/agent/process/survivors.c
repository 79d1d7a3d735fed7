/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/survivors.h"

#include "agent/process/process_tree.h"

#include <errno.h>
#include <signal.h>

void survivors_close(struct process_table *table, struct process *process)
{
	process_cgroup_close(&table->groups, &process->group);
	if (table->groups.leftovers.len > 0)
		process_try_again_later(table);
}

void survivors_tell(struct process_table *table, struct process *process, uint32_t count)
{
	bool is_sent = report_survivors(table->link, process->id, count);

	process->none_sent = is_sent && count == 0;
}

void survivors_tell_none(struct process_table *table, struct process *process)
{
	if (!process->ended || process_cgroup_is_real(&process->group) || process->none_sent)
		return;
	if (process->is_forgotten || (process->had_survivors && process->end_sent))
		survivors_tell(table, process, 0);
}

bool survivors_look(struct process_table *table, struct process *process)
{
	uint32_t count = process_cgroup_count(&process->group);

	if (count > 0 && !process->had_survivors) {
		process->had_survivors = true;
		survivors_tell(table, process, count);
		if (process_cgroup_watch(
			    &table->groups, &process->group, table->epoll_fd, process->id) < 0)
			process_try_again_later(table);
		/* The last process may have ended before the watch began. */
		count = process_cgroup_count(&process->group);
	}
	if (count > 0)
		return true;
	survivors_close(table, process);
	survivors_tell_none(table, process);
	return !process->is_forgotten;
}

/*
 * Used where there are no cgroups. The kernel gives the pid of a reaped process to another only
 * when its session is empty. So as long as no process has it, that session can still be signalled.
 */
static void signal_process_tree(const struct process *process, int signal)
{
	if (!process->ended || (kill(process->pid, 0) < 0 && errno == ESRCH))
		process_tree_signal(process->pid, signal);
}

void survivors_signal(struct process_table *table, struct process *process, int signal)
{
	if (table->groups.dir_fd < 0) {
		signal_process_tree(process, signal);
	} else if (signal != SIGKILL) {
		process_cgroup_signal(&process->group, signal);
	} else if (process_cgroup_kill(&table->groups, &process->group)) {
		/* A process that was being forked at the first kill is usually there at the
		 * second. */
		(void)process_cgroup_kill(&table->groups, &process->group);
		process->is_killing = true;
		process_try_again_later(table);
	}
}

bool survivors_try_again(struct process_table *table, struct process *process)
{
	bool is_unwatched = process->had_survivors && process->group.events_fd < 0;

	if (!process_cgroup_is_real(&process->group) || (!process->is_killing && !is_unwatched))
		return true;
	if (process->is_killing)
		process->is_killing = process_cgroup_kill(&table->groups, &process->group);
	if (process->is_killing || is_unwatched)
		process_try_again_later(table);
	return !process->ended || survivors_look(table, process);
}
