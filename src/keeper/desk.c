/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/desk.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/cell.h"
#include "keeper/endings.h"
#include "keeper/figures.h"
#include "keeper/image.h"
#include "keeper/inventory.h"
#include "keeper/netns.h"
#include "keeper/pausing.h"
#include "keeper/reply.h"
#include "keeper/upkeep.h"
#include "keeper/userns.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_BUFFER	 (1 << 20)
#define MEMORY_MIN_BYTES (4ull << 20)
#define MEMORY_MAX_BYTES (1ull << 50)
#define CPU_MAX_MILLIS	 (4096ull * 1000)
#define PIDS_MAX	 (4ull << 20)

/*
 * Unwatched before it is closed: a child of ours may hold a copy, and as long as it does epoll goes on
 * to report this number, which by then is another descriptor's.
 */
static void drop(const struct keeper *keeper, int conn)
{
	epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, conn, NULL);
	close(conn);
}

static int send_link(const struct held *held, int *ret_fd, struct err *err)
{
	auto_fd int ours = -1, theirs = -1;
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a link");
	ours = pair[0];
	theirs = pair[1];
	/* Room for a few frames of output at a time: else agent and daemon take turns for each. Refused
	 * where we are root of less than the host; then it is only slower. */
	(void)!setsockopt(theirs, SOL_SOCKET, SO_SNDBUFFORCE, &(int){LINK_BUFFER}, sizeof(int));
	n = fdpass_send(held->lifeline, &(char){AGENT_LINK}, 1, &theirs, 1, MSG_DONTWAIT);
	/* One whose build failed may be gone already, and has left the reason: a link that ends at once
	 * makes the daemon ask for it. */
	if (n < 0 && n != -ECONNRESET && n != -EPIPE)
		return err_from(err, (int)n, "hand the agent of %s a link", held->id);
	*ret_fd = take_fd(&ours);
	return 0;
}

static void answer_link(int conn, const struct held *held, struct err *err)
{
	struct keeper_answer reply = {
		.version = KEEPER_VERSION, .wait_status = -1, .walls = held->walls};
	auto_fd int link = -1;

	reply.result = send_link(held, &link, err);
	if (reply.result < 0)
		reply_result(conn, reply.result, err);
	else
		reply_send(conn, &reply, &link, 1);
}

static void on_hello(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (request->limits.disk_bytes > 0)
		disk_stock(&keeper->context.disks);
	reply_result(conn, 0, NULL);
}

