/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs.h"

#include "base/fd.h"
#include "keeper/devices.h"
#include "keeper/mounts.h"
#include "keeper/namespace.h"
#include "keeper/shelf.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define SAFE	      (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define SHM_MAX_BYTES (64ull << 20)
#define TMP_MAX_BYTES (256ull << 20) /* of a cell */
#define TTY_GID	      5
#define PTYS_MAX      "64"
#define CELL_PTYS_MAX "4"

/* What directories are masked with: on the shelf, where no sandbox can put anything into it. */
static int make_blank(int shelf_fd, struct err *err)
{
	if (mkdirat(shelf_fd, "blank", 0555) < 0 && errno != EEXIST)
		return err_sys(err, "make an empty directory");
	return 0;
}

/* In a short-lived child: a mount namespace with nothing but an empty read-only tmpfs. */
static int enter_empty(void *arg)
{
	const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	(void)arg;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("sandlot", "/tmp", "tmpfs", safe, "size=4096,mode=0555") < 0 ||
		chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
		umount2(".", MNT_DETACH) < 0 ||
		mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | safe, NULL) < 0)
		return -errno;
	return 0;
}

static int make_void(int *ret_fd, struct err *err)
{
	static const struct namespace_job job = {.file = "mnt", .enter = enter_empty};

	return namespace_make(&job, NULL, ret_fd, err);
}

int rootfs_leave_host(struct err *err)
{
	/* As a slave: what the host mounts comes and what it unmounts goes, here too. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(err, "make the keeper's mount namespace");
	return 0;
}

/* Before, a template on a tmpfs would be nobody's in every sandbox. */
static int check_kernel(struct err *err)
{
	struct utsname name;
	unsigned major, minor;

	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return err_set(err, ERR_UNAVAILABLE, "the kernel does not tell its version");
	if (major > 6 || (major == 6 && minor >= 3))
		return 0;
	return err_explain(err, ERR_UNAVAILABLE, "old_kernel", "start sandlotd as root",
		"without root Linux 6.3 is needed, the first that maps the ids of a tmpfs; this is "
		"%s",
		name.release);
}

int rootfs_cover_templates(int *templates_fd, struct err *err)
{
	auto_fd int fs = mounts_fsopen("tmpfs");
	auto_fd int own = -1;
	int r = check_kernel(err);

	if (r < 0)
		return r;
	if (fs < 0 || mounts_set_string(fs, "mode", "0700") < 0)
		return err_sys(err, "configure tmpfs for templates");
	own = mounts_fsmount(fs, SAFE);
	if (own < 0 || mounts_attach(own, *templates_fd) < 0)
		return err_sys(err, "mount tmpfs for templates");
	close(*templates_fd);
	*templates_fd = take_fd(&own);
	return 0;
}

int rootfs_open_sources(
	struct rootfs_sources *sources, int template_fd, bool is_host, struct err *err)
{
	auto_fd int place = -1;
	int r;

	*sources = (struct rootfs_sources){.is_host = is_host,
		.template_fd = template_fd,
		.shelf_fd = -1,
		.lowers_fd = -1,
		.usr_fd = -1,
		.dev_fd = -1,
		.void_ns_fd = -1};
	sources->usr_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sources->usr_fd < 0)
		return err_sys(err, "open /usr");
	place = openat(template_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place < 0)
		return err_sys(err, "open the directory of templates");
	if ((r = shelf_make(place, &sources->shelf_fd, err)) < 0 ||
		(r = shelf_open_section(sources->shelf_fd, "lowers", &sources->lowers_fd, err)) <
			0 ||
		(r = devices_make(sources->shelf_fd, &sources->dev_fd, err)) < 0 ||
		(r = make_blank(sources->shelf_fd, err)) < 0 ||
		(r = make_void(&sources->void_ns_fd, err)) < 0)
		return r;
	proc_mask_find(&sources->masks);
	return 0;
}

/* The mounts that are cloned or made before the child leaves the host's mount namespace. */
struct parts {
	int overlay, usr, dev, proc, workspace, project, masks[PROC_MASKS_MAX];
};

/*
 * A directory of the host as the owner of a uid range sees it. It stays mounted for the range's next
 * sandbox: that is cheaper than an unmount. No two children use the same range at a time.
 */
static int open_lower(const struct rootfs_sources *sources, const char *kind, int source_fd,
	int userns_fd, uint32_t base_uid, int *ret_fd, struct err *err)
{
	auto_fd int lower = -1;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "%s-%u", kind, base_uid);
	*ret_fd = shelf_open_mount(sources->lowers_fd, name);
	if (*ret_fd >= 0)
		return 0;
	r = mounts_clone(
		source_fd, "", SAFE | MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, userns_fd, &lower, err);
	if (r < 0)
		return r;
	r = shelf_put_mount(sources->lowers_fd, name, lower, err);
	if (r < 0)
		return r;
	*ret_fd = take_fd(&lower);
	return 0;
}

struct option {
	const char *key;
	const char *value;
};

