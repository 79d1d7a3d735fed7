/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes in turn, all children of the keeper, who buries them. The first enters the sandbox and
 * clones the second into its control group and pid namespace. That one only clones the third, PID 1 of the
 * cell: a pid namespace is made by somebody who is in the one above.
 *
 * The second and the third can be seen by hostile processes. Those cannot trace them or look at their
 * descriptors: they are not dumpable, and their memory belongs to the host's user namespace. But everybody
 * may read of a process what is mounted for it, its network and its command line. So the first lets go of
 * all that is the host's, before there is a second.
 */
#include "keeper/cell.h"

#include "base/fd.h"
#include "keeper/confine.h"
#include "keeper/ipcns.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All that is taken along. */
struct baggage {
	int sock;
	int sandbox_fd; /* pidfd of its PID 1 */
	int group_fd;
	int agent_fd;
};

/* To places of their own; everything else is closed. */
static int pack_baggage(struct baggage *baggage, struct err *err)
{
	int *const kept[] = {
		&baggage->sock, &baggage->sandbox_fd, &baggage->group_fd, &baggage->agent_fd};
	const int first = AGENT_FDS_END;
	const int end = first + (int)array_len(kept);

	for (size_t i = 0; i < array_len(kept); i++) {
		*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, end);
		if (*kept[i] < 0)
			return err_sys(err, "move a descriptor");
	}
	for (size_t i = 0; i < array_len(kept); i++) {
		if (dup3(*kept[i], first + (int)i, O_CLOEXEC) < 0)
			return err_sys(err, "move a descriptor");
		*kept[i] = first + (int)i;
	}
	if (syscall(SYS_close_range, 3, first - 1, 0) < 0 ||
		syscall(SYS_close_range, end, ~0u, 0) < 0)
		return err_sys(err, "close descriptors");
	return 0;
}

static int place_descriptors(
	const struct baggage *baggage, int score_fd, int listener_fd, struct err *err)
{
	const struct err built = {.kind = ERR_NONE};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (null < 0)
		return err_sys(err, "open /dev/null");
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null, fd) < 0)
			return err_sys(err, "set descriptor %d", fd);
	}
	/* Not for the warden, though nobody can trace it: who has it can let refused calls through. */
	n = fdpass_send(baggage->sock, &built, sizeof(built), &listener_fd, listener_fd >= 0, 0);
	if (n != (ssize_t)sizeof(built))
		return err_set(err, ERR_INTERNAL, "nobody waits for the cell");
	if (dup2(baggage->sock, AGENT_LIFELINE_FD) < 0)
		return err_sys(err, "set descriptor %d", AGENT_LIFELINE_FD);
	if (score_fd >= 0 && dup2(score_fd, AGENT_OOM_FD) < 0)
		return err_sys(err, "set descriptor %d", AGENT_OOM_FD);
	return 0;
}

/* PID 1 of the cell. */
static int become_cell(const struct build_context *context, const struct held *held,
	const struct baggage *baggage, char *const environment[], struct err *err)
{
	char *const argv[] = {(char *)"sandlot-agent", (char *)AGENT_WARDEN, NULL};
	int score_fd, listener_fd, r;

	/* Not before: nobody is cloned into a group that its cgroup namespace does not show from its own. */
	if (setns(baggage->sandbox_fd, CLONE_NEWCGROUP) < 0)
		return err_sys(err, "enter the cgroup namespace of the sandbox");
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "copy the mount namespace");
	setsid();
	if ((r = rootfs_divide(&context->sources, userns_base(&context->userns.ranges, held->slot),
		     held->limits.memory_bytes, err)) < 0 ||
		(r = ipcns_limit(&held->limits, err)) < 0 || (r = rootfs_seal(err)) < 0)
		return r;
	/* Its own file, to which exec will not give it the right any more. */
	score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	/* A pidfd stands for the user namespace of its process, too. */
	if ((r = confine(baggage->sandbox_fd, held->profile, &held->walls, &listener_fd, err)) <
			0 ||
		(r = place_descriptors(baggage, score_fd, listener_fd, err)) < 0)
		return r;
	syscall(SYS_execveat, baggage->agent_fd, "", argv, environment, AT_EMPTY_PATH);
	return err_sys(err, "run the warden");
}

