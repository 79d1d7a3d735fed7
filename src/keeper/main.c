/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot-keeper: the only privileged program. It builds sandboxes, holds their handles, and outlives
 * the daemon, so that a restart or crash of sandlotd stops no sandbox. It is root of the host, or, for an
 * ordinary user, of a user namespace that sandlotd made for it (daemon/rootless.h).
 *
 * Theory of operation. The keeper has one thread and one epoll loop. It listens on a unix socket that
 * sandlotd opened and passed as descriptor 3, and serves only root and the daemon's uid. Requests are fixed
 * structs (wire/keeper.h) without paths; requests.c dispatches them through a table.
 *
 *   sandbox_table.h    one entry for each sandbox: pid, lifeline, network, limits
 *   build/             clones the first process (build.c), which sets up its root and becomes the agent;
 *                      builds and holds those that the daemon orders ahead (prebuild.c)
 *   rootfs/            the mounts that a sandbox sees; mount_area.c is where the keeper keeps mounts
 *   namespace/, net/   user, ipc and network namespaces, and the sockets that lead out of a sandbox
 *   cgroup/, stats/    limits, and what a sandbox uses
 *   disk/              the disk of each sandbox, and the pool of disks that are made ahead
 *   process/           children that do slow work (helpers.c), the end of sandboxes (reap.c), freeze.c
 *
 * The loop never waits for a mount: the first process of a sandbox builds its own root, in parallel; helpers
 * do other slow work; a freeze is looked at again later. SIGCHLD reports the death of a sandbox's first
 * process.
 *
 * The keeper parses no text from outside, reads and writes no network socket (those that it opens in
 * sandboxes are for the daemon), and starts no program but the agent, which it holds as a sealed copy. If it
 * dies its sandboxes die with it (PR_SET_PDEATHSIG); the next keeper removes their cgroups.
 *
 * Usage: sandlot-keeper DATA_DIR DAEMON_UID AGENT_PATH   (started by sandlotd, not by hand)
 */
#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "keeper/disk/trash.h"
#include "keeper/freeze.h"
#include "keeper/namespace/userns.h"
#include "keeper/net/netns.h"
#include "keeper/reap.h"
#include "keeper/requests.h"
#include "keeper/rootfs/host_template.h"
#include "keeper/sandbox/reply.h"
#include "keeper/stats/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define RETRY_MS      5
#define LOCK_WAIT_MS  10000
#define LOCK_LOOK_MS  10
#define TELL_MS	      30000
#define TEMPLATE_ROOM (64ull << 20)

static void watch(struct keeper *keeper, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		log_error("watch descriptor %d: %s", fd, strerror(errno));
}

