/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generated seccomp program, run in a small interpreter of classic BPF, for chosen calls. Needs
 * neither root nor a kernel that has seccomp: what is asserted is the verdict of the program that the
 * keeper carries. The program is also checked as the kernel's verifier would: every jump stays inside
 * and every path ends in a return.
 */
#include "base/mem.h"
#include "seccomp_filters.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define ALLOWED	   SECCOMP_RET_ALLOW
#define REFUSED	   SECCOMP_RET_USER_NOTIF /* which the agent answers with EPERM */
#define ERRNO(num) (SECCOMP_RET_ERRNO | (num))

static const struct profile {
	const struct sock_filter *ops;
	size_t len;
} by_default = {seccomp_default, array_len(seccomp_default)},
  browser = {seccomp_browser, array_len(seccomp_browser)};

/* What the program would make the kernel do. A program that runs off its end fails the test. */
static uint32_t exit_reason(const struct profile *profile, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < profile->len; pc++) {
		const struct sock_filter *op = &profile->ops[pc];

		switch (op->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(op->k + 4 <= sizeof(*data) && op->k % 4 == 0);
			memcpy(&a, (const char *)data + op->k, 4);
			break;
		case BPF_JMP | BPF_JA:
			pc += op->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == op->k ? op->jt : op->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= op->k ? op->jt : op->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > op->k ? op->jt : op->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & op->k ? op->jt : op->jf;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= op->k;
			break;
		case BPF_RET | BPF_K:
			return op->k;
		default:
			fail_msg("operation 0x%x is not known here", op->code);
		}
	}
	fail_msg("the program runs off its end");
	return 0;
}

static uint32_t call6(
	const struct profile *profile, uint32_t arch, int64_t nr, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = (int)nr, .arch = arch};

	memcpy(data.args, args, sizeof(data.args));
	return exit_reason(profile, &data);
}

#define CALL(nr, ...)	      call6(&by_default, NATIVE, (nr), (const uint64_t[6]){__VA_ARGS__})
#define CALL_BROWSER(nr, ...) call6(&browser, NATIVE, (nr), (const uint64_t[6]){__VA_ARGS__})

static void check_form(const struct profile *profile)
{
	assert_in_range(profile->len, 10, BPF_MAXINSNS);
	for (size_t pc = 0; pc < profile->len; pc++) {
		const struct sock_filter *op = &profile->ops[pc];

		if (op->code == (BPF_JMP | BPF_JA))
			assert_true(pc + 1 + op->k < profile->len);
		else if (BPF_CLASS(op->code) == BPF_JMP)
			assert_true(
				pc + 1 + op->jt < profile->len && pc + 1 + op->jf < profile->len);
	}
	assert_int_equal(BPF_CLASS(profile->ops[profile->len - 1].code), BPF_RET);
}

static void the_programs_are_well_formed(void **state)
{
	(void)state;
	check_form(&by_default);
	check_form(&browser);
}

/* Every number has an answer, and it is one of the three that are meant. */
static void every_number_has_one_of_three_answers(void **state)
{
	unsigned allowed = 0, refused = 0, unknown = 0;

	(void)state;
	for (int nr = 0; nr < 2048; nr++) {
		uint32_t answer = CALL(nr, 0);

		allowed += answer == ALLOWED;
		refused += answer == REFUSED;
		unknown += answer == ERRNO(ENOSYS);
		assert_true(answer == ALLOWED || answer == REFUSED || answer == ERRNO(ENOSYS) ||
			    answer == ERRNO(0));
	}
	assert_true(allowed > 250 && refused > 40);
	assert_true(unknown >= 2048 - 1024);
}

static void ordinary_calls_are_allowed(void **state)
{
	static const long numbers[] = {SYS_read, SYS_write, SYS_openat, SYS_mmap, SYS_execve,
		SYS_exit_group, SYS_futex, SYS_wait4, SYS_fchownat, SYS_ptrace, SYS_getrandom,
		SYS_epoll_pwait, SYS_prctl, SYS_rt_sigreturn, SYS_memfd_create, SYS_statx,
		SYS_chroot, SYS_seccomp, SYS_pipe2, SYS_connect, SYS_sendmsg, SYS_accept4};

	(void)state;
	for (size_t i = 0; i < array_len(numbers); i++) {
		if (CALL(numbers[i], 0) != ALLOWED)
			fail_msg("call %ld is not allowed", numbers[i]);
	}
}

