/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define PERMISSIONS 0777

void new_file_draw_name(char name[NEW_FILE_NAME_MAX])
{
	unsigned long long random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		abort();
	snprintf(name, NEW_FILE_NAME_MAX, ".sandlot-%016llx", random);
}

mode_t new_file_mode(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & PERMISSIONS & ~mask;
}

int new_file_open(int dir_fd, struct new_file *ret, struct err *err)
{
	struct new_file file = {.dir_fd = dir_fd};

	new_file_draw_name(file.temporary);
	file.fd = openat(
		dir_fd, file.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file.fd < 0)
		return err_sys(err, "create a file beside the one to copy to");
	*ret = file;
	return 0;
}

int new_file_commit(struct new_file *file, const char *name, mode_t mode,
	const struct timespec *mtime, struct err *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

	if (fchmod(file->fd, new_file_mode(mode)) < 0)
		return err_sys(err, "set the mode of %s", name);
	if (mtime)
		times[1] = *mtime;
	/* A file system that takes no such time is no reason to fail. */
	if (mtime && futimens(file->fd, times) < 0)
		errno = 0;
	if (renameat(file->dir_fd, file->temporary, file->dir_fd, name) < 0)
		return err_sys(err, "rename to %s", name);
	file->temporary[0] = '\0';
	return 0;
}

void new_file_fini(struct new_file *file)
{
	if (file->temporary[0])
		unlinkat(file->dir_fd, file->temporary, 0);
	fd_close(file->fd);
	*file = NEW_FILE_INIT;
}
