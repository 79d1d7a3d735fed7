/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH: what changes in a directory, below it, or about one file.
 *
 * Theory of operation
 *
 * watched_tree keeps a watch on each directory; file_watch turns its events into changes for the
 * daemon. What was found in a new directory is reported as created, and events about the same names
 * that follow are left out (`told`). A write to a file is reported when the file is closed, or
 * after a while (`modified`).
 *
 * Writing to the daemon blocks. While the daemon does not read, the helper does not read from the
 * kernel either, whose queue then overflows; that is reported too, after all directories are
 * watched again. So memory is bounded in any case: by the number of directories, and by two sets
 * with a maximum.
 */
#include "agent/files/request/file.h"
#include "agent/files/watch/inotify_queue.h"
#include "agent/files/watch/name_set.h"
#include "agent/files/watch/watched_target.h"
#include "agent/files/watch/watched_tree.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define MODIFIED_MAX 4096
#define MODIFIED_MS  150 /* a file that stays open is reported this often at most */
#define TOLD_MAX     65536
#define TOLD_MS	     2000
#define SYNC_MS	     200 /* between two synchronizations of the whole tree */
#define ABSENT_MS    500 /* a file that is being replaced may be missing this long */

struct watcher {
	struct helper_io *helper_io;
	struct inotify_queue queue;
	struct watched_target target;
	struct watched_tree tree; /* empty for a file */
	struct name_set modified; /* written to, and not reported yet */
	struct name_set told;	  /* reported as created because they were found */
	uint64_t absent_ms;	  /* when a file that is missing counts as gone; 0: it is there */
	uint64_t sync_ms;	  /* when the whole tree may be synchronized again */
	bool has_lost;		  /* something was missed; to be reported */
	bool is_gone;
};

/* --- reporting --- */

static void tell(struct watcher *watcher, enum agent_change change, enum agent_file_kind kind,
	const char *path, const char *to)
{
	struct helper_io *helper_io = watcher->helper_io;

	helper_io_put_u8(helper_io, (uint8_t)change);
	helper_io_put_u8(helper_io, (uint8_t)kind);
	helper_io_put_str(helper_io, path);
	helper_io_put_str(helper_io, to);
}

/* What is at path; an event knows only whether it is a directory. */
static enum agent_file_kind kind_at(struct watcher *watcher, const char *path, bool is_directory)
{
	struct stat stat;

	if (is_directory)
		return AGENT_FILE_DIRECTORY;
	if (fstatat(watcher->target.root, path, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
		S_ISDIR(stat.st_mode))
		return AGENT_FILE_REGULAR; /* something else by now */
	return watched_tree_kind(stat.st_mode);
}

/* Reports a change of name in a directory; a path that is too long is left out, as in a listing. */
static void tell_name(struct watcher *watcher, enum agent_change change,
	const struct dir_node *node, const char *name, bool is_directory)
{
	char path[AGENT_PATH_MAX];

	if (dir_tree_path(node, name, path) < 0)
		return;
	/* The kind of a deleted file is not known any more. */
	if (change == AGENT_DELETED)
		tell(watcher, change, is_directory ? AGENT_FILE_DIRECTORY : AGENT_FILE_REGULAR,
			path, "");
	else
		tell(watcher, change, kind_at(watcher, path, is_directory), path, "");
}

/* Looks at the watched file, or at name in a directory if that is still known. */
static bool look(struct watcher *watcher, int wd, const char *name, char path[AGENT_PATH_MAX],
	struct stat *ret_stat)
{
	struct dir_node *node = dir_tree_find(&watcher->tree.dirs, wd);

