/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that no sandbox needs, by the native ABI and, on x86-64, by the two others that the same
 * kernel serves: x32 numbers and int $0x80. Their arguments are mostly nothing, so what is let through
 * fails harmlessly, with another error than that of a filter.
 */
#include "attack.h"

static const struct {
	const char *name;
	long native, i386;
} calls[] = {
	{"acct", SYS_acct, 51},
	{"add_key", SYS_add_key, 286},
	{"bpf", SYS_bpf, 357},
	{"clock_settime", SYS_clock_settime, 264},
	{"delete_module", SYS_delete_module, 129},
	{"fanotify_init", SYS_fanotify_init, 338},
	{"finit_module", SYS_finit_module, 350},
	{"fsconfig", SYS_fsconfig, 431},
	{"fsmount", SYS_fsmount, 432},
	{"fsopen", SYS_fsopen, 430},
	{"fspick", SYS_fspick, 433},
	{"init_module", SYS_init_module, 128},
	{"io_setup", SYS_io_setup, 245},
	{"io_uring_enter", SYS_io_uring_enter, 426},
	{"io_uring_register", SYS_io_uring_register, 427},
	{"io_uring_setup", SYS_io_uring_setup, 425},
	{"kcmp", SYS_kcmp, 349},
	{"kexec_file_load", SYS_kexec_file_load, -1},
	{"kexec_load", SYS_kexec_load, 283},
	{"keyctl", SYS_keyctl, 288},
	{"lookup_dcookie", SYS_lookup_dcookie, 253},
	{"mbind", SYS_mbind, 274},
	{"memfd_secret", 447, 447},
	{"migrate_pages", SYS_migrate_pages, 294},
	{"mount", SYS_mount, 21},
	{"mount_setattr", SYS_mount_setattr, 442},
	{"move_mount", SYS_move_mount, 429},
	{"move_pages", SYS_move_pages, 317},
	{"name_to_handle_at", SYS_name_to_handle_at, 341},
	{"open_by_handle_at", SYS_open_by_handle_at, 342},
	{"open_tree", SYS_open_tree, 428},
	{"perf_event_open", SYS_perf_event_open, 336},
	{"pidfd_getfd", SYS_pidfd_getfd, 438},
	{"pivot_root", SYS_pivot_root, 217},
	{"quotactl", SYS_quotactl, 131},
	{"quotactl_fd", 443, 443},
	{"reboot", SYS_reboot, 88},
	{"request_key", SYS_request_key, 287},
	{"set_mempolicy", SYS_set_mempolicy, 276},
	{"setdomainname", SYS_setdomainname, 121},
	{"sethostname", SYS_sethostname, 74},
	{"setns", SYS_setns, 346},
	{"settimeofday", SYS_settimeofday, 79},
	{"swapoff", SYS_swapoff, 115},
	{"swapon", SYS_swapon, 87},
	{"syslog", SYS_syslog, 103},
	{"umount2", SYS_umount2, 52},
	{"userfaultfd", SYS_userfaultfd, 374},
	{"vhangup", SYS_vhangup, 111},
#if defined(__x86_64__)
	{"ioperm", SYS_ioperm, 101},
	{"iopl", SYS_iopl, 110},
	{"modify_ldt", SYS_modify_ldt, 123},
	{"socketcall", -1, 102},
#endif
	{"statmount", 457, 457},
	{"listmount", 458, 458},
	{"lsm_set_self_attr", 460, 460},
	{"of tomorrow", 999, 999},
};

#if defined(__x86_64__)
#define X32 0x40000000

static long call_i386(long number)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	r = (int)r;
	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* socket(AF_VSOCK, SOCK_STREAM, 0) as a 32-bit program has it. */
static void open_vsock(void *arg)
{
	long r;

	(void)arg;
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(359), "b"(40), "c"(1), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-(int)r;
	tell((int)r, "i386 socket(AF_VSOCK)");
}

static void other_abis(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < COUNT(calls); i++) {
		if (calls[i].native >= 0)
			tell(syscall(X32 | calls[i].native, 0, 0, 0, 0, 0, 0), "x32 %s",
				calls[i].name);
		if (calls[i].i386 >= 0)
			tell(call_i386(calls[i].i386), "i386 %s", calls[i].name);
	}
	tell(syscall(X32 | SYS_getpid), "x32 getpid");
	tell(call_i386(20), "i386 getpid");
	open_vsock(NULL);
}
#endif

int main(void)
{
	for (size_t i = 0; i < COUNT(calls); i++) {
		if (calls[i].native >= 0)
			tell(syscall(calls[i].native, 0, 0, 0, 0, 0, 0), "%s", calls[i].name);
	}
#if defined(__x86_64__)
	/* A kernel without 32-bit support kills for it. */
	printf("other ABIs\t%d\n", in_child(other_abis, NULL));
#endif
	return 0;
}
