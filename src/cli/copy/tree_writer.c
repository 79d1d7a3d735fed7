/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tree_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRS_GROW_BY 256
#define DIRS_MAX     (1u << 20) /* those beyond keep the mode they were made with */
#define DIR_MODE     0777
#define OPEN_DIR     (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct tree_writer_dir {
	char *name;
	mode_t mode;
	struct timespec mtime;
};

void tree_writer_init(struct tree_writer *writer, int root_fd)
{
	*writer = (struct tree_writer){.root_fd = root_fd, .dir_fd = -1};
}

static int refuse(const char *name, const char *why, struct err *err)
{
	return err_explain(err, ERR_DENIED, "unsafe_name", NULL, "unpack %s: %s", name, why);
}

/* Relative, with a last component, without "..": its last component in *ret_leaf, the length of what is before. */
static int split(const char *name, const char **ret_leaf, size_t *ret_dirs_len, struct err *err)
{
	const char *leaf = NULL;

	if (name[0] == '/')
		return refuse(name, "the name is absolute", err);
	for (const char *at = name; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && memcmp(at, "..", 2) == 0)
			return refuse(name, "the name has \"..\" in it", err);
		if (len > NAME_MAX)
			return refuse(name, "the name is too long", err);
		leaf = at;
		at += len;
	}
	if (!leaf || strcmp(leaf, ".") == 0 || strchr(leaf, '/'))
		return refuse(name, "the name names nothing", err);
	*ret_leaf = leaf;
	*ret_dirs_len = (size_t)(leaf - name);
	return 0;
}

