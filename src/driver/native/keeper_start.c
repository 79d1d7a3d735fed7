/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/keeper_start.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "driver/native/hung_keeper.h"
#include "driver/native/keeper_client.h"
#include "driver/native/rootless.h"
#include "wire/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEPER_LISTEN_FD 3
#define ASK_MS		 10000

int keeper_start_socket(
	const struct driver_config *config, char path[KEEPER_START_SOCKET_MAX], struct err *err)
{
	if (snprintf(path, KEEPER_START_SOCKET_MAX, "%s/run/keeper.sock", config->data_dir) >=
		KEEPER_START_SOCKET_MAX)
		return err_set(err, ERR_INVALID, "the data directory %s has too long a path",
			config->data_dir);
	return 0;
}

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
		if (snprintf(path, PATH_MAX, places[i], dir, name) < PATH_MAX &&
			access(path, X_OK) == 0)
			return 0;
#pragma GCC diagnostic pop
	}
	return err_set(err, ERR_UNAVAILABLE,
		"%s is neither beside sandlotd (%s) nor in ../libexec/sandlot", name, dir);
}

static int listen_for_keeper(
	const struct driver_config *config, const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_fd int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, sizeof(address.sun_path));
	unlink(path);
	if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chown(path, config->owner, config->gid) < 0 || chmod(path, 0660) < 0 ||
		listen(sock, 128) < 0)
		return err_sys(err, "listen on %s", path);
	*ret_fd = take_fd(&sock);
	return 0;
}

/* What is run, and with what. */
struct keeper_command {
	char keeper[PATH_MAX];
	char agent[PATH_MAX];
	uint32_t allow_missing;
	int listener;
	int gate; /* of rootless.h; -1 for root */
};

/* In a grandchild, so that the keeper is nobody's child and outlives us. */
static void run_keeper(const struct driver_config *config, const struct keeper_command *command)
{
	char uid_text[16], variable[32];
	char *argv[] = {(char *)command->keeper, (char *)config->data_dir, uid_text,
		(char *)command->agent, NULL};
	char *environment[] = {variable, NULL};

	/* In its own namespace the keeper of an ordinary user knows that user as root. */
	snprintf(uid_text, sizeof(uid_text), "%u", command->gate < 0 ? config->uid : 0);
	snprintf(variable, sizeof(variable), KEEPER_ALLOW_MISSING "=%u", command->allow_missing);
	setsid();
	/* A Ctrl-C for the daemon that came before is not for the keeper: this drops it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGINT, SIG_DFL);
	if (command->gate >= 0 && rootless_enter(command->gate) < 0)
		_exit(1);
	if (command->listener == KEEPER_LISTEN_FD ? fcntl(command->listener, F_SETFD, 0) < 0
						  : dup2(command->listener, KEEPER_LISTEN_FD) < 0)
		_exit(1);
	close_range(KEEPER_LISTEN_FD + 1, ~0u, 0);
	execve(command->keeper, argv, environment);
	log_error("run %s: %s", command->keeper, strerror(errno));
	_exit(1);
}

static int spawn_keeper(
	const struct driver_config *config, const struct keeper_command *command, struct err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(err, "fork");
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run_keeper(config, command);
		_exit(pid < 0 ? 1 : 0);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Starts one, and lets it in if it waits at a gate. */
static int start_at(const struct driver_config *config, const char *path, bool *ret_has_started,
	struct err *err)
{
	struct keeper_command command = {.listener = -1, .gate = -1};
	auto_fd int listener = -1, ours = -1, theirs = -1;
	int gate[2];
	int r;

	if ((r = wall_parse_list(config->allow_missing, &command.allow_missing, err)) < 0 ||
		(r = find_program("sandlot-keeper", command.keeper, err)) < 0 ||
		(r = find_program("sandlot-agent", command.agent, err)) < 0 ||
		(r = listen_for_keeper(config, path, &listener, err)) < 0)
		return r;
	if (config->is_rootless) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) < 0)
			return err_sys(err, "make a gate for the keeper");
		ours = gate[0];
		theirs = gate[1];
	}
	command.listener = listener;
	command.gate = theirs;
	r = spawn_keeper(config, &command, err);
	if (r < 0)
		return r;
	fd_close(take_fd(&theirs));
	*ret_has_started = true;
	fail_point("daemon.keeper_started");
	return config->is_rootless ? rootless_admit(ours, err) : 0;
}

int keeper_start_check_user(struct err *err)
{
	return geteuid() == 0 ? 0 : rootless_check(err);
}

/*
 * Whether a keeper runs already: it keeps to what it was started with. One that hangs is ended, if we may; an ordinary
 * user's we leave alone, since /proc does not tell that user enough of it.
 */
static bool has_keeper(const struct driver_config *config, const char *path)
{
	int r = keeper_client_ask(path, ASK_MS);
	struct err err;

	if (r == -ECONNREFUSED || r == -ENOENT)
		return false;
	if (r != -ETIMEDOUT || config->is_rootless)
		return true;
	r = hung_keeper_end(config->data_dir, &err);
	if (r < 0)
		log_error("the keeper does not answer and is not replaced: %s", err.message);
	return r < 0;
}

int keeper_start(const struct driver_config *config, bool *ret_has_started, struct err *err)
{
	char path[KEEPER_START_SOCKET_MAX];
	int r = keeper_start_socket(config, path, err);

	if (r < 0)
		return r;
	if (!has_keeper(config, path))
		return start_at(config, path, ret_has_started, err);
	*ret_has_started = false;
	return 0;
}

bool keeper_start_is_gone(const struct driver_config *config)
{
	char path[KEEPER_START_SOCKET_MAX];
	struct err ignored;
	int r = keeper_start_socket(config, path, &ignored);

	if (r == 0)
		r = keeper_client_probe(path);
	return r == -ECONNREFUSED || r == -ENOENT;
}
