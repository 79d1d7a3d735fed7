/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot-keeper: the only privileged program. It builds sandboxes, holds their handles, and outlives
 * the daemon, so that a restart or crash of sandlotd stops no sandbox. It is root of the host, or, for an
 * ordinary user, of a user namespace that sandlotd made for it (daemon/rootless.h).
 *
 * Theory of operation. One thread, one epoll loop. It listens on a unix socket that sandlotd made and
 * handed over as descriptor 3; only root and the daemon's uid may talk. Requests are fixed structs
 * (wire/keeper.h), dispatched through the table below, and nothing in them is a path. A build clones a
 * child that does the work in parallel (build.c), so the loop never waits for a mount. The death of a
 * sandbox's first process arrives as SIGCHLD. Removing files is left to one child, the janitor.
 *
 * It parses no text from outside, reads and writes no network socket (those that it opens in sandboxes are
 * for the daemon), and starts no other program than the agent, which it holds as a sealed copy. If it dies its sandboxes die with it (PR_SET_PDEATHSIG); the next
 * keeper sweeps up their cgroups.
 *
 * Usage: sandlot-keeper DATA_DIR DAEMON_UID AGENT_PATH   (started by sandlotd, not by hand)
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "keeper/build.h"
#include "keeper/cell.h"
#include "keeper/headcount.h"
#include "keeper/host_template.h"
#include "keeper/image.h"
#include "keeper/kernel_log.h"
#include "keeper/netns.h"
#include "keeper/roster.h"
#include "keeper/upkeep.h"
#include "keeper/userns.h"
#include "keeper/view.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_FD	     3
#define DESCRIPTORS_AT_START 256
#define LINK_BUFFER	     (1 << 20)
#define RETRY_MS	     5
#define MEMORY_MIN_BYTES     (4ull << 20)
#define MEMORY_MAX_BYTES     (1ull << 50)
#define CPU_MAX_MILLIS	     (4096ull * 1000)
#define PIDS_MAX	     (4ull << 20)

struct keeper {
	struct build_context context;
	struct cpus cpus;
	struct roster roster;
	int epoll_fd;
	int signal_fd;
	int lock_fd;
	int kernel_log_fd;
	int janitor_fd; /* a byte here makes the janitor look into the trash */
	pid_t janitor_pid;
	uid_t daemon_uid;
	bool unclean;	 /* some cgroup could not be removed yet */
	bool stopping;	 /* no more sandboxes; exit when the roster is empty */
	int stop_waiter; /* connection that asked for it, or -1 */
};

/* --- answers --- */

static void answer(int conn, const struct keeper_answer *reply, const int *fds, size_t count)
{
	ssize_t n = fdpass_send(conn, reply, sizeof(*reply), fds, count, MSG_DONTWAIT);

	/* A daemon that went away or does not listen has no use for the answer. */
	if (n < 0)
		log_debug("answer not delivered: %s", strerror((int)-n));
}

static void answer_result(int conn, int result, const struct err *err)
{
	struct keeper_answer reply = {
		.result = result, .version = KEEPER_VERSION, .wait_status = -1};

	if (result < 0)
		reply.err = *err;
	answer(conn, &reply, NULL, 0);
}

/*
 * Unwatched before it is closed: a child of ours may hold a copy, and as long as it does epoll goes on
 * to report this number, which by then is another descriptor's.
 */
static void drop(const struct keeper *keeper, int conn)
{
	epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, conn, NULL);
	close(conn);
}

static void poke_janitor(const struct keeper *keeper)
{
	/* A full pipe means that it has been poked already. */
	(void)!write(keeper->janitor_fd, "", 1);
}

/* --- the victims of the kernel --- */

static void note_victim(void *arg, uint32_t uid, const char victim[KERNEL_LOG_VICTIM_MAX])
{
	struct keeper *keeper = arg;

	for (size_t i = 0; i < keeper->roster.count; i++) {
		struct held *held = keeper->roster.sorted[i];
		const struct userns_ranges *ranges = &keeper->context.userns.ranges;
		uint32_t base = userns_base(ranges, held->slot);

		if (uid >= base && uid - base < ranges->width)
			memcpy(held->oom_victim, victim, KERNEL_LOG_VICTIM_MAX);
	}
}