/* Makes a file system with options (ended by a NULL key); a detached mount of it. */
static int make_new(const char *type, const struct option *options, unsigned attrs, int *ret_fd,
	struct err *err)
{
	auto_fd int fs = mounts_fsopen(type);

	if (fs < 0)
		return err_sys(err, "open file system %s", type);
	for (; options->key; options++) {
		/* An option without a value is a flag. */
		if ((options->value ? mounts_set_string(fs, options->key, options->value)
				    : mounts_set_flag(fs, options->key)) < 0)
			return err_sys(err, "set %s of %s", options->key, type);
	}
	*ret_fd = mounts_fsmount(fs, attrs);
	return *ret_fd < 0 ? err_sys(err, "make file system %s", type) : 0;
}

#define FD_PATH_LEN 32

static const char *path_of(int fd, char path[static FD_PATH_LEN])
{
	snprintf(path, FD_PATH_LEN, "/proc/self/fd/%d", fd);
	return path;
}

/* Root of a user namespace may not keep the overlay's notes where the host's root keeps them. */
static int make_root(
	int lower, const struct storage_dirs *dirs, bool is_host, int *ret_fd, struct err *err)
{
	char lower_path[FD_PATH_LEN], upper_path[FD_PATH_LEN], work_path[FD_PATH_LEN];
	/* Without `volatile`, the end of each sandbox would sync the host's whole file system. */
	const struct option options[] = {{"lowerdir", path_of(lower, lower_path)},
		{"upperdir", path_of(dirs->upper_fd, upper_path)},
		{"workdir", path_of(dirs->work_fd, work_path)}, {"source", "sandlot"},
		{"volatile", NULL}, {is_host ? NULL : "userxattr", NULL}, {NULL, NULL}};

	return make_new("overlay", options, SAFE, ret_fd, err);
}

/*
 * The host's /usr, as a file system of the sandbox's own. Bound as it is, its inodes would be the host's:
 * a lease that root of a sandbox, whom the mapping makes their owner, takes on a program would hold up
 * everybody on the host who starts it; locks would too, and inotify would tell who does. An overlay wants
 * two layers, so there is an empty one.
 */
static int make_usr(int usr, int blank, int *ret_fd, struct err *err)
{
	char usr_path[FD_PATH_LEN], blank_path[FD_PATH_LEN], both[2 * FD_PATH_LEN];
	/* With xino all of it is one device, as programs expect that compare them. */
	const struct option options[] = {
		{"lowerdir", both}, {"xino", "on"}, {"source", "sandlot"}, {NULL, NULL}};

	snprintf(both, sizeof(both), "%s:%s", path_of(usr, usr_path), path_of(blank, blank_path));
	return make_new("overlay", options, SAFE | MOUNT_ATTR_RDONLY, ret_fd, err);
}

