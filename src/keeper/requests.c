/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/requests.h"

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/build/isolated_exec.h"
#include "keeper/connection.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/file_requests.h"
#include "keeper/freeze.h"
#include "keeper/mount/mounts.h"
#include "keeper/namespace/userns.h"
#include "keeper/net/netns.h"
#include "keeper/reap.h"
#include "keeper/sandbox/reply.h"
#include "keeper/sandbox_stats.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_BUFFER	 (1 << 20)
#define MEMORY_MIN_BYTES (4ull << 20)
#define MEMORY_MAX_BYTES (1ull << 50)
#define CPU_MAX_MILLIS	 (4096ull * 1000)
#define PIDS_MAX	 (4ull << 20)

/* Makes the sockets between daemon and agent, and gives the agent its ends; ret_fds are ours. */
static int send_link(
	const struct sandbox_entry *entry, int ret_fds[KEEPER_LINK_FD_COUNT], struct err *err)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET}; /* the link, the control socket */
	int ours[] = {-1, -1}, theirs[] = {-1, -1};
	ssize_t n = 0;

	for (size_t i = 0; i < array_len(types) && n == 0; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, pair) < 0) {
			n = err_sys(err, "make a link");
			break;
		}
		ours[i] = pair[0];
		theirs[i] = pair[1];
	}
	if (n == 0) {
		/* The buffer takes several frames of output: with a small one agent and daemon
		 * take turns for each frame. The kernel refuses this where we are root of less
		 * than the host; then the link is only slower. */
		(void)!setsockopt(
			theirs[0], SOL_SOCKET, SO_SNDBUFFORCE, &(int){LINK_BUFFER}, sizeof(int));
		n = fdpass_send(entry->lifeline, &(char){AGENT_LINK}, 1, theirs, 2, MSG_DONTWAIT);
		/* A sandbox whose build failed may be gone already and has left the reason: a
		 * link that ends at once makes the daemon ask for it. */
		if (n == -ECONNRESET || n == -EPIPE)
			n = 0;
		if (n < 0)
			err_from(err, (int)n, "hand the agent of %s a link", entry->id);
	}
	for (size_t i = 0; i < array_len(types); i++) {
		fd_close(theirs[i]);
		if (n < 0)
			fd_close(ours[i]);
		else
			ret_fds[i] = ours[i];
	}
	return n < 0 ? (int)n : 0;
}

static void answer_link(
	const struct keeper *keeper, const struct sandbox_entry *entry, int conn, struct err *err)
{
	const struct sandbox_entry *held =
		sandbox_table_find_ahead(&keeper->table, KEEPER_SLOT_COUNT);
	struct keeper_answer reply = {.version = KEEPER_VERSION,
		.wait_status = -1,
		.walls = entry->walls,
		.slot = held ? held->slot : KEEPER_SLOT_COUNT};
	const struct network *network = &entry->network;
	bool has_egress = !entry->primary[0] && network->sockets[0] >= 0;
	int fds[KEEPER_LINK_FD_COUNT + KEEPER_EGRESS_SOCKET_COUNT];

	reply.result = send_link(entry, fds, err);
	if (reply.result < 0) {
		reply_result(conn, reply.result, err);
		return;
	}
	if (has_egress) {
		memcpy(fds + KEEPER_LINK_FD_COUNT, network->sockets, sizeof(network->sockets));
		reply.is_transparent = network->is_transparent;
	}
	reply_send(conn, &reply, fds, has_egress ? array_len(fds) : KEEPER_LINK_FD_COUNT);
	for (size_t i = 0; i < KEEPER_LINK_FD_COUNT; i++)
		close(fds[i]);
}

static void on_hello(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)keeper;
	if (request->log_least > 0)
		log_set_least((enum log_level)(request->log_least - 1));
	reply_result(conn, 0, NULL);
}

static void on_spares(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	netns_pool_keep(&keeper->context.networks, request->spare_networks);
	disk_keep_spares(&keeper->context.disks, request->spare_disks);
	reply_result(conn, 0, NULL);
}

