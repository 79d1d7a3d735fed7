/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/requests.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/build/isolated_exec.h"
#include "keeper/build/layer_child.h"
#include "keeper/disk/disk_list.h"
#include "keeper/disk/disk_usage.h"
#include "keeper/disk/ext4_image.h"
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

/*
 * Removes the connection from epoll before closing it: a child of ours may hold a copy, and as long
 * as it does, epoll reports this number, which by then is another descriptor's.
 */
static void drop(const struct keeper *keeper, int conn)
{
	epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, conn, NULL);
	close(conn);
}

/* Makes the sockets between daemon and agent, and gives the agent its ends; ret_fds are ours. */
static int send_link(const struct sandbox_entry *entry, int ret_fds[2], struct err *err)
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
	int fds[2];

	reply.result = send_link(entry, fds, err);
	if (reply.result < 0) {
		reply_result(conn, reply.result, err);
		return;
	}
	reply_send(conn, &reply, fds, 2);
	close(fds[0]);
	close(fds[1]);
}

static void on_hello(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	(void)keeper;
	(void)request;
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

/* Returns the entry of a running sandbox; else answers that it does not run and returns NULL. */
static struct sandbox_entry *find_running(
	struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err;

	if (entry && entry->pid)
		return entry;
	reply_result(
		conn, err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run", request->id), &err);
	return NULL;
}

static void on_adopt(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = find_running(keeper, request, conn);
	struct err err = {0};

	if (entry)
		answer_link(keeper, entry, conn, &err);
}

static void on_isolated_exec(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct sandbox_entry *entry = find_running(keeper, request, conn);
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
	struct sandbox_entry *entry = find_running(keeper, request, conn);

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

	entry = find_running(keeper, request, conn);
	if (!entry)
		return;
	reply.result = sandbox_stats_read(keeper, entry, &reply.stats, &err);
	reply.err = err;
	reply_send(conn, &reply, NULL, 0);
}

static void on_resize(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct sandbox_entry *entry = find_running(keeper, request, conn);
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
	struct sandbox_entry *entry = find_running(keeper, request, conn);
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
	if (r == 0 && cpu_millis != entry->limits.cpu_millis)
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
	struct sandbox_entry *entry = find_running(keeper, request, conn);
	struct err err = {0};
	int r;

	if (!entry)
		return;
	r = build_set_hostname(&keeper->context, entry->pid, request->hostname, &err);
	fail_point("keeper.renamed");
	reply_result(conn, r, &err);
}

static void forget_waiter(struct keeper *keeper, int conn)
{
	for (size_t i = 0; i < keeper->table.count; i++) {
		struct sandbox_entry *entry = keeper->table.sorted[i];

		if (entry->kill_waiter == conn)
			entry->kill_waiter = -1;
		if (entry->freeze.waiter == conn)
			entry->freeze.waiter = -1;
	}
	if (keeper->stop_waiter == conn)
		keeper->stop_waiter = -1;
	drop(keeper, conn);
}

/*
 * Runs work that may take long, because trees are large or a disk has to be mounted, in a child.
 * The child owns the connection from then on and answers. Returns its pid, or -errno.
 */
static pid_t delegate(struct keeper *keeper, const struct keeper_request *request, int conn,
	int (*work)(struct keeper *keeper, const struct keeper_request *request,
		struct keeper_answer *reply, struct err *err))
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		reply.result = work(keeper, request, &reply, &err);
		reply.err = err;
		reply_send(conn, &reply, NULL, 0);
		_exit(0);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	forget_waiter(keeper, conn);
	return pid;
}

static int count(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return disk_usage_count(&keeper->context.disks, request->id, &reply->stats, err);
}

static void on_usage(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, count);
}

static int find_slot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return disk_usage_find_slot(&keeper->context.disks, &keeper->context.userns.ranges,
		request->id, &reply->slot, err);
}

static void on_owner(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, find_slot);
}

/*
 * Each call sends the same sockets: a program that connects while no daemon runs waits for the next
 * one.
 */