static int read_stats(struct keeper *keeper, const struct held *held,
	struct keeper_stats *ret_stats, struct err *err)
{
	const struct cgroup_tree *cgroups = &keeper->context.cgroups;
	int r = cgroup_is_real(cgroups) ? cgroup_stats(cgroups, held->id, ret_stats, err)
					: headcount_take(held->pid, ret_stats, err);

	if (r < 0)
		return r;
	kernel_log_read(keeper->kernel_log_fd, note_victim, keeper);
	memcpy(ret_stats->oom_victim, held->oom_victim, sizeof(ret_stats->oom_victim));
	return 0;
}

/* --- the end of a sandbox --- */

static void answer_killed(int conn, const struct held *held)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	if (held) {
		reply.wait_status = held->wait_status;
		reply.err = held->err;
		reply.stats = held->last;
	}
	answer(conn, &reply, NULL, 0);
}

/* Removes the groups of one that was reaped; then whoever waits for its end hears of it. */
static void finish(struct keeper *keeper, struct held *held)
{
	if (cgroup_remove(&keeper->context.cgroups, held->id) < 0) {
		keeper->unclean = true;
		return;
	}
	poke_janitor(keeper); /* its build may have thrown something away */
	if (held->kill_waiter >= 0) {
		disk_park(&keeper->context.disks, held->id);
		answer_killed(held->kill_waiter, held);
		roster_remove(&keeper->roster, held);
	} else if (keeper->stopping) {
		roster_remove(&keeper->roster, held);
	}
}

static void finish_unclean(struct keeper *keeper)
{
	keeper->unclean = false;
	for (size_t i = keeper->roster.count; i-- > 0;) {
		struct held *held = keeper->roster.sorted[i];

		if (held->pid == 0)
			finish(keeper, held);
	}
}

/* A child whose build failed has left the reason on its lifeline. It is only ever shown as text. */
static void read_build_error(struct held *held)
{
	struct err err;
	ssize_t n = recv(held->lifeline, &err, sizeof(err), MSG_DONTWAIT);

	/* It never read the link we sent, which the kernel reports first, as a reset. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(held->lifeline, &err, sizeof(err), MSG_DONTWAIT);
	if (n != (ssize_t)sizeof(err) || err.kind <= ERR_NONE || err.kind >= ERR_KIND_COUNT)
		return;
	err.code[sizeof(err.code) - 1] = '\0';
	err.message[sizeof(err.message) - 1] = '\0';
	err.remedy[sizeof(err.remedy) - 1] = '\0';
	held->err = err;
}

static void start_janitor(struct keeper *keeper);

static void reap_children(struct keeper *keeper)
{
	struct err ignored;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct held *held = roster_find_pid(&keeper->roster, pid);

		if (held) {
			held->pid = 0;
			held->wait_status = status;
			cpus_give_back(&keeper->cpus, &held->cpus);
			view_discard(keeper->context.sources.shelf_fd,
				userns_base(&keeper->context.userns.ranges, held->slot));
			read_build_error(held);
			/* It ended by itself: how is of interest, and gone with its groups. */
			if (held->kill_waiter < 0 &&
				read_stats(keeper, held, &held->last, &ignored) < 0)
				log_debug("no figures of %s: %s", held->id, ignored.message);
			roster_release(held);
			finish(keeper, held);
		} else if (pid == keeper->janitor_pid && !keeper->stopping) {
			log_warning("the janitor ended with status %d; starting another", status);
			fd_close(take_fd(&keeper->janitor_fd));
			start_janitor(keeper);
		} else if (!keeper->stopping) {
			disk_reaped(&keeper->context.disks, pid);
		}
	}
}

static void kill_held(const struct held *held)
{
	/* A child that we have not reaped keeps its number, so this can hit no stranger. */
	if (held->pid && kill(held->pid, SIGKILL) < 0)
		log_error("kill sandbox %s: %s", held->id, strerror(errno));
}