/* A connection of root or the daemon; -1 if there is none. */
static int accept_conn(const struct keeper *keeper)
{
	auto_fd int conn = accept4(KEEPER_LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* The listener stays readable: waits a little, until a descriptor is free again. */
	if (conn < 0 && (errno == EMFILE || errno == ENFILE))
		usleep(10000);
	if (conn < 0 || getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -1;
	if (peer.uid != 0 && peer.uid != keeper->daemon_uid) {
		log_warning("uid %u is not the daemon; connection refused", peer.uid);
		return -1;
	}
	return take_fd(&conn);
}

static void accept_peer(struct keeper *keeper)
{
	int conn = accept_conn(keeper);

	if (conn >= 0)
		watch(keeper, conn);
}

static void read_signal(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	if (read(keeper->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo != SIGCHLD) {
		requests_shut_down(keeper, -1);
		return;
	}
	reap_reap(keeper, (pid_t)info.ssi_pid);
	/* A child may have thrown something away after its request was passed on. */
	trash_wake_remover(&keeper->trash_remover);
}

/* The sooner of two times, of which -1 is never. */
static int64_t sooner(int64_t one, int64_t other)
{
	if (one < 0 || other < 0)
		return one < 0 ? other : one;
	return one < other ? one : other;
}

/* Does the work that is due; returns in how many us to call again, -1 for never. */
static int64_t tend(struct keeper *keeper)
{
	int64_t due_ms = disk_retire(&keeper->context.disks);

	due_ms = sooner(due_ms, cgroup_removals_tend(&keeper->removals));
	if (!keeper->stopping)
		due_ms = sooner(due_ms, helpers_tend(&keeper->helpers));
	if (keeper->unclean)
		due_ms = sooner(due_ms, RETRY_MS);
	return sooner(due_ms < 0 ? -1 : due_ms * 1000, freeze_tend(keeper));
}

/* As epoll_wait(), by the microsecond: a pause takes less than one of its milliseconds. */
static int wait_for_events(
	const struct keeper *keeper, struct epoll_event *events, size_t max, int64_t due_us)
{
	/* The C library's own structure may be another one. */
	struct __kernel_timespec due = {
		.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};

	return (int)syscall(
		SYS_epoll_pwait2, keeper->epoll_fd, events, max, due_us < 0 ? NULL : &due, NULL, 0);
}

static void run(struct keeper *keeper)
{
	struct epoll_event events[32];

	while (!keeper->stopping || keeper->table.count > 0) {
		int n = wait_for_events(keeper, events, array_len(events), tend(keeper));

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == KEEPER_LISTEN_FD)
				accept_peer(keeper);
			else if (fd == keeper->signal_fd)
				read_signal(keeper);
			else
				requests_serve(keeper, fd);
		}
		if (keeper->unclean)
			reap_retry(keeper);
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
	/* A child that aborts sends it to us: the C library does not know of the clone and takes our pid
	 * for the child's. The child ends all the same; and so does the keeper when it aborts itself. */
	signal(SIGABRT, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Names the cgroups after the data directory, so that the next keeper finds what this one left. */
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
	if (fd < 0)
		return err_sys(err, "open %s/run/keeper.lock", data_dir);
	/* An earlier keeper closes its socket first, and its children, which end after it, may hold the
	 * lock a little longer, on a busy host for seconds. */
	for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_LOOK_MS) {
		if (errno != EWOULDBLOCK || waited_ms >= LOCK_WAIT_MS)
			return err_sys(err, "lock %s/run/keeper.lock (another keeper?)", data_dir);
		usleep(LOCK_LOOK_MS * 1000);
	}
	/* For a daemon that finds us hanging. On a full disk it stays empty, and we are not replaced. */
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0)
		log_warning("%s/run/keeper.lock not written: %s", data_dir, strerror(errno));
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A file of the template that finds no room would be missing in all sandboxes. */
static bool has_room_for_template(const struct storage *storage)
{
	struct statfs disk;

	return fstatfs(storage->templates_fd, &disk) < 0 ||
	       disk.f_bavail * (uint64_t)disk.f_bsize >= TEMPLATE_ROOM;
}

/* Makes the template on a tmpfs where it cannot be on the disk. For root of the host that may fail. */
static int open_template(struct storage *storage, bool is_host, int *ret_fd, struct err *err)
{
	int r = 0;

	if (!is_host || !has_room_for_template(storage))
		r = rootfs_cover_templates(&storage->templates_fd, err);
	return r < 0 && !is_host ? r : host_template_make(storage, ret_fd, err);
}

/* If the variable is not set, or is no number, no wall may be missing. */
static void survey(struct build_context *context)
{
	const char *text = getenv(KEEPER_ALLOW_MISSING);
	uint64_t allowed = 0;

	if (text && number_parse(text, 0, (1u << WALL_COUNT) - 1, &allowed) < 0)
		allowed = 0;
	isolation_check_survey(&context->isolation,
		&(struct isolation_check_host){.cgroups = &context->cgroups,
			.is_host = context->userns.ranges.is_host,
			.mask_count = context->sources.masks.count,
			.disk_way = context->disks.way},
		(uint32_t)allowed);
}

/* Shares with all children the directories that they work in, and starts the disks. */
static int start_disks(struct keeper *keeper, struct err *err)
{
	struct build_context *context = &keeper->context;
	const struct storage *storage = &context->storage;
	int r;

	helpers_share_fd(&keeper->helpers, storage->data_fd);
	helpers_share_fd(&keeper->helpers, storage->sandboxes_fd);
	helpers_share_fd(&keeper->helpers, storage->workspaces_fd);
	helpers_share_fd(&keeper->helpers, storage->snapshots_fd);
	helpers_share_fd(&keeper->helpers, storage->pool_fd);
	helpers_share_fd(&keeper->helpers, storage->trash.waiting_fd);
	helpers_share_fd(&keeper->helpers, storage->trash.removing_fd);
	r = disk_start(
		&context->disks, storage, context->sources.mount_area_fd, &keeper->helpers, err);
	if (r < 0)
		return r;
	snapshot_store_open(&keeper->snapshots, &context->disks);
	return 0;
}

/* What a child needs to become the writer of a layer. */
static void share_with_writers(struct keeper *keeper)
{
	helpers_share_fd(&keeper->helpers, keeper->layers.fd);
	helpers_share_fd(&keeper->helpers, keeper->layers.new_fd);
	helpers_share_fd(&keeper->helpers, keeper->layers.stacks_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.sources.layers_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.sources.lowers_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.sources.template_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.sources.mount_area_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.sources.empty_ns_fd);
	helpers_share_fd(&keeper->helpers, keeper->context.agent_fd);
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
	/* It fails only where the host has more processors than the set can name; then all are set. */
	if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
		memset(&usable, 0xff, sizeof(usable));
	cpus_init(&keeper->cpus, &usable);
	keeper->helpers.child = &context->child;
	keeper->removals = (struct cgroup_removals){.tree = &context->cgroups};
	keeper->prebuilds = (struct prebuilds){.context = context,
		.cpus = &keeper->cpus,
		.table = &keeper->table,
		.removals = &keeper->removals};
	if ((r = rootfs_leave_host(err)) < 0 ||
		(r = lock_data(argv[1], &keeper->lock_fd, err)) < 0 ||
		(r = userns_survey(ranges, err)) < 0 ||
		(r = cgroup_tree_open(&context->cgroups, tag, ranges->is_host, err)) < 0 ||
		(r = storage_open(&context->storage, argv[1], err)) < 0 ||
		(r = open_template(&context->storage, ranges->is_host, &template_fd, err)) < 0 ||
		(r = rootfs_open_sources(&context->sources, template_fd, context->storage.layers_fd,
			 ranges->is_host, err)) < 0 ||
		(r = layer_store_open(&keeper->layers, &context->storage, err)) < 0 ||
		(r = start_disks(keeper, err)) < 0 ||
		(r = netns_open_own(&context->own_netns_fd, err)) < 0 ||
		(r = build_open_own_uts(&context->own_uts_fd, err)) < 0 ||
		(r = netns_pool_start(
			 &context->networks, context->own_netns_fd, &keeper->helpers, err)) < 0 ||
		(r = build_open_agent(argv[3], &context->agent_fd, err)) < 0)
		return r;
	survey(context);
	fail_point("keeper.disks_opened");
	cgroup_sweep(&context->cgroups);
	fail_point("keeper.groups_swept");
	keeper->kernel_log_fd = kernel_log_open();
	if (keeper->kernel_log_fd < 0)
		log_warning("the kernel's log cannot be read; a process that the kernel kills when "
			    "memory runs out will not be named");
	keeper->signal_fd = open_signals();
	keeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (keeper->signal_fd < 0 || keeper->epoll_fd < 0)
		return err_sys(err, "open the event loop");
	watch(keeper, KEEPER_LISTEN_FD);
	watch(keeper, keeper->signal_fd);
	trash_start_remover(&keeper->trash_remover, &context->storage.trash, &keeper->helpers);
	share_with_writers(keeper);
	return clone_child_open(&context->child, err);
}

/* Answers the daemon's first request with the reason why the keeper could not start. */
static void tell_why(const struct keeper *keeper, const struct err *err)
{
	struct pollfd listener = {.fd = KEEPER_LISTEN_FD, .events = POLLIN};
	struct keeper_request request;
	ssize_t n = 0;

	while (n <= 0 && poll(&listener, 1, TELL_MS) > 0) {
		auto_fd int conn = accept_conn(keeper);

		if (conn < 0 || fd_set_timeout(conn, TELL_MS) < 0)
			continue;
		n = recv(conn, &request, sizeof(request), 0);
		if (n > 0)
			reply_result(conn, -err_class((enum err_kind)err->kind)->errnum, err);
	}
}

int main(int argc, char *argv[])
{
	static struct keeper keeper = {.stop_waiter = -1};
	struct err err = {0};

	log_open("sandlot-keeper", LOG_INFO);
	if (argc != 4) {
		log_error("usage: sandlot-keeper DATA_DIR DAEMON_UID AGENT_PATH (started by "
			  "sandlotd)");
		return 2;
	}
	umask(022);
	fail_point_open(argv[1]);
	if (chdir("/") < 0 || fcntl(KEEPER_LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0 ||
		open_all(&keeper, argv, &err) < 0) {
		log_error("cannot start: %s%s%s", err.message, err.remedy[0] ? "; try: " : "",
			err.remedy);
		tell_why(&keeper, &err);
		return 1;
	}
	log_info("ready; %zu names of /proc are masked", keeper.context.sources.masks.count);
	run(&keeper);
	helpers_kill(&keeper.helpers);
	cgroup_removals_finish(&keeper.removals);
	cgroup_tree_close(&keeper.context.cgroups);
	if (keeper.stop_waiter >= 0)
		reply_result(keeper.stop_waiter, 0, NULL);
	log_info("all sandboxes are stopped; exiting");
	return 0;
}
