/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rootfs/layer_store.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "keeper/disk/trash.h"
#include "keeper/mount/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LEN   64
#define NEW_SUFFIX ".new"
#define BOTTOM	   ".bottom"
#define LINK_SIZE  4
#define LINK_PLACE "../../" /* of layers, as a stack sees them */

static const struct {
	const char *path;
	mode_t mode;
	uid_t uid;
} bottom_directories[] = {
	{"dev", 0755, 0},
	{"etc", 0755, 0},
	{"home", 0755, 0},
	{"home/sandbox", 0755, 1000},
	{"opt", 0755, 0},
	{KEEPER_LAYER_PLACE, 0755, 0},
	{"proc", 0555, 0},
	{"root", 0700, 0},
	{"run", 0755, 0},
	{"sys", 0755, 0},
	{"tmp", 01777, 0},
	{"usr", 0755, 0},
	{"var", 0755, 0},
	{"var/tmp", 01777, 0},
	{"workspace", 0755, 0},
};

static const struct {
	const char *path;
	const char *text;
} top_files[] = {
	{"etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
	{"etc/hostname", "sandbox\n"},
	{"etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"},
};

bool layer_store_is_name(const char *text)
{
	return strspn(text, "0123456789abcdef") == NAME_LEN && text[NAME_LEN] == '\0';
}

static int make_directory(int dir, const char *path, mode_t mode, uid_t uid, struct err *err)
{
	if (mkdirat(dir, path, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s of images", path);
	if (fchownat(dir, path, uid, uid, AT_SYMLINK_NOFOLLOW) < 0 ||
		fchmodat(dir, path, mode, 0) < 0)
		return err_sys(err, "set up directory %s of images", path);
	return 0;
}

static int make_bottom(int store_fd, struct err *err)
{
	auto_fd int dir = -1;
	int r = make_directory(store_fd, ".bottom", 0755, 0, err);

	if (r < 0)
		return r;
	dir = directory_open(store_fd, ".bottom");
	if (dir < 0)
		return err_sys(err, "open the lowest layer of images");
	for (size_t i = 0; r == 0 && i < array_len(bottom_directories); i++)
		r = make_directory(dir, bottom_directories[i].path, bottom_directories[i].mode,
			bottom_directories[i].uid, err);
	return r;
}

/* One that is there stays: the disk may be full. */
static int make_file(int dir, const char *path, const char *text, struct err *err)
{
	auto_fd int fd =
		openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 || fchmod(fd, 0644) < 0 ||
		write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_sys(err, "make file %s of images", path);
	return 0;
}

static int make_top(int store_fd, struct err *err)
{
	auto_fd int dir = -1;
	int r = make_directory(store_fd, ".top", 0755, 0, err);

	if (r < 0)
		return r;
	dir = directory_open(store_fd, ".top");
	if (dir < 0)
		return err_sys(err, "open the uppermost layer of images");
	r = make_directory(dir, "etc", 0755, 0, err);
	for (size_t i = 0; r == 0 && i < array_len(top_files); i++)
		r = make_file(dir, top_files[i].path, top_files[i].text, err);
	return r;
}

static int open_section(int store_fd, const char *name, int *ret_fd, struct err *err)
{
	int r = make_directory(store_fd, name, 0755, 0, err);

	if (r < 0)
		return r;
	*ret_fd = directory_open(store_fd, name);
	return *ret_fd < 0 ? err_sys(err, "open directory %s of images", name) : 0;
}

/* Layers that were not finished; what cannot be moved away now is so when it is written again. */
static void discard_unfinished(const struct layer_store *store, const struct storage *storage)
{
	DIR *list = directory_list(store->new_fd);
	const struct dirent *entry;
	struct err err;

	while ((entry = directory_next(list))) {
		if (trash_discard(&storage->trash, store->new_fd, entry->d_name, &err) < 0)
			log_warning("%s", err.message);
	}
	directory_end(list);
}

static int make_all(struct layer_store *store, struct err *err)
{
	int r;

	if ((r = open_section(store->fd, ".new", &store->new_fd, err)) < 0 ||
		(r = open_section(store->fd, ".stacks", &store->stacks_fd, err)) < 0 ||
		(r = make_bottom(store->fd, err)) < 0)
		return r;
	return make_top(store->fd, err);
}

int layer_store_open(struct layer_store *store, const struct storage *storage, struct err *err)
{
	int r;

	*store = (struct layer_store){.fd = storage->layers_fd, .new_fd = -1, .stacks_fd = -1};
	r = make_all(store, err);
	if (r == 0)
		discard_unfinished(store, storage);
	/* A full disk is no reason to serve no sandboxes; until the next start there are no images. */
	if (r == -ENOSPC || r == -EDQUOT) {
		log_warning("no images: %s", err->message);
		return 0;
	}
	return r;
}

static bool exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int layer_store_begin(const struct layer_store *store, const struct storage *storage,
	const char *name, int *ret_fd, struct err *err)
{
	int r;

	if (exists(store->fd, name))
		return err_explain(err, ERR_CONFLICT, "layer_exists", NULL,
			"layer %.12s is there already", name);
	r = trash_discard(&storage->trash, store->new_fd, name, err);
	if (r < 0)
		return r;
	if (mkdirat(store->new_fd, name, 0755) < 0)
		return err_sys(err, "make layer %.12s", name);
	*ret_fd = directory_open(store->new_fd, name);
	return *ret_fd < 0 ? err_sys(err, "open layer %.12s", name) : 0;
}

int layer_store_commit(const struct layer_store *store, const char *name, struct err *err)
{
	if (renameat(store->new_fd, name, store->fd, name) < 0)
		return err_sys(err, "keep layer %.12s", name);
	fail_point("layer.renamed");
	if (fsync(store->fd) < 0)
		return err_sys(err, "keep layer %.12s", name);
	return 0;
}

int layer_store_read(
	const struct layer_store *store, const char *name, int *ret_fd, struct err *err)
{
	*ret_fd = directory_open(store->fd, name);
	if (*ret_fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no layer %.12s", name);
	return *ret_fd < 0 ? err_sys(err, "open layer %.12s", name) : 0;
}

/* Whether a stack, also one that is being made, has a link to a layer. */
static bool stack_has(int stacks_fd, const char *stack, const char *target)
{
	auto_fd int dir = directory_open(stacks_fd, stack);
	DIR *list = dir < 0 ? NULL : directory_list(dir);
	const struct dirent *entry;
	bool has = false;

	while (!has && (entry = directory_next(list))) {
		char text[NAME_LEN + 16];
		ssize_t n = readlinkat(dir, entry->d_name, text, sizeof(text) - 1);

		text[n < 0 ? 0 : n] = '\0';
		has = strcmp(text, target) == 0;
	}
	directory_end(list);
	return has;
}

static int check_unused(const struct layer_store *store, const char *name, struct err *err)
{
	DIR *list = directory_list(store->stacks_fd);
	const struct dirent *entry;
	char target[NAME_LEN + 16];
	int r = 0;

	if (!list)
		return err_sys(err, "list the stacks of layers");
	snprintf(target, sizeof(target), LINK_PLACE "%s", name);
	while (r == 0 && (entry = directory_next(list))) {
		if (stack_has(store->stacks_fd, entry->d_name, target))
			r = err_explain(err, ERR_CONFLICT, KEEPER_LAYER_IN_USE,
				"remove what uses that stack first",
				"layer %.12s is part of the stack %.12s", name, entry->d_name);
	}
	directory_end(list);
	return r;
}

int layer_store_drop(const struct layer_store *store, const struct storage *storage,
	const char *name, struct err *err)
{
	int r = trash_discard(&storage->trash, store->new_fd, name, err);

	if (r < 0 || !exists(store->fd, name))
		return r;
	r = check_unused(store, name, err);
	return r < 0 ? r : trash_discard(&storage->trash, store->fd, name, err);
}

uint32_t layer_store_list(const struct layer_store *store, bool stacks, const char *after,
	char names[][KEEPER_DIGEST_LEN + 1], uint32_t max)
{
	DIR *list = directory_list(stacks ? store->stacks_fd : store->fd);
	const struct dirent *entry;
	uint32_t count = 0;

	while ((entry = directory_next(list))) {
		if (layer_store_is_name(entry->d_name) && strcmp(entry->d_name, after) > 0)
			count = directory_keep_first(
				names[0], sizeof(names[0]), count, max, entry->d_name);
	}
	directory_end(list);
	return count;
}

/* A short name for each position: 62 of one character, then two. */
static void link_name(unsigned index, char name[LINK_SIZE])
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const unsigned base = sizeof(digits) - 1;

	if (index < base)
		snprintf(name, LINK_SIZE, "%c", digits[index]);
	else
		snprintf(name, LINK_SIZE, "%c%c", digits[index / base], digits[index % base]);
}

static void new_name(const char *stack, char name[NAME_LEN + sizeof(NEW_SUFFIX)])
{
	snprintf(name, NAME_LEN + sizeof(NEW_SUFFIX), "%s" NEW_SUFFIX, stack);
}

static int add_link(int stack_fd, unsigned index, const char *target, struct err *err)
{
	char path[NAME_LEN + 16], name[LINK_SIZE];

	link_name(index, name);
	snprintf(path, sizeof(path), LINK_PLACE "%s", target);
	if (symlinkat(path, stack_fd, name) < 0 && errno != EEXIST)
		return err_sys(err, "stack a layer");
	return 0;
}

/* The link that would come next tells how many there are. */
static unsigned count_links(int stack_fd)
{
	unsigned count = 0;

	while (true) {
		char name[LINK_SIZE];

		link_name(count, name);
		if (!exists(stack_fd, name))
			return count;
		count++;
	}
}

/* Whoever ended here before the stack had its name left the last link. */
static bool has_bottom(int stack_fd, unsigned count)
{
	char name[LINK_SIZE], target[NAME_LEN + 16];
	ssize_t n;

	if (count == 0)
		return false;
	link_name(count - 1, name);
	n = readlinkat(stack_fd, name, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	return strcmp(target, LINK_PLACE BOTTOM) == 0;
}

int layer_store_stack_add(const struct layer_store *store, const char *stack, const char *layer,
	unsigned index, struct err *err)
{
	char name[NAME_LEN + sizeof(NEW_SUFFIX)];
	auto_fd int dir = -1;
	int r;

	new_name(stack, name);
	if (index >= LAYER_STORE_STACK_MAX)
		return err_set(
			err, ERR_INVALID, "an image has at most %d layers", LAYER_STORE_STACK_MAX);
	if (exists(store->stacks_fd, stack))
		return 0;
	if (!exists(store->fd, layer))
		return err_set(err, ERR_NOT_FOUND, "there is no layer %.12s", layer);
	if (mkdirat(store->stacks_fd, name, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make a stack");
	dir = directory_open(store->stacks_fd, name);
	if (dir < 0)
		return err_sys(err, "open a stack");
	r = add_link(dir, 0, ".top", err);
	return r < 0 ? r : add_link(dir, index + 1, layer, err);
}

int layer_store_stack_commit(const struct layer_store *store, const char *stack, struct err *err)
{
	char name[NAME_LEN + sizeof(NEW_SUFFIX)];
	auto_fd int dir = -1;
	unsigned count;
	int r;

	if (exists(store->stacks_fd, stack))
		return 0;
	new_name(stack, name);
	dir = directory_open(store->stacks_fd, name);
	if (dir < 0)
		return err_sys(err, "open a stack");
	count = count_links(dir);
	r = has_bottom(dir, count) ? 0 : add_link(dir, count, BOTTOM, err);
	fail_point("layer.stacked");
	if (r == 0 && renameat(store->stacks_fd, name, store->stacks_fd, stack) < 0)
		r = err_sys(err, "keep a stack");
	return r;
}

int layer_store_stack_drop(const struct layer_store *store, const struct storage *storage,
	const char *stack, struct err *err)
{
	return trash_discard(&storage->trash, store->stacks_fd, stack, err);
}

int layer_store_enter_stack(
	int layers_mount, const char *stack, char option[LAYER_STORE_OPTION], struct err *err)
{
	auto_fd int stacks = directory_open(layers_mount, ".stacks"), dir = -1;
	unsigned count;
	size_t len = 0;

	dir = stacks < 0 ? -1 : directory_open(stacks, stack);
	if (dir < 0 && errno == ENOENT)
		return err_explain(err, ERR_NOT_FOUND, "image_missing",
			"have the image fetched again", "the files of image %.12s are not there",
			stack);
	if (dir < 0 || fchdir(dir) < 0)
		return err_sys(err, "open image %.12s", stack);
	count = count_links(dir);
	for (unsigned i = 0; i < count; i++) {
		char name[LINK_SIZE];

		link_name(i, name);
		len = format_append(
			option, LAYER_STORE_OPTION, len, "%s%s", i > 0 ? ":" : "", name);
	}
	return 0;
}
