/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/crew.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GIVE_WAY_NICE 10
#define RETRY_MS      1000 /* so that one that cannot live is not started all the time */

void crew_lend(struct crew *crew, int fd)
{
	assert(crew->lent_count < CREW_LENT_MAX);
	crew->lent[crew->lent_count++] = fd;
}

/* Of two descriptors, of which either may be none, the lower. */
static int lower(int a, int b)
{
	return b < 0 || (a >= 0 && a < b) ? a : b;
}

/* The lowest descriptor from `from` on that the child keeps; -1 if there is none. */
static int next_kept(const struct crew *crew, const int *tools, int also, int from)
{
	int next = also >= from ? also : -1;

	for (size_t i = 0; i < crew->lent_count; i++)
		next = lower(next, crew->lent[i] >= from ? crew->lent[i] : -1);
	for (size_t i = 0; tools && i < CREW_TOOLS_MAX; i++)
		next = lower(next, tools[i] >= from ? tools[i] : -1);
	return next;
}

static void shed_descriptors(const struct crew *crew, const int *tools, int also)
{
	int from = STDERR_FILENO + 1, kept;

	while ((kept = next_kept(crew, tools, also, from)) >= 0) {
		if (kept > from)
			syscall(SYS_close_range, from, kept - 1, 0);
		from = kept + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

static pid_t fork_with(const struct crew *crew, const int *tools, int *also)
{
	int none = -1, *const kept[] = {also ? also : &none};
	pid_t keeper = getpid();
	pid_t pid = offspring_clone(crew->offspring, (struct clone_args){.exit_signal = SIGCHLD},
		kept, array_len(kept));

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper) /* it died before that */
		_exit(1);
	shed_descriptors(crew, tools, *kept[0]);
	return 0;
}

pid_t crew_fork(const struct crew *crew, int *also)
{
	return fork_with(crew, NULL, also);
}

void crew_give_way(void)
{
	(void)!nice(GIVE_WAY_NICE);
}

static int make_pokes(struct crew_member *member, struct err *err)
{
	auto_fd int theirs = -1, ours = -1;
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(err, "make a pipe");
	theirs = pair[0];
	ours = pair[1];
	if (fd_set_nonblocking(ours) < 0)
		return err_sys(err, "set up a pipe");
	member->their_fd = take_fd(&theirs);
	member->pokes_fd = take_fd(&ours);
	return 0;
}

static int start(const struct crew *crew, struct crew_member *member, struct err *err)
{
	int r = member->pokes_fd < 0 ? make_pokes(member, err) : 0;
	int theirs = member->their_fd;

	if (r < 0)
		return r;
	member->pid = fork_with(crew, member->tools, &theirs);
	if (member->pid == 0) {
		crew_give_way();
		member->work(member->arg, theirs);
		_exit(0);
	}
	if (member->pid < 0) {
		member->pid = 0;
		return err_sys(err, "fork");
	}
	return 0;
}

static void try_start(struct crew *crew, struct crew_member *member)
{
	struct err err;

	member->not_before_ms = clock_steady_ms() + RETRY_MS;
	if (start(crew, member, &err) < 0)
		log_error("no %s for now: %s", member->name, err.message);
}

void crew_join(struct crew *crew, struct crew_member *member)
{
	member->pid = 0;
	member->pokes_fd = member->their_fd = -1;
	member->next = crew->first;
	crew->first = member;
	try_start(crew, member);
}

void crew_poke(const struct crew_member *member)
{
	/* A full pipe means that it has been told already. */
	if (member->pokes_fd >= 0)
		(void)!write(member->pokes_fd, "", 1);
}

void crew_reaped(struct crew *crew, pid_t pid, int status)
{
	for (struct crew_member *member = crew->first; member; member = member->next) {
		if (member->pid != pid)
			continue;
		log_warning(
			"the %s ended with status %d; there will be another", member->name, status);
		member->pid = 0;
	}
}

int crew_tend(struct crew *crew)
{
	uint64_t now = clock_steady_ms();
	int due_ms = -1;

	for (struct crew_member *member = crew->first; member; member = member->next) {
		if (!member->pid && member->not_before_ms <= now)
			try_start(crew, member);
		if (!member->pid)
			due_ms = RETRY_MS;
	}
	return due_ms;
}

void crew_dismiss(struct crew *crew)
{
	for (struct crew_member *member = crew->first; member; member = member->next) {
		if (member->pid)
			kill(member->pid, SIGKILL);
	}
}