/* --- the janitor --- */

static void run_janitor(const struct storage *storage, int pokes)
{
	char bytes[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	do {
		storage_empty_trash(storage);
	} while (read(pokes, bytes, sizeof(bytes)) > 0);
	_exit(0);
}

static void start_janitor(struct keeper *keeper)
{
	int pipe_fds[2];
	pid_t pid;

	keeper->janitor_fd = -1;
	keeper->janitor_pid = 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		log_error("no janitor: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid < 0) {
		log_error("no janitor: %s", strerror(errno));
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return;
	}
	if (pid == 0) {
		/* Removing a large file cannot be interrupted: see disk.c. */
		close(LISTEN_FD);
		close(keeper->lock_fd);
		close(pipe_fds[1]);
		run_janitor(&keeper->context.storage, pipe_fds[0]);
	}
	close(pipe_fds[0]);
	keeper->janitor_pid = pid;
	keeper->janitor_fd = pipe_fds[1];
	if (fd_set_nonblocking(keeper->janitor_fd) < 0)
		log_warning("janitor pipe stays blocking");
}

/* --- requests --- */

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
	if (n < 0)
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
		answer_result(conn, reply.result, err);
	else
		answer(conn, &reply, &link, 1);
}

static void on_hello(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (request->limits.disk_bytes > 0)
		disk_stock(&keeper->context.disks);
	answer_result(conn, 0, NULL);
}

static void on_build(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	struct held *held = roster_find(&keeper->roster, request->id);
	struct cpus_share cpus;
	struct build build;
	int r;

	if (keeper->stopping) {
		answer_result(
			conn, err_set(&err, ERR_UNAVAILABLE, "the keeper is shutting down"), &err);
		return;
	}
	r = fence_check(&keeper->context.fence, request, &err);
	if (r < 0) {
		answer_result(conn, r, &err);
		return;
	}
	if (held && held->pid == 0) {
		roster_remove(&keeper->roster, held);
		held = NULL;
	}
	if (held) {
		r = err_set(&err, ERR_CONFLICT, "sandbox %s runs already", request->id);
		answer_result(conn, r, &err);
		return;
	}
	disk_claim(&keeper->context.disks, request->id, request->limits.disk_bytes > 0);
	cpus_take(&keeper->cpus, request->limits.cpu_millis, &cpus);
	r = build_start(&keeper->context, request, &cpus, &build, &err);
	if (r < 0) {
		cpus_give_back(&keeper->cpus, &cpus);
		disk_park(&keeper->context.disks, request->id);
		(void)!cgroup_remove(&keeper->context.cgroups, request->id);
		answer_result(conn, r, &err);
		return;
	}
	held = roster_add(&keeper->roster, request->id);
	held->pid = build.pid;
	held->lifeline = build.lifeline;
	held->netns_fd = build.netns_fd;
	held->slot = request->slot;
	held->cpus = cpus;
	held->profile = request->profile;
	held->limits = request->limits;
	fence_describe(&keeper->context.fence, request, &held->walls);
	if (upkeep_is_plain(&keeper->context.disks, request->id))
		held->walls.how[WALL_DISK][0] = '\0';
	answer_link(conn, held, &err);
	build_prepare(&keeper->context, request->slot + 1);
}

