/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlot-keeper: the only privileged program. It builds sandboxes, holds their handles, and outlives
 * the daemon, so that a restart or crash of sandlotd stops no sandbox. It is root of the host, or, for an
 * ordinary user, of a user namespace that sandlotd made for it (daemon/rootless.h).
 *
 * Theory of operation. One thread, one epoll loop. It listens on a unix socket that sandlotd made and
 * handed over as descriptor 3; only root and the daemon's uid may talk. Requests are fixed structs
 * (wire/keeper.h), dispatched through a table (desk.c), and nothing in them is a path. A build clones a
 * child that does the work in parallel (build.c), so the loop never waits for a mount. The death of a
 * sandbox's first process arrives as SIGCHLD. What else may take long is left to children too (crew.h), or
 * looked at again later (pausing.h).
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
#include "keeper/desk.h"
#include "keeper/endings.h"
#include "keeper/host_template.h"
#include "keeper/janitor.h"
#include "keeper/kernel_log.h"
#include "keeper/netns.h"
#include "keeper/pausing.h"
#include "keeper/reply.h"
#include "keeper/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RETRY_MS 5

static void watch(struct keeper *keeper, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		log_error("watch descriptor %d: %s", fd, strerror(errno));
}

static void accept_peer(struct keeper *keeper)
{
	auto_fd int conn = accept4(OFFICE_LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
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
		endings_reap(keeper, (pid_t)info.ssi_pid);
	else
		desk_shut_down(keeper, -1);
}

/* -1 is never. */
static int64_t sooner(int64_t one, int64_t other)
{
	if (one < 0 || other < 0)
		return one < 0 ? other : one;
	return one < other ? one : other;
}

/* Does what is due without anybody asking; in how many us to come again, -1 for never. */
static int64_t tend(struct keeper *keeper)
{
	int64_t due_ms = disk_retire(&keeper->context.disks);

	if (!keeper->stopping)
		due_ms = sooner(due_ms, crew_tend(&keeper->crew));
	if (keeper->unclean)
		due_ms = sooner(due_ms, RETRY_MS);
	return sooner(due_ms < 0 ? -1 : due_ms * 1000, pausing_tend(keeper));
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

	while (!keeper->stopping || keeper->roster.count > 0) {
		int n = wait_for_events(keeper, events, array_len(events), tend(keeper));

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == OFFICE_LISTEN_FD)
				accept_peer(keeper);
			else if (fd == keeper->signal_fd)
				read_signal(keeper);
			else
				desk_serve(keeper, fd);
		}
		if (keeper->unclean)
			endings_retry(keeper);
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
	/* A child that aborts sends it to us: it was cloned behind the back of the C library, to which
	 * our number is still its own. It ends all the same; and so do we when we abort ourselves. */
	signal(SIGABRT, SIG_IGN);
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
			.mask_count = context->sources.masks.count,
			.disk_way = context->disks.way},
		(uint32_t)allowed);
}

/* With what all children work on. */
static int start_disks(struct keeper *keeper, struct err *err)
{
	struct build_context *context = &keeper->context;
	const struct storage *storage = &context->storage;

	crew_lend(&keeper->crew, storage->sandboxes_fd);
	crew_lend(&keeper->crew, storage->workspaces_fd);
	crew_lend(&keeper->crew, storage->spares_fd);
	crew_lend(&keeper->crew, storage->trash_fd);
	crew_lend(&keeper->crew, storage->shredder_fd);
	return disk_start(&context->disks, storage, context->sources.shelf_fd, &keeper->crew, err);
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
	keeper->crew.offspring = &context->offspring;
	keeper->births = (struct births){
		.context = context, .cpus = &keeper->cpus, .roster = &keeper->roster};
	if ((r = rootfs_leave_host(err)) < 0 ||
		(r = lock_data(argv[1], &keeper->lock_fd, err)) < 0 ||
		(r = userns_survey(ranges, err)) < 0 ||
		(r = cgroup_tree_open(&context->cgroups, tag, ranges->is_host, err)) < 0 ||
		(r = storage_open(&context->storage, argv[1], err)) < 0 ||
		(r = open_template(&context->storage, ranges->is_host, &template_fd, err)) < 0 ||
		(r = rootfs_open_sources(&context->sources, template_fd, ranges->is_host, err)) <
			0 ||
		(r = start_disks(keeper, err)) < 0 ||
		(r = netns_open_own(&context->own_netns_fd, err)) < 0 ||
		(r = netstock_start(
			 &context->networks, context->own_netns_fd, &keeper->crew, err)) < 0 ||
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
	watch(keeper, OFFICE_LISTEN_FD);
	watch(keeper, keeper->signal_fd);
	janitor_start(&keeper->janitor, &context->storage, &keeper->crew);
	return offspring_open(&context->offspring, err);
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
	if (chdir("/") < 0 || fcntl(OFFICE_LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0 ||
		open_all(&keeper, argv, &err) < 0) {
		log_error("cannot start: %s%s%s", err.message, err.remedy[0] ? "; try: " : "",
			err.remedy);
		return 1;
	}
	log_info("ready; %zu names of /proc are masked", keeper.context.sources.masks.count);
	run(&keeper);
	crew_dismiss(&keeper.crew);
	cgroup_tree_close(&keeper.context.cgroups);
	if (keeper.stop_waiter >= 0)
		reply_result(keeper.stop_waiter, 0, NULL);
	log_info("all sandboxes are stopped; leaving");
	return 0;
}
