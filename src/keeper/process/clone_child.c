/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/clone_child.h"

#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS_AT_START 256
#define LEAVING_MS	     5000

/* Fills the gaps below, so that no temporary descriptor ever gets such a low number. */
int clone_child_open(struct clone_child *child, struct err *err)
{
	int highest, fd;

	child->told_fd = highest = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (highest < 0)
		return err_sys(err, "make a counter");
	for (int i = 0; i < DESCRIPTORS_AT_START; i++) {
		if (fcntl(i, F_GETFD) >= 0)
			highest = i;
	}
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, "reserve descriptors");
	} while (fd < highest + CLONE_CHILD_KEPT_MAX + 1);
	child->first_fd = fd + 1;
	child->null_fd = fd - CLONE_CHILD_KEPT_MAX;
	return 0;
}

static int place_of(const struct clone_child *child, size_t i)
{
	return child->null_fd + 1 + (int)i;
}

static void clear_places(const struct clone_child *child, size_t count)
{
	int saved = errno;

	for (size_t i = 0; i < count; i++)
		dup3(child->null_fd, place_of(child, i), O_CLOEXEC);
	errno = saved;
}

static int fill_places(const struct clone_child *child, int *const kept[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (*kept[i] >= 0 && dup3(*kept[i], place_of(child, i), O_CLOEXEC) < 0)
			return -1;
	}
	return 0;
}

/* The first step of the child. */
static void leave_table(const struct clone_child *child, int *const kept[], size_t count)
{
	if (syscall(SYS_close_range, child->first_fd, ~0u, CLOSE_RANGE_UNSHARE) < 0 ||
		write(child->told_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		_exit(1);
	for (size_t i = 0; i < count; i++) {
		if (*kept[i] >= 0)
			*kept[i] = place_of(child, i);
	}
}

/*
 * Waits until the child has a table of its own, or has ended. Kills a child that does not reach its
 * first step, for example in a frozen group: the whole keeper waits here.
 */
static void await_own_table(const struct clone_child *child, pid_t pid, int child_fd)
{
	struct pollfd signs[] = {
		{.fd = child->told_fd, .events = POLLIN}, {.fd = child_fd, .events = POLLIN}};
	int n;

	while ((n = poll(signs, array_len(signs), LEAVING_MS)) <= 0) {
		if (n == 0)
			kill(pid, SIGKILL);
	}
}

/* Called before each clone: of a child that ended at once the wait may have seen only the end. */
static void forget_told(const struct clone_child *child)
{
	uint64_t ignored;

	(void)!read(child->told_fd, &ignored, sizeof(ignored));
}

pid_t clone_child_clone(
	const struct clone_child *child, struct clone_args args, int *const kept[], size_t count)
{
	auto_fd int child_fd = -1;
	pid_t pid;

	assert(count <= CLONE_CHILD_KEPT_MAX);
	if (!child || !child->first_fd)
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	args.flags |= CLONE_FILES | CLONE_PIDFD;
	args.pidfd = (uint64_t)(uintptr_t)&child_fd;
	if (fill_places(child, kept, count) < 0) {
		clear_places(child, count);
		return -1;
	}
	forget_told(child);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		child_fd = -1; /* of the keeper's table */
		leave_table(child, kept, count);
		return 0;
	}
	if (pid > 0)
		await_own_table(child, pid, child_fd);
	clear_places(child, count);
	return pid;
}
