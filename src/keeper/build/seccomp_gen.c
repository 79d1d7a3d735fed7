/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build tool: turns the tables below into the seccomp program of each profile and prints them as C
 * arrays. The keeper only carries the result, so that the privileged program links no library and
 * compiles nothing at run time.
 *
 * An allowlist: what is in no table gets ENOSYS, as if the kernel were older, so that programs fall
 * back; what is known and refused gets EPERM, and the agent says so, that the refusal can be told. Only
 * the native ABI passes.
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
#include <linux/in.h>
#include <linux/ioprio.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/netlink.h>
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

/*
 * Not in it, though harmless in themselves: io_setup and its relatives, because their contexts are counted
 * for the whole host (fs.aio-max-nr) and one sandbox could take all; cachestat, which tells what
 * others read.
 */
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
	/* memory */
	"brk",
	"madvise",
	"membarrier",
	"mincore",
	"mlock",
	"mlock2",
	"mlockall",
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
	"sched_yield",
	"seccomp",
	"set_robust_list",
	"set_tid_address",
	"setfsgid",
	"setfsuid",
	"setgid",
	"setgroups",
	"setpgid",
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
	"shutdown",
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

/* What the sandbox of a browser is made of; all others stay closed to it. */
#define BROWSER_NAMESPACES (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define NUMBERS	    1024 /* system call numbers that are looked at; higher ones get the default */
#define PROGRAM_MAX BPF_MAXINSNS

#define ALLOW	    SECCOMP_RET_ALLOW
#define REFUSE	    SECCOMP_RET_USER_NOTIF /* the agent says EPERM (agent/process/denied_syscall.h) */
#define ANSWER(e)   (SECCOMP_RET_ERRNO | (e))
#define ARG_LOW(n)  (uint32_t)(offsetof(struct seccomp_data, args[n]))
#define ARG_HIGH(n) (ARG_LOW(n) + 4)

#define LOAD(at)	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(action)	  BPF_STMT(BPF_RET | BPF_K, (action))
#define IF_EQ(k, jt, jf)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (jt), (jf))
#define IF_GE(k, jt, jf)  BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (k), (jt), (jf))
#define IF_SET(k, jt, jf) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (k), (jt), (jf))

/*
 * Calls that are judged by an argument. Each is a piece of program that ends in RETURN on every path;
 * only the low 32 bits count where the kernel takes an int.
 */

/*
 * unix, TCP, UDP, ping, and routing netlink: no raw sockets, and none of the protocols whose modules the
 * kernel would load for the asking. AF_VSOCK would reach the hypervisor. Audit is answered as by a kernel
 * without it: at EPERM useradd and groupadd, which packages call as they are installed, give up.
 */
static const struct sock_filter check_socket[] = {
	LOAD(ARG_LOW(0)),
	IF_EQ(AF_UNIX, 16, 0),
	IF_EQ(AF_NETLINK, 12, 0),
	IF_EQ(AF_INET, 1, 0),
	IF_EQ(AF_INET6, 0, 14),
	/* inet: */ LOAD(ARG_LOW(1)),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
	IF_EQ(SOCK_STREAM, 5, 0),
	IF_EQ(SOCK_DGRAM, 0, 10),
	LOAD(ARG_LOW(2)),
	IF_EQ(IPPROTO_UDP, 7, 0),
	IF_EQ(IPPROTO_ICMP, 6, 0),
	IF_EQ(58 /* IPPROTO_ICMPV6 */, 5, 4),
	/* stream: */ LOAD(ARG_LOW(2)),
	IF_EQ(IPPROTO_TCP, 3, 2),
	/* netlink: */ LOAD(ARG_LOW(2)),
	IF_EQ(NETLINK_AUDIT, 3, 0),
	/* the usual protocol, or NETLINK_ROUTE: */ IF_EQ(0, 0, 1),
	RETURN(ALLOW),
	RETURN(REFUSE),
	RETURN(ANSWER(EPROTONOSUPPORT)),
};

/* The same without netlink, which is a door to much of the kernel's network code, and without ping. */
static const struct sock_filter check_strict_socket[] = {
	LOAD(ARG_LOW(0)),
	IF_EQ(AF_UNIX, 11, 0),
	IF_EQ(AF_INET, 1, 0),
	IF_EQ(AF_INET6, 0, 10),
	/* inet: */ LOAD(ARG_LOW(1)),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
	IF_EQ(SOCK_STREAM, 3, 0),
	IF_EQ(SOCK_DGRAM, 0, 6),
	LOAD(ARG_LOW(2)),
	IF_EQ(IPPROTO_UDP, 3, 2),
	/* stream: */ LOAD(ARG_LOW(2)),
	IF_EQ(IPPROTO_TCP, 1, 0),
	/* the usual protocol: */ IF_EQ(0, 0, 1),
	RETURN(ALLOW),
	RETURN(REFUSE),
};

static const struct sock_filter check_socketpair[] = {
	LOAD(ARG_LOW(0)), IF_EQ(AF_UNIX, 0, 1), RETURN(ALLOW), RETURN(REFUSE)};