/* A child of our parent, which ends with the same signal as we do. */
static pid_t clone_sibling(uint64_t flags, int group_fd)
{
	struct clone_args args = {
		.flags = flags | CLONE_PARENT | CLONE_CLEAR_SIGHAND,
		.cgroup = (uint64_t)group_fd,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int build(const struct build_context *context, const struct held *held,
	struct baggage *baggage, struct err *err)
{
	char variable[sizeof(AGENT_CPUS) + CPUS_LIST_MAX] = AGENT_CPUS "=";
	char *const environment[] = {variable, NULL};
	pid_t pid;
	int r;

	cpus_list(&held->cpus, variable + sizeof(AGENT_CPUS));
	r = cgroup_enter_v1(&context->cgroups, held->group, err);
	if (r == 0)
		r = pack_baggage(baggage, err);
	if (r < 0)
		return r;
	memset(context->command_line, 0, context->command_line_len);
	if (setns(baggage->sandbox_fd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWPID) <
		0)
		return err_sys(err, "enter the sandbox");
	pid = clone_sibling(CLONE_INTO_CGROUP, baggage->group_fd);
	if (pid == 0)
		pid = clone_sibling(CLONE_NEWPID | CLONE_NEWIPC, 0);
	if (pid < 0)
		return err_sys(err, "clone the cell");
	if (pid > 0)
		return 0;
	return become_cell(context, held, baggage, environment, err);
}

static _Noreturn void run_builder(
	const struct build_context *context, const struct held *held, struct baggage *baggage)
{
	struct err err = {0};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (build(context, held, baggage, &err) < 0)
		(void)!send(baggage->sock, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(err.kind != ERR_NONE);
}

/*
 * Whether it is built: the user namespace is what it enters last. Before that its other namespaces may still
 * be the host's.
 */
static bool is_built(const struct held *held)
{
	struct stat own, its;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", held->pid);
	return stat("/proc/self/ns/user", &own) == 0 && stat(path, &its) == 0 &&
	       own.st_ino != its.st_ino;
}

int cell_start(const struct build_context *context, const struct held *held, int *ret_sock,
	struct err *err)
{
	auto_fd int ours = -1, theirs = -1, sandbox_fd = -1, group_fd = -1;
	struct baggage baggage;
	int *const kept[] = {&baggage.sock, &baggage.sandbox_fd, &baggage.group_fd};
	int pair[2];
	pid_t pid;

	if (!cgroup_tree_is_real(&context->cgroups))
		return err_explain(err, ERR_UNAVAILABLE, "isolate_unavailable",
			"run sandlotd as root, or delegate control groups to it",
			"commands cannot be isolated without control groups");
	if (!is_built(held))
		return err_set(err, ERR_CONFLICT, "sandbox %s is being built", held->id);
	sandbox_fd = (int)syscall(SYS_pidfd_open, held->pid, 0);
	if (sandbox_fd < 0)
		return err_sys(err, "open sandbox %s", held->id);
	group_fd = openat(
		context->cgroups.unified_fd, held->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group_fd < 0)
		return err_sys(err, "open cgroup %s", held->group);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket for the cell");
	ours = pair[0];
	theirs = pair[1];
	baggage = (struct baggage){.sock = theirs,
		.sandbox_fd = sandbox_fd,
		.group_fd = group_fd,
		.agent_fd = context->agent_fd};
	pid = offspring_clone(&context->offspring, (struct clone_args){.exit_signal = SIGCHLD},
		kept, array_len(kept));
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0)
		run_builder(context, held, &baggage);
	*ret_sock = take_fd(&ours);
	return 0;
}