static void on_build(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	struct held *held = roster_find(&keeper->roster, request->id);
	int r;

	if (keeper->stopping) {
		reply_result(
			conn, err_set(&err, ERR_UNAVAILABLE, "the keeper is shutting down"), &err);
		return;
	}
	r = fence_check(&keeper->context.fence, request, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	if (held && held->pid == 0) {
		roster_remove(&keeper->roster, held);
		held = NULL;
	}
	if (held) {
		r = err_set(&err, ERR_CONFLICT, "sandbox %s runs already", request->id);
		reply_result(conn, r, &err);
		return;
	}
	figures_note_victims(keeper);
	r = birth_give(&keeper->births, request, &held, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	answer_link(conn, held, &err);
	birth_prepare(&keeper->births, request);
}

/* The entry of a running sandbox, or an answer that there is none. */
static struct held *find_running(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err;

	if (held && held->pid)
		return held;
	reply_result(
		conn, err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run", request->id), &err);
	return NULL;
}

static void on_adopt(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = find_running(keeper, request, conn);
	struct err err = {0};

	if (held)
		answer_link(conn, held, &err);
}

static void on_cell(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct held *held = find_running(keeper, request, conn);
	auto_fd int sock = -1;
	struct err err = {0};

	if (!held)
		return;
	reply.result = cell_start(&keeper->context, held, &sock, &err);
	if (reply.result < 0)
		reply_result(conn, reply.result, &err);
	else
		reply_send(conn, &reply, &sock, 1);
}

static void on_kill(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err = {0};

	if (!held) {
		reply_killed(conn, NULL);
	} else if (held->kill_waiter >= 0) {
		reply_result(conn,
			err_set(&err, ERR_CONFLICT, "sandbox %s is being killed", request->id),
			&err);
	} else {
		held->kill_waiter = conn;
		endings_kill(held);
		if (held->pid == 0)
			endings_finish(keeper, held);
	}
}

static void set_frozen(
	struct keeper *keeper, const struct keeper_request *request, int conn, bool frozen)
{
	struct held *held = find_running(keeper, request, conn);

	if (held)
		pausing_begin(keeper, held, frozen, conn);
}

static void on_freeze(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	set_frozen(keeper, request, conn, true);
}

static void on_thaw(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	set_frozen(keeper, request, conn, false);
}

static void on_stats(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	const struct held *held;
	struct err err = {0};

	held = find_running(keeper, request, conn);
	if (!held)
		return;
	reply.result = figures_read(keeper, held, &reply.stats, &err);
	reply.err = err;
	reply_send(conn, &reply, NULL, 0);
}

static void on_resize(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct held *held = find_running(keeper, request, conn);
	struct err err = {0};
	int r;

	if (!held)
		return;
	r = disk_set_limit(&keeper->context.disks, request->id, request->limits.disk_bytes, &err);
	reply_result(conn, r, &err);
}

static void forget_waiter(struct keeper *keeper, int conn)
{
	for (size_t i = 0; i < keeper->roster.count; i++) {
		struct held *held = keeper->roster.sorted[i];

		if (held->kill_waiter == conn)
			held->kill_waiter = -1;
		if (held->pause.waiter == conn)
			held->pause.waiter = -1;
	}
	if (keeper->stop_waiter == conn)
		keeper->stop_waiter = -1;
	drop(keeper, conn);
}

/*
 * What may take long, because trees are large or a disk has to be mounted: a child does it and answers.
 * The connection is its own then.
 */
static void delegate(struct keeper *keeper, const struct keeper_request *request, int conn,
	int (*work)(struct keeper *keeper, const struct keeper_request *request,
		struct keeper_stats *stats, struct err *err))
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct err err = {0};
	pid_t pid = crew_fork(&keeper->crew, &conn);

	if (pid == 0) {
		reply.result = work(keeper, request, &reply.stats, &err);
		reply.err = err;
		reply_send(conn, &reply, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		reply_result(conn, err_sys(&err, "fork"), &err);
	forget_waiter(keeper, conn);
}

static int count(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_stats *stats, struct err *err)
{
	return upkeep_count(&keeper->context.disks, request->id, stats, err);
}

static void on_usage(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, count);
}

/* The same sockets each time: those who connect while there is no daemon wait for the next one. */
static void on_exits(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct held *held = find_running(keeper, request, conn);
	struct err err = {0};
	int r = 0;

	if (!held)
		return;
	if (held->network.exits[0] < 0)
		r = netns_open_exits(keeper->context.own_netns_fd, &held->network, &err);
	reply.is_transparent = held->network.is_transparent;
	if (r < 0)
		reply_result(conn, r, &err);
	else
		reply_send(conn, &reply, held->network.exits, KEEPER_EXIT_COUNT);
}

static void on_socket(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	const struct held *held = find_running(keeper, request, conn);
	auto_fd int sock = -1;
	struct err err = {0};
	int r;

	if (!held)
		return;
	r = netns_open_socket(keeper->context.own_netns_fd, held->network.netns_fd, &sock, &err);
	if (r < 0)
		reply_result(conn, r, &err);
	else
		reply_send(conn, &reply, &sock, 1);
}

static void on_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count = roster_list(&keeper->roster, request->id, reply.ids, KEEPER_LIST_MAX);
	reply_send(conn, &reply, NULL, 0);
}

static void on_stored(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count =
		inventory_list(&keeper->context.storage, request->id, reply.ids, KEEPER_LIST_MAX);
	reply_send(conn, &reply, NULL, 0);
}

static int clean(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_stats *stats, struct err *err)
{
	uint32_t base = userns_base(&keeper->context.userns.ranges, request->slot);

	(void)stats;
	return upkeep_clean(&keeper->context.disks, request, base, err);
}

static void on_clean(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err = {0};

	if (held && held->pid)
		reply_result(
			conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
	else if (upkeep_is_quick(&keeper->context.disks, request))
		reply_result(conn, clean(keeper, request, NULL, &err), &err);
	else
		delegate(keeper, request, conn, clean);
	crew_poke(&keeper->janitor);
}

void desk_shut_down(struct keeper *keeper, int conn)
{
	keeper->stopping = true;
	keeper->stop_waiter = conn;
	for (size_t i = keeper->roster.count; i-- > 0;) {
		struct held *held = keeper->roster.sorted[i];

		endings_kill(held);
		if (held->pid == 0)
			endings_finish(keeper, held);
	}
}

static void on_shutdown(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)request;
	desk_shut_down(keeper, conn);
}

#define NAMES_A_SANDBOX 1u
#define HAS_SLOT	2u
#define HAS_LIMITS	4u
#define HAS_DISK	8u

/* Every kind, and what of its request must be checked before its function sees it. */
static const struct {
	void (*handle)(struct keeper *keeper, const struct keeper_request *request, int conn);
	unsigned checks;
} kinds[] = {
	[KEEPER_HELLO] = {on_hello, 0},
	[KEEPER_BUILD] = {on_build, NAMES_A_SANDBOX | HAS_SLOT | HAS_LIMITS | HAS_DISK},
	[KEEPER_ADOPT] = {on_adopt, NAMES_A_SANDBOX},
	[KEEPER_CELL] = {on_cell, NAMES_A_SANDBOX},
	[KEEPER_KILL] = {on_kill, NAMES_A_SANDBOX},
	[KEEPER_FREEZE] = {on_freeze, NAMES_A_SANDBOX},
	[KEEPER_THAW] = {on_thaw, NAMES_A_SANDBOX},
	[KEEPER_STATS] = {on_stats, NAMES_A_SANDBOX},
	[KEEPER_USAGE] = {on_usage, NAMES_A_SANDBOX},
	[KEEPER_LIST] = {on_list, 0},
	[KEEPER_STORED] = {on_stored, 0},
	[KEEPER_RESIZE] = {on_resize, NAMES_A_SANDBOX | HAS_DISK},
	[KEEPER_CLEAN] = {on_clean, NAMES_A_SANDBOX | HAS_SLOT},
	[KEEPER_SHUTDOWN] = {on_shutdown, 0},
	[KEEPER_EXITS] = {on_exits, NAMES_A_SANDBOX},
	[KEEPER_SOCKET] = {on_socket, NAMES_A_SANDBOX},
};

static bool is_hostname(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");

	return text[len] == '\0' && len >= 1 && len < KEEPER_HOSTNAME_MAX;
}

static int check_request(struct keeper_request *request, struct err *err)
{
	unsigned checks;

	if (request->kind >= array_len(kinds) || !kinds[request->kind].handle)
		return err_set(err, ERR_INVALID, "unknown kind of request %u", request->kind);
	request->id[KEEPER_ID_LEN] = '\0';
	request->hostname[KEEPER_HOSTNAME_MAX - 1] = '\0';
	checks = kinds[request->kind].checks;
	if ((checks & NAMES_A_SANDBOX) && !keeper_is_id(request->id, '\0'))
		return err_set(err, ERR_INVALID, "the id of a sandbox has %d characters of 0-9a-z",
			KEEPER_ID_LEN);
	if ((checks & HAS_SLOT) && request->slot >= KEEPER_SLOT_COUNT)
		return err_set(err, ERR_INVALID, "uid range %u does not exist", request->slot);
	if (checks & HAS_LIMITS) {
		const struct keeper_limits *limits = &request->limits;

		if (!is_hostname(request->hostname))
			return err_set(err, ERR_INVALID, "the host name is not one label");
		if (limits->memory_bytes < MEMORY_MIN_BYTES ||
			limits->memory_bytes > MEMORY_MAX_BYTES || limits->cpu_millis < 10 ||
			limits->cpu_millis > CPU_MAX_MILLIS || limits->pids < 2 ||
			limits->pids > PIDS_MAX)
			return err_set(err, ERR_INVALID, "a limit is out of range");
		if (request->profile >= KEEPER_PROFILE_COUNT)
			return err_set(
				err, ERR_INVALID, "there is no profile %u", request->profile);
	}
	if ((checks & HAS_DISK) && request->limits.disk_bytes > IMAGE_BYTES)
		return err_explain(err, ERR_INVALID, "disk_too_large", NULL,
			"a disk holds at most %llu GiB", IMAGE_BYTES >> 30);
	return 0;
}

void desk_serve(struct keeper *keeper, int conn)
{
	struct keeper_request request;
	struct err err = {0};
	ssize_t n = recv(conn, &request, sizeof(request), MSG_DONTWAIT);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(request)) {
		forget_waiter(keeper, conn);
		return;
	}
	r = check_request(&request, &err);
	if (r < 0)
		reply_result(conn, r, &err);
	else
		kinds[request.kind].handle(keeper, &request, conn);
}
