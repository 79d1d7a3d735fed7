/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/premises.h"

#include "auth/secret.h"
#include "base/fd.h"
#include "base/log.h"
#include "daemon/rootless.h"
#include "driver/native/native.h"
#include "wire/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEPER_LISTEN_FD 3

static int find_user(const struct settings *settings, struct premises *premises, struct err *err)
{
	struct passwd *user;

	if (geteuid() != 0) {
		premises->is_rootless = true;
		premises->owner = premises->uid = geteuid();
		premises->gid = getegid();
		return rootless_check(err);
	}
	user = getpwnam(settings->user);
	if (user && user->pw_uid == 0)
		return err_explain(err, ERR_INVALID, "invalid_setting", "name another with --user",
			"the user %s, which the daemon is to become, is root", settings->user);
	if (!user) {
		char remedy[160];

		snprintf(remedy, sizeof(remedy),
			"useradd --system --no-create-home --shell /usr/sbin/nologin %s",
			settings->user);
		return err_explain(err, ERR_UNAVAILABLE, "no_user", remedy,
			"the user %s, which the daemon is to become, does not exist",
			settings->user);
	}
	premises->uid = user->pw_uid;
	premises->gid = user->pw_gid;
	return 0;
}

/* Makes a directory, or checks that the one there is ours. */
static int make_dir(int parent, const char *path, uid_t uid, gid_t gid, mode_t mode, int *ret_fd,
	struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (mkdirat(parent, path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make directory %s", path);
	fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open directory %s", path);
	if (st.st_uid != geteuid() && st.st_uid != uid)
		return err_set(err, ERR_DENIED, "directory %s belongs to uid %u", path, st.st_uid);
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_sys(err, "set up directory %s", path);
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return 0;
}

/* An account that is new has no ~/.local/share yet. What fails here fails again, and louder, below. */
static void make_parents(const char *path)
{
	auto_free char *copy = mem_strdup(path);

	for (char *slash = copy; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		(void)mkdir(copy, 0700);
		*slash = '/';
	}
}

static int take_lock(int run_fd, const char *data_dir, int *ret_fd, struct err *err)
{
	auto_fd int fd =
		openat(run_fd, "daemon.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, "open %s/run/daemon.lock", data_dir);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_explain(err, ERR_CONFLICT, "already_running",
			"end the other one, or choose another --data-dir",
			"another sandlotd runs on the data directory %s", data_dir);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The file is the authority: whoever can read it, its owner, is the first administrator. */
static int read_token(
	int data_fd, const char *data_dir, char token[PREMISES_TOKEN_MAX], struct err *err)
{
	auto_fd int fd = -1;
	ssize_t n = fd_read_file(data_fd, "token", token, PREMISES_TOKEN_MAX);
	char line[PREMISES_TOKEN_MAX + 1];

	if (n > 0) {
		token[strcspn(token, "\n")] = '\0';
		return 0;
	}
	if (n < 0 && n != -ENOENT)
		return err_from(err, (int)n, "read %s/token", data_dir);
	secret_make(SECRET_TOKEN_PREFIX, token);
	snprintf(line, sizeof(line), "%s\n", token);
	/* Written under another name first: a crash in between leaves no empty token. */
	fd = openat(
		data_fd, "token.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, line, strlen(line)) < 0 || fsync(fd) < 0 ||
		renameat(data_fd, "token.new", data_fd, "token") < 0)
		return err_sys(err, "write %s/token", data_dir);
	return 0;
}

int premises_open(const struct settings *settings, struct premises *ret_premises, struct err *err)
{
	struct premises premises = {.lock_fd = -1, .address_fd = -1};
	auto_fd int data_fd = -1, run_fd = -1;
	int r = find_user(settings, &premises, err);

	if (r < 0)
		return r;
	if (settings->data_dir[0] != '/')
		return err_set(err, ERR_INVALID, "the data directory %s is not an absolute path",
			settings->data_dir);
	if (snprintf(premises.keeper_socket, sizeof(premises.keeper_socket), "%s/run/keeper.sock",
		    settings->data_dir) >= (int)sizeof(premises.keeper_socket))
		return err_set(err, ERR_INVALID, "the data directory %s has too long a path",
			settings->data_dir);
	umask(022);
	if (premises.is_rootless)
		make_parents(settings->data_dir);
	if ((r = make_dir(AT_FDCWD, settings->data_dir, premises.owner, premises.gid, 0710,
		     &data_fd, err)) < 0 ||
		(r = make_dir(data_fd, "run", premises.owner, premises.gid, 0750, &run_fd, err)) <
			0 ||
		(r = make_dir(data_fd, "state", premises.uid, premises.gid, 0700, NULL, err)) < 0 ||
		(r = take_lock(run_fd, settings->data_dir, &premises.lock_fd, err)) < 0 ||
		(r = read_token(data_fd, settings->data_dir, premises.token, err)) < 0)
		return r;
	premises.address_fd = openat(
		run_fd, "api.addr", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (premises.address_fd < 0)
		return err_sys(err, "open %s/run/api.addr", settings->data_dir);
	*ret_premises = premises;
	return 0;
}

/* --- the keeper --- */

/* A program of ours: beside this one, or where `make install` puts it. */
static int find_program(const char *name, char path[PATH_MAX], struct err *err)
{
	static const char *const places[] = {"%s/%s", "%s/../libexec/sandlot/%s"};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *dir;

	if (len < 0)
		return err_sys(err, "find out where this program is");
	self[len] = '\0';
	dir = dirname(self);
	for (size_t i = 0; i < array_len(places); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		int n = snprintf(path, PATH_MAX, places[i], dir, name);
#pragma GCC diagnostic pop

		if (n < PATH_MAX && access(path, X_OK) == 0)
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE,
		"%s is neither beside sandlotd (%s) nor in ../libexec/sandlot", name, dir);
}

static int listen_for_keeper(const struct premises *premises, int *ret_fd, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_fd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, premises->keeper_socket, sizeof(address.sun_path));
	unlink(premises->keeper_socket);
	if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chown(premises->keeper_socket, premises->owner, premises->gid) < 0 ||
		chmod(premises->keeper_socket, 0660) < 0 || listen(sock, 128) < 0)
		return err_sys(err, "listen on %s", premises->keeper_socket);
	*ret_fd = take_fd(&sock);
	return 0;
}

/* In a grandchild, so that the keeper is nobody's child and outlives us. The gate is -1 for root. */
static void run_keeper(const char *program, const char *data_dir, uid_t uid, const char *agent,
	uint32_t allow_missing, int listener, int gate)
{
	char uid_text[16], variable[32];
	char *argv[] = {(char *)program, (char *)data_dir, uid_text, (char *)agent, NULL};
	char *environment[] = {variable, NULL};

	/* In its own namespace the keeper of an ordinary user knows that user as root. */
	snprintf(uid_text, sizeof(uid_text), "%u", gate < 0 ? uid : 0);
	snprintf(variable, sizeof(variable), KEEPER_ALLOW_MISSING "=%u", allow_missing);
	setsid();
	if (gate >= 0 && rootless_enter(gate) < 0)
		_exit(1);
	if (listener == KEEPER_LISTEN_FD ? fcntl(listener, F_SETFD, 0) < 0
					 : dup2(listener, KEEPER_LISTEN_FD) < 0)
		_exit(1);
	close_range(KEEPER_LISTEN_FD + 1, ~0u, 0);
	execve(program, argv, environment);
	log_error("run %s: %s", program, strerror(errno));
	_exit(1);
}

int premises_start_keeper(
	const struct settings *settings, struct premises *premises, struct err *err)
{
	char keeper[PATH_MAX], agent[PATH_MAX];
	auto_fd int listener = -1, ours = -1, theirs = -1;
	uint32_t allow_missing;
	int gate[2];
	pid_t pid;
	int r;

	r = wall_parse_list(settings->allow_missing, &allow_missing, err);
	if (r < 0)
		return r;
	/* One that runs already keeps to what it was started with. */
	if (native_probe(premises->keeper_socket) == 0)
		return 0;
	if ((r = find_program("sandlot-keeper", keeper, err)) < 0 ||
		(r = find_program("sandlot-agent", agent, err)) < 0 ||
		(r = listen_for_keeper(premises, &listener, err)) < 0)
		return r;
	if (premises->is_rootless) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) < 0)
			return err_sys(err, "make a gate for the keeper");
		ours = gate[0];
		theirs = gate[1];
	}
	pid = fork();
	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run_keeper(keeper, settings->data_dir, premises->uid, agent, allow_missing,
				listener, theirs);
		_exit(pid < 0 ? 1 : 0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(take_fd(&theirs));
	premises->has_started_keeper = true;
	return premises->is_rootless ? rootless_admit(ours, err) : 0;
}

/* --- the end of privilege --- */

int premises_drop_privileges(const struct premises *premises, struct err *err)
{
	if (!premises->is_rootless &&
		(setgroups(0, NULL) < 0 ||
			setresgid(premises->gid, premises->gid, premises->gid) < 0 ||
			setresuid(premises->uid, premises->uid, premises->uid) < 0))
		return err_sys(err, "become uid %u", premises->uid);
	if (setuid(0) == 0 || geteuid() == 0)
		return err_set(err, ERR_INTERNAL, "privileges are still there after dropping them");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "set no_new_privs");
	return 0;
}

void premises_write_address(const struct premises *premises, const char *address)
{
	char line[256];
	int len = snprintf(line, sizeof(line), "%s%s", address, address[0] ? "\n" : "");

	/* In this order: whoever reads meanwhile finds the old line or the new one, and not that nobody serves. */
	if (pwrite(premises->address_fd, line, (size_t)len, 0) != len ||
		ftruncate(premises->address_fd, len) < 0)
		log_warning("run/api.addr not written: %s", strerror(errno));
}
