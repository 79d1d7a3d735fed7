/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/group.h"

#include "agent/knob.h"
#include "agent/watch.h"
#include "base/fd.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTING_MAX  (8u * 1024 * 1024)
#define LISTING_STEP 4096u

void group_tree_init(struct group_tree *tree, int dir_fd)
{
	*tree = (struct group_tree){
		.dir_fd = dir_fd, .spare = GROUP_NONE, .leftovers = BUF_INIT(64 * 1024)};
}

/* "number/file"; for a file of "" the group itself. */
static const char *path_of(uint32_t number, const char *file, char path[static 48])
{
	snprintf(path, 48, "%u%s%s", number, *file ? "/" : "", file);
	return path;
}

static int open_file(const struct group_tree *tree, uint32_t number, const char *file, int flags)
{
	char path[48];

	return openat(tree->dir_fd, path_of(number, file, path), flags | O_CLOEXEC);
}

static int write_file(
	const struct group_tree *tree, uint32_t number, const char *file, const char *text)
{
	char path[48];

	return fd_write_file(tree->dir_fd, path_of(number, file, path), text);
}

static int remove_dir(const struct group_tree *tree, uint32_t number)
{
	char path[48];

	return unlinkat(tree->dir_fd, path_of(number, "", path), AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* The dead hold on to their group for a moment longer than they are listed in it. */
static void remove_group(struct group_tree *tree, uint32_t number)
{
	int r = remove_dir(tree, number);

	if (r < 0 && r != -ENOENT)
		buf_append(&tree->leftovers, &number, sizeof(number));
}

bool group_clean(struct group_tree *tree)
{
	struct buf before = tree->leftovers;

	tree->leftovers = BUF_INIT(before.max);
	for (size_t i = 0; i + sizeof(uint32_t) <= before.len; i += sizeof(uint32_t)) {
		uint32_t number;

		memcpy(&number, before.data + i, sizeof(number));
		remove_group(tree, number);
	}
	buf_fini(&before);
	return tree->leftovers.len > 0;
}

static void close_files(struct group *group)
{
	fd_close(group->threads_fd);
	fd_close(group->cpu_fd);
	fd_close(group->events_fd);
	*group = GROUP_NONE;
}

static int make(struct group_tree *tree, struct group *ret_group)
{
	struct group group = GROUP_NONE;
	char path[48];
	int r;

	group.number = tree->next_number++;
	if (mkdirat(tree->dir_fd, path_of(group.number, "", path), 0755) < 0)
		return -errno;
	r = write_file(tree, group.number, "cgroup.type", "threaded");
	if (r == 0) {
		group.threads_fd = open_file(tree, group.number, "cgroup.threads", O_RDWR);
		group.cpu_fd = open_file(tree, group.number, "cpu.stat", O_RDONLY);
		if (group.threads_fd < 0 || group.cpu_fd < 0)
			r = -errno;
	}
	if (r < 0) {
		remove_group(tree, group.number);
		close_files(&group);
		return r;
	}
	*ret_group = group;
	return 0;
}

void group_prepare(struct group_tree *tree)
{
	/* If it cannot be made now, the next command will say so. */
	if (tree->dir_fd >= 0 && !group_is_real(&tree->spare) && make(tree, &tree->spare) < 0)
		tree->spare = GROUP_NONE;
}

int group_open(struct group_tree *tree, struct group *ret_group)
{
	int r = 0;

	*ret_group = GROUP_NONE;
	if (tree->dir_fd < 0)
		return 0;
	if (group_is_real(&tree->spare)) {
		*ret_group = tree->spare;
		tree->spare = GROUP_NONE;
	} else {
		r = make(tree, ret_group);
	}
	if (r == 0)
		ret_group->spent_us = knob_read(ret_group->cpu_fd, "usage_usec");
	return r;
}

void group_close(struct group_tree *tree, struct group *group)
{
	if (!group_is_real(group))
		return;
	fd_close(take_fd(&group->events_fd));
	if (!group->is_frozen && !group_is_real(&tree->spare)) {
		tree->spare = *group;
		*group = GROUP_NONE;
		return;
	}
	remove_group(tree, group->number);
	close_files(group);
}

bool group_is_real(const struct group *group)
{
	return group->threads_fd >= 0;
}

uint64_t group_cpu_us(const struct group *group)
{
	return knob_read(group->cpu_fd, "usage_usec") - group->spent_us;
}

/* Who is in it */

/* The kernel's list of threads, one number a line; as much of it as could be had. */
static void read_listing(const struct group *group, struct buf *listing)
{
	ssize_t n;

	do {
		if (buf_reserve(listing, LISTING_STEP) < 0)
			return;
		n = pread(group->threads_fd, listing->data + listing->len, LISTING_STEP - 1,
			(off_t)listing->len);
		listing->len += n > 0 ? (size_t)n : 0;
		listing->data[listing->len] = '\0';
	} while (n > 0);
}

/* The threads, in place of a listing of them. Not who lives outside the agent's namespace (0). */
static pid_t *parse_listing(const struct buf *listing, size_t *ret_count)
{
	pid_t *threads = mem_new((listing->len / 2 + 1) * sizeof(pid_t));
	size_t count = 0;
	char *at = (char *)listing->data;
	char *end;

	for (;; at = end) {
		long thread = strtol(at, &end, 10);

		/* The end, or half a number where it was cut off. */
		if (end == at || *end != '\n')
			break;
		if (thread > 1)
			threads[count++] = (pid_t)thread;
	}
	*ret_count = count;
	return threads;
}

static pid_t *list_threads(const struct group *group, size_t *ret_count)
{
	struct buf listing = BUF_INIT(LISTING_MAX);
	pid_t *threads = NULL;

	*ret_count = 0;
	read_listing(group, &listing);
	if (listing.len > 0)
		threads = parse_listing(&listing, ret_count);
	buf_fini(&listing);
	return threads;
}

/* The process that a thread belongs to; 0 if it is gone. The kernel is asked before /proc is. */
static pid_t process_of(pid_t thread)
{
	char path[32], text[512];
	const char *at;

	if (syscall(SYS_tgkill, thread, thread, 0) == 0)
		return thread;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	/* Preceded by the name, in which a newline is escaped. */
	at = strstr(text, "\nTgid:");
	return at ? atoi(at + strlen("\nTgid:")) : 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

	return (left > right) - (left < right);
}

/* Each process once, however many threads it has. */
static pid_t *list_processes(const struct group *group, size_t *ret_count)
{
	pid_t *pids = list_threads(group, ret_count);
	size_t count = 0;

	for (size_t i = 0; i < *ret_count; i++)
		pids[i] = process_of(pids[i]);
	if (*ret_count > 1)
		qsort(pids, *ret_count, sizeof(pid_t), compare_pids);
	for (size_t i = 0; i < *ret_count; i++) {
		if (pids[i] > 1 && (count == 0 || pids[count - 1] != pids[i]))
			pids[count++] = pids[i];
	}
	*ret_count = count;
	return pids;
}

uint32_t group_count(const struct group *group)
{
	size_t count = 0;

	if (group_is_real(group))
		free(list_processes(group, &count));
	return (uint32_t)count;
}

bool group_of_thread(pid_t thread, uint32_t *ret_number)
{
	char path[32], text[2048];
	const char *name;
	uint64_t number;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)thread);
	len = fd_read_file(AT_FDCWD, path, text, sizeof(text));
	if (len <= 0)
		return false;
	/* A line for each tree, that of v2 last; and the last part of its path is the group. */
	text[len - 1] = '\0';
	name = strrchr(text, '/');
	if (!name || number_parse(name + 1, 0, UINT32_MAX, &number) < 0)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

void group_signal(const struct group *group, int signal)
{
	auto_free pid_t *pids = NULL;
	size_t count;

	if (!group_is_real(group))
		return;
	pids = list_processes(group, &count);
	for (size_t i = 0; i < count; i++)
		kill(pids[i], signal);
}

/*
 * Who is frozen cannot fork, and still dies when killed; so the list is complete but for a child
 * whose parent was in the middle of fork(), and that one is born frozen. A thread's number is as
 * good as its process's here.
 */
bool group_kill(const struct group_tree *tree, struct group *group)
{
	auto_free pid_t *threads = NULL;
	size_t count;

	if (!group_is_real(group))
		return false;
	if (!group->is_frozen)
		group->is_frozen = write_file(tree, group->number, "cgroup.freeze", "1") == 0;
	threads = list_threads(group, &count);
	for (size_t i = 0; i < count; i++)
		kill(threads[i], SIGKILL);
	return count > 0;
}

int group_watch(const struct group_tree *tree, struct group *group, int epoll_fd, uint32_t id)
{
	int r;

	group->events_fd = open_file(tree, group->number, "cgroup.events", O_RDONLY);
	if (group->events_fd < 0)
		return -errno;
	group_heard(group);
	r = watch_add(epoll_fd, group->events_fd, EPOLLPRI | EPOLLET, WATCH_GROUP, id);
	if (r < 0)
		fd_close(take_fd(&group->events_fd));
	return r;
}

void group_heard(const struct group *group)
{
	/* The kernel tells of changes since the last read. */
	(void)knob_read(group->events_fd, "populated");
}
