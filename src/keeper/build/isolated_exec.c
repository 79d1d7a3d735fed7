/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes in turn build an isolated command; all are children of the keeper, which reaps
 * them. The first enters the sandbox and clones the second into its control group and pid
 * namespace. The second only clones the third, PID 1 of the isolated command: a process can make a
 * pid namespace only below its own.
 *
 * Hostile processes of the sandbox see the second and the third. They cannot trace them or look at
 * their descriptors: both are not dumpable, and their memory belongs to the host's user namespace.
 * But every process may read another's mounts, network and command line. So the first drops all
 * that belongs to the host before it clones the second.
 */
#include "keeper/build/isolated_exec.h"

#include "base/fd.h"
#include "keeper/build/confine.h"
#include "keeper/namespace/ipcns.h"
#include "keeper/process/oom_score.h"
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

/* The descriptors that the three processes pass on. */
struct isolated_parts {
	int sock;
	int sandbox_fd; /* pidfd of the sandbox's PID 1 */
	int group_fd;
	int agent_fd;
};

/* Moves the descriptors to numbers of their own and closes all others. */
static int place_parts(struct isolated_parts *parts, struct err *err)
{
	int *const kept[] = {&parts->sock, &parts->sandbox_fd, &parts->group_fd, &parts->agent_fd};
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
	const struct isolated_parts *parts, int score_fd, int listener_fd, struct err *err)
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
	/* The isolated init does not get the listener, though it cannot be traced: a process
	 * that has the listener can let refused calls through. */
	n = fdpass_send(parts->sock, &built, sizeof(built), &listener_fd, listener_fd >= 0, 0);
	if (n != (ssize_t)sizeof(built))
		return err_set(
			err, ERR_INTERNAL, "the agent no longer waits for the isolated command");
	if (dup2(parts->sock, AGENT_LIFELINE_FD) < 0)
		return err_sys(err, "set descriptor %d", AGENT_LIFELINE_FD);
	if (score_fd >= 0 && dup2(score_fd, AGENT_OOM_FD) < 0)
		return err_sys(err, "set descriptor %d", AGENT_OOM_FD);
	return 0;
}

/* Becomes PID 1 of the isolated command. */
static int become_isolated_init(const struct build_context *context,
	const struct sandbox_entry *entry, const struct isolated_parts *parts,
	char *const environment[], struct err *err)
{
	char *const argv[] = {(char *)"sandlot-agent", (char *)AGENT_ISOLATED_INIT, NULL};
	int score_fd, listener_fd, r;

	/* Not earlier: the kernel clones no process into a group that its cgroup namespace does
	 * not show. */
	if (setns(parts->sandbox_fd, CLONE_NEWCGROUP) < 0)
		return err_sys(err, "enter the cgroup namespace of the sandbox");
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "copy the mount namespace");
	setsid();
	if ((r = rootfs_isolate(&context->sources,
		     userns_base(&context->userns.ranges, entry->slot), entry->limits.memory_bytes,
		     err)) < 0 ||
		(r = ipcns_limit(&entry->limits, err)) < 0 || (r = rootfs_seal(err)) < 0)
		return r;
	score_fd = oom_score_open_own();
	/* A pidfd also names the user namespace of its process. */
	if ((r = confine(parts->sandbox_fd, entry->profile, &entry->walls, &listener_fd, err)) <
			0 ||
		(r = place_descriptors(parts, score_fd, listener_fd, err)) < 0)
		return r;
	syscall(SYS_execveat, parts->agent_fd, "", argv, environment, AT_EMPTY_PATH);
	return err_sys(err, "run the isolated init");
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

static int build(const struct build_context *context, const struct sandbox_entry *entry,
	struct isolated_parts *parts, struct err *err)
{
	char variable[sizeof(AGENT_CPUS) + CPUS_LIST_MAX] = AGENT_CPUS "=";
	char *const environment[] = {variable, NULL};
	pid_t pid;
	int r;

	cpus_list(&entry->cpus, variable + sizeof(AGENT_CPUS));
	r = cgroup_enter_v1(&context->cgroups, entry->group, err);
	if (r == 0)
		r = place_parts(parts, err);
	if (r < 0)
		return r;
	memset(context->command_line, 0, context->command_line_len);
	if (setns(parts->sandbox_fd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWPID) < 0)
		return err_sys(err, "enter the sandbox");
	pid = clone_sibling(CLONE_INTO_CGROUP, parts->group_fd);
	if (pid == 0)
		pid = clone_sibling(CLONE_NEWPID | CLONE_NEWIPC, 0);
	if (pid < 0)
		return err_sys(err, "clone the isolated init");
	if (pid > 0)
		return 0;
	return become_isolated_init(context, entry, parts, environment, err);
}

static _Noreturn void run_builder(const struct build_context *context,
	const struct sandbox_entry *entry, struct isolated_parts *parts)
{
	struct err err = {0};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (build(context, entry, parts, &err) < 0)
		(void)!send(parts->sock, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(err.kind != ERR_NONE);
}

/*
 * Whether the sandbox is built: it enters its user namespace last. Before that its other namespaces
 * may still be the host's.
 */
static bool is_built(const struct sandbox_entry *entry)
{
	struct stat own, its;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", entry->pid);
	return stat("/proc/self/ns/user", &own) == 0 && stat(path, &its) == 0 &&
	       own.st_ino != its.st_ino;
}

int isolated_exec_start(const struct build_context *context, const struct sandbox_entry *entry,
	int *ret_sock, struct err *err)
{
	auto_fd int ours = -1, theirs = -1, sandbox_fd = -1, group_fd = -1;
	struct isolated_parts parts;
	int *const kept[] = {&parts.sock, &parts.sandbox_fd, &parts.group_fd};
	int pair[2];
	pid_t pid;

	if (!cgroup_tree_is_real(&context->cgroups))
		return err_explain(err, ERR_UNAVAILABLE, "isolate_unavailable",
			"run sandlotd as root, or delegate control groups to it",
			"commands cannot be isolated without control groups");
	if (!is_built(entry))
		return err_set(err, ERR_CONFLICT, "sandbox %s is being built", entry->id);
	sandbox_fd = (int)syscall(SYS_pidfd_open, entry->pid, 0);
	if (sandbox_fd < 0)
		return err_sys(err, "open sandbox %s", entry->id);
	group_fd = openat(
		context->cgroups.unified_fd, entry->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group_fd < 0)
		return err_sys(err, "open cgroup %s", entry->group);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket for an isolated command");
	ours = pair[0];
	theirs = pair[1];
	parts = (struct isolated_parts){.sock = theirs,
		.sandbox_fd = sandbox_fd,
		.group_fd = group_fd,
		.agent_fd = context->agent_fd};
	pid = clone_child_clone(&context->child, (struct clone_args){.exit_signal = SIGCHLD}, kept,
		array_len(kept));
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0)
		run_builder(context, entry, &parts);
	*ret_sock = take_fd(&ours);
	return 0;
}
