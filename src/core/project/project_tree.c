/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/project_tree.h"

#include "base/fd.h"
#include "base/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_LINK "link" /* in the project's directory: what is about to get its path */

struct digest project_tree_digest(const char *sha256)
{
	struct digest digest;

	snprintf(digest.text, sizeof(digest.text), DIGEST_PREFIX "%s", sha256);
	return digest;
}

static int open_dir(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_dir(int parent, const char *name, mode_t mode, int *ret_fd, struct err *err)
{
	auto_fd int fd = -1;

	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return err_sys(err, "make the directory %s of a project", name);
	fd = open_dir(parent, name);
	/* The umask may have taken some of it. */
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_sys(err, "open the directory %s of a project", name);
	*ret_fd = take_fd(&fd);
	return 0;
}

int project_tree_open(int projects_fd, const char *id, uint64_t disk_reserve,
	struct project_tree *ret_tree, struct err *err)
{
	struct project_tree tree = {.dir_fd = -1, .files_fd = -1};
	auto_fd int blobs_fd = -1;
	int r;

	if ((r = make_dir(projects_fd, id, 0700, &tree.dir_fd, err)) < 0 ||
		(r = make_dir(tree.dir_fd, "files", 0755, &tree.files_fd, err)) < 0 ||
		(r = make_dir(tree.dir_fd, "blobs", 0700, &blobs_fd, err)) < 0 ||
		(r = blob_store_open(blobs_fd, &tree.blobs, err)) < 0) {
		project_tree_close(&tree);
		return r;
	}
	blob_store_set_reserve(tree.blobs, disk_reserve);
	*ret_tree = tree;
	return 0;
}

void project_tree_close(struct project_tree *tree)
{
	fd_close(tree->dir_fd);
	fd_close(tree->files_fd);
	blob_store_close(tree->blobs);
	*tree = (struct project_tree){.dir_fd = -1, .files_fd = -1};
}

/* A directory of the tree, in the place of a file that no row has any more. */
static int enter(int parent, const char *name, bool makes)
{
	int fd = open_dir(parent, name);

	if (fd >= 0 || !makes)
		return fd;
	if (errno == ENOTDIR || errno == ELOOP)
		unlinkat(parent, name, 0);
	if (mkdirat(parent, name, 0755) < 0)
		return -1;
	fd = open_dir(parent, name);
	if (fd >= 0 && fchmod(fd, 0755) < 0) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

/* The directory of a path: a descriptor, or -1 with errno; *ret_name is the last part of the path. */
static int open_parent(
	const struct project_tree *tree, const char *path, bool makes, const char **ret_name)
{
	int fd = fcntl(tree->files_fd, F_DUPFD_CLOEXEC, 0);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char part[PROJECT_NAME_MAX + 1];
		int next;

		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		next = enter(fd, part, makes);
		fd_close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return fd;
}

int project_tree_put(struct project_tree *tree, const struct project_file *file, struct err *err)
{
	struct digest digest = project_tree_digest(file->sha256);
	const char *name;
	auto_fd int parent = open_parent(tree, file->path, true, &name);
	int r;

	if (parent < 0)
		return err_sys(err, "make the directory of %.200s", file->path);
	unlinkat(tree->dir_fd, NEW_LINK, 0);
	r = blob_store_link(tree->blobs, &digest, file->is_executable, tree->dir_fd, NEW_LINK, err);
	if (r < 0)
		return r;
	/* A directory in its place has no file in it, or there would be a row. */
	if (renameat(tree->dir_fd, NEW_LINK, parent, name) < 0 &&
		(errno != EISDIR || project_tree_remove(parent, name, err) < 0 ||
			renameat(tree->dir_fd, NEW_LINK, parent, name) < 0))
		return err_sys(err, "place %.200s", file->path);
	/* A rename to a link of the same file does nothing, and says that it succeeded. */
	unlinkat(tree->dir_fd, NEW_LINK, 0);
	return 0;
}

bool project_tree_has(struct project_tree *tree, const struct project_file *file)
{
	struct digest digest = project_tree_digest(file->sha256);
	const char *name;
	auto_fd int parent = open_parent(tree, file->path, false, &name);

	return parent >= 0 && blob_store_is_link(tree->blobs, &digest, parent, name);
}

void project_tree_drop(struct project_tree *tree, const char *path)
{
	char rest[PROJECT_PATH_MAX], *slash;
	const char *name;

	snprintf(rest, sizeof(rest), "%s", path);
	for (int flag = 0;; flag = AT_REMOVEDIR) {
		auto_fd int parent = open_parent(tree, rest, false, &name);

		/* A directory that is not empty stays, and so do those above it. */
		if (parent < 0 || unlinkat(parent, name, flag) < 0)
			return;
		slash = strrchr(rest, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

struct pruning {
	int (*keeps)(void *arg, const char *path);
	void *arg;
	char path[PROJECT_PATH_MAX];
	int removed;
};

static int prune_dir(struct pruning *pruning, int dir_fd, size_t len, unsigned depth);

/* path has the entry's path, of which the last part is name. */
static int prune_entry(
	struct pruning *pruning, int dir_fd, const char *name, size_t len, unsigned depth)
{
	int fd = open_dir(dir_fd, name), r;

	if (fd >= 0) {
		r = depth < PROJECT_DEPTH_MAX ? prune_dir(pruning, fd, len, depth + 1) : 0;
		fd_close(fd);
		unlinkat(dir_fd, name, AT_REMOVEDIR);
		return r;
	}
	r = pruning->keeps(pruning->arg, pruning->path);
	if (r == 0 && unlinkat(dir_fd, name, 0) == 0)
		pruning->removed++;
	return r < 0 ? r : 0;
}

static int prune_dir(struct pruning *pruning, int dir_fd, size_t len, unsigned depth)
{
	int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
	const struct dirent *entry;

	if (!list) {
		r = -errno;
		fd_close(list_fd);
		return r;
	}
	while (r == 0 && (entry = readdir(list))) {
		size_t end;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		end = format_append(pruning->path, sizeof(pruning->path), len, "%s%s",
			len ? "/" : "", entry->d_name);
		/* What was cut is no path that a row has, and goes. */
		r = prune_entry(pruning, dir_fd, entry->d_name, end, depth);
	}
	closedir(list);
	return r;
}

int project_tree_prune(
	struct project_tree *tree, int (*keeps)(void *arg, const char *path), void *arg)
{
	auto_free struct pruning *pruning = mem_new(sizeof(*pruning));
	int r;

	*pruning = (struct pruning){.keeps = keeps, .arg = arg};
	r = prune_dir(pruning, tree->files_fd, 0, 0);
	return r < 0 ? r : pruning->removed;
}

static int remove_entries(int dir_fd, unsigned depth)
{
	int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
	const struct dirent *entry;

	if (!list) {
		r = -errno;
		fd_close(list_fd);
		return r;
	}
	while (r == 0 && (entry = readdir(list))) {
		auto_fd int fd = -1;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		fd = open_dir(dir_fd, entry->d_name);
		if (fd >= 0)
			r = depth < PROJECT_DEPTH_MAX + 4 ? remove_entries(fd, depth + 1) : -ELOOP;
		if (r == 0 && unlinkat(dir_fd, entry->d_name, fd >= 0 ? AT_REMOVEDIR : 0) < 0)
			r = -errno;
	}
	closedir(list);
	return r;
}

int project_tree_remove(int projects_fd, const char *name, struct err *err)
{
	auto_fd int fd = open_dir(projects_fd, name);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open the directory %.200s", name);
	r = remove_entries(fd, 0);
	if (r < 0)
		return err_from(err, r, "empty the directory %.200s", name);
	return unlinkat(projects_fd, name, AT_REMOVEDIR) < 0
		       ? err_sys(err, "remove the directory %.200s", name)
		       : 0;
}
