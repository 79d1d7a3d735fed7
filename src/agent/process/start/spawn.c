/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the child runs, the agent waits. A process of the sandbox that stops the child with SIGSTOP
 * in the few microseconds between setresuid() and execve() would stop PID 1 with it. That only
 * makes a sandbox that no longer answers, which the keeper kills; a fork for each command would
 * prevent it at three times the price.
 */
#include "agent/process/start/spawn.h"

#include "base/mem.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_LEN    (AGENT_PATH_MAX + 4096)
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define SHELL	     "/bin/sh"

/* The C library's setresuid() and friends talk to threads: the child uses none of them. */
#define raw(...) syscall(__VA_ARGS__)

/* The child never returns: AddressSanitizer would keep its frames poisoned for the agent. */
#define in_child __attribute__((no_sanitize("address", "undefined")))

/* On the agent's stack, seen by both; the child writes stage and errnum when it fails. */
struct shared {
	const struct spawn_base *base;
	const struct payload_exec *exec;
	const struct spawn_target *target;
	const char *search; /* PATH, if argv[0] has to be looked up */
	int stage;
	int errnum;
};

void spawn_block_signals(void)
{
	static const uint64_t
		by_default[4]; /* the kernel's struct sigaction: all zeros is SIG_DFL */
	sigset_t set;

	/* Makes the system call itself: the C library keeps two signals from its callers, and
	 * the program that started us may have had these ignored. */
	for (int i = 1; i < _NSIG; i++)
		syscall(SYS_rt_sigaction, i, by_default, NULL, sizeof(uint64_t));
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

void spawn_prepare(struct spawn_base *ret_base, int score_fd, int work_fd)
{
	struct rlimit raised;

	oom_score_open(&ret_base->oom, score_fd, work_fd);
	affinity_parse(&ret_base->affinity, getenv(AGENT_CPUS));
	ret_base->uid = getuid();
	ret_base->gid = getgid();
	/* Children inherit the empty list. Where the kernel refuses it they could not do it
	 * either. */
	if (setgroups(0, NULL) < 0)
		errno = 0;
	/* Two or three descriptors for each command: the soft limit of 1024 is not the agent's. */
	if (getrlimit(RLIMIT_NOFILE, &ret_base->files) < 0)
		ret_base->files = (struct rlimit){.rlim_cur = 1024, .rlim_max = 1024};
	raised = ret_base->files;
	raised.rlim_cur = raised.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
		ret_base->files.rlim_cur = ret_base->files.rlim_max;
}

/* A script without "#!": the shell runs it, as execvp() has it. */
in_child static void run_by_shell(struct shared *shared, char *path)
{
	char **argv = shared->exec->argv - 1;
	char *saved = argv[1];

	argv[0] = (char *)SHELL;
	argv[1] = path;
	raw(SYS_execve, SHELL, argv, shared->exec->envp);
	argv[1] = saved;
}

in_child static void execute(struct shared *shared, char *path)
{
	raw(SYS_execve, path, shared->exec->argv, shared->exec->envp);
	if (errno == ENOEXEC)
		run_by_shell(shared, path);
}

/*
 * Tries each directory of PATH. It skips a directory that has no such file, remembers one whose
 * file may not be run, and takes any other failure (too many arguments, no memory) as final.
 */
in_child static void search(struct shared *shared)
{
	char candidate[AGENT_PATH_MAX] not_cleared;
	const char *name = shared->exec->argv[0];
	size_t name_len = strlen(name);
	bool is_denied = false;

	errno = ENOENT;
	if (name_len == 0)
		return;
	for (const char *dir = shared->search, *end; dir; dir = *end ? end + 1 : NULL) {
		size_t len;

		end = strchrnul(dir, ':');
		len = (size_t)(end - dir);
		if (len + 1 + name_len + 1 > sizeof(candidate))
			continue;
		memcpy(candidate, dir, len);
		if (len > 0)
			candidate[len++] = '/';
		memcpy(candidate + len, name, name_len + 1);
		execute(shared, candidate);
		if (errno == EACCES)
			is_denied = true;
		else if (errno != ENOENT && errno != ENOTDIR)
			return;
	}
	errno = is_denied ? EACCES : ENOENT;
}

/*
 * Joins the group, makes a session, takes the terminal: false with errno. A thread that writes
 * itself into a threaded group does not wait (12 us); a process that is moved waits for an RCU
 * grace period.
 */
in_child static bool enter_group_and_session(const struct spawn_target *target)
{
	if (target->group_fd >= 0 && raw(SYS_write, target->group_fd, "0", 1) < 0)
		return false;
	if (raw(SYS_setsid) < 0)
		return false;
	if (target->is_terminal && raw(SYS_ioctl, target->fds[0], TIOCSCTTY, 0) < 0)
		return false;
	for (int i = 0; i < 4; i++) {
		if (target->fds[i] >= 0 && raw(SYS_dup3, target->fds[i], i, 0) < 0)
			return false;
	}
	return true;
}

/* Group and session, descriptors, limit, identity: false with errno. */
in_child static bool set_up(const struct shared *shared)
{
	const struct spawn_base *base = shared->base;
	const struct payload_exec *exec = shared->exec;

	if (base->oom.work_fd >= 0 && raw(SYS_write, base->oom.work_fd, "0", 1) < 0)
		return false;
	if (!enter_group_and_session(shared->target))
		return false;
	if (raw(SYS_close_range, shared->target->fds[3] < 0 ? 3 : 4, ~0u, 0) < 0)
		return false;
	if (base->files.rlim_cur != base->files.rlim_max &&
		raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &base->files, NULL) < 0)
		return false;
	if (exec->group_count > 0 && raw(SYS_setgroups, exec->group_count, exec->groups) < 0)
		return false;
	if (exec->gid != base->gid && raw(SYS_setresgid, exec->gid, exec->gid, exec->gid) < 0)
		return false;
	if (exec->uid != base->uid && raw(SYS_setresuid, exec->uid, exec->uid, exec->uid) < 0)
		return false;
	return true;
}