static void dangerous_calls_are_refused(void **state)
{
	static const long numbers[] = {
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_setns,
		SYS_bpf,
		SYS_perf_event_open,
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_kexec_load,
		SYS_kexec_file_load,
		SYS_reboot,
		SYS_swapon,
		SYS_keyctl,
		SYS_add_key,
		SYS_request_key,
		SYS_io_uring_setup,
		SYS_io_uring_enter,
		SYS_io_uring_register,
		SYS_userfaultfd,
		SYS_open_by_handle_at,
		SYS_name_to_handle_at,
		SYS_move_mount,
		SYS_fsopen,
		SYS_fsmount,
		SYS_fsconfig,
		SYS_open_tree,
		SYS_mount_setattr,
		SYS_fanotify_init,
		SYS_quotactl,
		SYS_syslog,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_sethostname,
		SYS_acct,
		SYS_kcmp,
		SYS_pidfd_getfd,
#if defined(__x86_64__)
		SYS_iopl,
		SYS_ioperm,
		SYS_modify_ldt,
#endif
	};

	(void)state;
	for (size_t i = 0; i < array_len(numbers); i++) {
		if (CALL(numbers[i], 0) != REFUSED)
			fail_msg("call %ld is not refused", numbers[i]);
	}
}

static void unknown_numbers_look_like_an_older_kernel(void **state)
{
	static const int64_t numbers[] = {
		600, 1023, 1024, 4096, 0x3fffffff, 0x7fffffff, -1, INT32_MIN};

	(void)state;
	assert_int_equal(
		CALL(SYS_clone3, 0), ERRNO(ENOSYS)); /* its flags are in memory: not to be judged */
	for (size_t i = 0; i < array_len(numbers); i++)
		assert_int_equal(CALL(numbers[i], 0), ERRNO(ENOSYS));
}

static void other_architectures_are_closed(void **state)
{
	static const uint32_t archs[] = {
		AUDIT_ARCH_I386,
		AUDIT_ARCH_ARM,
		0,
		UINT32_MAX,
#if defined(__x86_64__)
		AUDIT_ARCH_AARCH64
#else
		AUDIT_ARCH_X86_64
#endif
	};
	static const uint64_t none[6];

	(void)state;
	for (size_t i = 0; i < array_len(archs); i++) {
		for (int nr = 0; nr < 512; nr++) {
			assert_int_equal(call6(&by_default, archs[i], nr, none), ERRNO(ENOSYS));
			assert_int_equal(call6(&browser, archs[i], nr, none), ERRNO(ENOSYS));
		}
	}
}

#if defined(__x86_64__)
static void x32_numbers_are_closed(void **state)
{
	(void)state;
	for (int nr = 0; nr < 1024; nr++)
		assert_int_equal(CALL(0x40000000 | nr, 0), ERRNO(ENOSYS));
}
#endif

static void sockets_are_unix_inet_and_routing_netlink(void **state)
{
	static const int open_families[] = {AF_UNIX, AF_INET, AF_INET6};
	static const uint64_t junk = 0xdeadbeef00000000;

	(void)state;
	for (size_t i = 0; i < array_len(open_families); i++) {
		assert_int_equal(CALL(SYS_socket, open_families[i], SOCK_STREAM, 0), ALLOWED);
		assert_int_equal(
			CALL(SYS_socket, open_families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0), ALLOWED);
		assert_int_equal(CALL(SYS_socket, open_families[i], SOCK_STREAM | SOCK_NONBLOCK, 6),
			ALLOWED);
	}
	assert_int_equal(CALL(SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0), ALLOWED);
	assert_int_equal(CALL(SYS_socket, AF_NETLINK, SOCK_RAW, 0), ALLOWED);
	for (uint64_t protocol = 1; protocol < 32; protocol++)
		assert_int_equal(CALL(SYS_socket, AF_NETLINK, SOCK_RAW, protocol),
			protocol == NETLINK_AUDIT ? ERRNO(EPROTONOSUPPORT) : REFUSED);
	for (uint64_t family = 0; family < 64; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
			family == AF_NETLINK)
			continue;
		assert_int_equal(CALL(SYS_socket, family, SOCK_STREAM, 0), REFUSED);
		/* The kernel reads an int; what is above does not help. */
		assert_int_equal(CALL(SYS_socket, junk | family, SOCK_STREAM, 0), REFUSED);
	}
	assert_int_equal(CALL(SYS_socket, AF_VSOCK, SOCK_DGRAM, 0), REFUSED);
	assert_int_equal(CALL(SYS_socket, AF_PACKET, SOCK_RAW, 0), REFUSED);
	assert_int_equal(CALL(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0), REFUSED);
}