/* The daemon waits for no answer: without what was to be built ahead its next build takes longer. */
static void on_prebuild(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};

	(void)conn;
	if (keeper->stopping)
		return;
	if (isolation_check_check(&keeper->context.isolation, request, &err) < 0 ||
		prebuild_order(&keeper->prebuilds, request, &err) < 0)
		log_debug("nothing is built ahead: %s", err.message);
}

static void on_drop(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)conn;
	prebuild_drop(&keeper->prebuilds, request->slot);
}

/* Whether a member has a sandbox to join; its uid range is that of the sandbox. */
static int find_primary(struct keeper *keeper, struct keeper_request *request, struct err *err)
{
	const struct sandbox_entry *primary = sandbox_table_find(&keeper->table, request->primary);

	if (!primary || !primary->pid || primary->primary[0] || primary->network.netns_fd < 0)
		return err_set(err, ERR_CONFLICT,
			"sandbox %s, which a member is to join, does not run", request->primary);
	request->slot = primary->slot;
	return 0;
}

static void on_build(struct keeper *keeper, const struct keeper_request *asked, int conn)
{
	struct keeper_request own = *asked;
	const struct keeper_request *request = &own;
	struct err err = {0};
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, asked->id);
	int r;

	if (keeper->stopping) {
		reply_result(
			conn, err_set(&err, ERR_UNAVAILABLE, "the keeper is shutting down"), &err);
		return;
	}
	r = isolation_check_check(&keeper->context.isolation, request, &err);
	if (r == 0 && request->primary[0])
		r = find_primary(keeper, &own, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	if (entry && entry->pid == 0) {
		sandbox_table_remove(&keeper->table, entry);
		entry = NULL;
	}
	if (entry) {
		r = err_set(&err, ERR_CONFLICT, "sandbox %s runs already", request->id);
		reply_result(conn, r, &err);
		return;
	}
	/* Else it would start with an empty workspace, as if its owner had never had another. */
	if (request->has_files && !request->primary[0] &&
		disk_is_new(&keeper->context.disks, request->id)) {
		r = err_explain(&err, ERR_CONFLICT, "workspace_missing",
			"see whether the file system of the workspaces is mounted; if the files "
			"are "
			"gone for good, purge the sandbox",
			"the workspace of sandbox %s is not there", request->id);
		reply_result(conn, r, &err);
		return;
	}
	sandbox_stats_note_victims(keeper);
	r = prebuild_give(&keeper->prebuilds, request, &entry, &err);
	if (r < 0) {
		reply_result(conn, r, &err);
		return;
	}
	fail_point("build.begun");
	answer_link(keeper, entry, conn, &err);
	fail_point("build.link_sent");
}

static void on_adopt(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	struct err err = {0};

	if (entry)
		answer_link(keeper, entry, conn, &err);
}

static void on_isolated_exec(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	auto_fd int sock = -1;
	struct err err = {0};

	if (!entry)
		return;
	reply.result = isolated_exec_start(&keeper->context, entry, &sock, &err);
	if (reply.result < 0)
		reply_result(conn, reply.result, &err);
	else
		reply_send(conn, &reply, &sock, 1);
}

static void on_kill(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err = {0};

	if (!entry) {
		reply_killed(conn, NULL);
	} else if (entry->kill_waiter >= 0) {
		reply_result(conn,
			err_set(&err, ERR_CONFLICT, "sandbox %s is being killed", request->id),
			&err);
	} else {
		entry->kill_waiter = conn;
		reap_kill(entry);
		if (entry->pid == 0)
			reap_finish(keeper, entry);
	}
}

static void set_frozen(
	struct keeper *keeper, const struct keeper_request *request, int conn, bool frozen)
{
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);

	if (entry)
		freeze_begin(keeper, entry, frozen, conn);
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
	const struct sandbox_entry *entry;
	struct err err = {0};

	entry = reply_find_running(&keeper->table, request->id, conn);
	if (!entry)
		return;
	reply.result = sandbox_stats_read(keeper, entry, &reply.stats, &err);
	reply.err = err;
	reply_send(conn, &reply, NULL, 0);
}

static void on_resize(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	struct err err = {0};
	int r;

	if (!entry)
		return;
	r = disk_set_limit(&keeper->context.disks, request->id, request->limits.disk_bytes,
		request->growth_bytes, &err);
	fail_point("keeper.disk_resized");
	reply_result(conn, r, &err);
}

