/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileged_setup.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "daemon/token_file.h"
#include "wire/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OOM_SCORE "-900"

static int find_user(
	const struct settings *settings, struct privileged_setup *setup, struct err *err)
{
	struct passwd *user;

	if (geteuid() != 0) {
		setup->is_rootless = true;
		setup->owner = setup->uid = geteuid();
		setup->gid = getegid();
		return 0;
	}
	user = getpwnam(settings->user);
	if (user && user->pw_uid == 0)
		return err_explain(err, ERR_INVALID, "invalid_setting", "name another with --user",
			"the user %s, which the daemon is to become, is root", settings->user);
	if (!user) {
		char remedy[160];

		snprintf(remedy, sizeof(remedy),
			"useradd --system --no-create-home --shell /usr/sbin/nologin %s",
			settings->user);
		return err_explain(err, ERR_UNAVAILABLE, "no_user", remedy,
			"the user %s, which the daemon is to become, does not exist",
			settings->user);
	}
	setup->uid = user->pw_uid;
	setup->gid = user->pw_gid;
	return 0;
}

/* Makes a directory, or checks that the one there is ours. */
static int make_dir(int parent, const char *path, uid_t uid, gid_t gid, mode_t mode, int *ret_fd,
	struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (mkdirat(parent, path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", path);
	fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open directory %s", path);
	if (st.st_uid != geteuid() && st.st_uid != uid)
		return err_set(err, ERR_DENIED, "directory %s belongs to uid %u", path, st.st_uid);
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_sys(err, "set up directory %s", path);
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

/* An account that is new has no ~/.local/share yet. What fails here fails again, and louder, below. */
static void make_parents(const char *path)
{
	auto_free char *copy = mem_strdup(path);

	for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		(void)mkdir(copy, 0700);
		*slash = '/';
	}
}

static int take_lock(int run_fd, const char *data_dir, int *ret_fd, struct err *err)
{
	auto_fd int fd =
		openat(run_fd, "daemon.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "open %s/run/daemon.lock", data_dir);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_explain(err, ERR_CONFLICT, "already_running",
			"end the other one; or for a second one set SANDLOT_DATA_DIR, "
			"SANDLOT_API_BIND and "
			"SANDLOT_PREVIEW_BIND (or --data-dir, --api-bind, --preview-bind)",
			"another sandlotd runs on the data directory %s", data_dir);
	*ret_fd = take_fd(&fd);
	return 0;
}

static bool has_ids(int dirfd)
{
	int own = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = keeper_is_id(entry->d_name, '.');
	if (dir)
		closedir(dir);
	return found;
}

/* The files of sandboxes on this host, which the daemon may not be able to look into later. It keeps the stamp open. */
static int look_at_workspaces(
	int data_fd, const char *data_dir, struct privileged_setup *setup, struct err *err)
{
	gid_t gid = setup->is_rootless ? setup->gid : 0;
	auto_fd int fd = -1;
	int r = make_dir(data_fd, "workspaces", setup->owner, gid, 0700, &fd, err);

	if (r < 0)
		return r;
	setup->has_workspaces = has_ids(fd);
	setup->stamp_fd =
		openat(fd, ".generation", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return setup->stamp_fd < 0 ? err_sys(err, "open %s/workspaces/.generation", data_dir) : 0;
}

/*
 * When the host runs out of memory, the kernel is to take sandboxes before us and the keeper, which inherits this and
 * whose end is the end of all of them. Where it is not permitted, in a container for one, all stays as it was; sandboxes start as before
 * (keeper/process/oom_score.h).
 */
static void protect_from_oom(void)
{
	if (fd_write_file(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE) < 0)
		log_debug("the kernel does not let us lower our oom_score_adj");
}

static int look_at_host(struct host_report **ret_report, struct err *err)
{
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root_fd < 0 ? err_sys(err, "open /")
			   : host_report_open(root_fd, clock_wall_ms(), ret_report, err);
}

int privileged_setup_open(
	const struct settings *settings, struct privileged_setup *ret_setup, struct err *err)
{
	struct privileged_setup setup = {.lock_fd = -1, .stamp_fd = -1, .address_fd = -1};
	auto_fd int data_fd = -1, run_fd = -1;
	int r = find_user(settings, &setup, err);

	if (r < 0)
		return r;
	if (settings->data_dir[0] != '/')
		return err_set(err, ERR_INVALID, "the data directory %s is not an absolute path",
			settings->data_dir);
	if (snprintf(setup.api_socket, sizeof(setup.api_socket), "%s/run/api.sock",
		    settings->data_dir) >= (int)sizeof(setup.api_socket))
		return err_set(err, ERR_INVALID, "the data directory %s has too long a path",
			settings->data_dir);
	umask(022);
	if (setup.is_rootless)
		make_parents(settings->data_dir);
	if ((r = make_dir(AT_FDCWD, settings->data_dir, setup.owner, setup.gid, 0710, &data_fd,
		     err)) < 0 ||
		(r = make_dir(data_fd, "run", setup.owner, setup.gid, 0750, &run_fd, err)) < 0 ||
		(r = make_dir(data_fd, "state", setup.uid, setup.gid, 0700, NULL, err)) < 0 ||
		(r = take_lock(run_fd, settings->data_dir, &setup.lock_fd, err)) < 0 ||
		(r = look_at_workspaces(data_fd, settings->data_dir, &setup, err)) < 0 ||
		(r = token_file_open(data_fd, settings->data_dir, setup.owner, setup.token, err)) <
			0)
		return r;
	setup.address_fd =
		openat(run_fd, "api.addr", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (setup.address_fd < 0)
		return err_sys(err, "open %s/run/api.addr", settings->data_dir);
	privileged_setup_write_address(&setup, "");
	protect_from_oom();
	r = look_at_host(&setup.report, err);
	if (r == 0)
		*ret_setup = setup;
	return r;
}

/* --- the end of privilege --- */

int privileged_setup_drop_privileges(const struct privileged_setup *setup, struct err *err)
{
	if (!setup->is_rootless &&
		(setgroups(0, NULL) < 0 || setresgid(setup->gid, setup->gid, setup->gid) < 0 ||
			setresuid(setup->uid, setup->uid, setup->uid) < 0))
		return err_sys(err, "become uid %u", setup->uid);
	if (setuid(0) == 0 || geteuid() == 0)
		return err_set(err, ERR_INTERNAL, "privileges are still there after dropping them");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "set no_new_privs");
	return 0;
}

void privileged_setup_write_address(const struct privileged_setup *setup, const char *address)
{
	char line[256];
	size_t len = format_append(line, sizeof(line), 0, "%s%s", address, address[0] ? "\n" : "");

	/* In this order: whoever reads meanwhile finds the old line or the new one, and not that nobody serves. */
	if (pwrite(setup->address_fd, line, len, 0) != (ssize_t)len ||
		ftruncate(setup->address_fd, (off_t)len) < 0)
		log_warning("run/api.addr not written: %s", strerror(errno));
	/* Its block stays when it is emptied, so that it can be written on a full disk. Not every file system can. */
	(void)!fallocate(setup->address_fd, FALLOC_FL_KEEP_SIZE, 0, sizeof(line));
}