static int make_overlays(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	int userns_fd, uint32_t base_uid, struct parts *parts, struct err *err)
{
	auto_fd int lower = -1, usr = -1, blank = -1;
	int r;

	blank = openat(sources->shelf_fd, "blank", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (blank < 0)
		return err_sys(err, "open the empty directory");
	if ((r = open_lower(sources, "root", sources->template_fd, userns_fd, base_uid, &lower,
		     err)) < 0 ||
		(r = open_lower(sources, "usr", sources->usr_fd, userns_fd, base_uid, &usr, err)) <
			0 ||
		(r = make_root(lower, dirs, sources->is_host, &parts->overlay, err)) < 0)
		return r;
	return make_usr(usr, blank, &parts->usr, err);
}

/* Here, where a procfs can be seen: to root of a user namespace the kernel gives one only beside a
 * whole one, so that nobody gets to see what somebody has masked. */
static int make_proc(int *ret_fd, struct err *err)
{
	const struct option none[] = {{NULL, NULL}};
	int r = make_new("proc", none, SAFE | MOUNT_ATTR_NOEXEC, ret_fd, err);

	return r == -EPERM
		       ? err_explain(err, ERR_UNAVAILABLE, "proc_masked",
				 "start sandlotd where nothing is mounted over files in /proc",
				 "the kernel gives no /proc where a part of /proc is masked, as "
				 "in a container")
		       : r;
}

static int clone_parts(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	int userns_fd, uint32_t base_uid, struct parts *parts, struct err *err)
{
	int r;

	if ((r = make_overlays(sources, dirs, userns_fd, base_uid, parts, err)) < 0 ||
		(r = mounts_clone(sources->dev_fd, "",
			 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, -1, &parts->dev,
			 err)) < 0 ||
		(r = make_proc(&parts->proc, err)) < 0 ||
		(r = mounts_clone(dirs->workspace_fd, "", SAFE, -1, &parts->workspace, err)) < 0)
		return r;
	r = mounts_clone(dirs->workspace_fd, "project_files", SAFE | MOUNT_ATTR_RDONLY, -1,
		&parts->project, err);
	return r < 0 ? r
		     : proc_mask_clone(&sources->masks, sources->shelf_fd, sources->dev_fd,
			       parts->masks, err);
}

/* Makes a kernel file system and attaches it. */
static int attach_new(const char *type, const struct option *options, unsigned attrs,
	const char *place, struct err *err)
{
	int mount;
	int r = make_new(type, options, attrs, &mount, err);

	return r < 0 ? r : mounts_place(mount, place, err);
}

/* A part of the sandbox's memory, as what lies there belongs to no process that could be killed. */
static void part_of(uint64_t memory_bytes, uint64_t max, char *size, size_t len)
{
	snprintf(size, len, "%llu", (unsigned long long)(memory_bytes < max ? memory_bytes : max));
}

static int attach_kernel_files(
	uint32_t base_uid, uint64_t memory_bytes, const char *ptys, struct err *err)
{
	char gid[16], size[24];
	const struct option pts[] = {
		{"gid", gid}, {"mode", "0620"}, {"ptmxmode", "0666"}, {"max", ptys}, {NULL, NULL}};
	const struct option shm[] = {
		{"size", size}, {"nr_inodes", "16384"}, {"mode", "1777"}, {NULL, NULL}};
	const unsigned quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	int r;

	snprintf(gid, sizeof(gid), "%u", base_uid + TTY_GID);
	part_of(memory_bytes / 4, SHM_MAX_BYTES, size, sizeof(size));
	r = attach_new("devpts", pts, quiet, "dev/pts", err);
	if (r < 0)
		return r;
	return attach_new("tmpfs", shm, SAFE, "dev/shm", err);
}

static int enter_void(const struct rootfs_sources *sources, int overlay, struct err *err)
{
	auto_fd int top = -1;

	if (setns(sources->void_ns_fd, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "enter an empty mount namespace");
	top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 || mounts_attach(overlay, top) < 0)
		return err_sys(err, "attach the root");
	if (fchdir(overlay) < 0 || chroot(".") < 0)
		return err_sys(err, "enter the root");
	return 0;
}

int rootfs_enter(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	int userns_fd, uint32_t base_uid, uint64_t memory_bytes, struct err *err)
{
	struct parts parts;
	int r;

	if ((r = clone_parts(sources, dirs, userns_fd, base_uid, &parts, err)) < 0 ||
		(r = enter_void(sources, parts.overlay, err)) < 0 ||
		(r = mounts_place(parts.usr, "usr", err)) < 0 ||
		(r = mounts_place(parts.dev, "dev", err)) < 0 ||
		(r = mounts_place(parts.proc, "proc", err)) < 0 ||
		(r = mounts_place(parts.workspace, "workspace", err)) < 0 ||
		(r = mounts_place(parts.project, "workspace/project_files", err)) < 0 ||
		(r = attach_kernel_files(base_uid, memory_bytes, PTYS_MAX, err)) < 0)
		return r;
	return proc_mask_place(&sources->masks, parts.masks, err);
}

void rootfs_warm(void)
{
	static const char *const paths[] = {"/bin/sh", "/usr/bin/env", "/usr/local/sbin",
		"/usr/local/bin", "/usr/sbin", "/etc/ld.so.cache", "/etc/passwd", "/etc/group",
		"/etc/nsswitch.conf", "/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/ld-linux-aarch64.so.1",
		"/lib/aarch64-linux-gnu/libc.so.6"};

	for (size_t i = 0; i < array_len(paths); i++)
		fd_close(open(paths[i], O_RDONLY | O_CLOEXEC));
}

int rootfs_seal(struct err *err)
{
	int knobs = mounts_open_tree(AT_FDCWD, "proc/sys", 0);

	if (knobs < 0 ||
		mounts_set_attr(knobs, SAFE | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, -1, 0) < 0)
		return err_sys(err, "clone /proc/sys");
	return mounts_place(knobs, "proc/sys", err);
}

int rootfs_divide(const struct rootfs_sources *sources, uint32_t base_uid, uint64_t memory_bytes,
	struct err *err)
{
	char size[24];
	const struct option tmp[] = {
		{"size", size}, {"nr_inodes", "65536"}, {"mode", "1777"}, {NULL, NULL}};
	auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int covers[PROC_COVERS_MAX], proc, r;

	part_of(memory_bytes / 2, TMP_MAX_BYTES, size, sizeof(size));
	if (root < 0 || fchdir(root) < 0 || mounts_set_attr(root, MOUNT_ATTR_RDONLY, -1, 0) < 0)
		return err_sys(err, "make the system read-only");
	if ((r = proc_mask_clone_covers(&sources->masks, covers, err)) < 0 ||
		(r = attach_new("tmpfs", tmp, SAFE, "tmp", err)) < 0 ||
		(r = make_proc(&proc, err)) < 0 || (r = mounts_place(proc, "proc", err)) < 0 ||
		(r = attach_kernel_files(base_uid, memory_bytes, CELL_PTYS_MAX, err)) < 0)
		return r;
	return proc_mask_place_covers(&sources->masks, covers, err);
}