static void on_egress_sockets(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct sandbox_entry *entry = find_running(keeper, request, conn);
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
	const struct sandbox_entry *entry = find_running(keeper, request, conn);
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

static void on_failed(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	(void)request;
	reply.count = disk_list_failed(&keeper->context.disks, reply.ids, KEEPER_LIST_MAX);
	reply_send(conn, &reply, NULL, 0);
}

static void on_stored(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};

	reply.count =
		disk_list_list(&keeper->context.storage, request->id, reply.ids, KEEPER_LIST_MAX);
	for (uint32_t i = 0; i < reply.count; i++) {
		const struct sandbox_entry *entry =
			sandbox_table_find(&keeper->table, reply.ids[i]);

		reply.slots[i] = entry && entry->pid
					 ? entry->slot
					 : disk_usage_known_slot(&keeper->context.disks,
						   &keeper->context.userns.ranges, reply.ids[i]);
	}
	reply_send(conn, &reply, NULL, 0);
}

static int clean(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	uint32_t base = userns_base(&keeper->context.userns.ranges, request->slot);

	int r;

	(void)reply;
	r = disk_usage_clean(&keeper->context.disks, request, base, err);
	return r < 0 ? r : fail_point_check("clean.cleaned", err);
}

static void on_clean(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err = {0};

	if (entry && entry->pid)
		reply_result(
			conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
	else if (disk_usage_is_quick(&keeper->context.disks, request))
		reply_result(conn, clean(keeper, request, NULL, &err), &err);
	else
		delegate(keeper, request, conn, clean);
	trash_wake_remover(&keeper->trash_remover);
}

/* Runs in a child, because it waits until the disk is unmounted. */
static void lend_disk(const struct keeper *keeper, const char *id, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	int fd = -1, r = disk_lend(&keeper->context.disks, id, keeper->daemon_uid, &fd, &reply.err);

	if (r < 0)
		reply.result = r;
	else
		reply.count = (uint32_t)r;
	reply_send(conn, &reply, &fd, reply.count);
}

static void on_check(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err = {0};
	pid_t pid;

	if (entry && entry->pid) {
		reply_result(
			conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
		return;
	}
	pid = helpers_fork_asked(&keeper->helpers, &conn, &err);
	if (pid == 0) {
		lend_disk(keeper, request->id, conn);
		_exit(0);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	forget_waiter(keeper, conn);
}

/* Answers conn and becomes the writer of the layer: the child ends with it. */
static void on_layer_write(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		layer_child_run(&keeper->context, &keeper->layers, request->layer, conn);
		_exit(1);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	forget_waiter(keeper, conn);
}

/* Answers conn and becomes the reader of the files. */
static void on_tree_read(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};
	pid_t pid = helpers_fork_asked(&keeper->helpers, &conn, &err);

	if (pid == 0) {
		layer_child_read(&keeper->context, &keeper->layers, request, conn);
		_exit(1);
	}
	if (pid < 0)
		reply_result(conn, pid, &err);
	forget_waiter(keeper, conn);
}

/* In a child. */
static int show_layer(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	auto_fd int dir = -1;
	int r = layer_store_read(&keeper->layers, request->layer, &dir, err);

	(void)reply;
	return r < 0 ? r
		     : layer_child_show(
			       &keeper->context, entry->pid, entry->slot, request->layer, err);
}

static void on_layer_show(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (find_running(keeper, request, conn))
		delegate(keeper, request, conn, show_layer);
}

/*
 * Opens the files of a project. The daemon makes that directory, so nothing but a directory of the daemon's own, reached
 * without a link, is shown.
 */
static int open_project(const struct keeper *keeper, const char *project, struct err *err)
{
	char path[sizeof(KEEPER_PROJECT_FILES) + KEEPER_ID_LEN];
	auto_fd int dir = -1;
	struct stat st;

	snprintf(path, sizeof(path), KEEPER_PROJECT_FILES, project);
	dir = mounts_open_beneath(keeper->context.storage.data_fd, path, O_PATH | O_DIRECTORY);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(err, "open the files of project %s", project);
	if (st.st_uid != keeper->daemon_uid)
		return err_set(
			err, ERR_DENIED, "the files of project %s are not the daemon's", project);
	return take_fd(&dir);
}

/* In a child. */
static int show_project(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	auto_fd int dir = open_project(keeper, request->project, err);

	(void)reply;
	return dir < 0 ? dir
		       : layer_child_show_dir(&keeper->context, entry->pid, entry->slot, dir,
				 KEEPER_PROJECT_PLACE, err);
}

static void on_project_show(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (find_running(keeper, request, conn))
		delegate(keeper, request, conn, show_project);
}

/* Renames that are synced: in a child, because the disk may be slow. */
static int change_layers(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	const struct layer_store *layers = &keeper->layers;
	const struct storage *storage = &keeper->context.storage;

	(void)reply;
	switch (request->kind) {
	case KEEPER_LAYER_COMMIT:
		return layer_store_commit(layers, request->layer, err);
	case KEEPER_LAYER_DROP:
		return layer_store_drop(layers, storage, request->layer, err);
	case KEEPER_STACK_ADD:
		return layer_store_stack_add(
			layers, request->stack, request->layer, request->index, err);
	case KEEPER_STACK_COMMIT:
		return layer_store_stack_commit(layers, request->stack, err);
	default:
		return layer_store_stack_drop(layers, storage, request->stack, err);
	}
}

/*
 * A sandbox that was built ahead from a stack that goes is of no use, and from one of the same name that came after it
 * neither: its files are gone.
 */
static void on_layers(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (request->kind == KEEPER_STACK_DROP || request->kind == KEEPER_STACK_COMMIT)
		prebuild_drop_stack(&keeper->prebuilds, request->stack);
	delegate(keeper, request, conn, change_layers);
	trash_wake_remover(&keeper->trash_remover);
}

static int list_layers(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)err;
	reply->count = layer_store_list(&keeper->layers, request->is_stack, request->layer,
		reply->digests, KEEPER_DIGESTS_MAX);
	return 0;
}

static void on_layer_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, list_layers);
}