/* Other processors, if the limit needs more or fewer: for what runs, and for what the agent starts. */
static void rebind(struct keeper *keeper, struct sandbox_entry *entry, uint64_t cpu_millis)
{
	char packet[1 + sizeof(cpu_set_t)] = {AGENT_BIND};
	struct cpus_share share;

	cpus_give_back(&keeper->cpus, &entry->cpus);
	cpus_take(&keeper->cpus, cpu_millis, &share);
	entry->cpus = share;
	if (share.is_bound)
		memcpy(packet + 1, &share.set, sizeof(share.set));
	if (send(entry->lifeline, packet, share.is_bound ? sizeof(packet) : 1,
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_warning("sandbox %s: tell the agent its processors: %s", entry->id,
			strerror(errno));
	cgroup_bind(&keeper->context.cgroups, entry->group,
		share.is_bound ? &share.set : &keeper->cpus.usable);
}

static void on_limit(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	uint64_t cpu_millis = request->limits.cpu_millis;
	struct err err = {0};
	int r;

	if (!entry)
		return;
	r = cgroup_change(
		&keeper->context.cgroups, entry->group, &entry->limits, &request->limits, &err);
	if (r == 0 && entry->is_background != (request->is_background != 0))
		r = cgroup_set_weight(
			&keeper->context.cgroups, entry->group, request->is_background, &err);
	if (r == 0 && !cpus_suits(&keeper->cpus, &entry->cpus, cpu_millis))
		rebind(keeper, entry, cpu_millis);
	if (r == 0) {
		entry->limits.memory_bytes = request->limits.memory_bytes;
		entry->limits.cpu_millis = cpu_millis;
		entry->limits.pids = request->limits.pids;
		entry->is_background = request->is_background;
	} else {
		/* Which of them it has is not known: the next time all are written. */
		entry->limits.memory_bytes = entry->limits.cpu_millis = entry->limits.pids = 0;
	}
	fail_point("keeper.limits_set");
	reply_result(conn, r, &err);
}

static void on_rename(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	struct err err = {0};
	int r;

	if (!entry)
		return;
	r = build_set_hostname(&keeper->context, entry->pid, request->hostname, &err);
	fail_point("keeper.renamed");
	reply_result(conn, r, &err);
}

/*
 * Each call sends the same sockets: a program that connects while no daemon runs waits for the next
 * one.
 */
static void on_egress_sockets(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	struct err err = {0};
	int r = 0;

	if (!entry)
		return;
	if (entry->primary[0])
		r = err_set(&err, ERR_INVALID, "a member has the egress of its sandbox");
	else if (entry->network.sockets[0] < 0)
		r = netns_open_egress(keeper->context.own_netns_fd, &entry->network, &err);
	reply.is_transparent = entry->network.is_transparent;
	if (r < 0)
		reply_result(conn, r, &err);
	else
		reply_send(conn, &reply, entry->network.sockets, KEEPER_EGRESS_SOCKET_COUNT);
}

static void on_socket(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	const struct sandbox_entry *entry = reply_find_running(&keeper->table, request->id, conn);
	auto_fd int sock = -1;
	struct err err = {0};
	int r;

	if (!entry)
		return;
	r = netns_open_socket(keeper->context.own_netns_fd, entry->network.netns_fd, &sock, &err);
	if (r < 0)
		reply_result(conn, r, &err);
	else
		reply_send(conn, &reply, &sock, 1);
}

static void on_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count = sandbox_table_list(&keeper->table, request->id, reply.ids, KEEPER_LIST_MAX);
	reply_send(conn, &reply, NULL, 0);
}

void requests_shut_down(struct keeper *keeper, int conn)
{
	/* A daemon that connects from now on wants the next keeper: refusing the connection
	 * tells it so. */
	if (!keeper->stopping) {
		epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, KEEPER_LISTEN_FD, NULL);
		shutdown(KEEPER_LISTEN_FD, SHUT_RDWR);
	}
	keeper->stopping = true;
	keeper->stop_waiter = conn;
	for (size_t i = keeper->table.count; i-- > 0;) {
		struct sandbox_entry *entry = keeper->table.sorted[i];

		reap_kill(entry);
		if (entry->pid == 0)
			reap_finish(keeper, entry);
	}
}

