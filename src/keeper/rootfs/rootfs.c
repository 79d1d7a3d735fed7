/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/rootfs.h"

#include "base/fd.h"
#include "keeper/mount/mount_area.h"
#include "keeper/mount/mounts.h"
#include "keeper/namespace/namespace.h"
#include "keeper/rootfs/devices.h"
#include "keeper/rootfs/layer_store.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define SAFE	       (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define SHM_MAX_BYTES  (64ull << 20)
#define TMP_MAX_BYTES  (256ull << 20) /* of an isolated command */
#define TTY_GID	       5
#define PTYS_MAX       "64"
#define CELL_PTYS_MAX  "4"
#define LOWER_NAME_MAX 32

/* What of the host is mounted for each uid range. */
enum { LOWER_ROOT, LOWER_USR, LOWER_LAYERS };
static const char *const lower_kinds[] = {
	[LOWER_ROOT] = "root", [LOWER_USR] = "usr", [LOWER_LAYERS] = "layers"};

/*
 * The directory that masks directories: on the mount area, where no sandbox can put anything into
 * it.
 */
static int make_blank(int mount_area_fd, struct err *err)
{
	if (mkdirat(mount_area_fd, "blank", 0555) < 0 && errno != EEXIST)
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
	static const struct namespace_job process = {.file = "mnt", .enter = enter_empty};

	return namespace_make(&process, NULL, ret_fd, err);
}

int rootfs_leave_host(struct err *err)
{
	/* As a slave: what the host mounts comes and what it unmounts goes, here too. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(err, "make the keeper's mount namespace");
	return 0;
}

/*
 * Before that version, the files of a template on a tmpfs would belong to `nobody` in every
 * sandbox.
 */
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

int rootfs_open_sources(struct rootfs_sources *sources, int template_fd, int layers_fd,
	bool is_host, struct err *err)
{
	auto_fd int place = -1;
	int r;

	*sources = (struct rootfs_sources){.is_host = is_host,
		.template_fd = template_fd,
		.layers_fd = layers_fd,
		.mount_area_fd = -1,
		.lowers_fd = -1,
		.usr_fd = -1,
		.dev_fd = -1,
		.empty_ns_fd = -1};
	sources->usr_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sources->usr_fd < 0)
		return err_sys(err, "open /usr");
	place = openat(template_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place < 0)
		return err_sys(err, "open the directory of templates");
	if ((r = mount_area_make(place, &sources->mount_area_fd, err)) < 0 ||
		(r = mount_area_open_section(
			 sources->mount_area_fd, "lowers", &sources->lowers_fd, err)) < 0 ||
		(r = devices_make(sources->mount_area_fd, &sources->dev_fd, err)) < 0 ||
		(r = make_blank(sources->mount_area_fd, err)) < 0 ||
		(r = make_void(&sources->empty_ns_fd, err)) < 0)
		return r;
	return proc_mask_find(&sources->masks, sources->mount_area_fd, err);
}

/* The mounts that are cloned or made before the child leaves the host's mount namespace. */
struct parts {
	int overlay, usr, dev, proc, workspace, project, volumes, masks[PROC_MASKS_MAX];
};

static void name_lower(const char *kind, uint32_t base_uid, char name[LOWER_NAME_MAX])
{
	snprintf(name, LOWER_NAME_MAX, "%s-%u", kind, base_uid);
}

void rootfs_forget_range(const struct rootfs_sources *sources, uint32_t base_uid)
{
	for (size_t i = 0; i < array_len(lower_kinds); i++) {
		char name[LOWER_NAME_MAX];
		int r;

		name_lower(lower_kinds[i], base_uid, name);
		r = mount_area_unmount(sources->lowers_fd, name);
		/* A place without a mount was left by a build that was cut short. */
		if (r == 0 || r == -EINVAL)
			mount_area_drop_place(sources->lowers_fd, name);
	}
}

/*
 * A directory of the host as the owner of a uid range sees it. It stays mounted for the range's next
 * sandbox (range_cache.h). No two children use the same range at a time.
 */
