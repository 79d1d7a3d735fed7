/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that one process can do to another, done to PID 1: trace, read and write its memory, take
 * its descriptors, send every signal, change its limits, scheduling, priority and OOM score. With an
 * argument it does so to every other process there is, until it is killed.
 */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static const char *const read_files[] = {"auxv", "environ", "exe", "maps", "mem", "pagemap",
	"smaps", "stack", "syscall", "io", "map_files", "fd", "fdinfo/0", "cwd/etc", "root/etc",
	"ns/mnt", "task/1/mem", "timers"};
static const char *const write_files[] = {"attr/current", "autogroup", "clear_refs", "comm",
	"coredump_filter", "exe", "gid_map", "loginuid", "mem", "oom_adj", "oom_score_adj", "sched",
	"setgroups", "task/1/comm", "timens_offsets", "timerslack_ns", "uid_map"};

static void open_files(int pid)
{
	char path[64], byte;

	for (size_t i = 0; i < COUNT(read_files); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, read_files[i]);
		fd = open(path, O_RDONLY | O_NONBLOCK);
		/* Some open and then show nothing. */
		if (fd >= 0 && read(fd, &byte, 1) < 1 && errno != EISDIR && errno != EINVAL) {
			close(fd);
			fd = -1;
			errno = ENODATA;
		}
		tell(fd, "read %s", read_files[i]);
		close(fd);
	}
	for (size_t i = 0; i < COUNT(write_files); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, write_files[i]);
		fd = open(path, O_WRONLY);
		tell(fd < 0 ? fd : write(fd, "1000", 4), "write %s", write_files[i]);
		close(fd);
	}
}

static void trace(int pid)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	tell(ptrace(PTRACE_SEIZE, pid, 0, 0), "seize");
	tell(ptrace(PTRACE_ATTACH, pid, 0, 0), "attach");
	tell(process_vm_readv(pid, &here, 1, &there, 1, 0), "process_vm_readv");
	tell(process_vm_writev(pid, &here, 1, &there, 1, 0), "process_vm_writev");
	for (int fd = 0; fd < 12; fd++)
		tell(syscall(SYS_pidfd_getfd, pidfd, fd, 0), "pidfd_getfd %d", fd);
	tell(syscall(SYS_process_madvise, pidfd, &there, 1, 21, 0), "process_madvise");
	tell(syscall(SYS_setns, pidfd, 0x20000), "setns by pidfd");
	tell(syscall(SYS_kcmp, pid, getpid(), 2, 0, 0), "kcmp");
	tell(syscall(SYS_get_robust_list, pid, &here, &there), "get_robust_list");
	tell(syscall(SYS_move_pages, pid, 0, 0, 0, 0, 0), "move_pages");
}

static void signal_it(int pid)
{
	siginfo_t info = {.si_code = SI_QUEUE};

	for (int sig = 1; sig <= 64; sig++) {
		kill(pid, sig);
		syscall(SYS_tgkill, pid, pid, sig);
		info.si_signo = sig;
		syscall(SYS_rt_sigqueueinfo, pid, sig, &info);
	}
	kill(-pid, SIGSTOP);
	kill(-pid, SIGKILL);
}

static void meddle(int pid)
{
	static const int limits[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK,
		RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_NPROC, RLIMIT_MEMLOCK};
	struct rlimit none = {0, 0}, now;
	struct sched_param param = {0};
	cpu_set_t cpus;

	for (size_t i = 0; i < COUNT(limits); i++) {
		tell(prlimit(pid, limits[i], &none, NULL), "prlimit %d", limits[i]);
		if (prlimit(pid, limits[i], NULL, &now) == 0)
			tell(now.rlim_cur == 0 && limits[i] != RLIMIT_CORE ? 0
									   : (errno = EPERM, -1),
				"limit %d is 0", limits[i]);
	}
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	tell(sched_setaffinity(pid, sizeof(cpus), &cpus), "sched_setaffinity");
	tell(sched_setscheduler(pid, SCHED_IDLE, &param), "SCHED_IDLE");
	tell(sched_setscheduler(pid, SCHED_BATCH, &param), "SCHED_BATCH");
	tell(setpriority(PRIO_PROCESS, (id_t)pid, 19), "nice");
	tell(setpriority(PRIO_PGRP, (id_t)pid, 19), "nice of its group");
	tell(setpriority(PRIO_USER, 0, 19), "nice of its user");
	tell(syscall(SYS_ioprio_set, 1, pid, 3 << 13), "idle i/o");
	tell(syscall(SYS_ioprio_set, 3, 0, 3 << 13), "idle i/o of its user");
}

static int is_agent(int pid)
{
	char path[64], comm[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	(void)!read(fd, comm, sizeof(comm) - 1);
	close(fd);
	return strstr(comm, "sandlot-a") != NULL;
}

/*
 * Whether a file of a process can be opened while that is the agent's program. One that has become a
 * command in the meantime is anybody's, so what counts is what it is afterwards: helpers never change.
 */
static int is_opened(int pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags);
	if (fd < 0)
		return 0;
	close(fd);
	return is_agent(pid);
}

/* The same for tracing. A command is let go again: its end would come to us and not to the agent. */
static int is_seized(int pid)
{
	int status, seized;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return 0;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return 0;
	seized = is_agent(pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return seized;
}

/* Races what the agent starts: helpers, and commands before they exec. */
static void hunt(void)
{
	unsigned long taken = 0, seen = 0;

	for (;;) {
		DIR *dir = opendir("/proc");
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			int pid = atoi(entry->d_name);

			if (pid <= 1 || pid == getpid() || !is_agent(pid))
				continue;
			if (seen++ == 0)
				tell_count("saw", 1);
			if (is_opened(pid, "exe", O_RDWR) || is_opened(pid, "exe", O_RDONLY))
				tell_count("opened exe", ++taken);
			if (is_opened(pid, "mem", O_RDWR))
				tell_count("opened mem", ++taken);
			if (is_opened(pid, "fd/3", O_RDWR))
				tell_count("opened descriptor", ++taken);
			if (is_seized(pid))
				tell_count("seized", ++taken);
		}
		if (dir)
			closedir(dir);
	}
}

int main(int argc, char *argv[])
{
	(void)argv;
	if (argc > 1)
		hunt();
	open_files(1);
	trace(1);
	signal_it(1);
	meddle(1);
	return 0;
}
