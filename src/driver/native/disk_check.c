/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/disk_check.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMAGE_FD      3
#define IMAGE_PATH    "/proc/self/fd/3"
#define MEMORY_BYTES  (2ull << 30)
#define FILE_BYTES    (64ull << 30)
#define TIME_S	      300
#define NOT_INSTALLED 127 /* our own exit statuses; e2fsck's are bits below 128 */
#define NOT_CONFINED  126

#define FSCK_UNCORRECTED 4
#define FSCK_FAILED	 8

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "name the architecture of this machine"
#endif

/* --- in the child: only system calls, because other threads of the daemon may hold any lock --- */

static int limit_resources(void)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = {
		{RLIMIT_AS, MEMORY_BYTES},
		{RLIMIT_CPU, TIME_S},
		{RLIMIT_FSIZE, FILE_BYTES},
		{RLIMIT_NOFILE, 32},
		{RLIMIT_CORE, 0},
	};

	for (size_t i = 0; i < array_len(limits); i++) {
		const struct rlimit limit = {limits[i].value, limits[i].value};

		if (setrlimit(limits[i].resource, &limit) < 0)
			return -errno;
	}
	return 0;
}

#define MAY_READ                                                                                   \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)
#define MAY_WRITE  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
#define ALL_ACCESS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

static void allow(int rules, int fd, uint64_t access)
{
	const struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

	/* If this rule is missing, e2fsck works without the file, or fails. */
	if (fd >= 0)
		syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/*
 * Allows e2fsck only its own files and the image. On a kernel without Landlock it may use all that
 * the daemon's user may.
 */
static int restrict_files(void)
{
	static const char *const readable[] = {
		"/usr", "/lib", "/lib64", "/sbin", "/etc/ld.so.cache"};
	const struct landlock_ruleset_attr handled = {.handled_access_fs = ALL_ACCESS};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);

	if (rules < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	for (size_t i = 0; i < array_len(readable); i++) {
		int fd = open(readable[i], O_PATH | O_CLOEXEC);

		/* Rights to directories are refused on a file. */
		allow(rules, fd, readable[i][1] == 'e' ? LANDLOCK_ACCESS_FS_READ_FILE : MAY_READ);
		fd_close(fd);
	}
	allow(rules, IMAGE_FD, MAY_WRITE);
	allow(rules, STDIN_FILENO, MAY_WRITE);
	return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : 0;
}

static const int calls[] = {SYS_execve, SYS_exit, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap,
	SYS_mprotect, SYS_mremap, SYS_madvise, SYS_openat, SYS_close, SYS_read, SYS_write,
	SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_fsync, SYS_fdatasync,
	SYS_fadvise64, SYS_fallocate, SYS_ftruncate, SYS_fstat, SYS_newfstatat, SYS_statx,
	SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64,
	SYS_fcntl, SYS_ioctl, SYS_futex, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
	SYS_rseq, SYS_set_robust_list, SYS_set_tid_address, SYS_getrandom, SYS_getrusage, SYS_uname,
	SYS_sysinfo, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getpid, SYS_gettid,
	SYS_sched_getaffinity, SYS_sched_yield, SYS_clock_gettime, SYS_gettimeofday,
	SYS_clock_nanosleep, SYS_nanosleep,
#ifdef __x86_64__
	SYS_open, SYS_access, SYS_stat, SYS_lstat, SYS_readlink, SYS_arch_prctl, SYS_time
#endif
};

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARG(n) (offsetof(struct seccomp_data, args) + 8 * (n)) /* its lower half */

/*
 * Unknown calls fail. e2fsck may make a thread, but no process; it may read limits, of itself only.
 */
static int restrict_calls(void)
{
	struct sock_filter code[array_len(calls) * 2 + 24];
	struct sock_fprog program = {.filter = code};
	unsigned short n = 0;

#define EMIT(...) code[n++] = (struct sock_filter)__VA_ARGS__
	EMIT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0));
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	EMIT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER));
	for (size_t i = 0; i < array_len(calls); i++) {
		EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1));
		EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	}
	EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	EMIT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(0)));
	EMIT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4));
	EMIT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(0)));
	EMIT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	/* ENOSYS also makes libc take clone for clone3, whose flags no filter can see. */
	EMIT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
#undef EMIT
	program.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* Descriptors: null for 0 to 2, and the image. */
static int place_descriptors(int image_fd)
{
	/* The image moves away first, in case it has one of the low numbers. */
	int image = fcntl(image_fd, F_DUPFD_CLOEXEC, IMAGE_FD + 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null, fd) < 0)
			return -errno;
	}
	if (dup2(image, IMAGE_FD) < 0 || syscall(SYS_close_range, IMAGE_FD + 1, ~0u, 0) < 0)
		return -errno;
	return 0;
}

int disk_check_confine(int image_fd)
{
	int r;

	if ((r = place_descriptors(image_fd)) < 0 || (r = limit_resources()) < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = restrict_files();
	return r < 0 ? r : restrict_calls();
}

static _Noreturn void become_e2fsck(int image_fd, const char *how)
{
	static const char *const programs[] = {"/usr/sbin/e2fsck", "/sbin/e2fsck"};
	char *const argv[] = {
		(char *)"e2fsck", (char *)"-f", (char *)how, (char *)IMAGE_PATH, NULL};
	char *const environment[] = {(char *)"LC_ALL=C", (char *)"E2FSCK_CONFIG=/dev/null", NULL};
	sigset_t none;

	/* If the daemon dies, e2fsck dies and the image is unlocked. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (disk_check_confine(image_fd) < 0)
		_exit(NOT_CONFINED);
	for (size_t i = 0; i < array_len(programs); i++)
		execve(programs[i], argv, environment);
	_exit(errno == ENOENT ? NOT_INSTALLED : NOT_CONFINED);
}

/* --- in the daemon --- */

/* Returns the wait status of a child, which is killed when its time is over. */
static int await(pid_t pid)
{
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	int status = 0, n;

	do
		n = poll(&ended, 1, TIME_S * 1000);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return status;
}

/* How e2fsck ended: its exit status, or FSCK_FAILED. */
static int run(int image_fd, const char *how, struct err *err)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return err_sys(err, "start e2fsck");
	if (pid == 0)
		become_e2fsck(image_fd, how);
	status = await(pid);
	if (status < 0)
		return err_from(err, status, "wait for e2fsck");
	status = WIFEXITED(status) ? WEXITSTATUS(status) : FSCK_FAILED;
	if (status == NOT_INSTALLED)
		return err_explain(err, ERR_UNAVAILABLE, "e2fsck_missing",
			"install e2fsprogs: sudo apt-get install e2fsprogs",
			"the disk has to be checked, and e2fsck is not installed");
	if (status == NOT_CONFINED)
		return err_set(
			err, ERR_INTERNAL, "e2fsck could not be confined, so it was not run");
	return status;
}

int disk_check_run(int image_fd, struct err *err)
{
	/* First repairs only what is safe without asking; then all of it, which may leave files
	 * in lost+found. */
	int status = run(image_fd, "-p", err);

	if (status >= 0 && (status & (FSCK_UNCORRECTED | FSCK_FAILED)))
		status = run(image_fd, "-y", err);
	if (status < 0)
		return status;
	if (status & (FSCK_UNCORRECTED | FSCK_FAILED))
		return err_explain(err, ERR_CONFLICT, "disk_damaged", NULL,
			"e2fsck could not mend it (status %d)", status);
	return 0;
}