#define NETFILTER_OPTIONS 64 /* from here on, IP options belong to iptables, arptables and IPVS */
#define SOL_IP_		  0
#define SOL_IPV6_	  41
#define SOL_TCP_	  6
#define TCP_ULP_	  31 /* other protocols on top of TCP, each a module */

/*
 * A process that may make a network namespace has power over it, and the old interfaces of netfilter and IPsec
 * are socket options there.
 */
static const struct sock_filter check_setsockopt[] = {
	LOAD(ARG_LOW(1)),
	IF_EQ(SOL_IP_, 2, 0),
	IF_EQ(SOL_IPV6_, 5, 0),
	IF_EQ(SOL_TCP_, 9, 11),
	/* IP: */ LOAD(ARG_LOW(2)),
	IF_GE(NETFILTER_OPTIONS, 10, 0),
	IF_EQ(IP_IPSEC_POLICY, 9, 0),
	IF_EQ(IP_XFRM_POLICY, 8, 7),
	/* IPv6: */ LOAD(ARG_LOW(2)),
	IF_EQ(NETFILTER_OPTIONS, 6, 0),
	IF_EQ(NETFILTER_OPTIONS + 1, 5, 0),
	IF_EQ(34 /* IPV6_IPSEC_POLICY */, 4, 0),
	IF_EQ(35 /* IPV6_XFRM_POLICY */, 3, 2),
	/* TCP: */ LOAD(ARG_LOW(2)),
	IF_EQ(TCP_ULP_, 1, 0),
	RETURN(ALLOW),
	RETURN(REFUSE),
};

static const struct sock_filter check_no_namespaces[] = {
	LOAD(ARG_LOW(0)), IF_SET(NEW_NAMESPACES, 1, 0), RETURN(ALLOW), RETURN(REFUSE)};

static const struct sock_filter check_browser_namespaces[] = {LOAD(ARG_LOW(0)),
	IF_SET(NEW_NAMESPACES & ~BROWSER_NAMESPACES, 1, 0), RETURN(ALLOW), RETURN(REFUSE)};

static const struct sock_filter check_personality[] = {LOAD(ARG_LOW(0)), IF_EQ(PER_LINUX, 3, 0),
	IF_EQ(PER_LINUX32, 2, 0), IF_EQ(ADDR_NO_RANDOMIZE, 1, 0), IF_EQ(0xffffffff, 0, 1),
	RETURN(ALLOW), RETURN(REFUSE)};

/* Only to ask, or for what is so already: addresses stay random. */
static const struct sock_filter check_strict_personality[] = {LOAD(ARG_LOW(0)),
	IF_EQ(PER_LINUX, 1, 0), IF_EQ(0xffffffff, 0, 1), RETURN(ALLOW), RETURN(REFUSE)};

/* Typing into the terminal of the caller; and line disciplines, which the kernel would load. */
static const struct sock_filter check_ioctl[] = {LOAD(ARG_LOW(1)), IF_EQ(TIOCSTI, 2, 0),
	IF_EQ(0x541C /* TIOCLINUX */, 1, 0), IF_EQ(TIOCSETD, 0, 1), RETURN(REFUSE), RETURN(ALLOW)};

/* Huge pages of the host's pool count in no memory limit. */
static const struct sock_filter check_mmap[] = {
	LOAD(ARG_LOW(3)), IF_SET(MAP_HUGETLB, 0, 1), RETURN(ANSWER(ENOMEM)), RETURN(ALLOW)};

/* Programs ask with all flags set to see whether the kernel knows the call. */
static const struct sock_filter check_memfd_create[] = {
	LOAD(ARG_LOW(1)), IF_SET(MFD_HUGETLB, 0, 1), RETURN(ANSWER(EINVAL)), RETURN(ALLOW)};

/* The core limit stays as it is: lowered to 0 it would wake a pipe handler on the host. */
static const struct sock_filter check_setrlimit[] = {
	LOAD(ARG_LOW(0)), IF_EQ(RLIMIT_CORE, 0, 1), RETURN(ANSWER(0)), RETURN(ALLOW)};

/*
 * The kernel lets root of a sandbox change limits, scheduling and priority of whatever runs under the
 * same uid. That includes the agent, which these keep out of reach: its number is 1.
 */
#define AGENT_PID 1

static const struct sock_filter check_prlimit64[] = {
	LOAD(ARG_LOW(2)),
	IF_EQ(0, 0, 2),
	LOAD(ARG_HIGH(2)),
	IF_EQ(0, 6, 0),
	/* to set: */ LOAD(ARG_LOW(1)),
	IF_EQ(RLIMIT_CORE, 2, 0),
	LOAD(ARG_LOW(0)),
	IF_EQ(AGENT_PID, 1, 2),
	RETURN(ANSWER(0)),
	RETURN(REFUSE),
	RETURN(ALLOW),
};

static const struct sock_filter check_scheduling[] = {
	LOAD(ARG_LOW(0)), IF_EQ(AGENT_PID, 1, 0), RETURN(ALLOW), RETURN(REFUSE)};

