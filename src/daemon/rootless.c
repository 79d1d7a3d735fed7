/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rootless.h"

#include "base/fd.h"
#include "daemon/subids.h"
#include "wire/keeper.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_MAX 16
#define ARGS_MAX   (2 + 3 * (1 + SUBIDS_RANGES_MAX) + 1)

/* The two kinds of ids, and all that differs between them. */
static const struct kind {
	const char *helper, *file;
	const char *usermod_flag;
} kinds[] = {
	{"newuidmap", "/etc/subuid", "--add-subuids"},
	{"newgidmap", "/etc/subgid", "--add-subgids"},
};

/* In whole ranges of sandboxes: the kernel maps no range that lies on two of its parent's. */
static void read_lent(const struct kind *kind, struct subids *ret_subids)
{
	const struct passwd *user = getpwuid(geteuid());

	subids_read(
		kind->file, user ? user->pw_name : "", geteuid(), KEEPER_NARROW_COUNT, ret_subids);
}

static int refuse_without_ids(struct err *err)
{
	const struct passwd *user = getpwuid(geteuid());
	char remedy[200];
	size_t len = (size_t)snprintf(remedy, sizeof(remedy), "sudo usermod");

	for (size_t i = 0; i < array_len(kinds); i++) {
		struct subids subids;

		read_lent(&kinds[i], &subids);
		len += (size_t)snprintf(remedy + len, sizeof(remedy) - len, " %s %u-%u",
			kinds[i].usermod_flag, subids.next_first, subids.next_first + 65535);
	}
	snprintf(remedy + len, sizeof(remedy) - len, " %s", user ? user->pw_name : "$USER");
	return err_explain(err, ERR_UNAVAILABLE, "no_subids", remedy,
		"without root, sandlotd needs at least %u ids of the user's own in /etc/subuid and "
		"in /etc/subgid: each sandbox gets ids that are nobody else's",
		KEEPER_NARROW_COUNT);
}

int rootless_check(struct err *err)
{
	for (size_t i = 0; i < array_len(kinds); i++) {
		struct subids subids;

		read_lent(&kinds[i], &subids);
		if (subids.total < KEEPER_NARROW_COUNT)
			return refuse_without_ids(err);
	}
	return 0;
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

static int run(const struct kind *kind, char *argv[], struct err *err)
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
			kind->helper);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_explain(err, ERR_UNAVAILABLE, "no_idmap", NULL,
			"%s did not map what %s says is ours", kind->helper, kind->file);
	return 0;
}

/* helper PID 0 OWN 1 1 FIRST COUNT ...: we are root there, and what we were lent follows. */
static int map_ids(const struct kind *kind, pid_t pid, uint32_t own, struct err *err)
{
	char numbers[ARGS_MAX][NUMBER_MAX];
	char *argv[ARGS_MAX + 1] = {(char *)kind->helper};
	struct subids subids;
	uint32_t inside = 1;
	int count = 1;

	read_lent(kind, &subids);
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
	return run(kind, argv, err);
}

int rootless_admit(int gate, struct err *err)
{
	const uint32_t own[] = {geteuid(), getegid()};
	pid_t pid;

	if (read(gate, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		return err_set(err, ERR_INTERNAL, "the keeper ended before it began");
	if (pid < 0)
		return err_explain(err, ERR_UNAVAILABLE, "no_userns", "sandlot doctor says which",
			"this host does not let ordinary users make user namespaces: %s",
			strerror(-pid));
	for (size_t i = 0; i < array_len(kinds); i++) {
		int r = map_ids(&kinds[i], pid, own[i], err);

		if (r < 0)
			return r;
	}
	return write(gate, "", 1) == 1 ? 0 : err_sys(err, "let the keeper begin");
}
