/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "cli/command.h"
#include "cli/remote/local_daemon.h"
#include "cli/terminal/interrupt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define WAIT_MS	   60000
#define LOOK_MS	   50
#define REQUEST_MS 2000

/* A daemon holds the lock until it has ended its sandboxes and keeper and left. One of another machine only closes its door. */
static bool has_ended(struct client *client, int lock_fd)
{
	const struct client_call call = {
		.method = "GET", .path = "/healthz", .timeout_ms = REQUEST_MS};
	struct err err;

	if (lock_fd < 0)
		return client_json(client, &call, NULL, &err) < 0 && err.kind == ERR_UNAVAILABLE;
	if (flock(lock_fd, LOCK_SH | LOCK_NB) < 0)
		return false;
	flock(lock_fd, LOCK_UN);
	return true;
}

/* Opened before the daemon ends. -1 for a daemon that an address names, which may be on another machine. */
static int open_lock(const struct cli *cli)
{
	const char *url = cli->url ? cli->url : getenv("SANDLOT_URL");
	auto_free char *data_dir = url && url[0] ? NULL : local_daemon_data_dir();
	auto_free char *path = data_dir ? mem_printf("%s/run/daemon.lock", data_dir) : NULL;

	return path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

static int await_end(struct client *client, int lock_fd, bool *ret_ended, struct err *err)
{
	struct interrupt *interrupt = client_interrupt(client);
	int64_t deadline_ms = (int64_t)clock_steady_ms() + WAIT_MS;
	int r = interrupt_hold(interrupt, err);

	interrupt_watch(interrupt, true);
	while (r >= 0 && !(*ret_ended = has_ended(client, lock_fd)) &&
		(int64_t)clock_steady_ms() < deadline_ms)
		r = interrupt_wait(interrupt, -1, 0, LOOK_MS, err);
	interrupt_watch(interrupt, false);
	return r < 0 ? r : 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	struct client_call call = {.method = "POST", .path = "/v1/shutdown"};
	auto_fd int lock_fd = open_lock(cli);
	struct client *client;
	bool ended = false;
	int r = cli_connect(cli, &client, err);

	(void)values, (void)argc, (void)argv;
	if (r == 0)
		r = client_json(client, &call, NULL, err);
	if (r == 0)
		r = await_end(client, lock_fd, &ended, err);
	if (r < 0)
		return r;
	if (cli_wants_json(cli))
		puts("{\n  \"shutdown\": true\n}");
	else if (!ended)
		cli_print("the daemon at %s is still ending its sandboxes; their files stay\n",
			client_url(client));
	else if (lock_fd < 0)
		cli_print(
			"the daemon at %s no longer answers, and its sandboxes end with it; their "
			"files stay\n",
			client_url(client));
	else
		cli_print("the daemon at %s and all sandboxes have ended; their files stay\n",
			client_url(client));
	return 0;
}

const struct command cmd_shutdown = {
	.name = "shutdown",
	.operands = "",
	.summary = "end the daemon, the keeper and all sandboxes",
	.details =
		"Waits until they are gone, a minute at most. Workspaces stay on disk. To end the\n"
		"daemon alone and let the sandboxes go on, send it SIGTERM.\n",
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_NOTHING,
	.run = run,
};