/* By process or group, but not "everything of that user". */
#define PRIORITY(of_user)                                                                          \
	{                                                                                          \
		LOAD(ARG_LOW(0)), IF_EQ(of_user, 3, 0), LOAD(ARG_LOW(1)), IF_EQ(AGENT_PID, 1, 0),  \
			RETURN(ALLOW), RETURN(REFUSE)                                              \
	}

static const struct sock_filter check_setpriority[] = PRIORITY(PRIO_USER);
static const struct sock_filter check_ioprio_set[] = PRIORITY(IOPRIO_WHO_USER);

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
	CHECK("ioctl", check_ioctl),
	CHECK("ioprio_set", check_ioprio_set),
	CHECK("memfd_create", check_memfd_create),
	CHECK("mmap", check_mmap),
	CHECK("personality", check_personality),
	CHECK("prlimit64", check_prlimit64),
	CHECK("sched_setaffinity", check_scheduling),
	CHECK("sched_setattr", check_scheduling),
	CHECK("sched_setparam", check_scheduling),
	CHECK("sched_setscheduler", check_scheduling),
	CHECK("setpriority", check_setpriority),
	CHECK("setrlimit", check_setrlimit),
	CHECK("setsockopt", check_setsockopt),
	CHECK("socket", check_socket),
	CHECK("socketpair", check_socketpair),
};

/*
 * What the strict profile closes besides: the memory and the registers of other processes, another root
 * directory, and old ways around pages that faults of the kernel have come from.
 */
static const char *const strict_refused[] = {
	"chroot",
	"process_mrelease",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
	"remap_file_pages",
	"vmsplice",
};

/* In what the profiles differ: who may make namespaces, and what strict closes. clone3 is closed to all, as
 * its flags are in memory. A check without a name is none. */
static const struct profile {
	const char *name;
	struct check own[4];
	const char *const *refused;
	size_t refused_count;
} profiles[] = {
	{"default", {CHECK("clone", check_no_namespaces), CHECK("unshare", check_no_namespaces)}},
	{"browser", {CHECK("clone", check_browser_namespaces),
			    CHECK("unshare", check_browser_namespaces)}},
	{"strict",
		{CHECK("clone", check_no_namespaces), CHECK("unshare", check_no_namespaces),
			CHECK("socket", check_strict_socket),
			CHECK("personality", check_strict_personality)},
		strict_refused, sizeof(strict_refused) / sizeof(strict_refused[0])},
};

/* What happens to a number: a plain answer, or a check. */
struct answer {
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

static void emit_verdict(struct program *program, const struct answer *answer)
{
	if (!answer->check)
		emit(program, (struct sock_filter)RETURN(answer->action));
	for (size_t i = 0; answer->check && i < answer->check->len; i++)
		emit(program, answer->check->piece[i]);
}

/* Runs [first, last) of numbers with one verdict, as a balanced tree. */
static void emit_tree(struct program *program, const unsigned *starts,
	const struct answer *verdicts, size_t first, size_t last)
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
	struct answer *verdicts, const char *const *names, size_t count, uint32_t action)
{
	for (size_t i = 0; i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		/* Not on this architecture, or newer than libseccomp: it keeps the default. */
		if (number < 0)
			continue;
		assert(number < NUMBERS);
		verdicts[number] = (struct answer){.action = action};
	}
}

static bool same(const struct answer *a, const struct answer *b)
{
	return a->action == b->action && a->check == b->check;
}

static void set_checks(struct answer *verdicts, const struct check *rows, size_t count)
{
	for (size_t i = 0; i < count && rows[i].name; i++) {
		int number = seccomp_syscall_resolve_name(rows[i].name);

		if (number >= 0)
			verdicts[number] = (struct answer){.check = &rows[i]};
	}
}

static void build(const struct profile *profile, struct program *program)
{
	static struct answer verdicts[NUMBERS];
	static unsigned starts[NUMBERS];
	size_t runs = 0;

	program->len = 0;
	for (size_t n = 0; n < NUMBERS; n++)
		verdicts[n] = (struct answer){.action = ANSWER(ENOSYS)};
	set_verdicts(verdicts, allowed, sizeof(allowed) / sizeof(allowed[0]), ALLOW);
	set_verdicts(verdicts, refused, sizeof(refused) / sizeof(refused[0]), REFUSE);
	if (profile->refused)
		set_verdicts(verdicts, profile->refused, profile->refused_count, REFUSE);
	set_checks(verdicts, checks, sizeof(checks) / sizeof(checks[0]));
	set_checks(verdicts, profile->own, sizeof(profile->own) / sizeof(profile->own[0]));
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

static void print(const struct profile *profile, const struct program *program)
{
	printf("\nstatic const struct sock_filter seccomp_%s[] = {\n", profile->name);
	for (size_t i = 0; i < program->len; i++)
		printf("\t{0x%x, %u, %u, 0x%x},\n", program->ops[i].code, program->ops[i].jt,
			program->ops[i].jf, program->ops[i].k);
	printf("};\n");
}

int main(void)
{
	static struct program program;

	printf("/* Generated by seccomp_gen. */\n#include <linux/filter.h>\n");
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		build(&profiles[i], &program);
		print(&profiles[i], &program);
	}
	return 0;
}