/* --- snapshots --- */

/* Answers that a sandbox runs, if it does. */
static bool refuse_running(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	const struct sandbox_entry *entry = sandbox_table_find(&keeper->table, request->id);
	struct err err;

	if (!entry || !entry->pid)
		return false;
	reply_result(conn, err_set(&err, ERR_CONFLICT, "sandbox %s runs", request->id), &err);
	return true;
}

static int take_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	return snapshot_store_take(&keeper->snapshots, request->id, request->snapshot,
		request->is_temporary, &reply->stats.disk_bytes, err);
}

/* The keeper holds the disk too, so that it can thaw it. */
static void on_snapshot_take(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	int home = disk_open_mounted(&keeper->context.disks, request->id);

	snapshot_store_watch(
		&keeper->snapshots, delegate(keeper, request, conn, take_snapshot), home);
}

static int drop_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)reply;
	return snapshot_store_drop(&keeper->snapshots, request->snapshot, err);
}

static void on_snapshot_drop(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, drop_snapshot);
	trash_wake_remover(&keeper->trash_remover);
}

static int list_snapshots(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)err;
	reply->count = snapshot_store_list(
		&keeper->snapshots, request->snapshot, reply->ids, KEEPER_LIST_MAX);
	return 0;
}

static void on_snapshot_list(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	delegate(keeper, request, conn, list_snapshots);
}

static int copy_snapshot(struct keeper *keeper, const struct keeper_request *request,
	struct keeper_answer *reply, struct err *err)
{
	(void)reply;
	return snapshot_store_copy(&keeper->snapshots, request->snapshot, request->is_temporary,
		request->id, userns_base(&keeper->context.userns.ranges, request->slot), err);
}

static void on_snapshot_copy(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	if (!refuse_running(keeper, request, conn))
		delegate(keeper, request, conn, copy_snapshot);
}