static void on_shutdown(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)request;
	requests_shut_down(keeper, conn);
}

#define NAMES_A_SANDBOX	 1u
#define HAS_SLOT	 2u
#define HAS_LIMITS	 4u
#define HAS_DISK	 8u
#define HAS_SPARES	 16u
#define HAS_NO_ANSWER	 32u
#define HAS_NUMBERS	 64u /* limits without all else that a build needs */
#define NAMES_A_LAYER	 128u
#define NAMES_A_STACK	 256u
#define NAMES_A_TREE	 512u
#define NAMES_A_SNAPSHOT 1024u
#define HAS_HOSTNAME	 2048u
#define NAMES_A_PROJECT	 4096u

/*
 * The function of every kind of request, and what is checked before the function sees the request.
 */
static const struct {
	const char *name;
	void (*handle)(struct keeper *keeper, const struct keeper_request *request, int conn);
	unsigned checks;
} kinds[] = {
	[KEEPER_HELLO] = {"hello", on_hello, 0},
	[KEEPER_BUILD] = {"build", on_build, NAMES_A_SANDBOX | HAS_SLOT | HAS_LIMITS | HAS_DISK},
	[KEEPER_ADOPT] = {"adopt", on_adopt, NAMES_A_SANDBOX},
	[KEEPER_ISOLATED_EXEC] = {"isolated exec", on_isolated_exec, NAMES_A_SANDBOX},
	[KEEPER_KILL] = {"kill", on_kill, NAMES_A_SANDBOX},
	[KEEPER_FREEZE] = {"freeze", on_freeze, NAMES_A_SANDBOX},
	[KEEPER_THAW] = {"thaw", on_thaw, NAMES_A_SANDBOX},
	[KEEPER_STATS] = {"stats", on_stats, NAMES_A_SANDBOX},
	[KEEPER_USAGE] = {"usage", file_requests_usage, NAMES_A_SANDBOX},
	[KEEPER_LIST] = {"list", on_list, 0},
	[KEEPER_STORED] = {"stored", file_requests_stored, 0},
	[KEEPER_LIMIT] = {"limit", on_limit, NAMES_A_SANDBOX | HAS_NUMBERS},
	[KEEPER_RENAME] = {"rename", on_rename, NAMES_A_SANDBOX | HAS_HOSTNAME},
	[KEEPER_RESIZE] = {"resize", on_resize, NAMES_A_SANDBOX | HAS_DISK},
	[KEEPER_CLEAN] = {"clean", file_requests_clean, NAMES_A_SANDBOX | HAS_SLOT},
	[KEEPER_SHUTDOWN] = {"shutdown", on_shutdown, 0},
	[KEEPER_EGRESS_SOCKETS] = {"egress sockets", on_egress_sockets, NAMES_A_SANDBOX},
	[KEEPER_SOCKET] = {"socket", on_socket, NAMES_A_SANDBOX},
	[KEEPER_OWNER] = {"owner", file_requests_owner, NAMES_A_SANDBOX},
	[KEEPER_CHECK] = {"check", file_requests_check, NAMES_A_SANDBOX},
	[KEEPER_FAILED] = {"failed", file_requests_failed, 0},
	[KEEPER_SPARES] = {"spares", on_spares, HAS_SPARES},
	[KEEPER_PREBUILD] = {"prebuild", on_prebuild,
		HAS_SLOT | HAS_LIMITS | HAS_DISK | HAS_NO_ANSWER},
	[KEEPER_DROP] = {"drop", on_drop, HAS_SLOT | HAS_NO_ANSWER},
	[KEEPER_LAYER_WRITE] = {"layer write", file_requests_layer_write, NAMES_A_LAYER},
	[KEEPER_LAYER_COMMIT] = {"layer commit", file_requests_layers, NAMES_A_LAYER},
	[KEEPER_LAYER_DROP] = {"layer drop", file_requests_layers, NAMES_A_LAYER},
	[KEEPER_LAYER_LIST] = {"layer list", file_requests_layer_list, 0},
	[KEEPER_TREE_READ] = {"tree read", file_requests_tree_read, HAS_SLOT | NAMES_A_TREE},
	[KEEPER_LAYER_SHOW] = {"layer show", file_requests_layer_show,
		NAMES_A_SANDBOX | NAMES_A_LAYER},
	[KEEPER_PROJECT_SHOW] = {"project show", file_requests_project_show,
		NAMES_A_SANDBOX | NAMES_A_PROJECT},
	[KEEPER_STACK_ADD] = {"stack add", file_requests_layers, NAMES_A_LAYER | NAMES_A_STACK},
	[KEEPER_STACK_COMMIT] = {"stack commit", file_requests_layers, NAMES_A_STACK},
	[KEEPER_STACK_DROP] = {"stack drop", file_requests_layers, NAMES_A_STACK},
	[KEEPER_SNAPSHOT_TAKE] = {"snapshot take", file_requests_snapshot_take,
		NAMES_A_SANDBOX | NAMES_A_SNAPSHOT},
	[KEEPER_SNAPSHOT_DROP] = {"snapshot drop", file_requests_snapshot_drop, NAMES_A_SNAPSHOT},
	[KEEPER_SNAPSHOT_LIST] = {"snapshot list", file_requests_snapshot_list, 0},
	[KEEPER_SNAPSHOT_COPY] = {"snapshot copy", file_requests_snapshot_copy,
		NAMES_A_SANDBOX | NAMES_A_SNAPSHOT | HAS_SLOT},
	[KEEPER_SNAPSHOT_PLACE] = {"snapshot place", file_requests_snapshot_place,
		NAMES_A_SANDBOX | NAMES_A_SNAPSHOT},
};

