/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk/project_quota.h"

#include "base/fd.h"

#include <asm/unistd.h> /* newer than that of musl */
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRAWS	    64
#define PROJECT_MIN 0x10000u /* below are the numbers that people choose */
#define PROJECT_MAX 0x7fffffffu
#define TRIAL	    "quota-trial"
#define TRIAL_BYTES (1u << 20)

static int ask_quota(int fd, int command, uint32_t project, void *argument)
{
	return (int)syscall(
		__NR_quotactl_fd, fd, QCMD((unsigned int)command, PRJQUOTA), project, argument);
}

static int read_project(int fd, uint32_t *ret_project, struct err *err)
{
	struct fsxattr attributes;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return err_sys(err, "read the project of a directory");
	*ret_project = attributes.fsx_projid;
	return 0;
}

/* Draws a number for which the kernel counts no file and has no limit. */
static int draw_project(int fd, uint32_t *ret_project, struct err *err)
{
	for (int i = 0; i < DRAWS; i++) {
		struct if_dqblk record = {0};
		uint32_t project;

		if (getrandom(&project, sizeof(project), 0) != sizeof(project))
			return err_sys(err, "draw the number of a project");
		project = PROJECT_MIN + project % (PROJECT_MAX - PROJECT_MIN);
		if (ask_quota(fd, Q_GETQUOTA, project, &record) < 0 && errno != ENOENT)
			return err_sys(err, "look at project %u", project);
		if (record.dqb_curinodes == 0 && record.dqb_curspace == 0 &&
			record.dqb_bhardlimit == 0 && record.dqb_ihardlimit == 0) {
			*ret_project = project;
			return 0;
		}
	}
	return err_set(err, ERR_UNAVAILABLE, "no number of a project is free");
}

static int give_project(int fd, uint32_t project, struct err *err)
{
	struct fsxattr attributes;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return err_sys(err, "read the project of a directory");
	attributes.fsx_projid = project;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0)
		return err_sys(err, "set the project of a directory");
	return 0;
}

int project_quota_make(int dirfd, const char *name, struct err *err)
{
	return mkdirat(dirfd, name, 0700) < 0 ? err_sys(err, "make directory %s", name) : 0;
}

int project_quota_enter(int fd, struct err *err)
{
	uint32_t project;
	int r;

	if (flock(fd, LOCK_EX) < 0)
		return err_sys(err, "lock the directory of a disk");
	r = read_project(fd, &project, err);
	/* The directory is new: files are put into it only after this. */
	if (r == 0 && project == 0 && (r = draw_project(fd, &project, err)) == 0)
		r = give_project(fd, project, err);
	return r;
}

int project_quota_set_limit(int fd, uint64_t bytes, uint64_t files, struct err *err)
{
	struct if_dqblk record = {.dqb_valid = QIF_LIMITS};
	uint32_t project;
	int r = read_project(fd, &project, err);

	if (r < 0 || (project == 0 && bytes == 0))
		return r;
	/* Every file without a project has project 0, and on XFS its limits are the defaults of
	 * all. */
	if (project == 0)
		return err_set(err, ERR_INTERNAL, "a directory without a project has no limit");
	if (bytes > 0) {
		record.dqb_bhardlimit = bytes / QIF_DQBLKSIZE;
		record.dqb_ihardlimit = files;
	}
	if (ask_quota(fd, Q_SETQUOTA, project, &record) < 0)
		return err_sys(err, "limit project %u", project);
	return 0;
}

int project_quota_usage(int fd, struct keeper_stats *stats, struct err *err)
{
	struct if_dqblk record = {0};
	uint32_t project;
	int r = read_project(fd, &project, err);

	if (r < 0)
		return r;
	if (ask_quota(fd, Q_GETQUOTA, project, &record) < 0)
		return err_sys(err, "look at project %u", project);
	stats->disk_bytes = record.dqb_curspace;
	stats->disk_files = record.dqb_curinodes;
	stats->disk_files_limit = record.dqb_ihardlimit;
	return 0;
}

int project_quota_try(int dirfd, struct err *err)
{
	struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
	auto_fd int fd = -1;
	int r;

	if (ask_quota(dirfd, Q_XGETQSTATV, 0, &state) < 0)
		return err_sys(err, "look for quotas of projects");
	if (!(state.qs_flags & FS_QUOTA_PDQ_ENFD))
		return err_set(err, ERR_UNAVAILABLE, "quotas of projects are not enforced");
	r = project_quota_make(dirfd, TRIAL, err);
	if (r < 0)
		return r;
	fd = openat(dirfd, TRIAL, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? err_sys(err, "open a directory") : project_quota_enter(fd, err);
	if (r == 0)
		r = project_quota_set_limit(fd, TRIAL_BYTES, PROJECT_QUOTA_FILES, err);
	if (r == 0)
		r = project_quota_set_limit(fd, 0, 0, err);
	unlinkat(dirfd, TRIAL, AT_REMOVEDIR);
	return r;
}