static void inet_sockets_speak_tcp_udp_and_ping(void **state)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};

	(void)state;
	for (size_t i = 0; i < array_len(families); i++) {
		for (uint64_t protocol = 0; protocol < 300; protocol++) {
			bool tcp = protocol == 0 || protocol == 6;
			bool udp =
				protocol == 0 || protocol == 17 || protocol == 1 || protocol == 58;

			assert_int_equal(CALL(SYS_socket, families[i], SOCK_STREAM, protocol),
				tcp ? ALLOWED : REFUSED);
			assert_int_equal(CALL(SYS_socket, families[i], SOCK_DGRAM, protocol),
				udp ? ALLOWED : REFUSED);
			for (uint64_t type = 3; type < 16; type++)
				assert_int_equal(
					CALL(SYS_socket, families[i], type, protocol), REFUSED);
		}
	}
}

static void pairs_of_sockets_are_unix_ones(void **state)
{
	(void)state;
	for (uint64_t family = 0; family < 64; family++)
		assert_int_equal(CALL(SYS_socketpair, family, SOCK_STREAM, 0),
			family == AF_UNIX ? ALLOWED : REFUSED);
}

static void socket_options_are_not_those_of_netfilter_and_ipsec(void **state)
{
	static const uint64_t closed[][2] = {{0, 16}, {0, 17}, {0, 64}, {0, 65}, {0, 96}, {0, 128},
		{0, 1152}, {41, 34}, {41, 35}, {41, 64}, {41, 65}, {6, 31}};
	static const uint64_t open[][2] = {{SOL_SOCKET, 64}, {SOL_SOCKET, 2}, {0, 1}, {0, 51},
		{6, 1}, {41, 26}, {41, 67}, {41, 75}, {17, 104}};

	(void)state;
	for (size_t i = 0; i < array_len(closed); i++)
		assert_int_equal(CALL(SYS_setsockopt, 3, closed[i][0], closed[i][1]), REFUSED);
	for (size_t i = 0; i < array_len(open); i++)
		assert_int_equal(CALL(SYS_setsockopt, 3, open[i][0], open[i][1]), ALLOWED);
}

static void huge_pages_look_used_up(void **state)
{
	(void)state;
	assert_int_equal(CALL(SYS_mmap, 0, 4096, 3, 0x22), ALLOWED);
	assert_int_equal(CALL(SYS_mmap, 0, 2 << 20, 3, 0x22 | 0x40000), ERRNO(ENOMEM));
	assert_int_equal(CALL(SYS_memfd_create, 0x1000, 1), ALLOWED);
	assert_int_equal(CALL(SYS_memfd_create, 0x1000, 4 | 1), ERRNO(EINVAL));
}

/* The kernel would let root of the sandbox: the agent has the same uid. */
static void nobody_meddles_with_the_agent(void **state)
{
	static const long scheduling[] = {SYS_sched_setaffinity, SYS_sched_setattr,
		SYS_sched_setparam, SYS_sched_setscheduler};

	(void)state;
	for (size_t i = 0; i < array_len(scheduling); i++) {
		assert_int_equal(CALL(scheduling[i], 1), REFUSED);
		assert_int_equal(CALL(scheduling[i], 0xffffffff00000001), REFUSED);
		assert_int_equal(CALL(scheduling[i], 0), ALLOWED);
		assert_int_equal(CALL(scheduling[i], 17), ALLOWED);
	}
	assert_int_equal(CALL(SYS_prlimit64, 1, RLIMIT_NOFILE, 0x7fff0000), REFUSED);
	assert_int_equal(CALL(SYS_prlimit64, 1, RLIMIT_NOFILE, 1ull << 32), REFUSED);
	assert_int_equal(CALL(SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0x7fff0000), ALLOWED);
	assert_int_equal(CALL(SYS_prlimit64, 17, RLIMIT_NOFILE, 0x7fff0000), ALLOWED);
	assert_int_equal(CALL(SYS_setpriority, PRIO_PROCESS, 1, 19), REFUSED);
	assert_int_equal(CALL(SYS_setpriority, PRIO_PGRP, 1, 19), REFUSED);
	assert_int_equal(CALL(SYS_setpriority, PRIO_USER, 0, 19), REFUSED);
	assert_int_equal(CALL(SYS_setpriority, PRIO_PROCESS, 0, 19), ALLOWED);
	assert_int_equal(CALL(SYS_ioprio_set, 1, 1, 0), REFUSED);
	assert_int_equal(CALL(SYS_ioprio_set, 3, 0, 0), REFUSED);
	assert_int_equal(CALL(SYS_ioprio_set, 1, 17, 0), ALLOWED);
}