static bool is_hostname(const char *text)
{
	size_t len = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");

	return text[len] == '\0' && len >= 1 && len < KEEPER_HOSTNAME_MAX;
}

/* The files of a sandbox are named by its id or that of a snapshot, a layer by its digest. */
static bool is_tree(const struct keeper_request *request)
{
	if (request->tree == KEEPER_TREE_LAYER)
		return layer_store_is_name(request->layer);
	return request->tree < KEEPER_TREE_COUNT &&
	       keeper_is_id(request->snapshot[0] ? request->snapshot : request->id, '\0');
}

static int check_request(struct keeper_request *request, struct err *err)
{
	unsigned checks;

	if (request->kind >= array_len(kinds) || !kinds[request->kind].handle)
		return err_set(err, ERR_INVALID, "unknown kind of request %u", request->kind);
	request->id[KEEPER_ID_LEN] = '\0';
	request->primary[KEEPER_ID_LEN] = '\0';
	request->snapshot[KEEPER_ID_LEN] = '\0';
	request->project[KEEPER_ID_LEN] = '\0';
	request->hostname[KEEPER_HOSTNAME_MAX - 1] = '\0';
	request->layer[KEEPER_DIGEST_LEN] = '\0';
	request->stack[KEEPER_DIGEST_LEN] = '\0';
	if (!log_subject_is_plain(&request->subject) || request->log_least > LOG_ERROR + 1)
		return err_set(err, ERR_INVALID, "what is logged of a request is plain text");
	checks = kinds[request->kind].checks;
	if ((checks & NAMES_A_SANDBOX) && !keeper_is_id(request->id, '\0'))
		return err_set(err, ERR_INVALID, "the id of a sandbox has %d characters of 0-9a-z",
			KEEPER_ID_LEN);
	if (request->primary[0] &&
		(request->kind != KEEPER_BUILD || !keeper_is_id(request->primary, '\0') ||
			strcmp(request->primary, request->id) == 0 || request->member < 1 ||
			request->member > KEEPER_MEMBERS_MAX || request->limits.disk_bytes > 0))
		return err_set(err, ERR_INVALID, "a member joins another sandbox, with its disk");
	if ((checks & NAMES_A_SNAPSHOT) && !keeper_is_id(request->snapshot, '\0'))
		return err_set(err, ERR_INVALID, "the id of a snapshot has %d characters of 0-9a-z",
			KEEPER_ID_LEN);
	if ((checks & NAMES_A_PROJECT) && !keeper_is_id(request->project, '\0'))
		return err_set(err, ERR_INVALID, "the id of a project has %d characters of 0-9a-z",
			KEEPER_ID_LEN);
	if ((checks & HAS_SLOT) && request->slot >= KEEPER_LAYER_SLOT)
		return err_set(err, ERR_INVALID, "uid range %u does not exist", request->slot);
	if (((checks & NAMES_A_LAYER) && !layer_store_is_name(request->layer)) ||
		((checks & NAMES_A_STACK) && !layer_store_is_name(request->stack)) ||
		(request->stack[0] && !layer_store_is_name(request->stack)))
		return err_set(err, ERR_INVALID, "a layer has %d hexadecimal digits as its name",
			KEEPER_DIGEST_LEN);
	if ((checks & NAMES_A_TREE) && !is_tree(request))
		return err_set(err, ERR_INVALID, "there are no such files");
	if (checks & (HAS_LIMITS | HAS_NUMBERS)) {
		const struct keeper_limits *limits = &request->limits;

		if (limits->memory_bytes < MEMORY_MIN_BYTES ||
			limits->memory_bytes > MEMORY_MAX_BYTES || limits->cpu_millis < 10 ||
			limits->cpu_millis > CPU_MAX_MILLIS || limits->pids < 2 ||
			limits->pids > PIDS_MAX)
			return err_set(err, ERR_INVALID, "a limit is out of range");
	}
	if ((checks & (HAS_LIMITS | HAS_HOSTNAME)) && !is_hostname(request->hostname))
		return err_set(err, ERR_INVALID, "the host name is not one label");
	if ((checks & HAS_LIMITS) && request->profile >= KEEPER_PROFILE_COUNT)
		return err_set(err, ERR_INVALID, "there is no profile %u", request->profile);
	if ((checks & HAS_SPARES) && (request->spare_networks > KEEPER_SPARES_MAX ||
					     request->spare_disks > KEEPER_SPARES_MAX))
		return err_set(err, ERR_INVALID, "too many spares");
	if ((checks & HAS_DISK) && request->limits.disk_bytes > EXT4_IMAGE_BYTES)
		return err_explain(err, ERR_INVALID, "disk_too_large", "ask for at most 64Gi",
			"field resources.disk is too large: a disk holds at most %llu GiB",
			EXT4_IMAGE_BYTES >> 30);
	return 0;
}

