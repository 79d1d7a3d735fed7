/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/host_check.h"

#include "base/data_dir.h"
#include "base/fd.h"
#include "base/subids.h"
#include "doctor/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_MAJOR	      6
#define KERNEL_MINOR	      1
#define KERNEL_MINOR_ROOTLESS 3 /* the first with id-mapped tmpfs */
#define NAMESPACES_ENOUGH     1000
#define INOTIFY_ENOUGH	      512
#define MOUNTS_LEN	      65536
#define MOUNT_POINT_LEN	      200

void host_check_init(struct host *ret, int root_fd)
{
	struct utsname name;

	*ret = (struct host){.root_fd = root_fd, .is_root = geteuid() == 0};
	if (uname(&name) < 0)
		return;
	snprintf(ret->kernel, sizeof(ret->kernel), "%s", name.release);
	if (sscanf(name.release, "%u.%u", &ret->kernel_major, &ret->kernel_minor) != 2)
		ret->kernel_major = 0;
}

static void check_privilege(const struct host *host, struct finding *f)
{
	if (host->is_root)
		finding_ok(f, "root");
	else
		finding_problem(f, FINDING_WARN,
			"an ordinary user's sandlotd has only the walls that need no root: see "
			"\"Without root\" in SECURITY.md",
			"sudo sandlotd", "uid %u", geteuid());
}

/* What an ordinary user's sandlotd maps to the uids of its sandboxes. */
static void check_lent_ids(const struct host *host, struct finding *f)
{
	const struct passwd *user = getpwuid(geteuid());
	char remedy[SUBIDS_REMEDY_MAX];

	if (host->is_root)
		finding_ok(f, "not needed by root");
	else if (faccessat(host->root_fd, "usr/bin/newuidmap", F_OK, 0) < 0)
		finding_problem(f, FINDING_FAIL, "it maps the ids of an ordinary user's sandboxes",
			"sudo apt-get install uidmap", "newuidmap is not installed");
	else if (!subids_suffice(host->root_fd, user ? user->pw_name : "", geteuid(), remedy))
		finding_problem(f, FINDING_FAIL, "each sandbox gets ids that are nobody else's",
			remedy, "/etc/subuid and /etc/subgid lend too few to this user");
	else
		finding_ok(f, "enough in /etc/subuid and /etc/subgid");
}

static void check_kernel(const struct host *host, struct finding *f)
{
	unsigned minor = host->is_root ? KERNEL_MINOR : KERNEL_MINOR_ROOTLESS;

	if (host->kernel_major > KERNEL_MAJOR ||
		(host->kernel_major == KERNEL_MAJOR && host->kernel_minor >= minor))
		finding_ok(f, "Linux %s", host->kernel);
	else
		finding_problem(f, FINDING_FAIL,
			"idmapped overlay layers and the newer mount calls are not in it",
			HOST_CHECK_UPGRADE, "Linux %s, older than %d.%u", host->kernel,
			KERNEL_MAJOR, minor);
}

static void check_namespaces(const struct host *host, struct finding *f)
{
	static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
	long long least = -1;
	const char *which = "";

	for (size_t i = 0; i < array_len(kinds); i++) {
		char path[64];
		long long max;

		snprintf(path, sizeof(path), "proc/sys/user/max_%s_namespaces", kinds[i]);
		max = host_file_number(host, path, -1);
		if (max >= 0 && (least < 0 || max < least)) {
			least = max;
			which = kinds[i];
		}
	}
	if (least < 0 || least >= NAMESPACES_ENOUGH) {
		finding_ok(f, "at least %lld of each kind", least < 0 ? 0 : least);
		return;
	}
	finding_problem(f, least == 0 ? FINDING_FAIL : FINDING_WARN,
		"every sandbox needs one namespace of each kind", "",
		"user.max_%s_namespaces is %lld", which, least);
	snprintf(f->mend, sizeof(f->mend), "sudo sysctl -w user.max_%s_namespaces=15000", which);
}

