/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/dir_watch.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR |       \
		IN_DONT_FOLLOW | IN_EXCL_UNLINK)
#define DEPTH_MAX   64
#define READ_BYTES  16384
#define MISSING_FMT "%s cannot be watched"

struct dir_watch {
	int fd;
	char *root;
	const char *const *skipped;
	json_t *dirs;	 /* the path of a directory, by the number of its watch */
	json_t *changed; /* paths */
	bool is_lost;
};

static char *join(const char *dir, const char *name)
{
	return dir[0] ? mem_printf("%s/%s", dir, name) : mem_strdup(name);
}

static bool is_skipped(const struct dir_watch *watch, const char *name)
{
	for (const char *const *each = watch->skipped; each && *each; each++) {
		if (strcmp(*each, name) == 0)
			return true;
	}
	return false;
}

static void note(struct dir_watch *watch, const char *path)
{
	/* A name that is not UTF-8, which fails here, is none that a project can have. */
	(void)json_object_set_new(watch->changed, path, json_true());
}

static int add_dir(
	struct dir_watch *watch, const char *dir, bool is_new, unsigned depth, struct err *err);

static int add_entry(struct dir_watch *watch, const char *dir, const struct dirent *entry,
	bool is_new, unsigned depth, struct err *err)
{
	auto_free char *path = join(dir, entry->d_name);
	auto_free char *whole = mem_printf("%s/%s", watch->root, path);
	struct stat st;

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		is_skipped(watch, entry->d_name) || lstat(whole, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return add_dir(watch, path, is_new, depth + 1, err);
	/* What is in a directory that came whole, or was made before it was watched, is not told of otherwise. */
	if (is_new && S_ISREG(st.st_mode))
		note(watch, path);
	return 0;
}

static int add_dir(
	struct dir_watch *watch, const char *dir, bool is_new, unsigned depth, struct err *err)
{
	auto_free char *whole = dir[0] ? mem_printf("%s/%s", watch->root, dir) : NULL;
	const char *place = whole ? whole : watch->root;
	int number = inotify_add_watch(watch->fd, place, EVENTS);
	struct dirent *entry;
	char key[16];
	int r = 0;
	DIR *open;

	if (number < 0 && errno == ENOSPC)
		return err_explain(err, ERR_NO_SPACE, "too_many_watches",
			"raise the sysctl fs.inotify.max_user_watches", MISSING_FMT, place);
	if (number < 0)
		return depth > 0 ? 0 : err_sys(err, MISSING_FMT, place); /* it is gone again */
	snprintf(key, sizeof(key), "%d", number);
	json_object_set_new(watch->dirs, key, json_string(dir));
	open = depth < DEPTH_MAX ? opendir(place) : NULL;
	while (open && r == 0 && (entry = readdir(open)))
		r = add_entry(watch, dir, entry, is_new, depth, err);
	if (open)
		closedir(open);
	return r;
}

int dir_watch_new(
	const char *dir, const char *const *skipped, struct dir_watch **ret_watch, struct err *err)
{
	struct dir_watch *watch = mem_new(sizeof(*watch));
	int r;

	*watch = (struct dir_watch){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
		.root = mem_strdup(dir),
		.skipped = skipped,
		.dirs = json_object(),
		.changed = json_object()};
	r = watch->fd < 0 ? err_sys(err, "inotify") : add_dir(watch, "", false, 0, err);
	if (r < 0)
		dir_watch_free(watch);
	else
		*ret_watch = watch;
	return r;
}

void dir_watch_free(struct dir_watch *watch)
{
	if (!watch)
		return;
	if (watch->fd >= 0)
		close(watch->fd);
	json_decref(watch->dirs);
	json_decref(watch->changed);
	free(watch->root);
	free(watch);
}

int dir_watch_fd(const struct dir_watch *watch)
{
	return watch->fd;
}

static int take_event(struct dir_watch *watch, const struct inotify_event *event, struct err *err)
{
	auto_free char *path = NULL;
	const char *dir;
	char key[16];

	if (event->mask & IN_Q_OVERFLOW) {
		watch->is_lost = true;
		return 0;
	}
	snprintf(key, sizeof(key), "%d", event->wd);
	if (event->mask & IN_IGNORED) {
		json_object_del(watch->dirs, key);
		return 0;
	}
	dir = json_string_value(json_object_get(watch->dirs, key));
	if (!dir || event->len == 0 || is_skipped(watch, event->name))
		return 0;
	path = join(dir, event->name);
	if (!(event->mask & IN_ISDIR)) {
		/* A new file is told of when it was written; a link to one has no such moment, and is not sent. */
		if (!(event->mask & IN_CREATE))
			note(watch, path);
		return 0;
	}
	if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
		note(watch, path);
		return 0;
	}
	return event->mask & (IN_CREATE | IN_MOVED_TO) ? add_dir(watch, path, true, 1, err) : 0;
}

int dir_watch_gather(struct dir_watch *watch, struct err *err)
{
	char data[READ_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;
	int r = 0;

	while (r == 0 && (len = read(watch->fd, data, sizeof(data))) > 0) {
		for (ssize_t at = 0; r == 0 && at < len;) {
			const struct inotify_event *event = (const void *)(data + at);

			r = take_event(watch, event, err);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return r;
}

json_t *dir_watch_take(struct dir_watch *watch, bool *ret_is_lost)
{
	json_t *changed = watch->changed;

	*ret_is_lost = watch->is_lost;
	watch->is_lost = false;
	watch->changed = json_object();
	return changed;
}