	path[0] = '\0';
	if (watcher->target.is_file)
		return fstatat(watcher->target.parent, name, ret_stat, AT_SYMLINK_NOFOLLOW) == 0;
	return node && dir_tree_path(node, name, path) == 0 &&
	       fstatat(watcher->target.root, path, ret_stat, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ==
		       0;
}

/* Reports a delayed modification; if the file is gone by now, its deletion is reported instead. */
static void tell_modified(struct watcher *watcher, int wd, const char *name)
{
	char path[AGENT_PATH_MAX];
	struct stat stat;

	if (look(watcher, wd, name, path, &stat))
		tell(watcher, AGENT_MODIFIED, watched_tree_kind(stat.st_mode), path, "");
}

/* Reports an entry that was found in a new directory. */
static void tell_found(
	void *arg, const struct dir_node *node, const char *name, enum agent_file_kind kind)
{
	struct watcher *watcher = arg;
	char path[AGENT_PATH_MAX];

	if (dir_tree_path(node, name, path) < 0)
		return;
	tell(watcher, AGENT_CREATED, kind, path, "");
	/* If it cannot be remembered it may be reported twice. */
	(void)name_set_put(&watcher->told, node->wd, name, clock_steady_ms() + TOLD_MS);
}

static bool is_wanted(void *arg)
{
	struct watcher *watcher = arg;

	return helper_io_is_wanted(watcher->helper_io);
}

/* Delays the report until the file is closed, or for a while. */
static void put_off(struct watcher *watcher, int wd, const char *name)
{
	if (!name_set_put(&watcher->modified, wd, name, clock_steady_ms() + MODIFIED_MS))
		tell_modified(watcher, wd, name);
}

/* --- the watched target itself --- */

/* Whether the path still leads to what is watched; a file may be replaced, a directory not. */
static void check_path(struct watcher *watcher)
{
	const struct dir_node *root = watcher->tree.dirs.root;
	struct stat stat;
	bool found;

	if (watcher->target.parent < 0)
		return;
	found = watched_target_look(&watcher->target, &stat);
	if (watcher->target.is_file && !found)
		watcher->absent_ms = clock_steady_ms() + ABSENT_MS;
	else if (root)
		watcher->is_gone |=
			!found || stat.st_dev != root->device || stat.st_ino != root->inode;
}

/*
 * Handles an event of a watched file: a replacement counts as modified, however it is done. A
 * missing file is about to be replaced, or gone: time tells.
 */
static void handle_file(struct watcher *watcher, uint32_t mask)
{
	if (mask & (IN_DELETE | IN_MOVED_FROM)) {
		watcher->absent_ms = clock_steady_ms() + ABSENT_MS;
		return;
	}
	if (mask & (IN_CREATE | IN_MOVED_TO))
		watcher->absent_ms = 0;
	if (mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
		name_set_take(&watcher->modified, watcher->target.parent_wd, watcher->target.name);
		tell_modified(watcher, watcher->target.parent_wd, watcher->target.name);
	} else {
		put_off(watcher, watcher->target.parent_wd, watcher->target.name);
	}
}

static void check_absent(struct watcher *watcher)
{
	struct stat stat;

	watcher->absent_ms = 0;
	if (watched_target_look(&watcher->target, &stat))
		tell_modified(watcher, watcher->target.parent_wd, watcher->target.name);
	else
		watcher->is_gone = true;
}

static void handle_parent(struct watcher *watcher, uint32_t mask, const char *name)
{
	if (mask & (IN_IGNORED | IN_UNMOUNT | IN_MOVE_SELF)) {
		watcher->is_gone = true;
	} else if (strcmp(name, watcher->target.name) == 0) {
		if (watcher->target.is_file)
			handle_file(watcher, mask);
		else
			check_path(watcher);
	}
}

/* --- events --- */

static void handle_created(
	struct watcher *watcher, struct dir_node *node, const char *name, uint32_t mask)
{
	bool was_told = name_set_take(&watcher->told, node->wd, name);

	/* Moved over an entry that was found before: it is another file now. */
	if (was_told && (mask & IN_MOVED_TO))
		tell_name(watcher, AGENT_MODIFIED, node, name, mask & IN_ISDIR);
	else if (!was_told)
		tell_name(watcher, AGENT_CREATED, node, name, mask & IN_ISDIR);
	if (mask & IN_ISDIR)
		watched_tree_follow(&watcher->tree, node, name);
}

static void handle_deleted(
	struct watcher *watcher, struct dir_node *node, const char *name, uint32_t mask)
{
	name_set_take(&watcher->told, node->wd, name);
	name_set_take(&watcher->modified, node->wd, name);
	tell_name(watcher, AGENT_DELETED, node, name, mask & IN_ISDIR);
	if (mask & IN_ISDIR)
		watched_tree_forget(
			&watcher->tree, dir_tree_child(&watcher->tree.dirs, node, name));
}

static void tell_moved(struct watcher *watcher, const struct dir_node *from, const char *name,
	const struct dir_node *node, const char *new_name, bool is_directory)
{
	char path[AGENT_PATH_MAX], to[AGENT_PATH_MAX];

	if (dir_tree_path(node, new_name, to) < 0)
		tell_name(watcher, AGENT_DELETED, from, name, is_directory);
	else if (dir_tree_path(from, name, path) < 0)
		tell_name(watcher, AGENT_CREATED, node, new_name, is_directory);
	else
		tell(watcher, AGENT_MOVED, kind_at(watcher, to, is_directory), path, to);
}

static void handle_moved(struct watcher *watcher, struct dir_node *from, const char *name,
	struct dir_node *to, const char *new_name, uint32_t mask)
{
	struct dir_node *moved = dir_tree_child(&watcher->tree.dirs, from, name);
	struct dir_node *replaced = dir_tree_child(&watcher->tree.dirs, to, new_name);