static void check_apparmor(const struct host *host, struct finding *f)
{
	if (host_file_number(host, "proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		finding_problem(f, FINDING_FAIL,
			"a sandbox's user namespace is made by its own unprivileged uid",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1",
			"kernel.unprivileged_userns_clone is 0");
	else if (host_file_number(
			 host, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 0)
		finding_problem(f, FINDING_WARN,
			"AppArmor takes the capabilities out of user namespaces that unprivileged "
			"uids "
			"make, and each sandbox's is one",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
			"kernel.apparmor_restrict_unprivileged_userns is 1");
	else
		finding_ok(f, "no rule against unprivileged user namespaces");
}

/* Finds a mount below /usr; false if there is none. */
static bool find_mount_in_usr(const struct host *host, char ret_point[static MOUNT_POINT_LEN])
{
	static const char usr[] = " /usr/";
	char text[MOUNTS_LEN];
	const char *at = host_file_read(host, "proc/self/mounts", text, sizeof(text))
				 ? strstr(text, usr)
				 : NULL;

	if (at)
		snprintf(ret_point, MOUNT_POINT_LEN, "%.*s", (int)strcspn(at + 1, " \n"), at + 1);
	return at != NULL;
}

static void check_overlay(const struct host *host, struct finding *f)
{
	char text[8192], module[320], point[MOUNT_POINT_LEN];

	/* A mount that was made outside of a user namespace must go on hiding what is below it. */
	if (!host->is_root && find_mount_in_usr(host, point)) {
		finding_problem(f, FINDING_FAIL,
			"the template host shows /usr, and without root the kernel lets nobody "
			"show a directory in which something else is mounted",
			"sudo sandlotd", "%s is a mount of its own", point);
		return;
	}

	snprintf(module, sizeof(module), "lib/modules/%s/kernel/fs/overlayfs/overlay.ko",
		host->kernel);
	if (host_file_read(host, "proc/filesystems", text, sizeof(text)) &&
		host_file_has_word(text, "overlay"))
		finding_ok(f, "available");
	else if (faccessat(host->root_fd, module, F_OK, 0) == 0)
		finding_ok(f, "available as a module, loaded at its first use");
	else
		finding_problem(f, FINDING_FAIL, "a sandbox's root is an overlay over its template",
			"sudo modprobe overlay", "not in /proc/filesystems");
}

static void check_seccomp(const struct host *host, struct finding *f)
{
	char text[8192];

	if (host_file_read(host, "proc/self/status", text, sizeof(text)) &&
		strstr(text, "\nSeccomp:"))
		finding_ok(f, "available");
	else
		finding_problem(f, FINDING_FAIL,
			"the system call filter is the wall in front of the kernel",
			"use a kernel with CONFIG_SECCOMP_FILTER=y",
			"no Seccomp line in /proc/self/status");
}

static void check_user(const struct host *host, struct finding *f)
{
	struct passwd *user;

	if (!host->is_root) {
		finding_ok(f, "not needed without root");
		return;
	}
	user = getpwnam("sandlot");
	if (user)
		finding_ok(f, "sandlot, uid %u", user->pw_uid);
	else
		finding_problem(f, FINDING_WARN,
			"sandlotd started by root drops to this user; all foreign bytes are parsed "
			"there",
			"sudo useradd --system --home-dir /var/lib/sandlot --shell "
			"/usr/sbin/nologin "
			"sandlot",
			"there is no user \"sandlot\"");
}

/* '|' starts a program, '@' (since 6.16) tells a socket. */
static void check_core_pattern(const struct host *host, struct finding *f)
{
	char text[256];

	if (!host_file_read(host, "proc/sys/kernel/core_pattern", text, sizeof(text)) ||
		(text[0] != '|' && text[0] != '@'))
		finding_ok(f, "crashes start no program");
	else
		finding_problem(f, FINDING_WARN,
			"it handles crashes as root of the host; crashes inside a sandbox are kept "
			"from it by a limit that each sandbox holds, and without it there is "
			"nothing to keep",
			"sudo sysctl -w kernel.core_pattern=core", "crashes are handed to %.100s",
			text + 1);
}

static void check_suid_dumpable(const struct host *host, struct finding *f)
{
	long long value = host_file_number(host, "proc/sys/fs/suid_dumpable", 0);

	if (value != 1)
		finding_ok(f, "processes that change their user stay closed to tracers");
	else
		finding_problem(f, FINDING_WARN,
			"for an instant at each command, the first process of a sandbox could be "
			"traced from inside",
			"sudo sysctl -w fs.suid_dumpable=0", "fs.suid_dumpable is 1");
}

/* Where the file system is mounted that root's daemon has its data on, if that enforces project quotas. */
static bool find_project_quota(const struct host *host, char ret_place[PATH_MAX])
{
	int fd = openat(host->root_fd, "proc/self/mounts", O_RDONLY | O_CLOEXEC);
	FILE *mounts = fd < 0 ? NULL : fdopen(fd, "r");
	bool has_quota = false;
	struct mntent *entry;
	size_t longest = 0;

	if (!mounts) {
		fd_close(fd);
		return false;
	}
	while ((entry = getmntent(mounts))) {
		size_t len = strcmp(entry->mnt_dir, "/") == 0 ? 0 : strlen(entry->mnt_dir);
		char next = len < strlen(DATA_DIR_OF_ROOT) ? DATA_DIR_OF_ROOT[len] : '\0';

		/* Of two at the same place the later one is what is seen. */
		if (len < longest || strncmp(entry->mnt_dir, DATA_DIR_OF_ROOT, len) != 0 ||
			(next && next != '/'))
			continue;
		longest = len;
		has_quota = hasmntopt(entry, "prjquota") || hasmntopt(entry, "pquota");
		snprintf(ret_place, PATH_MAX, "%s", entry->mnt_dir);
	}
	endmntent(mounts);
	return has_quota;
}

static void check_disk_limits(const struct host *host, struct finding *f)
{
	static const char why[] =
		"where the file system of the data directory is not mounted with prjquota, the "
		"disk of a sandbox is limited by an ext4 image on a loop device";
	char text[8192], place[PATH_MAX];

	if (host->is_root && find_project_quota(host, place))
		finding_ok(f, "project quotas of %s", place);
	else if (faccessat(host->root_fd, "dev/loop-control", F_OK, 0) < 0)
		finding_problem(f, FINDING_WARN, why, "sudo modprobe loop", "no /dev/loop-control");
	else if (!host_file_read(host, "proc/filesystems", text, sizeof(text)) ||
		 !host_file_has_word(text, "ext4"))
		finding_problem(f, FINDING_WARN, why, "sudo modprobe ext4",
			"ext4 is not in /proc/filesystems");
	else
		finding_ok(f, "ext4 images on loop devices");
}

static void check_e2fsck(const struct host *host, struct finding *f)
{
	if (faccessat(host->root_fd, "usr/sbin/e2fsck", X_OK, 0) == 0 ||
		faccessat(host->root_fd, "sbin/e2fsck", X_OK, 0) == 0)
		finding_ok(f, "installed");
	else
		finding_problem(f, FINDING_WARN,
			"a sandbox whose disk is an image that was not unmounted cleanly starts "
			"only "
			"after a check",
			"sudo apt-get install e2fsprogs", "e2fsck is not installed");
}

/* What the kernel counts once for the whole host: sandboxes share it with each other and with it. */
static void check_shared_limits(const struct host *host, struct finding *f)
{
	static const struct {
		const char *path, *name;
		long long enough;
	} limits[] = {
		{"proc/sys/kernel/pid_max", "kernel.pid_max", 131072},
		{"proc/sys/kernel/threads-max", "kernel.threads-max", 30000},
		{"proc/sys/kernel/pty/max", "kernel.pty.max", 4096},
		{"proc/sys/fs/file-max", "fs.file-max", 500000},
	};

	for (size_t i = 0; i < array_len(limits); i++) {
		long long value = host_file_number(host, limits[i].path, limits[i].enough);

		if (value >= limits[i].enough)
			continue;
		finding_problem(f, FINDING_WARN,
			"it is counted for the whole host: a few sandboxes at their own limits "
			"would leave nothing to others",
			"", "%s is %lld", limits[i].name, value);
		snprintf(f->mend, sizeof(f->mend), "sudo sysctl -w %s=%lld", limits[i].name,
			limits[i].enough);
		return;
	}
	finding_ok(f, "processes, terminals and files are enough for many sandboxes");
}

static void check_io_uring(const struct host *host, struct finding *f)
{
	/* Absent before 6.6: then it is on and there is no switch. */
	long long off = host_file_number(host, "proc/sys/kernel/io_uring_disabled", -1);

	if (off == 2)
		finding_ok(f, "off for the whole host");
	else
		finding_problem(f, FINDING_WARN,
			"sandboxes cannot use it (the filter refuses it); off for all there is one "
			"large "
			"part of the kernel less to attack",
			off < 0 ? "" : "sudo sysctl -w kernel.io_uring_disabled=2", "on");
}

static void check_inotify(const struct host *host, struct finding *f)
{
	long long max =
		host_file_number(host, "proc/sys/fs/inotify/max_user_instances", INOTIFY_ENOUGH);

	if (max >= INOTIFY_ENOUGH)
		finding_ok(f, "%lld instances for each user", max);
	else
		finding_problem(f, FINDING_WARN,
			"watched files and development servers need one each",
			"sudo sysctl -w fs.inotify.max_user_instances=8192",
			"%lld instances for each user", max);
}

const struct host_check host_checks[] = {
	{"privilege", check_privilege},
	{"lent-ids", check_lent_ids, true},
	{"kernel", check_kernel},
	{"user-namespace", host_probe_userns, true},
	{"userns-policy", check_apparmor},
	{"namespace-limits", check_namespaces},
	{"overlayfs", check_overlay},
	{"idmapped-mounts", host_probe_idmap, true},
	{"mount-api", host_probe_mount_api, true},
	{"openat2", host_probe_openat2, true},
	{"clone3", host_probe_clone3, true},
	{"pidfd", host_probe_pidfd, true},
	{"cgroup-limits", host_cgroup_limits},
	{"cgroup-delegation", host_cgroup_delegation},
	{"cgroup-kill", host_cgroup_kill, true},
	{"seccomp", check_seccomp},
	{"nft", host_probe_nft, true},
	{"daemon-user", check_user, true},
	{"disk-limits", check_disk_limits, true},
	{"e2fsck", check_e2fsck},
	{"core-pattern", check_core_pattern},
	{"suid-dumpable", check_suid_dumpable},
	{"shared-limits", check_shared_limits},
	{"io_uring", check_io_uring},
	{"inotify", check_inotify},
};
const size_t host_check_count = array_len(host_checks);
