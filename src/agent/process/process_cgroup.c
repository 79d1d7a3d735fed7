/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/process_cgroup.h"

#include "agent/link/watch.h"
#include "agent/machine/cgroup_value.h"
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

void process_cgroups_init(struct process_cgroups *tree, int dir_fd)
{
	*tree = (struct process_cgroups){.dir_fd = dir_fd,
		.next_group = PROCESS_CGROUP_NONE,
		.leftovers = BUF_INIT(64 * 1024)};
}

/* "number/file"; for a file of "" the group itself. */
static const char *path_of(uint32_t number, const char *file, char path[static 48])
{
	snprintf(path, 48, "%u%s%s", number, *file ? "/" : "", file);
	return path;
}

static int open_file(
	const struct process_cgroups *tree, uint32_t number, const char *file, int flags)
{
	char path[48];

	return openat(tree->dir_fd, path_of(number, file, path), flags | O_CLOEXEC);
}

static int write_file(
	const struct process_cgroups *tree, uint32_t number, const char *file, const char *text)
{
	char path[48];

	return fd_write_file(tree->dir_fd, path_of(number, file, path), text);
}

static int remove_dir(const struct process_cgroups *tree, uint32_t number)
{
	char path[48];

	return unlinkat(tree->dir_fd, path_of(number, "", path), AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Dead processes stay in their group for a moment after they are no longer listed. */
static void remove_group(struct process_cgroups *tree, uint32_t number)
{
	int r = remove_dir(tree, number);

	if (r < 0 && r != -ENOENT)
		buf_append(&tree->leftovers, &number, sizeof(number));
}

bool process_cgroup_clean(struct process_cgroups *tree)
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

static void close_files(struct process_cgroup *group)
{
	fd_close(group->threads_fd);
	fd_close(group->cpu_fd);
	fd_close(group->events_fd);
	*group = PROCESS_CGROUP_NONE;
}

static int make(struct process_cgroups *tree, struct process_cgroup *ret_group)
{
	struct process_cgroup group = PROCESS_CGROUP_NONE;
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

void process_cgroup_prepare(struct process_cgroups *tree)
{
	/* If it cannot be made now, the next command reports the failure. */
	if (tree->dir_fd >= 0 && !process_cgroup_is_real(&tree->next_group) &&
		make(tree, &tree->next_group) < 0)
		tree->next_group = PROCESS_CGROUP_NONE;
}

int process_cgroup_open(struct process_cgroups *tree, struct process_cgroup *ret_group)
{
	int r = 0;

	*ret_group = PROCESS_CGROUP_NONE;
	if (tree->dir_fd < 0)
		return 0;
	if (process_cgroup_is_real(&tree->next_group)) {
		*ret_group = tree->next_group;
		tree->next_group = PROCESS_CGROUP_NONE;
	} else {
		r = make(tree, ret_group);
	}
	if (r == 0)
		ret_group->spent_us = cgroup_value_read(ret_group->cpu_fd, "usage_usec");
	return r;
}

void process_cgroup_close(struct process_cgroups *tree, struct process_cgroup *group)
{
	if (!process_cgroup_is_real(group))
		return;
	fd_close(take_fd(&group->events_fd));
	if (!group->is_frozen && !process_cgroup_is_real(&tree->next_group)) {
		tree->next_group = *group;
		*group = PROCESS_CGROUP_NONE;
		return;
	}
	remove_group(tree, group->number);
	close_files(group);
}

bool process_cgroup_is_real(const struct process_cgroup *group)
{
	return group->threads_fd >= 0;
}

uint64_t process_cgroup_cpu_us(const struct process_cgroup *group)
{
	return cgroup_value_read(group->cpu_fd, "usage_usec") - group->spent_us;
}

/* Which processes are in it */

/* Reads the kernel's list of threads, one number a line; as much of it as fits. */
static void read_listing(const struct process_cgroup *group, struct buf *listing)
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

/* Parses a listing in place. Threads outside the agent's namespace are 0 and left out. */
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

static pid_t *list_threads(const struct process_cgroup *group, size_t *ret_count)
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

/* The process that a thread belongs to; 0 if it is gone. Asks the kernel before /proc. */
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
static pid_t *list_processes(const struct process_cgroup *group, size_t *ret_count)
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

uint32_t process_cgroup_count(const struct process_cgroup *group)
{
	size_t count = 0;
	char first;

	/* Most often nobody is left, and then it needs no room for a list. */
	if (process_cgroup_is_real(group) && pread(group->threads_fd, &first, 1, 0) > 0)
		free(list_processes(group, &count));
	return (uint32_t)count;
}

bool process_cgroup_of_thread(pid_t thread, uint32_t *ret_number)
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

void process_cgroup_signal(const struct process_cgroup *group, int signal)
{
	auto_free pid_t *pids = NULL;
	size_t count;

	if (!process_cgroup_is_real(group))
		return;
	pids = list_processes(group, &count);
	for (size_t i = 0; i < count; i++)
		kill(pids[i], signal);
}

/*
 * A frozen process cannot fork, and still dies when killed; so the list is complete but for a child
 * whose parent was in the middle of fork(), and that child starts frozen. The id of a thread works
 * as that of its process here.
 */
bool process_cgroup_kill(const struct process_cgroups *tree, struct process_cgroup *group)
{
	auto_free pid_t *threads = NULL;
	size_t count;

	if (!process_cgroup_is_real(group))
		return false;
	if (!group->is_frozen)
		group->is_frozen = write_file(tree, group->number, "cgroup.freeze", "1") == 0;
	threads = list_threads(group, &count);
	for (size_t i = 0; i < count; i++)
		kill(threads[i], SIGKILL);
	return count > 0;
}

int process_cgroup_watch(
	const struct process_cgroups *tree, struct process_cgroup *group, int epoll_fd, uint32_t id)
{
	int r;

	group->events_fd = open_file(tree, group->number, "cgroup.events", O_RDONLY);
	if (group->events_fd < 0)
		return -errno;
	process_cgroup_heard(group);
	r = watch_add(epoll_fd, group->events_fd, EPOLLPRI | EPOLLET, WATCH_GROUP, id);
	if (r < 0)
		fd_close(take_fd(&group->events_fd));
	return r;
}

void process_cgroup_heard(const struct process_cgroup *group)
{
	/* The kernel reports changes since the last read. */
	(void)cgroup_value_read(group->events_fd, "populated");
}
