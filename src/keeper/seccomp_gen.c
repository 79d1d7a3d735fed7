/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build tool: turns the tables below into the seccomp program of the `default` profile and prints it
 * as a C array. The keeper only carries the result, so that the privileged program links no library
 * and compiles nothing at run time.
 *
 * An allowlist: what is in no table gets ENOSYS, as if the kernel were older, so that programs fall
 * back; what is known and refused gets EPERM. Only the native ABI passes.
 *
 * libseccomp knows the numbers of the names. It does not write the filter, for two reasons. The
 * kernel runs a filter once for every system call number when it is loaded, and a tree over runs of
 * equal numbers is three times as fast there as the best that libseccomp makes. And the kernel reads
 * an ioctl request as 32 bits, which libseccomp cannot say in "all but these": a request with a high
 * bit set would slip through.
 */
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const char *const allowed[] = {
	/* files and directories */
	"access",
	"chdir",
	"chmod",
	"chown",
	"close",
	"close_range",
	"creat",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fallocate",
	"fchdir",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"fchown",
	"fchownat",
	"fcntl",
	"fdatasync",
	"fgetxattr",
	"flistxattr",
	"flock",
	"fremovexattr",
	"fsetxattr",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"futimesat",
	"getcwd",
	"getdents",
	"getdents64",
	"getxattr",
	"lchown",
	"lgetxattr",
	"link",
	"linkat",
	"listxattr",
	"llistxattr",
	"lremovexattr",
	"lseek",
	"lsetxattr",
	"lstat",
	"mkdir",
	"mkdirat",
	"mknod",
	"mknodat",
	"newfstatat",
	"open",
	"openat",
	"openat2",
	"readahead",
	"readlink",
	"readlinkat",
	"removexattr",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"setxattr",
	"stat",
	"statfs",
	"statx",
	"symlink",
	"symlinkat",
	"sync",
	"sync_file_range",
	"syncfs",
	"truncate",
	"umask",
	"unlink",
	"unlinkat",
	"utime",
	"utimensat",
	"utimes",
	"chroot",
	"cachestat",
	"copy_file_range",
	/* reading and writing */
	"read",
	"readv",
	"pread64",
	"preadv",
	"preadv2",
	"write",
	"writev",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"sendfile",
	"splice",
	"tee",
	"vmsplice",
	"pipe",
	"pipe2",
	"poll",
	"ppoll",
	"select",
	"pselect6",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"epoll_ctl_old",
	"epoll_wait_old",
	"eventfd",
	"eventfd2",
	"inotify_add_watch",
	"inotify_init",
	"inotify_init1",
	"inotify_rm_watch",
	"io_setup",
	"io_destroy",
	"io_submit",
	"io_cancel",
	"io_getevents",
	"io_pgetevents",
	/* memory */
	"brk",
	"madvise",
	"membarrier",
	"memfd_create",
	"mincore",
	"mlock",
	"mlock2",
	"mlockall",
	"mmap",
	"mprotect",
	"mremap",
	"mseal",
	"msync",
	"munlock",
	"munlockall",
	"munmap",
	"pkey_alloc",
	"pkey_free",
	"pkey_mprotect",
	"process_madvise",
	"process_mrelease",
	"remap_file_pages",
	"get_mempolicy",
	/* processes and threads */
	"arch_prctl",
	"capget",
	"capset",
	"execve",
	"execveat",
	"exit",
	"exit_group",
	"fork",
	"futex",
	"futex_requeue",
	"futex_wait",
	"futex_waitv",
	"futex_wake",
	"get_robust_list",
	"getpgid",
	"getpgrp",
	"getpid",
	"getppid",
	"getpriority",
	"getresgid",
	"getresuid",
	"getrlimit",
	"getrusage",
	"getsid",
	"gettid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getgroups",
	"ioprio_get",
	"ioprio_set",
	"kill",
	"landlock_add_rule",
	"landlock_create_ruleset",
	"landlock_restrict_self",
	"pause",
	"pidfd_open",
	"pidfd_send_signal",
	"prctl",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigqueueinfo",
	"rt_sigreturn",
	"rt_sigsuspend",
	"rt_sigtimedwait",
	"rt_tgsigqueueinfo",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"sched_getaffinity",
	"sched_getattr",
	"sched_getparam",
	"sched_getscheduler",
	"sched_rr_get_interval",
	"sched_setaffinity",
	"sched_setattr",
	"sched_setparam",
	"sched_setscheduler",
	"sched_yield",
	"seccomp",
	"set_robust_list",
	"set_tid_address",
	"setfsgid",
	"setfsuid",
	"setgid",
	"setgroups",
	"setpgid",
	"setpriority",
	"setregid",
	"setresgid",
	"setresuid",
	"setreuid",
	"setsid",
	"setuid",
	"sigaltstack",
	"signalfd",
	"signalfd4",
	"tgkill",
	"tkill",
	"times",
	"vfork",
	"wait4",
	"waitid",
	/* time */
	"adjtimex",
	"alarm",
	"clock_adjtime",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"getitimer",
	"gettimeofday",
	"nanosleep",
	"setitimer",
	"time",
	"timer_create",
	"timer_delete",
	"timer_getoverrun",
	"timer_gettime",
	"timer_settime",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	/* sockets (which kinds: see below) and System V */
	"accept",
	"accept4",
	"bind",
	"connect",
	"getpeername",
	"getsockname",
	"getsockopt",
	"listen",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"socketpair",
	"mq_getsetattr",
	"mq_notify",
	"mq_open",
	"mq_timedreceive",
	"mq_timedsend",
	"mq_unlink",
	"msgctl",
	"msgget",
	"msgrcv",
	"msgsnd",
	"semctl",
	"semget",
	"semop",
	"semtimedop",
	"shmat",
	"shmctl",
	"shmdt",
	"shmget",
	/* the machine */
	"getcpu",
	"getrandom",
	"sysinfo",
	"uname",
};

