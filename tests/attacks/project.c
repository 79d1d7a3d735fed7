/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries to leave the project that counts what a sandbox writes, or to change its limit.
 * Usage: project DIRECTORY...      one line for each thing tried in each of them
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

static void set_project(const char *what, const char *place, int fd, unsigned project, int inherits)
{
	struct fsxattr attributes = {0};

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0) {
		attributes.fsx_projid = project;
		attributes.fsx_xflags &= ~(unsigned)FS_XFLAG_PROJINHERIT;
		attributes.fsx_xflags |= inherits ? FS_XFLAG_PROJINHERIT : 0;
	}
	tell(ioctl(fd, FS_IOC_FSSETXATTR, &attributes), "%s %s", what, place);
}

static void clear_flag(const char *what, const char *place, int fd)
{
	int flags = 0;

	(void)ioctl(fd, FS_IOC_GETFLAGS, &flags);
	flags &= ~FS_PROJINHERIT_FL;
	tell(ioctl(fd, FS_IOC_SETFLAGS, &flags), "%s %s", what, place);
}

static void attack(const char *place)
{
	struct if_dqblk record = {.dqb_valid = QIF_LIMITS};
	struct fsxattr attributes = {0};
	unsigned off = FS_QUOTA_PDQ_ENFD;
	char path[512];
	int dir, file;

	snprintf(path, sizeof(path), "%s/attack", place);
	mkdir(path, 0755);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/attack/file", place);
	file = open(path, O_RDWR | O_CREAT, 0644);
	(void)ioctl(dir, FS_IOC_FSGETXATTR, &attributes);
	printf("project %s\t%u\n", place, attributes.fsx_projid);
	set_project("no project for a directory", place, dir, 0, 0);
	set_project("other project for a directory", place, dir, 4711, 1);
	set_project("no inheritance", place, dir, attributes.fsx_projid, 0);
	set_project("no project for a file", place, file, 0, 0);
	clear_flag("no flag", place, dir);
	tell(syscall(SYS_quotactl_fd, dir, QCMD(Q_SETQUOTA, PRJQUOTA), attributes.fsx_projid,
		     &record),
		"set the limit of %s", place);
	tell(syscall(SYS_quotactl_fd, dir, QCMD(Q_XQUOTAOFF, PRJQUOTA), 0, &off),
		"turn quotas off in %s", place);
	(void)ioctl(dir, FS_IOC_FSGETXATTR, &attributes);
	printf("project afterwards %s\t%u\n", place, attributes.fsx_projid);
}

int main(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		attack(argv[i]);
	return 0;
}
