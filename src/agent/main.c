/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot-agent: PID 1 of every sandbox.
 *
 * Theory of operation
 *
 * The keeper starts it inside the finished sandbox, with /dev/null as descriptors 0-2 and those that
 * wire/agent.h names from 3 on. It is one thread around one epoll (init.c), and it never blocks:
 * whatever could is left to a child. It keeps no state on disk and knows no secret; wire/agent.h is
 * its whole contract.
 *
 *   lifeline --fd--> uplink --frames--> payload --> job: launch, inlet, backlog --> uplink
 *                                            \---> helper (fork): file_* ---------> dialog
 *
 *   init      the loop; a row for each kind of frame
 *   uplink    the link to the daemon of the day: frames in and out, waiting for nobody
 *   payload   frames taken apart (the part that is fuzzed)
 *   job       commands: launch starts one, inlet feeds it, outlet reads it (pty makes both from
 *             one device), backlog keeps its output until it is acknowledged, group has all that
 *             came from it, scarcity says what the sandbox ran out of meanwhile, denial what the
 *             filter refused to it; lineage stands in for group where there are none (a keeper that
 *             is not root of the host)
 *   cell_link an isolated command, which a warden starts and buries: this same program, as PID 1 of
 *             namespaces that the keeper made for it
 *   helper    file requests: a forked child each, which runs one file_* from top to bottom in a
 *             dialog on its channel; path and walk are the two ways they have of naming files.
 *             file_watch lasts until the daemon closes; watched_tree, dir_tree and name_set are
 *             its parts
 *   machine   /proc/meminfo and /proc/stat of the sandbox, written when somebody looks; vitals is
 *             what they say
 *
 * Invariants
 *
 *  1. A byte read from a command is sent, and again to the next daemon, until it is acknowledged;
 *     a command's exit is told after its last byte, until it is forgotten.
 *  2. At most a window of output and of input is held for each command; beyond it the pipe fills
 *     and the command waits.
 *  3. No pointer is kept in the kernel: events name a command by id, so one that is gone is not
 *     found.
 *  4. Memory that an idle agent does not need is not there: but for two small ones, buffers exist
 *     while they hold something.
 *  5. Nothing in the sandbox can signal or trace it, or change its limits: it blocks all signals, its
 *     program cannot be read, which makes its /proc entry the host's, and the filter knows its
 *     number; and the OOM killer takes its children first.
 *  6. It makes no system call that the filter refuses: such calls wait for its answer (denial.h).
 *
 * The road not taken: a thread or a coroutine for each command. It would read more simply, and cost
 * a stack for each of the thousands of commands and sandboxes that mostly wait.
 */
#include "agent/init.h"
#include "agent/warden.h"
#include "wire/agent.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What the keeper did not have to give is not open. */
static int given(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
	static const int sheets[MACHINE_SHEETS] = {AGENT_MEMINFO_FD, AGENT_STAT_FD};
	const struct init_fds fds = {
		.lifeline = AGENT_LIFELINE_FD,
		.jobs = {given(AGENT_GROUP_FD), given(AGENT_OOM_FD), given(AGENT_WORK_FD),
			given(AGENT_DENIALS_FD)},
		.sheets = sheets,
	};

	if (argc > 1 && strcmp(argv[1], AGENT_WARDEN) == 0)
		_exit(warden_run(fds.lifeline, fds.jobs.score));
	_exit(init_run(&fds));
}
