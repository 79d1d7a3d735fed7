/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup/cgroup_delegation.h"

#include "base/fd.h"
#include "keeper/mount/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX       65536
#define STEPS_MAX      64 /* rounds, in which it looks for processes that were forked meanwhile */
#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The group that processes are moved down to. */
static const char leaf[] = "sandlot-daemon";

static bool has_word(const char *list, size_t len, const char *word)
{
	size_t word_len = strlen(word);

	for (const char *at = list; at < list + len; at += strcspn(at, ",:") + 1) {
		if (strcspn(at, ",:") == word_len && strncmp(at, word, word_len) == 0)
			return true;
	}
	return false;
}

/* Lines are "number:controllers:path"; the controllers of v2 are none. */
bool cgroup_delegation_find(const char *text, const char *controller, char ret_path[PATH_MAX])
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		const char *list = memchr(line, ':', len);
		const char *path =
			list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;
		bool is_it = path &&
			     (controller ? has_word(list + 1, (size_t)(path - list - 1), controller)
					 : path == list + 1);

		if (is_it) {
			size_t path_len = len - (size_t)(path + 1 - line);

			if (path_len == 0 || path_len >= PATH_MAX)
				return false;
			memcpy(ret_path, path + 1, path_len);
			ret_path[path_len] = '\0';
			return true;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

/*
 * The uid that the host's root has in our user namespace is unmapped: such a directory is not ours.
 */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

int cgroup_delegation_open(int root_fd, const char *controller)
{
	auto_free char *text = mem_new(TEXT_MAX);
	auto_fd int fd = -1;
	char path[PATH_MAX];
	char *last;

	if (fd_read_file(AT_FDCWD, "/proc/self/cgroup", text, TEXT_MAX) < 0 ||
		!cgroup_delegation_find(text, controller, path))
		return -1;
	/* An earlier keeper may have moved us down. */
	last = strrchr(path, '/');
	if (!controller && last && strcmp(last + 1, leaf) == 0)
		last[1] = '\0';
	fd = mounts_open_beneath(root_fd, path[1] ? path + 1 : ".", OPEN_DIR_FLAGS);
	return fd >= 0 && is_ours(fd) ? take_fd(&fd) : -1;
}

/* Moves the first process of the group; false if there is none. */
static bool move_one(int from, int to)
{
	char pid[4096];
	ssize_t n = fd_read_file(from, "cgroup.procs", pid, sizeof(pid));

	/* 0 is a process that we cannot see, and so cannot move. */
	if (n <= 0 || pid[0] == '0')
		return false;
	pid[strcspn(pid, "\n")] = '\0';
	return fd_write_file(to, "cgroup.procs", pid) == 0;
}

int cgroup_delegation_step_down(int fd)
{
	auto_fd int to = -1;

	if (mkdirat(fd, leaf, 0755) < 0 && errno != EEXIST)
		return -errno;
	to = openat(fd, leaf, OPEN_DIR_FLAGS);
	if (to < 0)
		return -errno;
	for (int i = 0; i < STEPS_MAX && move_one(fd, to); i++)
		;
	return 0;
}
