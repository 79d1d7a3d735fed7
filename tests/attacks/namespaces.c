/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New namespaces by every call that makes one; and, where a user namespace can be had, what root of it
 * would do next.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
	const char *name;
	unsigned long flag;
} kinds[] = {
	{"user", CLONE_NEWUSER},
	{"mount", CLONE_NEWNS},
	{"pid", CLONE_NEWPID},
	{"net", CLONE_NEWNET},
	{"ipc", CLONE_NEWIPC},
	{"uts", CLONE_NEWUTS},
	{"cgroup", CLONE_NEWCGROUP},
	{"time", 0x80},
};

struct attempt {
	const char *how, *name;
	unsigned long flags;
};

static void unshare_it(void *arg)
{
	const struct attempt *attempt = arg;

	tell(syscall(SYS_unshare, attempt->flags), "%s %s", attempt->how, attempt->name);
}

static void clone_it(const struct attempt *attempt)
{
	long pid = syscall(SYS_clone, attempt->flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	tell(pid, "%s %s", attempt->how, attempt->name);
}

static void clone3_it(const struct attempt *attempt)
{
	struct clone_args args = {.flags = attempt->flags, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	tell(pid, "%s %s", attempt->how, attempt->name);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
	close(fd);
}

/* Root of a namespace of one's own: what of the kernel is within reach now? */
static void go_on(void *arg)
{
	char map[64];
	unsigned uid = getuid(), gid = getgid();
	int one = 1, sock;

	(void)arg;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		tell(-1, "nested");
		return;
	}
	tell(0, "nested");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put("/proc/self/gid_map", map);
	tell(getuid() == 0 ? 0 : -1, "nested root");
	tell(mount("none", "/mnt", "tmpfs", 0, NULL), "nested mount tmpfs");
	tell(mount("proc", "/mnt", "proc", 0, NULL), "nested mount proc");
	tell(mount("/", "/mnt", NULL, MS_BIND, NULL), "nested bind");
	tell(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), "nested remount");
	tell(umount2("/proc/sys", MNT_DETACH), "nested umount");
	tell(syscall(SYS_fsopen, "tmpfs", 0), "nested fsopen");
	tell(syscall(SYS_open_tree, AT_FDCWD, "/", 1), "nested open_tree");
	tell(unshare(CLONE_NEWNS), "nested unshare mount");
	tell(unshare(CLONE_NEWIPC), "nested unshare ipc");
	tell(sethostname("x", 1), "nested sethostname");
	tell(mknod("/tmp/nested-null", S_IFCHR | 0666, makedev(1, 3)), "nested mknod");
	tell(socket(AF_NETLINK, SOCK_RAW, 6), "nested NETLINK_XFRM");
	tell(socket(AF_NETLINK, SOCK_RAW, 12), "nested NETLINK_NETFILTER");
	tell(socket(AF_PACKET, SOCK_RAW, 0), "nested packet socket");
	tell(socket(AF_INET, SOCK_RAW, 1), "nested raw socket");
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	tell(setsockopt(sock, 0, 64, &one, sizeof(one)), "nested iptables");
	tell(setsockopt(sock, 0, 17, &one, sizeof(one)), "nested IP_XFRM_POLICY");
	sock = socket(AF_INET6, SOCK_DGRAM, 0);
	tell(setsockopt(sock, 41, 64, &one, sizeof(one)), "nested ip6tables");
	tell(setsockopt(sock, 41, 35, &one, sizeof(one)), "nested IPV6_XFRM_POLICY");
	tell(syscall(SYS_bpf, 0, NULL, 0), "nested bpf");
	tell(syscall(SYS_setns, 0, 0), "nested setns");
	tell(open("/proc/1/environ", O_RDONLY), "nested /proc/1/environ");
	tell(open("/proc/1/oom_score_adj", O_WRONLY), "nested /proc/1/oom_score_adj");
	tell(open("/proc/sys/kernel/core_pattern", O_WRONLY), "nested core_pattern");
}

/* How many at a time: each costs the kernel memory of its own. */
static void hoard(void *arg)
{
	unsigned long count = 0;
	int pipe_fds[2], status;
	pid_t pid = 0;
	char byte;

	(void)arg;
	if (pipe(pipe_fds) < 0)
		return;
	while (count < 1000 && (pid = fork()) >= 0) {
		if (pid == 0) {
			close(pipe_fds[1]);
			if (unshare(CLONE_NEWUSER) < 0)
				_exit(1);
			/* Until the parent is gone; a second child of ours would tell it that we are in. */
			raise(SIGSTOP);
			(void)!read(pipe_fds[0], &byte, 1);
			_exit(0);
		}
		waitpid(pid, &status, WUNTRACED);
		if (!WIFSTOPPED(status))
			break;
		count++;
	}
	tell_count("user namespaces at a time", count);
	kill(0, SIGKILL);
}

static void hoard_apart(void *arg)
{
	setpgid(0, 0);
	hoard(arg);
}

int main(int argc, char *argv[])
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct attempt attempt = {"unshare", kinds[i].name, kinds[i].flag};

		in_child(unshare_it, &attempt);
		attempt.flags |= CLONE_NEWUSER;
		attempt.how = "unshare user and";
		in_child(unshare_it, &attempt);
		attempt.how = "clone";
		clone_it(&attempt);
		attempt.how = "clone3";
		clone3_it(&attempt);
	}
	(void)argc, (void)argv;
	in_child(go_on, NULL);
	in_child(hoard_apart, NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}
