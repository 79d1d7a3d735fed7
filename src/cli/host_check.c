/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_check.h"

#include "base/data_dir.h"
#include "base/fd.h"
#include "base/subids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_MAJOR	      6
#define KERNEL_MINOR	      1
#define KERNEL_MINOR_ROOTLESS 3 /* the first with id-mapped tmpfs */
#define NAMESPACES_ENOUGH     1000
#define INOTIFY_ENOUGH	      512
#define UPGRADE		      "upgrade the kernel (Debian 12 and Ubuntu 24.04 have one that serves)"

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

/* A file of text below the root; NULL (and no complaint) if it is not there. */
static const char *slurp(const struct host *host, const char *path, char *text, size_t size)
{
	ssize_t n = fd_read_file(host->root_fd, path, text, size);

	if (n < 0)
		return NULL;
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	return text;
}

static long long number_in(const struct host *host, const char *path, long long absent)
{
	char text[64];

	return slurp(host, path, text, sizeof(text)) ? atoll(text) : absent;
}

/* Is word one of the words of text? */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len) {
		bool begins = at == text || strchr(" ,\t\n", at[-1]);

		if (begins && (!at[len] || strchr(" ,\t\n", at[len])))
			return true;
	}
	return false;
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
			"idmapped overlay layers and the newer mount calls are not in it", UPGRADE,
			"Linux %s, older than %d.%u", host->kernel, KERNEL_MAJOR, minor);
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
		max = number_in(host, path, -1);
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
	if (number_in(host, "proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		finding_problem(f, FINDING_FAIL,
			"a sandbox's user namespace is made by its own unprivileged uid",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1",
			"kernel.unprivileged_userns_clone is 0");
	else if (number_in(host, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 0)
		finding_problem(f, FINDING_WARN,
			"AppArmor takes the capabilities out of user namespaces that unprivileged "
			"uids "
			"make, and each sandbox's is one",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
			"kernel.apparmor_restrict_unprivileged_userns is 1");
	else
		finding_ok(f, "no rule against unprivileged user namespaces");
}

static void check_overlay(const struct host *host, struct finding *f)
{
	char text[8192], module[320];

	snprintf(module, sizeof(module), "lib/modules/%s/kernel/fs/overlayfs/overlay.ko",
		host->kernel);
	if (slurp(host, "proc/filesystems", text, sizeof(text)) && has_word(text, "overlay"))
		finding_ok(f, "available");
	else if (faccessat(host->root_fd, module, F_OK, 0) == 0)
		finding_ok(f, "available as a module, loaded at its first use");
	else
		finding_problem(f, FINDING_FAIL, "a sandbox's root is an overlay over its template",
			"sudo modprobe overlay", "not in /proc/filesystems");
}

/* Where cgroup v2 is mounted, relative to the root directory; false if nowhere. */
static bool find_cgroup2(const struct host *host, char *ret, size_t size)
{
	char mounts[65536];
	char *line = mounts;

	if (!slurp(host, "proc/self/mounts", mounts, sizeof(mounts)))
		return false;
	while (line) {
		char *next = strchr(line, '\n');
		char where[256];
		char type[64];

		if (next)
			*next++ = '\0';
		if (sscanf(line, "%*s %255s %63s", where, type) == 2 &&
			strcmp(type, "cgroup2") == 0 && where[0] == '/') {
			snprintf(ret, size, "%s", where + 1);
			return true;
		}
		line = next;
	}
	return false;
}

/* Does a v1 hierarchy carry this controller? */
static bool has_v1_controller(const struct host *host, const char *name)
{
	char mounts[65536];
	char *line = mounts;

	if (!slurp(host, "proc/self/mounts", mounts, sizeof(mounts)))
		return false;
	while (line) {
		char *next = strchr(line, '\n');
		char type[64];
		char flags[256];

		if (next)
			*next++ = '\0';
		if (sscanf(line, "%*s %*s %63s %255s", type, flags) == 2 &&
			strcmp(type, "cgroup") == 0 && has_word(flags, name))
			return true;
		line = next;
	}
	return false;
}

static void check_controllers(const struct host *host, struct finding *f)
{
	static const char *const needed[] = {"memory", "cpu", "pids"};
	char where[256];
	char path[300];
	char v2[1024] = "";
	char fact[256] = "";
	char missing[64] = "";
	size_t len = 0;

	if (find_cgroup2(host, where, sizeof(where))) {
		snprintf(path, sizeof(path), "%s/cgroup.controllers", where);
		if (!slurp(host, path, v2, sizeof(v2)))
			v2[0] = '\0';
	}
	for (size_t i = 0; i < array_len(needed); i++) {
		const char *on = has_word(v2, needed[i])	      ? "v2"
				 : has_v1_controller(host, needed[i]) ? "v1"
								      : NULL;

		if (on)
			len += (size_t)snprintf(fact + len, sizeof(fact) - len, "%s%s on %s",
				len ? ", " : "", needed[i], on);
		else if (!missing[0])
			snprintf(missing, sizeof(missing), "%s", needed[i]);
	}
	if (!missing[0])
		finding_ok(f, "%s", fact);
	else
		finding_problem(f, host->is_root ? FINDING_FAIL : FINDING_WARN,
			"without it nothing keeps a sandbox from taking all of the machine",
			"boot with systemd.unified_cgroup_hierarchy=1", "no %s controller",
			missing);
}

/* Whether the group that this user's daemon would be started in belongs to the user. */
static void check_delegation(const struct host *host, struct finding *f)
{
	char text[4096], where[256], path[PATH_MAX];
	const char *own = slurp(host, "proc/self/cgroup", text, sizeof(text));

	own = own ? strstr(own, "0::/") : NULL; /* the last line, of v2 */
	if (host->is_root) {
		finding_ok(f, "not needed by root");
		return;
	}
	if (own && find_cgroup2(host, where, sizeof(where))) {
		snprintf(path, sizeof(path), "%s%s/cgroup.procs", where, own + strlen("0::"));
		if (faccessat(host->root_fd, path, W_OK, AT_EACCESS) == 0) {
			finding_ok(f, "this group is the user's own");
			return;
		}
	}
	finding_problem(f, FINDING_WARN,
		"without a cgroup of the user's own, memory and processor of sandboxes are not "
		"limited, and pause is refused",
		"systemd-run --user --scope -p Delegate=yes sandlotd",
		"no cgroup is delegated to this user here");
}

/* The root cgroup has neither file, so a child has to be looked at: ours, or one made for it. */
static void check_cgroup_kill(const struct host *host, struct finding *f)
{
	char where[256];
	char probe[300];
	char path[340];
	bool made;
	bool has_kill;
	bool has_freeze;

	if (!find_cgroup2(host, where, sizeof(where))) {
		finding_problem(f, FINDING_WARN,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			"sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 none "
			"/sys/fs/cgroup/unified",
			"cgroup v2 is not mounted");
		return;
	}
	snprintf(probe, sizeof(probe), "%s/sandlot-doctor-%d", where, (int)getpid());
	made = mkdirat(host->root_fd, probe, 0755) == 0;
	if (!made) {
		finding_problem(f, FINDING_WARN,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			"sudo sandlot doctor",
			"not proven: cgroup v2 at /%s is not writable for us", where);
		return;
	}
	snprintf(path, sizeof(path), "%s/cgroup.kill", probe);
	has_kill = faccessat(host->root_fd, path, F_OK, 0) == 0;
	snprintf(path, sizeof(path), "%s/cgroup.freeze", probe);
	has_freeze = faccessat(host->root_fd, path, F_OK, 0) == 0;
	unlinkat(host->root_fd, probe, AT_REMOVEDIR);
	if (has_kill && has_freeze)
		finding_ok(f, "cgroup.kill and cgroup.freeze at /%s", where);
	else
		finding_problem(f, FINDING_FAIL,
			"cgroup.kill ends a whole sandbox at once, cgroup.freeze pauses it",
			UPGRADE, "no cgroup.%s", has_kill ? "freeze" : "kill");
}

static void check_seccomp(const struct host *host, struct finding *f)
{
	char text[8192];

	if (slurp(host, "proc/self/status", text, sizeof(text)) && strstr(text, "\nSeccomp:"))
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

	if (!slurp(host, "proc/sys/kernel/core_pattern", text, sizeof(text)) ||
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
	long long value = number_in(host, "proc/sys/fs/suid_dumpable", 0);

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
	else if (!slurp(host, "proc/filesystems", text, sizeof(text)) || !has_word(text, "ext4"))
		finding_problem(f, FINDING_WARN, why, "sudo modprobe ext4",
			"ext4 is not in /proc/filesystems");
	else
		finding_ok(f, "ext4 images on loop devices");
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
		long long value = number_in(host, limits[i].path, limits[i].enough);

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
	long long off = number_in(host, "proc/sys/kernel/io_uring_disabled", -1);

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
	long long max = number_in(host, "proc/sys/fs/inotify/max_user_instances", INOTIFY_ENOUGH);

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
	{"lent-ids", check_lent_ids},
	{"kernel", check_kernel},
	{"user-namespace", host_probe_userns},
	{"userns-policy", check_apparmor},
	{"namespace-limits", check_namespaces},
	{"overlayfs", check_overlay},
	{"idmapped-mounts", host_probe_idmap},
	{"mount-api", host_probe_mount_api},
	{"openat2", host_probe_openat2},
	{"clone3", host_probe_clone3},
	{"pidfd", host_probe_pidfd},
	{"cgroup-limits", check_controllers},
	{"cgroup-delegation", check_delegation},
	{"cgroup-kill", check_cgroup_kill},
	{"seccomp", check_seccomp},
	{"nft", host_probe_nft},
	{"daemon-user", check_user},
	{"disk-limits", check_disk_limits},
	{"core-pattern", check_core_pattern},
	{"suid-dumpable", check_suid_dumpable},
	{"shared-limits", check_shared_limits},
	{"io_uring", check_io_uring},
	{"inotify", check_inotify},
};
const size_t host_check_count = array_len(host_checks);