static void on_snapshot_place(struct keeper *keeper, const struct keeper_request *request, int conn)
{
	struct err err = {0};

	if (!refuse_running(keeper, request, conn))
		reply_result(
			conn, snapshot_store_place(&keeper->snapshots, request->id, &err), &err);
	trash_wake_remover(&keeper->trash_remover);
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
	void (*handle)(struct keeper *keeper, const struct keeper_request *request, int conn);
	unsigned checks;
} kinds[] = {
	[KEEPER_HELLO] = {on_hello, 0},
	[KEEPER_BUILD] = {on_build, NAMES_A_SANDBOX | HAS_SLOT | HAS_LIMITS | HAS_DISK},
	[KEEPER_ADOPT] = {on_adopt, NAMES_A_SANDBOX},
	[KEEPER_ISOLATED_EXEC] = {on_isolated_exec, NAMES_A_SANDBOX},
	[KEEPER_KILL] = {on_kill, NAMES_A_SANDBOX},
	[KEEPER_FREEZE] = {on_freeze, NAMES_A_SANDBOX},
	[KEEPER_THAW] = {on_thaw, NAMES_A_SANDBOX},
	[KEEPER_STATS] = {on_stats, NAMES_A_SANDBOX},
	[KEEPER_USAGE] = {on_usage, NAMES_A_SANDBOX},
	[KEEPER_LIST] = {on_list, 0},
	[KEEPER_STORED] = {on_stored, 0},
	[KEEPER_LIMIT] = {on_limit, NAMES_A_SANDBOX | HAS_NUMBERS},
	[KEEPER_RENAME] = {on_rename, NAMES_A_SANDBOX | HAS_HOSTNAME},
	[KEEPER_RESIZE] = {on_resize, NAMES_A_SANDBOX | HAS_DISK},
	[KEEPER_CLEAN] = {on_clean, NAMES_A_SANDBOX | HAS_SLOT},
	[KEEPER_SHUTDOWN] = {on_shutdown, 0},
	[KEEPER_EGRESS_SOCKETS] = {on_egress_sockets, NAMES_A_SANDBOX},
	[KEEPER_SOCKET] = {on_socket, NAMES_A_SANDBOX},
	[KEEPER_OWNER] = {on_owner, NAMES_A_SANDBOX},
	[KEEPER_CHECK] = {on_check, NAMES_A_SANDBOX},
	[KEEPER_FAILED] = {on_failed, 0},
	[KEEPER_SPARES] = {on_spares, HAS_SPARES},
	[KEEPER_PREBUILD] = {on_prebuild, HAS_SLOT | HAS_LIMITS | HAS_DISK | HAS_NO_ANSWER},
	[KEEPER_DROP] = {on_drop, HAS_SLOT | HAS_NO_ANSWER},
	[KEEPER_LAYER_WRITE] = {on_layer_write, NAMES_A_LAYER},
	[KEEPER_LAYER_COMMIT] = {on_layers, NAMES_A_LAYER},
	[KEEPER_LAYER_DROP] = {on_layers, NAMES_A_LAYER},
	[KEEPER_LAYER_LIST] = {on_layer_list, 0},
	[KEEPER_TREE_READ] = {on_tree_read, HAS_SLOT | NAMES_A_TREE},
	[KEEPER_LAYER_SHOW] = {on_layer_show, NAMES_A_SANDBOX | NAMES_A_LAYER},
	[KEEPER_PROJECT_SHOW] = {on_project_show, NAMES_A_SANDBOX | NAMES_A_PROJECT},
	[KEEPER_STACK_ADD] = {on_layers, NAMES_A_LAYER | NAMES_A_STACK},
	[KEEPER_STACK_COMMIT] = {on_layers, NAMES_A_STACK},
	[KEEPER_STACK_DROP] = {on_layers, NAMES_A_STACK},
	[KEEPER_SNAPSHOT_TAKE] = {on_snapshot_take, NAMES_A_SANDBOX | NAMES_A_SNAPSHOT},
	[KEEPER_SNAPSHOT_DROP] = {on_snapshot_drop, NAMES_A_SNAPSHOT},
	[KEEPER_SNAPSHOT_LIST] = {on_snapshot_list, 0},
	[KEEPER_SNAPSHOT_COPY] = {on_snapshot_copy, NAMES_A_SANDBOX | NAMES_A_SNAPSHOT | HAS_SLOT},
	[KEEPER_SNAPSHOT_PLACE] = {on_snapshot_place, NAMES_A_SANDBOX},
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

void requests_serve(struct keeper *keeper, int conn)
{
	struct keeper_request request;
	struct err err = {0};
	int r = fdpass_recv_packet(conn, &request, sizeof(request), MSG_DONTWAIT);

	if (r == -EAGAIN)
		return;
	if (r == -EPROTO)
		log_warning("a request of the wrong size was refused, and its connection closed");
	if (r <= 0 || has_hung_up(conn)) {
		forget_waiter(keeper, conn);
		return;
	}
	r = check_request(&request, &err);
	if (r == 0)
		kinds[request.kind].handle(keeper, &request, conn);
	else if (has_answer(&request))
		reply_result(conn, r, &err);
	else
		log_warning("an order was refused: %s", err.message);
}