static void a_browser_makes_three_kinds_of_namespaces(void **state)
{
	static const uint64_t open[] = {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET,
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET};
	static const uint64_t closed[] = {
		CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWCGROUP, 0x80 /* CLONE_NEWTIME */};

	(void)state;
	for (size_t i = 0; i < array_len(open); i++) {
		assert_int_equal(CALL_BROWSER(SYS_unshare, open[i]), ALLOWED);
		assert_int_equal(CALL_BROWSER(SYS_clone, open[i] | 17), ALLOWED);
	}
	for (size_t i = 0; i < array_len(closed); i++) {
		assert_int_equal(CALL_BROWSER(SYS_unshare, CLONE_NEWUSER | closed[i]), REFUSED);
		assert_int_equal(CALL_BROWSER(SYS_clone, closed[i] | 17), REFUSED);
	}
	assert_int_equal(CALL_BROWSER(SYS_clone3, 0), ERRNO(ENOSYS));
}

/* Nothing but that. */
static void the_profiles_agree_otherwise(void **state)
{
	(void)state;
	for (int nr = 0; nr < 1024; nr++) {
		if (nr == SYS_clone || nr == SYS_unshare)
			continue;
		for (uint64_t arg = 0; arg < 64; arg++)
			assert_int_equal(CALL(nr, arg, arg, arg), CALL_BROWSER(nr, arg, arg, arg));
	}
}

static void raw_sockets_are_refused_however_they_are_written(void **state)
{
	static const uint64_t flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK,
		SOCK_CLOEXEC | SOCK_NONBLOCK, 0xffffffff00000000, 0x10, 0x7ffffff0};

	(void)state;
	for (size_t i = 0; i < array_len(flags); i++) {
		assert_int_equal(CALL(SYS_socket, AF_INET, SOCK_RAW | flags[i], 1), REFUSED);
		assert_int_equal(CALL(SYS_socket, AF_INET6, SOCK_RAW | flags[i], 1), REFUSED);
		/* In AF_INET this old type is AF_PACKET under another name. */
		assert_int_equal(
			CALL(SYS_socket, AF_INET, 10 /* SOCK_PACKET */ | flags[i], 3), REFUSED);
	}
}

static void namespaces_are_not_made(void **state)
{
	static const uint64_t namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID,
		CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP,
		0x80 /* CLONE_NEWTIME */};

	(void)state;
	for (size_t i = 0; i < array_len(namespaces); i++) {
		assert_int_equal(CALL(SYS_unshare, namespaces[i]), REFUSED);
		assert_int_equal(
			CALL(SYS_unshare, namespaces[i] | CLONE_FS | CLONE_FILES), REFUSED);
		assert_int_equal(CALL(SYS_clone, namespaces[i] | 17 /* SIGCHLD */), REFUSED);
		assert_int_equal(
			CALL(SYS_clone, 0xffffffff00000000 | namespaces[i] | CLONE_VM), REFUSED);
	}
	assert_int_equal(CALL(SYS_unshare, CLONE_FS | CLONE_FILES), ALLOWED);
	assert_int_equal(CALL(SYS_clone, 17), ALLOWED);
	/* A thread, as the C library makes it. */
	assert_int_equal(CALL(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
						 CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
						 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID),
		ALLOWED);
}