/* Known, and closed: the answer is EPERM. */
static const char *const refused[] = {
	"acct",
	"add_key",
	"bpf",
	"clock_settime",
	"delete_module",
	"fanotify_init",
	"fanotify_mark",
	"finit_module",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"init_module",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"ioperm",
	"iopl",
	"kcmp",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"lookup_dcookie",
	"mbind",
	"memfd_secret",
	"migrate_pages",
	"modify_ldt",
	"mount",
	"mount_setattr",
	"move_mount",
	"move_pages",
	"name_to_handle_at",
	"nfsservctl",
	"open_by_handle_at",
	"open_tree",
	"perf_event_open",
	"pidfd_getfd",
	"pivot_root",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"request_key",
	"set_mempolicy",
	"set_mempolicy_home_node",
	"setdomainname",
	"sethostname",
	"setns",
	"settimeofday",
	"swapoff",
	"swapon",
	"sysfs",
	"syslog",
	"umount2",
	"uselib",
	"userfaultfd",
	"ustat",
	"vhangup",
};

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp profile for this architecture"
#endif

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
		CLONE_NEWCGROUP | CLONE_NEWTIME)

#define NUMBERS	    1024 /* system call numbers that are looked at; higher ones get the default */
#define PROGRAM_MAX BPF_MAXINSNS

#define ALLOW	    SECCOMP_RET_ALLOW
#define ANSWER(e)   (SECCOMP_RET_ERRNO | (e))
#define ARG_LOW(n)  (uint32_t)(offsetof(struct seccomp_data, args[n]))
#define ARG_HIGH(n) (ARG_LOW(n) + 4)

#define LOAD(at)	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(action)	  BPF_STMT(BPF_RET | BPF_K, (action))
#define IF_EQ(k, jt, jf)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (jt), (jf))
#define IF_SET(k, jt, jf) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (k), (jt), (jf))

/*
 * Calls that are judged by an argument. Each is a piece of program that ends in RETURN on every path;
 * only the low 32 bits count where the kernel takes an int.
 */

#define OLD_SOCK_PACKET 10 /* in AF_INET the kernel takes it for AF_PACKET */

/* unix, IPv4, IPv6 and routing netlink; no raw sockets. AF_VSOCK would reach the hypervisor. */
static const struct sock_filter check_socket[] = {
	LOAD(ARG_LOW(0)),
	IF_EQ(AF_UNIX, 8, 0),
	IF_EQ(AF_INET, 4, 0),
	IF_EQ(AF_INET6, 3, 0),
	IF_EQ(AF_NETLINK, 0, 7),
	LOAD(ARG_LOW(2)),
	IF_EQ(0, 3, 5),
	/* inet: */ LOAD(ARG_LOW(1)),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
	IF_EQ(SOCK_RAW, 2, 0),
	/* allow unless of a packet: */ IF_EQ(OLD_SOCK_PACKET, 1, 0),
	RETURN(ALLOW),
	RETURN(ANSWER(EPERM)),
};

static const struct sock_filter check_namespaces[] = {
	LOAD(ARG_LOW(0)), IF_SET(NEW_NAMESPACES, 1, 0), RETURN(ALLOW), RETURN(ANSWER(EPERM))};

static const struct sock_filter check_personality[] = {LOAD(ARG_LOW(0)), IF_EQ(PER_LINUX, 3, 0),
	IF_EQ(PER_LINUX32, 2, 0), IF_EQ(ADDR_NO_RANDOMIZE, 1, 0), IF_EQ(0xffffffff, 0, 1),
	RETURN(ALLOW), RETURN(ANSWER(EPERM))};

/* Typing into the terminal of whoever runs us. */
static const struct sock_filter check_ioctl[] = {LOAD(ARG_LOW(1)), IF_EQ(TIOCSTI, 1, 0),
	IF_EQ(0x541C /* TIOCLINUX */, 0, 1), RETURN(ANSWER(EPERM)), RETURN(ALLOW)};