static int open_lower(const struct rootfs_sources *sources, const char *kind, int source_fd,
	int userns_fd, uint32_t base_uid, int *ret_fd, struct err *err)
{
	auto_fd int lower = -1;
	char name[LOWER_NAME_MAX];
	int r;

	name_lower(kind, base_uid, name);
	*ret_fd = mount_area_open_mount(sources->lowers_fd, name);
	if (*ret_fd >= 0)
		return 0;
	r = mounts_clone(
		source_fd, "", SAFE | MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, userns_fd, &lower, err);
	if (r < 0)
		return r;
	r = mount_area_put_mount(sources->lowers_fd, name, lower, err);
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

/*
 * Root of a user namespace may not keep the overlay's notes where the host's root keeps them; nor
 * may those who write layers.
 */
static int make_root(const char *lowers, const struct storage_dirs *dirs, bool has_user_notes,
	int *ret_fd, struct err *err)
{
	char upper_path[FD_PATH_LEN], work_path[FD_PATH_LEN];
	/* Without `volatile`, the end of each sandbox would sync the host's whole file system. */
	const struct option options[] = {{"lowerdir", lowers},
		{"upperdir", path_of(dirs->upper_fd, upper_path)},
		{"workdir", path_of(dirs->work_fd, work_path)}, {"source", "sandlot"},
		{"volatile", NULL}, {has_user_notes ? "userxattr" : NULL, NULL}, {NULL, NULL}};

	return make_new("overlay", options, SAFE, ret_fd, err);
}

/*
 * The host's /usr, or a layer, as a file system of the sandbox's own. Bound as it is, its inodes would be the
 * host's: root of a sandbox, whom the mapping makes their owner, could take a lease on a program
 * and hold up every process of the host that starts it; locks would do so too, and inotify would
 * show who starts it. An overlay needs two layers, so there is an empty one.
 */
static int make_shared(int dir, int blank, int *ret_fd, struct err *err)
{
	char path[FD_PATH_LEN], blank_path[FD_PATH_LEN], both[2 * FD_PATH_LEN];
	/* With xino all of it is one device, as programs expect that compare them. */
	const struct option options[] = {
		{"lowerdir", both}, {"xino", "on"}, {"source", "sandlot"}, {NULL, NULL}};

	snprintf(both, sizeof(both), "%s:%s", path_of(dir, path), path_of(blank, blank_path));
	return make_new("overlay", options, SAFE | MOUNT_ATTR_RDONLY, ret_fd, err);
}

static int open_blank(const struct rootfs_sources *sources, int *ret_fd, struct err *err)
{
	*ret_fd = openat(
		sources->mount_area_fd, "blank", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open the empty directory") : 0;
}

static int make_host_overlays(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	int userns_fd, uint32_t base_uid, struct parts *parts, struct err *err)
{
	auto_fd int lower = -1, usr = -1, blank = -1;
	char lower_path[FD_PATH_LEN];
	int r;

	if ((r = open_blank(sources, &blank, err)) < 0 ||
		(r = open_lower(sources, lower_kinds[LOWER_ROOT], sources->template_fd, userns_fd,
			 base_uid, &lower, err)) < 0 ||
		(r = open_lower(sources, lower_kinds[LOWER_USR], sources->usr_fd, userns_fd,
			 base_uid, &usr, err)) < 0 ||
		(r = make_root(path_of(lower, lower_path), dirs, !sources->is_host, &parts->overlay,
			 err)) < 0)
		return r;
	r = make_shared(usr, blank, &parts->usr, err);
	/* A mount that was made outside of our user namespace must go on hiding what is below it. */
	if (r == -EINVAL && !sources->is_host)
		return err_explain(err, ERR_UNAVAILABLE, NULL,
			"`sandlot doctor --host` names it; or start sandlotd as root",
			"the host's /usr cannot be shown without root: something is mounted in it");
	return r;
}

/* All layers lie in one directory, so one mapped mount serves any stack of them. */
static int make_stack_overlay(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	const char *stack, int userns_fd, uint32_t base_uid, struct parts *parts, struct err *err)
{
	auto_fd int layers = -1;
	char lowers[LAYER_STORE_OPTION];
	int r;

	parts->usr = -1;
	if ((r = open_lower(sources, lower_kinds[LOWER_LAYERS], sources->layers_fd, userns_fd,
		     base_uid, &layers, err)) < 0 ||
		(r = layer_store_enter_stack(layers, stack, lowers, err)) < 0)
		return r;
	return make_root(lowers, dirs, true, &parts->overlay, err);
}

int rootfs_show_layer(const struct rootfs_sources *sources, const char *layer, int userns_fd,
	uint32_t base_uid, int pidfd, struct err *err)
{
	char path[KEEPER_DIGEST_LEN + sizeof("/" KEEPER_LAYER_PLACE)];
	auto_fd int layers = -1, dir = -1, blank = -1, mount = -1;
	int r = open_lower(sources, lower_kinds[LOWER_LAYERS], sources->layers_fd, userns_fd,
		base_uid, &layers, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/" KEEPER_LAYER_PLACE, layer);
	dir = mounts_open_beneath(layers, path, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return err_sys(err, "open layer %.12s", layer);
	/* Shared as /usr is, and for the same reasons not as it is. */
	if ((r = open_blank(sources, &blank, err)) < 0 ||
		(r = make_shared(dir, blank, &mount, err)) < 0)
		return r;
	if (setns(pidfd, CLONE_NEWNS) < 0)
		return err_sys(err, "enter the mount namespace of the sandbox");
	return mounts_replace(take_fd(&mount), KEEPER_LAYER_PLACE, err);
}

/* No sandbox can mount, or make a second name of a directory: what is the same was shown by us. */
static bool is_shown(int dir_fd, const char *place)
{
	auto_fd int shown_fd = mounts_open_beneath(AT_FDCWD, place, O_PATH | O_DIRECTORY);
	struct stat shown, dir;

	return shown_fd >= 0 && fstat(shown_fd, &shown) == 0 && fstat(dir_fd, &dir) == 0 &&
	       shown.st_dev == dir.st_dev && shown.st_ino == dir.st_ino;
}

/*
 * Shown as it is, and not as an overlay, which would not see what comes later. Its ids are not mapped: its owner
 * is nobody inside, so root of the sandbox can take no lease on its files. What is shown already stays as it is, for
 * the sake of processes that work in it.
 */
int rootfs_show_dir(int dir_fd, const char *place, int pidfd, struct err *err)
{
	auto_fd int mount = -1;
	int r = mounts_clone(dir_fd, "", SAFE | MOUNT_ATTR_RDONLY, -1, &mount, err);

	if (r < 0)
		return r;
	if (setns(pidfd, CLONE_NEWNS) < 0)
		return err_sys(err, "enter the mount namespace of the sandbox");
	return is_shown(dir_fd, place) ? 0 : mounts_replace(take_fd(&mount), place, err);
}

/* Overlays of a sandbox's template alone, and below its upper layer. */
static int make_compared(const struct rootfs_sources *sources, int lower, int upper,
	const char *stack, int *ret_below_fd, int *ret_merged_fd, struct err *err)
{
	char lowers[LAYER_STORE_OPTION], both[LAYER_STORE_OPTION];
	char lower_path[FD_PATH_LEN], blank_path[FD_PATH_LEN], upper_path[FD_PATH_LEN];
	const char *notes = stack[0] || !sources->is_host ? "userxattr" : NULL;
	const struct option below[] = {
		{"lowerdir", lowers}, {"source", "sandlot"}, {notes, NULL}, {NULL, NULL}};
	const struct option merged[] = {
		{"lowerdir", both}, {"source", "sandlot"}, {notes, NULL}, {NULL, NULL}};
	auto_fd int blank = -1, below_fd = -1;
	int r = open_blank(sources, &blank, err);

	if (r < 0)
		return r;
	if (stack[0])
		r = layer_store_enter_stack(lower, stack, lowers, err);
	else
		snprintf(lowers, sizeof(lowers), "%s:%s", path_of(lower, lower_path),
			path_of(blank, blank_path));
	if (r < 0)
		return r;
	if (snprintf(both, sizeof(both), "%s:%s", path_of(upper, upper_path), lowers) >=
		(int)sizeof(both))
		return err_set(err, ERR_UNPROCESSABLE,
			"what was started from so many layers cannot be compared with them");
	if ((r = make_new("overlay", below, SAFE | MOUNT_ATTR_RDONLY, &below_fd, err)) < 0 ||
		(r = make_new("overlay", merged, SAFE | MOUNT_ATTR_RDONLY, ret_merged_fd, err)) < 0)
		return r;
	*ret_below_fd = take_fd(&below_fd);
	return 0;
}

int rootfs_compare(const struct rootfs_sources *sources, int upper_fd, const char *stack,
	int userns_fd, int *ret_below_fd, int *ret_merged_fd, struct err *err)
{
	auto_fd int lower = -1;
	char name[LOWER_NAME_MAX];
	int r = mounts_clone(stack[0] ? sources->layers_fd : sources->template_fd, "",
		SAFE | MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, userns_fd, &lower, err);

	if (r < 0)
		return r;
	/* Not what is kept for the uid range: a build may just be making that. */
	name_lower("compared", (uint32_t)getpid(), name);
	r = mount_area_put_mount(sources->lowers_fd, name, lower, err);
	if (r < 0)
		return r;
	r = make_compared(sources, lower, upper_fd, stack, ret_below_fd, ret_merged_fd, err);
	if (mount_area_unmount(sources->lowers_fd, name) == 0)
		mount_area_drop_place(sources->lowers_fd, name);
	return r;
}

/*
 * Made here, where a whole procfs is visible: only then does the kernel give root of a user
 * namespace another one, so that a user cannot uncover what was masked.
 */
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
	const char *stack, int userns_fd, uint32_t base_uid, struct parts *parts, struct err *err)
{
	int r = stack[0] ? make_stack_overlay(sources, dirs, stack, userns_fd, base_uid, parts, err)
			 : make_host_overlays(sources, dirs, userns_fd, base_uid, parts, err);

	if (r < 0 ||
		(r = mounts_clone(sources->dev_fd, "",
			 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, -1, &parts->dev,
			 err)) < 0 ||
		(r = make_proc(&parts->proc, err)) < 0 ||
		(r = mounts_clone(dirs->workspace_fd, "", SAFE, -1, &parts->workspace, err)) < 0)
		return r;
	r = mounts_clone(dirs->workspace_fd, "project_files", SAFE | MOUNT_ATTR_RDONLY, -1,
		&parts->project, err);
	parts->volumes = -1;
	if (r == 0 && dirs->volumes_fd >= 0)
		r = mounts_clone(dirs->volumes_fd, "", SAFE, -1, &parts->volumes, err);
	return r < 0 ? r : proc_mask_clone(&sources->masks, parts->masks, err);
}

/* Makes a kernel file system and attaches it. */
static int attach_new(const char *type, const struct option *options, unsigned attrs,
	const char *place, struct err *err)
{
	int mount;
	int r = make_new(type, options, attrs, &mount, err);

	return r < 0 ? r : mounts_place(mount, place, err);
}

/* A part of the sandbox's memory limit: files there belong to no process that could be killed. */
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

int rootfs_enter_alone(const struct rootfs_sources *sources, int mount_fd, struct err *err)
{
	auto_fd int top = -1;

	if (setns(sources->empty_ns_fd, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "enter an empty mount namespace");
	top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 || mounts_attach(mount_fd, top) < 0)
		return err_sys(err, "attach the root");
	if (fchdir(mount_fd) < 0 || chroot(".") < 0)
		return err_sys(err, "enter the root");
	return 0;
}

/* Its place is not in every template, and the sandbox may have put something else there. */
static int attach_volumes(int mount, struct err *err)
{
	if (mount < 0)
		return 0;
	if (mkdirat(AT_FDCWD, KEEPER_VOLUMES_PLACE, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make /" KEEPER_VOLUMES_PLACE);
	return mounts_place(mount, KEEPER_VOLUMES_PLACE, err);
}

int rootfs_enter(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	const char *stack, int userns_fd, uint32_t base_uid, uint64_t memory_bytes, struct err *err)
{
	struct parts parts;
	int r;

	if ((r = clone_parts(sources, dirs, stack, userns_fd, base_uid, &parts, err)) < 0 ||
		(r = rootfs_enter_alone(sources, parts.overlay, err)) < 0 ||
		(parts.usr >= 0 && (r = mounts_place(parts.usr, "usr", err)) < 0) ||
		(r = mounts_place(parts.dev, "dev", err)) < 0 ||
		(r = mounts_place(parts.proc, "proc", err)) < 0 ||
		(r = mounts_place(parts.workspace, "workspace", err)) < 0 ||
		(r = mounts_place(parts.project, "workspace/project_files", err)) < 0 ||
		(r = attach_volumes(parts.volumes, err)) < 0 ||
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

int rootfs_isolate(const struct rootfs_sources *sources, uint32_t base_uid, uint64_t memory_bytes,
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