/* The entry of a running sandbox, or an answer that there is none. */
static struct held *find_running(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err;

	if (held && held->pid)
		return held;
	answer_result(
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
		answer_result(conn, reply.result, &err);
	else
		answer(conn, &reply, &sock, 1);
}

static void on_kill(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err = {0};

	if (!held) {
		answer_killed(conn, NULL);
	} else if (held->kill_waiter >= 0) {
		answer_result(conn,
			err_set(&err, ERR_CONFLICT, "sandbox %s is being killed", request->id),
			&err);
	} else {
		held->kill_waiter = conn;
		kill_held(held);
		if (held->pid == 0)
			finish(keeper, held);
	}
}

static void set_frozen(
	struct keeper *keeper, const struct keeper_request *request, int conn, bool frozen)
{
	struct held *held = find_running(keeper, request, conn);
	struct err err = {0};
	int r;

	if (!held)
		return;
	r = cgroup_freeze(&keeper->context.cgroups, held->id, frozen, &err);
	answer_result(conn, r, &err);
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
	reply.result = read_stats(keeper, held, &reply.stats, &err);
	reply.err = err;
	answer(conn, &reply, NULL, 0);
}

static void on_resize(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct held *held = find_running(keeper, request, conn);
	struct err err = {0};
	int r;

	if (!held)
		return;
	r = disk_set_limit(&keeper->context.disks, request->id, request->limits.disk_bytes, &err);
	answer_result(conn, r, &err);
}

static void forget_waiter(struct keeper *keeper, int conn)
{
	for (size_t i = 0; i < keeper->roster.count; i++) {
		if (keeper->roster.sorted[i]->kill_waiter == conn)
			keeper->roster.sorted[i]->kill_waiter = -1;
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
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		reply.result = work(keeper, request, &reply.stats, &err);
		reply.err = err;
		answer(conn, &reply, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		answer_result(conn, err_sys(&err, "fork"), &err);
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
	if (held->exits[0] < 0)
		r = netns_open_exits(keeper->context.own_netns_fd, held->netns_fd, held->exits,
			&held->is_transparent, &err);
	reply.is_transparent = held->is_transparent;
	if (r < 0)
		answer_result(conn, r, &err);
	else
		answer(conn, &reply, held->exits, KEEPER_EXIT_COUNT);
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
	r = netns_open_socket(keeper->context.own_netns_fd, held->netns_fd, &sock, &err);
	if (r < 0)
		answer_result(conn, r, &err);
	else
		answer(conn, &reply, &sock, 1);
}

static void on_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count = roster_list(&keeper->roster, request->id, reply.ids, KEEPER_LIST_MAX);
	answer(conn, &reply, NULL, 0);
}

static void on_stored(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count =
		storage_list(&keeper->context.storage, request->id, reply.ids, KEEPER_LIST_MAX);
	answer(conn, &reply, NULL, 0);
}

static int clean_parts(
	struct keeper *keeper, const struct keeper_request *request, bool may_wait, struct err *err)
{
	uint32_t base = userns_base(&keeper->context.userns.ranges, request->slot);

	return upkeep_clean(&keeper->context.disks, request, base, may_wait, err);
}

static int clean(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_stats *stats, struct err *err)
{
	(void)stats;
	return clean_parts(keeper, request, true, err);
}

static void on_clean(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct held *held = roster_find(&keeper->roster, request->id);
	struct err err = {0};
	int r;

	if (held && held->pid)
		r = err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id);
	else
		r = clean_parts(keeper, request, false, &err);
	if (r == 1)
		delegate(keeper, request, conn, clean);
	else
		answer_result(conn, r, &err);
	poke_janitor(keeper);
}

static void on_shutdown(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)request;
	keeper->stopping = true;
	keeper->stop_waiter = conn;
	for (size_t i = keeper->roster.count; i-- > 0;) {
		struct held *held = keeper->roster.sorted[i];

		kill_held(held);
		if (held->pid == 0)
			finish(keeper, held);
	}
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

/* Exactly len characters of the set, or 1 to len if it may be shorter. */
static bool is_name(const char *text, size_t len, bool may_be_shorter)
{
	size_t n = strspn(text, may_be_shorter ? "0123456789abcdefghijklmnopqrstuvwxyz-"
					       : "0123456789abcdefghijklmnopqrstuvwxyz");

	return text[n] == '\0' && (may_be_shorter ? n >= 1 && n <= len : n == len);
}

static int check_request(struct keeper_request *request, struct err *err)
{
	unsigned checks;

	if (request->kind >= array_len(kinds) || !kinds[request->kind].handle)
		return err_set(err, ERR_INVALID, "unknown kind of request %u", request->kind);
	request->id[KEEPER_ID_LEN] = '\0';
	request->hostname[KEEPER_HOSTNAME_MAX - 1] = '\0';
	checks = kinds[request->kind].checks;
	if ((checks & NAMES_A_SANDBOX) && !is_name(request->id, KEEPER_ID_LEN, false))
		return err_set(err, ERR_INVALID, "the id of a sandbox has %d characters of 0-9a-z",
			KEEPER_ID_LEN);
	if ((checks & HAS_SLOT) && request->slot >= KEEPER_SLOT_COUNT)
		return err_set(err, ERR_INVALID, "uid range %u does not exist", request->slot);
	if (checks & HAS_LIMITS) {
		const struct keeper_limits *limits = &request->limits;

		if (!is_name(request->hostname, KEEPER_HOSTNAME_MAX - 1, true))
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

static void serve(struct keeper *keeper, int conn)
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
		answer_result(conn, r, &err);
	else
		kinds[request.kind].handle(keeper, &request, conn);
}

static void watch(struct keeper *keeper, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		log_error("watch descriptor %d: %s", fd, strerror(errno));
}

static void accept_peer(struct keeper *keeper)
{
	auto_fd int conn = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* The listener stays readable: not at full speed until there is a descriptor again. */
	if (conn < 0 && (errno == EMFILE || errno == ENFILE))
		usleep(10000);
	if (conn < 0 || getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	if (peer.uid != 0 && peer.uid != keeper->daemon_uid) {
		log_warning("uid %u is not the daemon; connection refused", peer.uid);
		return;
	}
	watch(keeper, take_fd(&conn));
}

static void read_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	if (read(keeper->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		reap_children(keeper);
	else
		on_shutdown(keeper, NULL, -1);
}

static void run(struct keeper *keeper)
{
	struct epoll_event events[32];

	while (!keeper->stopping || keeper->roster.count > 0) {
		int due_ms = disk_retire(&keeper->context.disks);
		int n = epoll_wait(keeper->epoll_fd, events, array_len(events),
			keeper->unclean ? RETRY_MS : due_ms);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == LISTEN_FD)
				accept_peer(keeper);
			else if (fd == keeper->signal_fd)
				read_signal(keeper);
			else
				serve(keeper, fd);
		}
		if (keeper->unclean)
			finish_unclean(keeper);
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Names our cgroups after the data directory, so that the next keeper finds what we left. */
static void make_tag(const char *data_dir, char tag[16])
{
	uint64_t hash = 14695981039346656037ull;

	for (const char *c = data_dir; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	snprintf(tag, 16, "%08x", (unsigned)(hash ^ hash >> 32));
}

static int lock_data(const char *data_dir, int *ret_fd, struct err *err)
{
	auto_fd int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int fd = -1;

	if (dir < 0)
		return err_sys(err, "open data directory %s", data_dir);
	fd = openat(dir, "run/keeper.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(err, "lock %s/run/keeper.lock (another keeper?)", data_dir);
	*ret_fd = take_fd(&fd);
	return 0;
}

/*
 * Places for a build's own descriptors, after all that stay open and before all that do not. Gaps
 * below are filled, so that no descriptor of a sandbox or a connection ever gets such a low number.
 */
static int reserve_descriptors(struct build_context *context, struct err *err)
{
	int highest = 0, fd;

	for (int i = 0; i < DESCRIPTORS_AT_START; i++) {
		if (fcntl(i, F_GETFD) >= 0)
			highest = i;
	}
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, "reserve descriptors");
	} while (fd < highest + BUILD_KEPT_FDS);
	context->first_passing_fd = fd + 1;
	return 0;
}

static int open_template(struct storage *storage, bool is_host, int *ret_fd, struct err *err)
{
	int r = is_host ? 0 : rootfs_cover_templates(&storage->templates_fd, err);

	return r < 0 ? r : host_template_make(storage, ret_fd, err);
}

/* Without a number that can be read nothing may be missing. */
static void survey(struct build_context *context)
{
	const char *text = getenv(KEEPER_ALLOW_MISSING);
	uint64_t allowed = 0;

	if (text && number_parse(text, 0, (1u << WALL_COUNT) - 1, &allowed) < 0)
		allowed = 0;
	fence_survey(&context->fence,
		&(struct fence_ground){.cgroups = &context->cgroups,
			.is_host = context->userns.ranges.is_host,
			.mask_count = context->sources.mask_count,
			.has_disks = context->disks.can_make},
		(uint32_t)allowed);
}

static int open_all(struct keeper *keeper, char *argv[], struct err *err)
{
	struct build_context *context = &keeper->context;
	struct userns_ranges *ranges = &context->userns.ranges;
	int template_fd = -1, r;
	cpu_set_t usable;
	uint64_t uid;
	char tag[16];

	if (number_parse(argv[2], 0, UINT32_MAX - 1, &uid) < 0)
		return err_set(err, ERR_INVALID, "%s is not a uid", argv[2]);
	keeper->daemon_uid = (uid_t)uid;
	make_tag(argv[1], tag);
	context->command_line = argv[0];
	context->command_line_len = (size_t)(argv[3] + strlen(argv[3]) - argv[0]);
	/* Refused only where there are more than such a set can name; then it names enough. */
	if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
		memset(&usable, 0xff, sizeof(usable));
	cpus_init(&keeper->cpus, &usable);
	if ((r = rootfs_leave_host(err)) < 0 ||
		(r = lock_data(argv[1], &keeper->lock_fd, err)) < 0 ||
		(r = userns_survey(ranges, err)) < 0 ||
		(r = cgroup_open(&context->cgroups, tag, ranges->is_host, err)) < 0 ||
		(r = storage_open(&context->storage, argv[1], err)) < 0 ||
		(r = open_template(&context->storage, ranges->is_host, &template_fd, err)) < 0 ||
		(r = rootfs_open_sources(&context->sources, template_fd, ranges->is_host, err)) <
			0 ||
		(r = disk_start(
			 &context->disks, &context->storage, context->sources.shelf_fd, err)) < 0 ||
		(r = netns_open_own(&context->own_netns_fd, err)) < 0 ||
		(r = build_open_agent(argv[3], &context->agent_fd, err)) < 0)
		return r;
	survey(context);
	cgroup_sweep(&context->cgroups);
	keeper->kernel_log_fd = kernel_log_open();
	if (keeper->kernel_log_fd < 0)
		log_warning(
			"the kernel's log is closed to us; ends for want of memory will not name "
			"their victim");
	keeper->signal_fd = open_signals();
	keeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (keeper->signal_fd < 0 || keeper->epoll_fd < 0)
		return err_sys(err, "open the event loop");
	watch(keeper, LISTEN_FD);
	watch(keeper, keeper->signal_fd);
	start_janitor(keeper);
	return reserve_descriptors(context, err);
}

int main(int argc, char *argv[])
{
	struct keeper keeper = {.context.spare_netns_fd = -1, .stop_waiter = -1, .janitor_fd = -1};
	struct err err = {0};

	log_open("sandlot-keeper", LOG_INFO);
	if (argc != 4) {
		log_error("usage: sandlot-keeper DATA_DIR DAEMON_UID AGENT_PATH (started by "
			  "sandlotd)");
		return 2;
	}
	umask(022);
	if (chdir("/") < 0 || fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0 ||
		open_all(&keeper, argv, &err) < 0) {
		log_error("cannot start: %s%s%s", err.message, err.remedy[0] ? "; try: " : "",
			err.remedy);
		return 1;
	}
	build_prepare(&keeper.context, 0);
	log_info("ready; %zu names of /proc are masked", keeper.context.sources.mask_count);
	run(&keeper);
	if (keeper.janitor_pid > 0)
		kill(keeper.janitor_pid, SIGKILL);
	cgroup_close(&keeper.context.cgroups);
	if (keeper.stop_waiter >= 0)
		answer_result(keeper.stop_waiter, 0, NULL);
	log_info("all sandboxes are stopped; leaving");
	return 0;
}