/* Each step names its stage before it is tried. */
in_child static int child(void *argument)
{
	static const uint64_t no_signals;
	struct shared *shared = argument;
	int stage = AGENT_STAGE_SETUP;

	if (!set_up(shared))
		goto failed;
	/* As the user: a directory that the user may not enter is no working directory. */
	stage = AGENT_STAGE_CWD;
	if (raw(SYS_chdir, shared->exec->cwd) < 0)
		goto failed;
	stage = AGENT_STAGE_EXEC;
	/* The last thing, since it may move to another processor with all that it has. */
	if (shared->base->affinity.is_bound)
		raw(SYS_sched_setaffinity, 0, sizeof(cpu_set_t), &shared->base->affinity.set);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
	if (shared->search)
		search(shared);
	else
		execute(shared, shared->exec->argv[0]);
failed:
	shared->errnum = errno;
	shared->stage = stage;
	raw(SYS_exit, 127);
	__builtin_unreachable();
}

static const char *path_of(char *const *envp)
{
	for (; *envp; envp++) {
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	}
	return PATH_DEFAULT;
}

pid_t spawn_run(const struct spawn_base *base, const struct payload_exec *exec,
	const struct spawn_target *target, int *ret_stage)
{
	struct shared shared = {.base = base, .exec = exec, .target = target};
	char stack[STACK_LEN] not_cleared __attribute__((aligned(16)));
	pid_t pid;
	int errnum;

	/* -1 would mean "leave it": the command would run as root. */
	if (exec->uid == UINT32_MAX || exec->gid == UINT32_MAX) {
		*ret_stage = AGENT_STAGE_SETUP;
		return -EINVAL;
	}
	if (!strchr(exec->argv[0], '/'))
		shared.search = path_of(exec->envp);
	oom_score_raise(&base->oom);
	pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &shared);
	errnum = errno;
	/* The child's setresuid() may have made the shared memory dumpable (fs.suid_dumpable). */
	prctl(PR_SET_DUMPABLE, 0);
	oom_score_restore(&base->oom);
	if (pid < 0) {
		*ret_stage = AGENT_STAGE_SETUP;
		return -errnum;
	}
	if (shared.stage == 0)
		return pid;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	*ret_stage = shared.stage;
	return -shared.errnum;
}