static bool is_link(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* A directory on the way to an entry that did not come as one itself: made if it is missing. */
static int descend(int at, const char *part, const char *name, int *ret_fd, struct err *err)
{
	int fd = openat(at, part, OPEN_DIR);

	if (fd < 0 && errno == ENOENT && (mkdirat(at, part, DIR_MODE) == 0 || errno == EEXIST))
		fd = openat(at, part, OPEN_DIR);
	if (fd < 0 && is_link(at, part))
		return err_explain(err, ERR_DENIED, "unsafe_name", NULL,
			"unpack %s: %s is a symbolic link, and nothing is written through one",
			name, part);
	if (fd < 0)
		return err_sys(err, "unpack %s: open %s", name, part);
	*ret_fd = fd;
	return 0;
}

/* The directory that the first len bytes of a name are. */
static int walk(int root_fd, const char *name, size_t len, int *ret_fd, struct err *err)
{
	auto_free char *dirs = mem_printf("%.*s", (int)len, name);
	auto_fd int fd = openat(root_fd, ".", OPEN_DIR);
	char *rest = dirs, *part;

	if (fd < 0)
		return err_sys(err, "unpack %s: open the directory to copy into", name);
	while ((part = strsep(&rest, "/"))) {
		int next = -1, r;

		if (!part[0] || strcmp(part, ".") == 0)
			continue;
		r = descend(fd, part, name, &next, err);
		if (r < 0)
			return r;
		fd_close(fd);
		fd = next;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The directory of this entry becomes the present one. */
static int enter(
	struct tree_writer *writer, const char *name, const char **ret_leaf, struct err *err)
{
	size_t len;
	int fd, r = split(name, ret_leaf, &len, err);

	if (r < 0)
		return r;
	if (writer->dir_fd >= 0 && strlen(writer->dir_name) == len &&
		memcmp(writer->dir_name, name, len) == 0)
		return 0;
	r = walk(writer->root_fd, name, len, &fd, err);
	if (r < 0)
		return r;
	fd_close(writer->dir_fd);
	free(writer->dir_name);
	writer->dir_fd = fd;
	writer->dir_name = mem_printf("%.*s", (int)len, name);
	return 0;
}

int tree_writer_open_dir(
	int parent_fd, const char *name, int *ret_fd, bool *ret_is_new, struct err *err)
{
	/* Nobody else gets in before it is complete. */
	bool is_new = mkdirat(parent_fd, name, 0700) == 0;
	int fd;

	if (!is_new && errno == EEXIST && is_link(parent_fd, name)) {
		if (unlinkat(parent_fd, name, 0) < 0)
			return err_sys(err, "replace the symbolic link %s", name);
		is_new = mkdirat(parent_fd, name, 0700) == 0;
	}
	if (!is_new && errno != EEXIST)
		return err_sys(err, "make the directory %s", name);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open the directory %s", name);
	*ret_fd = fd;
	*ret_is_new = is_new;
	return 0;
}

/* Its mode and time come at the end: until then we write into it, which changes the one and may need another. */
static void remember_dir(
	struct tree_writer *writer, const char *name, mode_t mode, const struct timespec *mtime)
{
	if (writer->dir_count == DIRS_MAX)
		return;
	if (writer->dir_count % DIRS_GROW_BY == 0) {
		struct tree_writer_dir *dirs =
			reallocarray(writer->dirs, writer->dir_count + DIRS_GROW_BY, sizeof(*dirs));

		if (!dirs)
			abort();
		writer->dirs = dirs;
	}
	writer->dirs[writer->dir_count++] =
		(struct tree_writer_dir){.name = mem_strdup(name), .mode = mode, .mtime = *mtime};
}

int tree_writer_add_dir(struct tree_writer *writer, const char *name, mode_t mode,
	const struct timespec *mtime, struct err *err)
{
	auto_free char *trimmed = mem_strdup(name);
	size_t len = strlen(trimmed);
	auto_fd int fd = -1;
	const char *leaf;
	bool is_new;
	int r;

	while (len > 1 && trimmed[len - 1] == '/')
		trimmed[--len] = '\0';
	r = enter(writer, trimmed, &leaf, err);
	if (r == 0)
		r = tree_writer_open_dir(writer->dir_fd, leaf, &fd, &is_new, err);
	if (r == 0 && is_new)
		remember_dir(writer, trimmed, mode, mtime);
	return r;
}

int tree_writer_add_file(struct tree_writer *writer, const char *name, struct new_file *ret_file,
	const char **ret_leaf, struct err *err)
{
	const char *leaf;
	int r = enter(writer, name, &leaf, err);

	if (r == 0)
		r = new_file_open(writer->dir_fd, ret_file, err);
	if (r < 0)
		return r;
	*ret_leaf = leaf;
	return 0;
}

/* Gives what was made under a name of its own the name of the entry. */
static int rename_to(
	struct tree_writer *writer, const char *temporary, const char *leaf, struct err *err)
{
	int r = 0;

	if (renameat(writer->dir_fd, temporary, writer->dir_fd, leaf) < 0)
		r = err_sys(err, "rename to %s", leaf);
	/* It is still there too if both were names of one file already: then rename does nothing. */
	unlinkat(writer->dir_fd, temporary, 0);
	return r;
}

int tree_writer_add_symlink(struct tree_writer *writer, const char *name, const char *target,
	const struct timespec *mtime, struct err *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
	char temporary[NEW_FILE_NAME_MAX];
	const char *leaf;
	int r = enter(writer, name, &leaf, err);

	if (r < 0)
		return r;
	new_file_draw_name(temporary);
	if (symlinkat(target, writer->dir_fd, temporary) < 0)
		return err_sys(err, "make the symbolic link %s", name);
	if (utimensat(writer->dir_fd, temporary, times, AT_SYMLINK_NOFOLLOW) < 0)
		errno = 0;
	return rename_to(writer, temporary, leaf, err);
}

int tree_writer_add_hardlink(
	struct tree_writer *writer, const char *name, const char *target, struct err *err)
{
	char temporary[NEW_FILE_NAME_MAX];
	const char *leaf, *target_leaf;
	auto_fd int from = -1;
	struct stat st;
	size_t len;
	int r = split(target, &target_leaf, &len, err);

	if (r == 0)
		r = walk(writer->root_fd, target, len, &from, err);
	if (r == 0)
		r = enter(writer, name, &leaf, err);
	if (r < 0)
		return r;
	if (fstatat(from, target_leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, "link %s to %s", name, target);
	if (!S_ISREG(st.st_mode))
		return refuse(name, "it is a hard link to something that is not a file", err);
	new_file_draw_name(temporary);
	if (linkat(from, target_leaf, writer->dir_fd, temporary, 0) < 0)
		return err_sys(err, "link %s to %s", name, target);
	return rename_to(writer, temporary, leaf, err);
}

/* One that is no longer there, or cannot be opened, is left alone. */
static void complete_dir(const struct tree_writer *writer, const struct tree_writer_dir *dir)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, dir->mtime};
	auto_fd int parent = -1, fd = -1;
	const char *leaf;
	struct err ignored;
	size_t len;

	if (split(dir->name, &leaf, &len, &ignored) < 0 ||
		walk(writer->root_fd, dir->name, len, &parent, &ignored) < 0)
		return;
	fd = openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (futimens(fd, times) < 0 || fchmod(fd, new_file_mode(dir->mode)) < 0))
		errno = 0;
}

void tree_writer_fini(struct tree_writer *writer)
{
	/* The deepest first: one that may not be entered any more is behind its content. */
	while (writer->dir_count > 0) {
		struct tree_writer_dir *dir = &writer->dirs[--writer->dir_count];

		complete_dir(writer, dir);
		free(dir->name);
	}
	free(writer->dirs);
	free(writer->dir_name);
	fd_close(writer->dir_fd);
	tree_writer_init(writer, -1);
}
