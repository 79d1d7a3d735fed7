/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/offspring.h"

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

/* Gaps below are filled, so that no descriptor that comes and goes ever gets such a low number. */
int offspring_open(struct offspring *offspring, struct err *err)
{
	int highest, fd;

	offspring->told_fd = highest = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
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
	} while (fd < highest + OFFSPRING_KEPT_MAX + 1);
	offspring->first_fd = fd + 1;
	offspring->null_fd = fd - OFFSPRING_KEPT_MAX;
	return 0;
}

static int place_of(const struct offspring *offspring, size_t i)
{
	return offspring->null_fd + 1 + (int)i;
}

static void clear_places(const struct offspring *offspring, size_t count)
{
	int saved = errno;

	for (size_t i = 0; i < count; i++)
		dup3(offspring->null_fd, place_of(offspring, i), O_CLOEXEC);
	errno = saved;
}

static int fill_places(const struct offspring *offspring, int *const kept[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (*kept[i] >= 0 && dup3(*kept[i], place_of(offspring, i), O_CLOEXEC) < 0)
			return -1;
	}
	return 0;
}

/* In the child: nothing comes before this. */
static void leave_table(const struct offspring *offspring, int *const kept[], size_t count)
{
	if (syscall(SYS_close_range, offspring->first_fd, ~0u, CLOSE_RANGE_UNSHARE) < 0 ||
		write(offspring->told_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		_exit(1);
	for (size_t i = 0; i < count; i++) {
		if (*kept[i] >= 0)
			*kept[i] = place_of(offspring, i);
	}
}

/*
 * Until the child has left the table, or has ended. One that does not come to its first step, in a group that
 * is frozen, say, is ended: everybody waits with us.
 */
static void await_leaving(const struct offspring *offspring, pid_t pid, int child_fd)
{
	struct pollfd signs[] = {
		{.fd = offspring->told_fd, .events = POLLIN}, {.fd = child_fd, .events = POLLIN}};
	int n;

	while ((n = poll(signs, array_len(signs), LEAVING_MS)) <= 0) {
		if (n == 0)
			kill(pid, SIGKILL);
	}
}

/* Before each: of one who has left and ended at once we may have seen only the end. */
static void forget_told(const struct offspring *offspring)
{
	uint64_t ignored;

	(void)!read(offspring->told_fd, &ignored, sizeof(ignored));
}

pid_t offspring_clone(
	const struct offspring *offspring, struct clone_args args, int *const kept[], size_t count)
{
	auto_fd int child_fd = -1;
	pid_t pid;

	assert(count <= OFFSPRING_KEPT_MAX);
	if (!offspring || !offspring->first_fd)
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	args.flags |= CLONE_FILES | CLONE_PIDFD;
	args.pidfd = (uint64_t)(uintptr_t)&child_fd;
	if (fill_places(offspring, kept, count) < 0) {
		clear_places(offspring, count);
		return -1;
	}
	forget_told(offspring);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		child_fd = -1; /* of the keeper's table */
		leave_table(offspring, kept, count);
		return 0;
	}
	if (pid > 0)
		await_leaving(offspring, pid, child_fd);
	clear_places(offspring, count);
	return pid;
}