static bool has_answer(const struct keeper_request *request)
{
	return request->kind >= array_len(kinds) || !(kinds[request->kind].checks & HAS_NO_ANSWER);
}

/*
 * A daemon that has stopped waiting, because we were stopped for long, has told its client that
 * nothing was done.
 */
static bool has_hung_up(int conn)
{
	struct pollfd peer = {.fd = conn, .events = POLLRDHUP};

	return poll(&peer, 1, 0) > 0;
}

/* What is logged meanwhile names the client's request; so do the children that it is handed to. */
static void handle(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	uint64_t begun_us = clock_steady_us();

	log_set_subject(&request->subject);
	kinds[request->kind].handle(keeper, request, conn);
	log_debug("%s%s%s after %llu us", kinds[request->kind].name, request->id[0] ? " " : "",
		request->id, (unsigned long long)(clock_steady_us() - begun_us));
	log_set_subject(NULL);
}

/* As fdpass_recv_packet, of a length that its kind may have. */
static int receive(int conn, struct keeper_request *ret_request)
{
	ssize_t n;

	*ret_request = (struct keeper_request){0};
	do
		n = recv(conn, ret_request, sizeof(*ret_request), MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (n == (ssize_t)sizeof(*ret_request))
		return 1;
	return n == (ssize_t)keeper_request_size(ret_request) ? 1 : -EPROTO;
}

void requests_serve(struct keeper *keeper, int conn)
{
	struct keeper_request request;
	struct err err = {0};
	int r = receive(conn, &request);

	if (r == -EAGAIN)
		return;
	if (r == -EPROTO)
		log_warning("a request of the wrong size was refused, and its connection closed");
	if (r <= 0 || has_hung_up(conn)) {
		connection_close(keeper, conn);
		return;
	}
	r = check_request(&request, &err);
	if (r == 0)
		handle(keeper, &request, conn);
	else if (has_answer(&request))
		reply_result(conn, r, &err);
	else
		log_warning("an order was refused: %s", err.message);
}
