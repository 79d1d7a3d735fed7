/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/confine.h"

#include "seccomp_default.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (1ull << (cap))

/* What root of a sandbox may do with its own files, users and low ports; nothing about the kernel. */
static const uint64_t kept_caps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
				  BIT(CAP_FSETID) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
				  BIT(CAP_SETPCAP) | BIT(CAP_SETFCAP) | BIT(CAP_KILL) |
				  BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT);

/* RLIMIT_CORE is 1, not 0: a pipe handler in core_pattern runs as root of the host at limit 0. */
static const struct {
	int resource;
	rlim_t soft, hard;
} limits[] = {
	{RLIMIT_CORE, 1, 1},
	{RLIMIT_NOFILE, 1024, 65536},
	{RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
	{RLIMIT_MSGQUEUE, 819200, 819200},
	{RLIMIT_SIGPENDING, 4096, 4096},
	{RLIMIT_RTPRIO, 0, 0},
	{RLIMIT_NICE, 0, 0},
};

static int set_limits(struct err *err)
{
	for (size_t i = 0; i < array_len(limits); i++) {
		struct rlimit now, wanted = {limits[i].soft, limits[i].hard};

		if (getrlimit(limits[i].resource, &now) < 0)
			return err_sys(err, "read resource limit %d", limits[i].resource);
		/* The keeper's own limit is the ceiling: raising it is not ours to do. */
		if (wanted.rlim_max > now.rlim_max)
			wanted.rlim_max = now.rlim_max;
		if (wanted.rlim_cur > wanted.rlim_max)
			wanted.rlim_cur = wanted.rlim_max;
		if (setrlimit(limits[i].resource, &wanted) < 0)
			return err_sys(err, "set resource limit %d", limits[i].resource);
	}
	return 0;
}

static int become_root_inside(int userns_fd, struct err *err)
{
	if (setns(userns_fd, CLONE_NEWUSER) < 0)
		return err_sys(err, "enter the user namespace");
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_sys(err, "become root of the user namespace");
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

static int load_filter(struct err *err)
{
	struct sock_fprog program = {
		.len = array_len(seccomp_default), .filter = (struct sock_filter *)seccomp_default};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "set no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_sys(err, "load the seccomp filter");
	return 0;
}

int confine(int userns_fd, struct err *err)
{
	int r;

	/* Keys of whoever started the keeper stay outside. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_sys(err, "join an own session keyring");
	if ((r = set_limits(err)) < 0 || (r = become_root_inside(userns_fd, err)) < 0 ||
		(r = drop_caps(err)) < 0)
		return r;
	/* After the change of ids, which clears it: the sandbox ends with its keeper. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(err, "set the parent death signal");
	return load_filter(err);
}
