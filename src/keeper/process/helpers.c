/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/process/helpers.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKGROUND_NICE 10
#define RETRY_MS	1000 /* so that a helper that always fails is not started all the time */

void helpers_share_fd(struct helpers *helpers, int fd)
{
	assert(helpers->shared_count < HELPERS_SHARED_MAX);
	helpers->shared[helpers->shared_count++] = fd;
}

/* The lower of two descriptors, of which either may be none (-1). */
static int lower(int a, int b)
{
	return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* The lowest descriptor from `from` on that the child keeps; -1 if there is none. */
static int next_kept(const struct helpers *helpers, const int *own_fds, int also, int from)
{
	int next = also >= from ? also : -1;

	for (size_t i = 0; i < helpers->shared_count; i++)
		next = lower(next, helpers->shared[i] >= from ? helpers->shared[i] : -1);
	for (size_t i = 0; own_fds && i < HELPERS_OWN_MAX; i++)
		next = lower(next, own_fds[i] >= from ? own_fds[i] : -1);
	return next;
}

static void close_descriptors(const struct helpers *helpers, const int *own_fds, int also)
{
	int from = STDERR_FILENO + 1, kept;

	while ((kept = next_kept(helpers, own_fds, also, from)) >= 0) {
		if (kept > from)
			syscall(SYS_close_range, from, kept - 1, 0);
		from = kept + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

static pid_t fork_with(const struct helpers *helpers, const int *own_fds, int *also)
{
	int none = -1, *const kept[] = {also ? also : &none};
	pid_t keeper = getpid();
	pid_t pid = clone_child_clone(
		helpers->child, (struct clone_args){.exit_signal = SIGCHLD}, kept, array_len(kept));

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper) /* the keeper died before that */
		_exit(1);
	close_descriptors(helpers, own_fds, *kept[0]);
	return 0;
}

pid_t helpers_fork(const struct helpers *helpers, int *also)
{
	return fork_with(helpers, NULL, also);
}

void helpers_lower_priority(void)
{
	(void)!nice(BACKGROUND_NICE);
}

void *helpers_new_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

static int make_wake_pipe(struct helper *helper, struct err *err)
{
	auto_fd int theirs = -1, ours = -1;
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(err, "make a pipe");
	theirs = pair[0];
	ours = pair[1];
	if (fd_set_nonblocking(ours) < 0)
		return err_sys(err, "set up a pipe");
	helper->their_fd = take_fd(&theirs);
	helper->wake_fd = take_fd(&ours);
	return 0;
}

static int start(const struct helpers *helpers, struct helper *helper, struct err *err)
{
	int r = helper->wake_fd < 0 ? make_wake_pipe(helper, err) : 0;
	int theirs = helper->their_fd;

	if (r < 0)
		return r;
	if (helper->prepare)
		helper->prepare(helper->arg);
	helper->pid = fork_with(helpers, helper->own_fds, &theirs);
	if (helper->pid == 0) {
		helpers_lower_priority();
		helper->work(helper->arg, theirs);
		_exit(0);
	}
	if (helper->pid < 0) {
		helper->pid = 0;
		return err_sys(err, "fork");
	}
	return 0;
}

static void try_start(struct helpers *helpers, struct helper *helper)
{
	struct err err;

	helper->not_before_ms = clock_steady_ms() + RETRY_MS;
	if (start(helpers, helper, &err) < 0)
		log_error("the %s cannot be started now: %s", helper->name, err.message);
}

void helpers_add(struct helpers *helpers, struct helper *helper)
{
	helper->pid = 0;
	helper->wake_fd = helper->their_fd = -1;
	helper->next = helpers->first;
	helpers->first = helper;
	try_start(helpers, helper);
}

void helpers_wake(const struct helper *helper)
{
	/* A full pipe means that the helper is awake already. */
	if (helper->wake_fd >= 0)
		(void)!write(helper->wake_fd, "", 1);
}

/* The place of a child that answers a request, or with 0 one that is free; NULL if there is none. */
static pid_t *find_asked(struct helpers *helpers, pid_t pid)
{
	for (size_t i = 0; i < HELPERS_ASKED_MAX; i++) {
		if (helpers->asked[i] == pid)
			return &helpers->asked[i];
	}
	return NULL;
}

pid_t helpers_fork_asked(struct helpers *helpers, int *also, struct err *err)
{
	pid_t *place = find_asked(helpers, 0), pid;

	if (!place)
		return err_explain(err, ERR_UNAVAILABLE, "keeper_busy", "try again in a moment",
			"the keeper works on %u requests that take long already",
			HELPERS_ASKED_MAX);
	pid = fork_with(helpers, NULL, also);
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid > 0)
		*place = pid;
	return pid;
}

void helpers_reaped(struct helpers *helpers, pid_t pid, int status)
{
	pid_t *asked = find_asked(helpers, pid);

	if (asked)
		*asked = 0;
	for (struct helper *helper = helpers->first; helper; helper = helper->next) {
		if (helper->pid != pid)
			continue;
		log_warning(
			"the %s ended with status %d; there will be another", helper->name, status);
		helper->pid = 0;
	}
}

int helpers_tend(struct helpers *helpers)
{
	uint64_t now = clock_steady_ms();
	int due_ms = -1;

	for (struct helper *helper = helpers->first; helper; helper = helper->next) {
		if (!helper->pid && helper->not_before_ms <= now)
			try_start(helpers, helper);
		if (!helper->pid)
			due_ms = RETRY_MS;
	}
	return due_ms;
}

void helpers_kill(struct helpers *helpers)
{
	for (struct helper *helper = helpers->first; helper; helper = helper->next) {
		if (helper->pid)
			kill(helper->pid, SIGKILL);
	}
}