/* The core limit stays as it is: lowered to 0 it would wake a pipe handler on the host. */
static const struct sock_filter check_setrlimit[] = {
	LOAD(ARG_LOW(0)), IF_EQ(RLIMIT_CORE, 0, 1), RETURN(ANSWER(0)), RETURN(ALLOW)};

static const struct sock_filter check_prlimit64[] = {LOAD(ARG_LOW(1)), IF_EQ(RLIMIT_CORE, 0, 4),
	LOAD(ARG_LOW(2)), IF_EQ(0, 0, 3), LOAD(ARG_HIGH(2)), IF_EQ(0, 0, 1), RETURN(ALLOW),
	RETURN(ANSWER(0))};

struct check {
	const char *name;
	const struct sock_filter *piece;
	size_t len;
};

#define CHECK(name, piece)                                                                         \
	{                                                                                          \
		name, piece, sizeof(piece) / sizeof((piece)[0])                                    \
	}

static const struct check checks[] = {
	CHECK("socket", check_socket),
	CHECK("clone", check_namespaces),
	CHECK("unshare", check_namespaces),
	CHECK("personality", check_personality),
	CHECK("ioctl", check_ioctl),
	CHECK("setrlimit", check_setrlimit),
	CHECK("prlimit64", check_prlimit64),
};

/* What happens to a number: a plain answer, or a check. */
struct verdict {
	uint32_t action;
	const struct check *check;
};

struct program {
	struct sock_filter ops[PROGRAM_MAX];
	size_t len;
};

static void emit(struct program *program, struct sock_filter op)
{
	assert(program->len < PROGRAM_MAX);
	program->ops[program->len++] = op;
}

static void emit_verdict(struct program *program, const struct verdict *verdict)
{
	if (!verdict->check)
		emit(program, (struct sock_filter)RETURN(verdict->action));
	for (size_t i = 0; verdict->check && i < verdict->check->len; i++)
		emit(program, verdict->check->piece[i]);
}

/* Runs [first, last) of numbers with one verdict, as a balanced tree. */
static void emit_tree(struct program *program, const unsigned *starts,
	const struct verdict *verdicts, size_t first, size_t last)
{
	size_t middle = first + (last - first) / 2;
	size_t branch;

	if (last - first == 1) {
		emit_verdict(program, &verdicts[starts[first]]);
		return;
	}
	/* A conditional jump reaches 255 steps, an unconditional one any number: so it hops over one. */
	emit(program,
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, starts[middle], 0, 1));
	branch = program->len;
	emit(program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	emit_tree(program, starts, verdicts, first, middle);
	program->ops[branch].k = (uint32_t)(program->len - branch - 1);
	if (program->ops[branch].k < 255) {
		/* Near enough: jump there directly, and leave the hop unused. */
		program->ops[branch - 1].jt = (uint8_t)(program->ops[branch].k + 1);
	}
	emit_tree(program, starts, verdicts, middle, last);
}

static void set_verdicts(
	struct verdict *verdicts, const char *const *names, size_t count, uint32_t action)
{
	for (size_t i = 0; i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		/* Not on this architecture, or newer than libseccomp: it keeps the default. */
		if (number < 0)
			continue;
		assert(number < NUMBERS);
		verdicts[number] = (struct verdict){.action = action};
	}
}

static bool same(const struct verdict *a, const struct verdict *b)
{
	return a->action == b->action && a->check == b->check;
}

static void build(struct program *program)
{
	static struct verdict verdicts[NUMBERS];
	static unsigned starts[NUMBERS];
	size_t runs = 0;

	for (size_t n = 0; n < NUMBERS; n++)
		verdicts[n].action = ANSWER(ENOSYS);
	set_verdicts(verdicts, allowed, sizeof(allowed) / sizeof(allowed[0]), ALLOW);
	set_verdicts(verdicts, refused, sizeof(refused) / sizeof(refused[0]), ANSWER(EPERM));
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int number = seccomp_syscall_resolve_name(checks[i].name);

		if (number >= 0)
			verdicts[number] = (struct verdict){.check = &checks[i]};
	}
	for (unsigned n = 0; n < NUMBERS; n++) {
		if (n == 0 || !same(&verdicts[n], &verdicts[n - 1]))
			starts[runs++] = n;
	}
	emit(program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch)));
	emit(program, (struct sock_filter)IF_EQ(NATIVE_ARCH, 1, 0));
	emit(program, (struct sock_filter)RETURN(ANSWER(ENOSYS)));
	/* x32 numbers have bit 30 set and so fall into the last run, which is ENOSYS. */
	emit(program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
	emit_tree(program, starts, verdicts, 0, runs);
}

int main(void)
{
	static struct program program;

	build(&program);
	printf("/* Generated by seccomp_gen. */\n#include <linux/filter.h>\n\n"
	       "static const struct sock_filter seccomp_default[] = {\n");
	for (size_t i = 0; i < program.len; i++)
		printf("\t{0x%x, %u, %u, 0x%x},\n", program.ops[i].code, program.ops[i].jt,
			program.ops[i].jf, program.ops[i].k);
	printf("};\n");
	return 0;
}