static void nobody_types_into_a_terminal(void **state)
{
	static const uint64_t high[] = {0, 1ull << 32, 0xffffffff00000000, 1ull << 63};

	(void)state;
	for (size_t i = 0; i < array_len(high); i++) {
		assert_int_equal(CALL(SYS_ioctl, 0, high[i] | TIOCSTI), REFUSED);
		assert_int_equal(CALL(SYS_ioctl, 0, high[i] | 0x541C /* TIOCLINUX */), REFUSED);
		assert_int_equal(CALL(SYS_ioctl, 0, high[i] | TIOCSETD), REFUSED);
		assert_int_equal(CALL(SYS_ioctl, 0, high[i] | TIOCGWINSZ), ALLOWED);
	}
	assert_int_equal(
		CALL(SYS_ioctl, TIOCSTI, TIOCGWINSZ), ALLOWED); /* the descriptor is no request */
}

static void the_limit_of_cores_is_read_and_never_set(void **state)
{
	(void)state;
	/* Answered with success, and nothing done. */
	assert_int_equal(CALL(SYS_prlimit64, 0, RLIMIT_CORE, 0x7fff0000), ERRNO(0));
	assert_int_equal(CALL(SYS_prlimit64, 0, RLIMIT_CORE, 1ull << 32), ERRNO(0));
	assert_int_equal(CALL(SYS_prlimit64, 0, 0xffffffff00000000 | RLIMIT_CORE, 1), ERRNO(0));
	assert_int_equal(CALL(SYS_prlimit64, 0, RLIMIT_CORE, 0, 0x7fff0000), ALLOWED);
	assert_int_equal(CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, 0x7fff0000), ALLOWED);
#if defined(SYS_setrlimit)
	assert_int_equal(CALL(SYS_setrlimit, RLIMIT_CORE, 0x7fff0000), ERRNO(0));
	assert_int_equal(CALL(SYS_setrlimit, RLIMIT_NOFILE, 0x7fff0000), ALLOWED);
	assert_int_equal(CALL(SYS_getrlimit, RLIMIT_CORE, 0x7fff0000), ALLOWED);
#endif
}

static void personalities_are_the_harmless_ones(void **state)
{
	(void)state;
	assert_int_equal(CALL(SYS_personality, 0), ALLOWED);
	assert_int_equal(CALL(SYS_personality, 0xffffffff), ALLOWED); /* to ask */
	assert_int_equal(
		CALL(SYS_personality, 0x0040000), ALLOWED);	  /* ADDR_NO_RANDOMIZE, for gdb */
	assert_int_equal(CALL(SYS_personality, 0x0008), ALLOWED); /* PER_LINUX32 */
	assert_int_equal(CALL(SYS_personality, 0x0400000), REFUSED); /* READ_IMPLIES_EXEC */
	assert_int_equal(CALL(SYS_personality, 0x0100000), REFUSED); /* MMAP_PAGE_ZERO */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_programs_are_well_formed),
		cmocka_unit_test(every_number_has_one_of_three_answers),
		cmocka_unit_test(ordinary_calls_are_allowed),
		cmocka_unit_test(dangerous_calls_are_refused),
		cmocka_unit_test(unknown_numbers_look_like_an_older_kernel),
		cmocka_unit_test(other_architectures_are_closed),
#if defined(__x86_64__)
		cmocka_unit_test(x32_numbers_are_closed),
#endif
		cmocka_unit_test(sockets_are_unix_inet_and_routing_netlink),
		cmocka_unit_test(inet_sockets_speak_tcp_udp_and_ping),
		cmocka_unit_test(pairs_of_sockets_are_unix_ones),
		cmocka_unit_test(socket_options_are_not_those_of_netfilter_and_ipsec),
		cmocka_unit_test(huge_pages_look_used_up),
		cmocka_unit_test(nobody_meddles_with_the_agent),
		cmocka_unit_test(a_browser_makes_three_kinds_of_namespaces),
		cmocka_unit_test(the_profiles_agree_otherwise),
		cmocka_unit_test(raw_sockets_are_refused_however_they_are_written),
		cmocka_unit_test(namespaces_are_not_made),
		cmocka_unit_test(nobody_types_into_a_terminal),
		cmocka_unit_test(the_limit_of_cores_is_read_and_never_set),
		cmocka_unit_test(personalities_are_the_harmless_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
