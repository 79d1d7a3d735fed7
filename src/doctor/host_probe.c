/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that try the thing. What needs a namespace is tried in a child, which takes it along when
 * it ends; a system call is tried with arguments that it must refuse, so that only its presence
 * shows.
 */
#include "doctor/host_check.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UPGRADE "upgrade the kernel to 6.1 or newer"

/* Runs probe in a child; what it returned (0, or errno up to 254), or -1. */
static int in_child(int (*probe)(void))
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -1;
	if (pid == 0)
		_exit(probe() & 0xff);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int try_userns(void)
{
	return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

void host_probe_userns(const struct host *host, struct finding *ret)
{
	int errnum = in_child(try_userns);

	(void)host;
	if (errnum == 0)
		finding_ok(ret, "can be made");
	else
		finding_problem(ret, FINDING_FAIL, "it is the first wall around every sandbox",
			errnum == ENOSPC ? "sudo sysctl -w user.max_user_namespaces=15000"
			: errnum == EPERM
				? "sudo sysctl -w kernel.unprivileged_userns_clone=1 (in a "
				  "container: run "
				  "it with --privileged or allow unshare in its seccomp profile)"
				: "use a kernel with CONFIG_USER_NS=y",
			"unshare: %s", errnum < 0 ? "no child" : strerror(errnum));
}

/* Asks nf_tables for its generation, which needs the module and CAP_NET_ADMIN: hence the
 * namespaces. */
static int try_nft(void)
{
	struct {
		struct nlmsghdr head;
		struct nfgenmsg body;
	} request = {
		.head = {.nlmsg_len = sizeof(request),
			.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN,
			.nlmsg_flags = NLM_F_REQUEST},
		.body = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[1024];
	} answer;
	auto_fd int sock = -1;
	ssize_t n;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return errno;
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (sock < 0 || fd_set_timeout(sock, 2000) < 0)
		return errno;
	if (send(sock, &request, sizeof(request), 0) < 0)
		return errno;
	n = recv(sock, &answer, sizeof(answer), 0);
	if (n < (ssize_t)sizeof(answer.head))
		return EIO;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return -answer.error.error;
	return 0;
}

void host_probe_nft(const struct host *host, struct finding *ret)
{
	int errnum = in_child(try_nft);

	(void)host;
	if (errnum == 0)
		finding_ok(ret, "nf_tables answers in a namespace of its own");
	else
		finding_problem(ret, FINDING_WARN,
			"one rule in each sandbox leads its connections to sandlotd; without it "
			"only "
			"programs that use a proxy reach anything",
			"sudo modprobe -a nf_tables nft_tproxy", "nf_tables: %s",
			errnum < 0 ? "no child" : strerror(errnum));
}

static void report_call(struct finding *ret, const char *name, bool is_missing, const char *why)
{
	if (is_missing)
		finding_problem(ret, FINDING_FAIL, why, UPGRADE, "no %s system call", name);
	else
		finding_ok(ret, "available");
}

void host_probe_openat2(const struct host *host, struct finding *ret)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	long fd = syscall(SYS_openat2, host->root_fd, ".", &how, sizeof(how));
	bool is_missing = fd < 0 && (errno == ENOSYS || errno == EPERM);

	fd_close((int)fd);
	report_call(ret, "openat2", is_missing,
		"it keeps the path of a file inside the sandbox that it belongs to");
}

void host_probe_clone3(const struct host *host, struct finding *ret)
{
	long r = syscall(SYS_clone3, NULL, 0);

	(void)host;
	report_call(ret, "clone3", r < 0 && errno == ENOSYS,
		"it puts a sandbox into its cgroup before its first instruction");
}

void host_probe_pidfd(const struct host *host, struct finding *ret)
{
	long fd = syscall(SYS_pidfd_open, getpid(), 0);
	bool is_missing = fd < 0 && (errno == ENOSYS || errno == EPERM);

	(void)host;
	fd_close((int)fd);
	report_call(ret, "pidfd_open", is_missing,
		"a process is held by a descriptor, because its number may be another's tomorrow");
}

void host_probe_mount_api(const struct host *host, struct finding *ret)
{
	long r = syscall(SYS_move_mount, -1, "", -1, "", 0);
	bool has_move_mount = !(r < 0 && errno == ENOSYS);

	(void)host;
	r = syscall(SYS_fsopen, NULL, 0);
	report_call(ret, "fsopen or move_mount", !has_move_mount || (r < 0 && errno == ENOSYS),
		"a sandbox's root is put together by descriptor, never by path");
}

void host_probe_idmap(const struct host *host, struct finding *ret)
{
	long r = syscall(SYS_mount_setattr, -1, "", 0, NULL, 0);
	bool is_missing = r < 0 && errno == ENOSYS;

	/* 5.19 is the first whose overlay takes idmapped layers. */
	if (!is_missing &&
		(host->kernel_major > 5 || (host->kernel_major == 5 && host->kernel_minor >= 19)))
		finding_ok(ret, "available");
	else
		finding_problem(ret, FINDING_FAIL,
			"templates are shared by all sandboxes and shown to each with its own uids",
			UPGRADE, "no idmapped overlay layers in Linux %s", host->kernel);
}