	/* Reports the write before the move, as they happened. */
	if (name_set_take(&watcher->modified, from->wd, name))
		tell_name(watcher, AGENT_MODIFIED, from, name, mask & IN_ISDIR);
	name_set_take(&watcher->modified, to->wd, new_name);
	name_set_take(&watcher->told, from->wd, name);
	name_set_take(&watcher->told, to->wd, new_name);
	tell_moved(watcher, from, name, to, new_name, mask & IN_ISDIR);
	if (!(mask & IN_ISDIR))
		return;
	if (moved && moved != replaced && !dir_tree_is_within(to, moved)) {
		/* Before the check: what is below it may have been moved away first. */
		dir_tree_move(&watcher->tree.dirs, moved, to, new_name);
		if (replaced && !dir_tree_is_within(to, replaced))
			watched_tree_forget(&watcher->tree, replaced);
	}
	watched_tree_follow(&watcher->tree, to, new_name);
}

/* The first half of a rename. The event's own memory may move meanwhile. */
static void handle_moved_from(
	struct watcher *watcher, struct dir_node *from, const struct inotify_event *event)
{
	uint32_t mask = event->mask;
	char name[NAME_MAX + 1];
	struct inotify_event *pair;
	struct dir_node *to;

	strcpy(name, inotify_queue_name(event));
	pair = inotify_queue_await_pair(&watcher->queue, event->cookie);
	to = pair ? dir_tree_find(&watcher->tree.dirs, pair->wd) : NULL;
	if (!to) {
		handle_deleted(watcher, from, name, mask);
		return;
	}
	pair->mask = 0; /* done */
	handle_moved(watcher, from, name, to, inotify_queue_name(pair), mask);
}

/* About a directory itself; the watch of its parent has reported it already. */
static void handle_self(struct watcher *watcher, struct dir_node *node, uint32_t mask)
{
	bool is_root = node == watcher->tree.dirs.root;

	if (mask & (IN_IGNORED | IN_UNMOUNT)) {
		watcher->is_gone |= is_root;
		watched_tree_forget(&watcher->tree, node);
	} else if (is_root && (mask & IN_MOVE_SELF)) {
		check_path(watcher);
	} else if (is_root && (mask & IN_ATTRIB)) {
		put_off(watcher, node->wd, "");
	}
}

static void handle_overflow(struct watcher *watcher)
{
	watcher->has_lost = true;
	name_set_fini(&watcher->told);
	name_set_fini(&watcher->modified);
	check_path(watcher);
	if (!watcher->target.is_file)
		watched_tree_synchronize(&watcher->tree, false);
}

static void handle_event(struct watcher *watcher, const struct inotify_event *event)
{
	struct dir_node *node = dir_tree_find(&watcher->tree.dirs, event->wd);
	const char *name = inotify_queue_name(event);
	uint32_t mask = event->mask;

	if (mask & IN_Q_OVERFLOW) {
		handle_overflow(watcher);
	} else if (event->wd == watcher->target.parent_wd) {
		handle_parent(watcher, mask, name);
	} else if (!node) {
		return; /* of a directory that is watched no more */
	} else if (!name[0]) {
		handle_self(watcher, node, mask);
	} else if (mask & (IN_CREATE | IN_MOVED_TO)) {
		handle_created(watcher, node, name, mask);
	} else if (mask & IN_DELETE) {
		handle_deleted(watcher, node, name, mask);
	} else if (mask & IN_MOVED_FROM) {
		handle_moved_from(watcher, node, event);
	} else if (mask & IN_CLOSE_WRITE) {
		name_set_take(&watcher->modified, node->wd, name);
		tell_name(watcher, AGENT_MODIFIED, node, name, false);
	} else if (mask & (IN_MODIFY | IN_ATTRIB)) {
		put_off(watcher, node->wd, name);
	}
}

static void handle_events(struct watcher *watcher)
{
	struct inotify_event *event;

	while (!watcher->is_gone && watcher->helper_io->failure == 0 &&
		(event = inotify_queue_next(&watcher->queue)))
		handle_event(watcher, event);
}

/* --- the loop --- */

/* Reports what was delayed and is due. */
static void tell_due(struct watcher *watcher, uint64_t now_ms, bool is_quiet)
{
	const struct name_entry *entry;

	while ((entry = name_set_oldest(&watcher->modified)) && entry->due_ms <= now_ms) {
		tell_modified(watcher, entry->wd, entry->name);
		name_set_take(&watcher->modified, entry->wd, entry->name);
	}
	/* While events wait, one of them may be about a name that was reported already. */
	while (is_quiet && (entry = name_set_oldest(&watcher->told)) && entry->due_ms <= now_ms)
		name_set_take(&watcher->told, entry->wd, entry->name);
	if (watcher->absent_ms && watcher->absent_ms <= now_ms && is_quiet)
		check_absent(watcher);
}

static int timeout_ms(const struct watcher *watcher)
{
	const struct name_entry *modified = name_set_oldest(&watcher->modified);
	const struct name_entry *told = name_set_oldest(&watcher->told);
	uint64_t now_ms = clock_steady_ms();
	uint64_t due_ms = UINT64_MAX;

	if (watcher->tree.is_stale)
		due_ms = watcher->sync_ms;
	if (modified && modified->due_ms < due_ms)
		due_ms = modified->due_ms;
	if (told && told->due_ms < due_ms)
		due_ms = told->due_ms;
	if (watcher->absent_ms && watcher->absent_ms < due_ms)
		due_ms = watcher->absent_ms;
	if (due_ms == UINT64_MAX)
		return -1;
	return due_ms <= now_ms ? 0 : (int)(due_ms - now_ms);
}

/* Runs until the daemon closes the channel, or the target is gone. */
static void run(struct watcher *watcher)
{
	struct pollfd fds[] = {
		{.fd = watcher->queue.inotify, .events = POLLIN},
		{.fd = watcher->helper_io->fd, .events = POLLIN | POLLRDHUP},
	};

	check_path(watcher);
	while (!watcher->is_gone && helper_io_flush(watcher->helper_io) == 0) {
		bool is_quiet;

		if (poll(fds, array_len(fds), timeout_ms(watcher)) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			return;
		is_quiet = !fds[0].revents;
		if (!is_quiet) {
			inotify_queue_read(&watcher->queue, 0);
			handle_events(watcher);
		} else if (watcher->tree.is_stale && watcher->sync_ms <= clock_steady_ms()) {
			watched_tree_synchronize(&watcher->tree, true);
			watcher->sync_ms = clock_steady_ms() + SYNC_MS;
		}
		tell_due(watcher, clock_steady_ms(), is_quiet);
		/* Reported last: the client then looks at the tree, and all of that is watched
		 * by now. */
		if (watcher->has_lost || watcher->tree.is_full)
			tell(watcher, AGENT_CHANGE_LOST, AGENT_FILE_NONE, "", "");
		watcher->has_lost = watcher->tree.is_full = false;
	}
	if (watcher->is_gone)
		tell(watcher, AGENT_CHANGE_GONE, AGENT_FILE_NONE, "", "");
}

/* --- the beginning --- */

static int watch_tree(struct watcher *watcher, const struct stat *stat, bool is_recursive)
{
	if (watcher->target.is_file)
		return 0;
	watcher->tree = (struct watched_tree){
		.inotify = watcher->queue.inotify,
		.root = watcher->target.root,
		.foreign_wd = watcher->target.parent_wd,
		.is_recursive = is_recursive,
		.found = tell_found,
		.is_wanted = is_wanted,
		.arg = watcher,
	};
	return watched_tree_open(&watcher->tree, stat);
}

static void watcher_fini(struct watcher *watcher)
{
	inotify_queue_close(&watcher->queue);
	watched_target_close(&watcher->target);
	watched_tree_close(&watcher->tree);
	name_set_fini(&watcher->modified);
	name_set_fini(&watcher->told);
	free(watcher);
}

static void watcher_finip(struct watcher **watcher)
{
	watcher_fini(*watcher);
}

static struct watcher *make_watcher(struct helper_io *helper_io)
{
	struct watcher *watcher = mem_new(sizeof(*watcher));

	watcher->helper_io = helper_io;
	watcher->target = WATCHED_TARGET_NONE;
	inotify_queue_open(&watcher->queue);
	watcher->modified.max = MODIFIED_MAX;
	watcher->told.max = TOLD_MAX;
	return watcher;
}

int file_watch(struct helper_io *helper_io, const struct payload_file *request)
{
	auto_(watcher_finip) struct watcher *watcher = make_watcher(helper_io);
	struct stat stat;
	int r;

	if (watcher->queue.inotify < 0)
		return watcher->queue.inotify;
	r = watched_target_open(&watcher->target, request->path, watcher->queue.inotify, &stat);
	if (r == 0)
		r = watch_tree(watcher, &stat, request->flag);
	if (r < 0)
		return r;
	helper_io_put_answer(helper_io, &stat, 0, "");
	run(watcher);
	return 0;
}
