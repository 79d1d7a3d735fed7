/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/build/confine.h"

#include "base/mem.h"
#include "keeper/process/limits.h"
#include "seccomp_filters.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ull << (cap))

/*
 * What root of a sandbox may do with its own files, users and low ports; no capability concerns the
 * kernel.
 */
static const uint64_t kept_caps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
				  BIT(CAP_FSETID) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
				  BIT(CAP_SETPCAP) | BIT(CAP_SETFCAP) | BIT(CAP_KILL) |
				  BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT);

#define FILTER(program)                                                                            \
	{                                                                                          \
		.len = array_len(program), .filter = (struct sock_filter *)(program)               \
	}

static const struct sock_fprog filters[KEEPER_PROFILE_COUNT] = {
	[KEEPER_PROFILE_DEFAULT] = FILTER(seccomp_default),
	[KEEPER_PROFILE_BROWSER] = FILTER(seccomp_browser),
	[KEEPER_PROFILE_STRICT] = FILTER(seccomp_strict),
};

static int become_root_inside(int userns_fd, struct err *err)
{
	if (setns(userns_fd, CLONE_NEWUSER) < 0)
		return err_sys(err, "enter the user namespace");
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_sys(err, "become root of the user namespace");
	/* Set while this process has more capabilities than others with the same ids: the kernel
	 * may have made it traceable just now (fs.suid_dumpable), and a hostile process of the
	 * sandbox may wait for that in an isolated command. */
	prctl(PR_SET_DUMPABLE, 0);
	return 0;
}

static int drop_caps(struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)kept_caps, .permitted = (uint32_t)kept_caps},
		{.effective = (uint32_t)(kept_caps >> 32),
			.permitted = (uint32_t)(kept_caps >> 32)}};

	for (unsigned cap = 0; cap < 64; cap++) {
		if ((kept_caps & BIT(cap)) || prctl(PR_CAPBSET_DROP, cap) == 0)
			continue;
		if (errno != EINVAL)
			return err_sys(err, "drop capability %u", cap);
		break; /* the kernel knows no more */
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return err_sys(err, "set capabilities");
	return 0;
}

static int load_filter(enum keeper_profile profile, int *ret_listener_fd, struct err *err)
{
	const struct sock_fprog *program = &filters[profile];

	*ret_listener_fd = (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
	if (*ret_listener_fd >= 0)
		return 0;
	/* The kernel takes only one listener: the program that confined the keeper itself may
	 * have it. */
	if (errno != EBUSY || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0)
		return err_sys(err, "load the seccomp filter");
	return 0;
}

/* Keys of the user who started the keeper stay outside. */
static int leave_keyring(struct err *err)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_sys(err, "join an own session keyring");
	return 0;
}

int confine(int userns_fd, enum keeper_profile profile, const struct walls *walls,
	int *ret_listener_fd, struct err *err)
{
	int r;

	if ((walls->how[WALL_KEYRING][0] && (r = leave_keyring(err)) < 0) ||
		(walls->how[WALL_CORE_DUMPS][0] && (r = limits_hold_cores(err)) < 0) ||
		(r = limits_set(err)) < 0 || (r = become_root_inside(userns_fd, err)) < 0 ||
		(r = drop_caps(err)) < 0)
		return r;
	/* After the change of ids, which clears it: the sandbox ends with its keeper. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(err, "set the parent death signal");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "set no_new_privs");
	*ret_listener_fd = -1;
	return walls->how[WALL_SECCOMP][0] ? load_filter(profile, ret_listener_fd, err) : 0;
}

unsigned confine_count_caps(void)
{
	return (unsigned)__builtin_popcountll(kept_caps);
}
