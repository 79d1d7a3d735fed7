/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/rootless.h"

#include "base/fd.h"
#include "base/subids.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_MAX 16
#define ARGS_MAX   (2 + 3 * (1 + SUBIDS_RANGES_MAX) + 1)

/* What maps each kind of ids. */
static const char *const helpers[SUBIDS_KINDS] = {"newuidmap", "newgidmap"};

static const char *user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());

	return user ? user->pw_name : "";
}

int rootless_check(struct err *err)
{
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char remedy[SUBIDS_REMEDY_MAX];

	if (subids_suffice(root_fd, user_name(), geteuid(), remedy))
		return 0;
	return err_explain(err, ERR_UNAVAILABLE, "no_subids", remedy,
		"without root, sandlotd needs at least %u ids that /etc/subuid and /etc/subgid "
		"lend "
		"to its user: each sandbox gets ids that are nobody else's",
		SUBIDS_SANDBOX);
}

int rootless_enter(int gate)
{
	pid_t self = getpid();
	char go;

	if (unshare(CLONE_NEWUSER) < 0) {
		self = -errno;
		(void)!write(gate, &self, sizeof(self));
		return self;
	}
	if (write(gate, &self, sizeof(self)) != (ssize_t)sizeof(self) || read(gate, &go, 1) != 1)
		return -EPIPE;
	/* The user's further groups could open doors that the ids do not. */
	return setgroups(0, NULL) < 0 ? -errno : 0;
}

static int run(char *argv[], struct err *err)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_explain(err, ERR_UNAVAILABLE, "no_uidmap", "sudo apt-get install uidmap",
			"%s, which maps the ids of an ordinary user's sandboxes, is not installed",
			argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_explain(err, ERR_UNAVAILABLE, "no_idmap", NULL,
			"%s did not map the ids that were lent to us", argv[0]);
	return 0;
}

/* helper PID 0 OWN 1 1 FIRST COUNT ...: we are root there, and what we were lent follows. */
static int map_ids(enum subids_kind kind, pid_t pid, uint32_t own, struct err *err)
{
	char numbers[ARGS_MAX][NUMBER_MAX];
	char *argv[ARGS_MAX + 1] = {(char *)helpers[kind]};
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct subids subids;
	uint32_t inside = 1;
	int count = 1;

	subids_read(root_fd, kind, user_name(), geteuid(), &subids);
	snprintf(numbers[count++], NUMBER_MAX, "%d", pid);
	snprintf(numbers[count++], NUMBER_MAX, "0");
	snprintf(numbers[count++], NUMBER_MAX, "%u", own);
	snprintf(numbers[count++], NUMBER_MAX, "1");
	for (size_t i = 0; i < subids.range_count; i++) {
		snprintf(numbers[count++], NUMBER_MAX, "%u", inside);
		snprintf(numbers[count++], NUMBER_MAX, "%u", subids.ranges[i].first);
		snprintf(numbers[count++], NUMBER_MAX, "%u", subids.ranges[i].count);
		inside += subids.ranges[i].count;
	}
	for (int i = 1; i < count; i++)
		argv[i] = numbers[i];
	return run(argv, err);
}

int rootless_admit(int gate, struct err *err)
{
	const uint32_t own[SUBIDS_KINDS] = {geteuid(), getegid()};
	pid_t pid;

	if (read(gate, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		return err_set(err, ERR_INTERNAL, "the keeper ended before it began");
	if (pid < 0)
		return err_explain(err, ERR_UNAVAILABLE, "no_userns", "sandlot doctor --host",
			"this host does not let ordinary users make user namespaces: %s",
			strerror(-pid));
	for (int kind = 0; kind < SUBIDS_KINDS; kind++) {
		int r = map_ids(kind, pid, own[kind], err);

		if (r < 0)
			return r;
	}
	return write(gate, "", 1) == 1 ? 0 : err_sys(err, "let the keeper begin");
}
