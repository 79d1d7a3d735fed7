/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot-agent: PID 1 of every sandbox.
 *
 * Theory of operation
 *
 * The keeper starts the agent inside the finished sandbox, with /dev/null as descriptors 0-2 and those that
 * wire/agent.h names from 3 on. It has one thread and one epoll loop (init.c) and never blocks: a child does
 * whatever could block. It keeps no state on disk and knows no secret but that which its daemon proves itself
 * with, where it listens for daemons as an ordinary container's first process; wire/agent.h is its whole contract.
 *
 *   lifeline --fd--> link/daemon_link --frames--> link/payload --> process/process --> link/daemon_link
 *                                                        \--> files/helper (fork): files/file_*
 *
 *   init               the loop; a table row for each kind of frame
 *   link/daemon_link   the link to the present daemon: frames in and out
 *   link/listener      without a keeper: connections of daemons, until they have proven themselves (wire/proof.h);
 *                      port_forward relays those that are for a port of the sandbox
 *   link/payload       parses frames (the part that is fuzzed)
 *   link/report        what the daemon is told of a command, but for its output
 *   process/process    commands. spawn starts one, stdin_pipe feeds it, output_pipe reads it (pty makes both
 *                      from one device), output_backlog keeps its output until it is acknowledged,
 *                      process_cgroup holds all its descendants, survivors signals and counts them,
 *                      limit_hits says what the sandbox ran out of, denied_syscall what the filter refused.
 *                      process_tree replaces process_cgroup where there are no cgroups (a keeper that is not
 *                      root of the host)
 *   process/isolated_process
 *                      an isolated command, which an isolated_init starts and reaps: this same program, as
 *                      PID 1 of namespaces that the keeper made for the command
 *   files/helper       file requests: a forked child each, which runs one file_* from start to end and talks
 *                      to the daemon by helper_io; path and walk find the files. file_watch runs until the
 *                      daemon closes; watched_tree, watched_target, dir_tree, inotify_queue and name_set are
 *                      its parts
 *   files/layer_writer
 *                      writes a layer of an image: this same program, outside of any sandbox.
 *                      tree_reader reads one in the same way, or what a sandbox has written
 *   machine/virtual_proc
 *                      writes /proc/meminfo and /proc/stat of the sandbox when a program opens them;
 *                      proc_text makes their text
 *   machine/port_scan  finds the listening sockets, in a helper
 *
 * Invariants
 *
 *  1. A byte read from a command is sent, and again to the next daemon, until it is acknowledged;
 *     a command's exit is reported after its last byte, until the daemon forgets the command.
 *  2. The agent keeps at most a window of output and of input for each command; beyond it the pipe fills
 *     and the command waits.
 *  3. No pointer is kept in the kernel: events name a command by id, so a command that is gone is not
 *     found.
 *  4. An idle agent uses little memory: but for two small ones, buffers exist while they hold something.
 *  5. No process in the sandbox can signal or trace the agent, or change its limits: it blocks all signals,
 *     its program cannot be read, which makes its /proc entry the host's, and the filter knows its
 *     number; and the OOM killer takes its children first.
 *  6. The agent makes no system call that the filter refuses: such calls wait for its own answer
 *     (process/denied_syscall.h).
 *
 * The road not taken: a thread or a coroutine for each command. It would read more simply, and cost
 * a stack for each of the thousands of commands and sandboxes that mostly wait.
 */
#include "agent/files/layer/layer_writer.h"
#include "agent/files/layer/tree_reader.h"
#include "agent/init.h"
#include "agent/process/start/isolated_init.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The descriptor, or -1 if the keeper did not pass it. */
static int given(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static enum tree_reader_form reader_form(const char *option)
{
	if (option && strcmp(option, LAYER_READER_CHANGES) == 0)
		return TREE_READER_CHANGES;
	return option && strcmp(option, LAYER_READER_NAMES) == 0 ? TREE_READER_NAMES
								 : TREE_READER_CONTENT;
}

/*
 * The secret from the environment, where it does not stay: /proc/1/environ shows this memory to
 * root of the container, unless it is another's by then.
 */
static int take_secret(struct proof_secret *ret_secret)
{
	char *text = getenv(AGENT_SECRET);
	int r = text ? proof_secret_parse(text, ret_secret) : -EINVAL;

	if (text)
		explicit_bzero(text, strlen(text));
	unsetenv(AGENT_SECRET);
	return r;
}

/* For whoever reads the log of the container. */
static int complain(const char *what, const char *why)
{
	dprintf(STDERR_FILENO, "sandlot-agent: %s: %s\n", what, why);
	return 1;
}

/* As the first process of an ordinary container. */
static int run_listening(const char *where)
{
	struct listener_config listener = {.fd = -1, .patience_ms = LISTENER_PATIENCE_MS};
	const struct init_fds fds = {
		.lifeline = -1, .processes = {-1, -1, -1, -1}, .listener = &listener};
	int null, r;

	prctl(PR_SET_DUMPABLE, 0);
	if (take_secret(&listener.secret) < 0)
		return complain(AGENT_SECRET, "is not set to 64 digits 0-9 a-f");
	/* Whatever the engine left open is for nobody in here. */
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	r = listener_open(where, &listener.fd);
	if (r < 0)
		return complain(where, strerror(-r));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return complain("/dev/null", strerror(errno));
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	fd_close(null);
	/* Where it is not PID 1 after all. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return init_run(&fds);
}

int main(int argc, char **argv)
{
	static const int proc_files[VIRTUAL_PROC_FILES] = {AGENT_MEMINFO_FD, AGENT_STAT_FD};
	const struct init_fds fds = {
		.lifeline = AGENT_LIFELINE_FD,
		.processes = {given(AGENT_GROUP_FD), given(AGENT_OOM_FD), given(AGENT_WORK_FD),
			given(AGENT_DENIALS_FD)},
		.proc_files = proc_files,
	};

	if (argc > 1 && strcmp(argv[1], AGENT_ISOLATED_INIT) == 0)
		_exit(isolated_init_run(fds.lifeline, fds.processes.score));
	if (argc > 2 && strcmp(argv[1], AGENT_LISTEN) == 0)
		_exit(run_listening(argv[2]));
	if (argc > 1 && strcmp(argv[1], LAYER_WRITER) == 0)
		_exit(layer_writer_run(LAYER_WRITER_FD));
	if (argc > 1 && strcmp(argv[1], LAYER_READER) == 0)
		_exit(tree_reader_run(LAYER_WRITER_FD, reader_form(argv[2])));
	_exit(init_run(&fds));
}
