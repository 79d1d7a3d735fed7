/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/destination.h"

#include "base/number.h"
#include "cli/cli.h"
#include "cli/remote/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_DIR (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* What comes before the last component of path. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_strdup(".");
	return mem_printf("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* One component after another, none of them a link: -ELOOP if one is. */
static int open_dir(const char *path)
{
	auto_free char *parts = mem_strdup(path);
	auto_fd int fd = open(path[0] == '/' ? "/" : ".", OPEN_DIR);
	char *rest = parts, *part;

	if (fd < 0)
		return -errno;
	while ((part = strsep(&rest, "/"))) {
		struct stat st;
		int next;

		if (!part[0])
			continue;
		next = openat(fd, part, OPEN_DIR | O_NOFOLLOW);
		if (next < 0)
			return errno == ENOTDIR &&
					       fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
					       S_ISLNK(st.st_mode)
				       ? -ELOOP
				       : -errno;
		fd_close(fd);
		fd = next;
	}
	return take_fd(&fd);
}

static int refuse_link(const char *path, struct err *err)
{
	auto_free char *real = realpath(path, NULL);
	char remedy[sizeof(err->remedy)];

	snprintf(remedy, sizeof(remedy), "if that is what you want, name %s",
		real ? real : "the directory itself");
	return err_explain(err, ERR_DENIED, "link_in_path", remedy,
		"%s leads through a symbolic link, which may have come out of a sandbox", path);
}

int destination_open(const char *path, bool names_a_dir, const char *source,
	struct destination *ret, struct err *err)
{
	auto_free char *name = NULL, *parent = parent_of(path);
	auto_fd int fd = open_dir(path);
	struct stat st;

	if (fd >= 0) {
		name = endpoint_basename(source);
	} else if (fd == -ELOOP && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		return refuse_link(path, err);
	} else if (!names_a_dir && (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)) {
		name = endpoint_basename(path);
		if (name)
			fd = open_dir(parent);
		if (fd == -ELOOP)
			return refuse_link(parent, err);
	}
	if (fd < 0)
		return cli_file_error(-fd, "open the directory of", path, err);
	*ret = (struct destination){
		.dir_fd = take_fd(&fd), .name = take_ptr(&name), .text = mem_strdup(path)};
	return 0;
}

void destination_fini(struct destination *destination)
{
	fd_close(destination->dir_fd);
	free(destination->name);
	free(destination->text);
	*destination = DESTINATION_INIT;
}

/* The number of the descriptor that path names, or -1. */
static int descriptor_of(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/proc/self/fd/"};
	uint64_t number;

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < array_len(dirs); i++) {
		size_t len = strlen(dirs[i]);

		if (strncmp(path, dirs[i], len) == 0 &&
			number_parse(path + len, 0, INT_MAX, &number) == 0)
			return (int)number;
	}
	return -1;
}

static bool is_special(mode_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode) || S_ISFIFO(mode);
}

int destination_open_special(const char *path, int *ret_fd, struct err *err)
{
	int ours = descriptor_of(path);
	auto_fd int fd = -1;
	struct stat st;

	if (ours < 0 && (lstat(path, &st) < 0 || !is_special(st.st_mode)))
		return 0;
	fd = ours >= 0 ? fcntl(ours, F_DUPFD_CLOEXEC, 3)
		       : open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cli_file_error(errno, "open", path, err);
	if (ours < 0 && !is_special(st.st_mode))
		return err_set(err, ERR_CONFLICT, "%s was replaced meanwhile", path);
	*ret_fd = take_fd(&fd);
	return 1;
}
