/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/build/build.h"

#include "base/fail_point.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/build/confine.h"
#include "keeper/disk/ext4_image.h"
#include "keeper/namespace/ipcns.h"
#include "keeper/net/netns.h"
#include "keeper/process/oom_score.h"
#include "keeper/rootfs/virtual_sys.h"
#include "wire/agent.h"
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int build_open_agent(const char *path, int *ret_fd, struct err *err)
{
	auto_fd int file = open(path, O_RDONLY | O_CLOEXEC);
	auto_fd int memory = -1;
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0)
		return err_sys(err, "open the agent %s", path);
	memory = memfd_create("sandlot-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* A file that cannot be read: so /proc and tracers treat its process as the host's, not
	 * as one of the sandbox's root, from its first instruction on. */
	if (memory < 0 || fchmod(memory, 0111) < 0)
		return err_sys(err, "make memory for the agent");
	while (st.st_size > 0) {
		ssize_t n = sendfile(memory, file, NULL, (size_t)st.st_size);

		if (n <= 0)
			return err_sys(err, "read the agent %s", path);
		st.st_size -= n;
	}
	if (fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
		0)
		return err_sys(err, "seal the agent");
	*ret_fd = take_fd(&memory);
	return 0;
}

/* The keeper sends the network namespace once it has made it; see netns.h. */
static int join_network(int lifeline, struct err *err)
{
	int fds[FDPASS_MAX];
	char kind;
	ssize_t n = fdpass_recv(lifeline, &kind, sizeof(kind), fds, 0);

	if (n != 1 || fds[0] < 0)
		return err_set(err, ERR_INTERNAL, "the keeper gave no network namespace");
	if (setns(fds[0], CLONE_NEWNET) < 0)
		return err_sys(err, "enter the network namespace");
	close(fds[0]);
	return 0;
}

/* What a child needs from the keeper. */
struct child_fds {
	const struct cpus_share *cpus;
	bool is_ahead; /* no request waits for this build */
	int disk_fd;   /* -1: it is not mounted yet */
	int userns_fd;
	int group_fd;
	int lifeline;
};

/* Moves a descriptor away from the numbers that the agent expects its own at. */
static int move_away(int *fd)
{
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, AGENT_FDS_END);
	return *fd < 0 ? -1 : 0;
}

/* What the agent inherits, besides its lifeline. */
struct inherited_fds {
	int group_fd, work_fd;
	struct virtual_sys view;
};

/*
 * Leaves descriptors 0-2 on the sandbox's null device and those that the agent inherits. All others
 * end with exec.
 */
static int place_descriptors(int lifeline, const struct inherited_fds *own, struct err *err)
{
	struct {
		int fd, place;
	} given[] = {
		{lifeline, AGENT_LIFELINE_FD},
		{own->group_fd, AGENT_GROUP_FD},
		{own->view.proc_file_fds[0], AGENT_MEMINFO_FD},
		{own->view.proc_file_fds[1], AGENT_STAT_FD},
		{oom_score_open_own(), AGENT_OOM_FD},
		{own->work_fd, AGENT_WORK_FD},
	};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return err_sys(err, "open /dev/null");
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null, fd) < 0)
			return err_sys(err, "set descriptor %d", fd);
	}
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_sys(err, "mark descriptors");
	/* One may have the number that another needs: all move away first. */
	for (size_t i = 0; i < array_len(given); i++) {
		if (given[i].fd >= 0 && move_away(&given[i].fd) < 0)
			return err_sys(err, "move descriptor %d", given[i].place);
	}
	for (size_t i = 0; i < array_len(given); i++) {
		if (given[i].fd >= 0 && dup2(given[i].fd, given[i].place) < 0)
			return err_sys(err, "set descriptor %d", given[i].place);
	}
	return 0;
}

/*
 * Opens the directories of a sandbox on its disk, or of a member on the disk of its sandbox, which is
 * mounted since that runs.
 */
static int open_files(const struct build_context *context, const struct keeper_request *request,
	int disk_fd, uint32_t base_uid, struct disk *disk, struct storage_dirs *ret_dirs,
	struct err *err)
{
	int r;

	if (request->primary[0]) {
		*disk = (struct disk){
			.home_fd = disk_open_mounted(&context->disks, request->primary),
			.limit_fd = -1};
		return storage_prepare_member(&context->storage, request->primary, disk->home_fd,
			request->member, base_uid, ret_dirs, err);
	}
	if ((r = disk_open(&context->disks, request->id, disk_fd, request->limits.disk_bytes, disk,
		     err)) < 0 ||
		(r = fail_point_check("build.disk_opened", err)) < 0)
		return r;
	return storage_prepare(&context->storage, request->id, disk->home_fd, base_uid,
		request->has_volumes, ret_dirs, err);
}

/* Everything that the child does before it executes the agent, in order. */
static int become_sandbox(const struct build_context *context, const struct keeper_request *request,
	const struct child_fds *given, struct err *err)
{
	int mount_area_fd = context->sources.mount_area_fd;
	char *const argv[] = {(char *)"sandlot-agent", NULL};
	char variable[sizeof(AGENT_CPUS) + CPUS_LIST_MAX] = AGENT_CPUS "=";
	char *const environment[] = {variable, NULL};
	uint32_t base_uid = userns_base(&context->userns.ranges, request->slot);
	int userns_fd = given->userns_fd, agent_fd = context->agent_fd, listener_fd, r;
	uint64_t disk_bytes = request->limits.disk_bytes;
	struct storage_dirs dirs;
	struct disk disk;
	struct inherited_fds own;

	if ((r = cgroup_join_v1(&context->cgroups, request->id, &request->limits, err)) < 0)
		return r;
	fail_point("build.groups_joined");
	/* After joining, so that the groups it is in are the root of what it sees. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(err, "make a cgroup namespace");
	/* While the keeper's mounts are still ours: only of those can there be a clone. */
	if ((r = cgroup_detach(given->group_fd, &own.group_fd, err)) < 0)
		return r;
	if ((r = open_files(context, request, given->disk_fd, base_uid, &disk, &dirs, err)) < 0 ||
		(r = fail_point_check("build.storage_prepared", err)) < 0) {
		ext4_image_note_damage(r, err);
		return r;
	}
	/* One that was made just now, because the disk pool was empty. */
	if (!request->primary[0])
		disk_mark_range(&context->disks, request->id, base_uid);
	if ((r = virtual_sys_clone(&own.view, mount_area_fd, &context->cgroups, request->id,
		     given->cpus->count, base_uid, err)) < 0 ||
		(r = rootfs_enter(&context->sources, &dirs, request->stack, userns_fd, base_uid,
			 request->limits.memory_bytes, err)) < 0 ||
		(r = fail_point_check("build.root_entered", err)) < 0 ||
		(!request->primary[0] && (r = disk_seal(&disk, disk_bytes, err)) < 0) ||
		(r = virtual_sys_attach(&own.view, err)) < 0 ||
		(r = join_network(given->lifeline, err)) < 0 ||
		(r = fail_point_check("build.network_joined", err)) < 0 ||
		(r = netns_open_ports(base_uid, context->userns.ranges.width, err)) < 0 ||
		(r = ipcns_limit(&request->limits, err)) < 0 || (r = rootfs_seal(err)) < 0 ||
		(r = cgroup_part_agent(
			 &context->cgroups, request->id, &request->limits, &own.work_fd, err)) < 0)
		return r;
	if (given->is_ahead)
		rootfs_warm();
	if (move_away(&agent_fd) < 0 || move_away(&userns_fd) < 0)
		return err_sys(err, "place the agent");
	r = place_descriptors(given->lifeline, &own, err);
	if (r < 0)
		return r;
	cpus_list(given->cpus, variable + sizeof(AGENT_CPUS));
	setsid();
	r = confine(userns_fd, request->profile, &context->isolation.walls, &listener_fd, err);
	if (r < 0)
		return r;
	/* It may have this number already, but the kernel opens it close-on-exec. */
	if (listener_fd >= 0 && (dup2(listener_fd, AGENT_DENIALS_FD) < 0 ||
					fcntl(AGENT_DENIALS_FD, F_SETFD, 0) < 0))
		return err_sys(err, "set descriptor %d", AGENT_DENIALS_FD);
	fail_point("build.confined");
	syscall(SYS_execveat, agent_fd, "", argv, environment, AT_EMPTY_PATH);
	return err_sys(err, "run the agent");
}

static pid_t clone_into(const struct clone_child *child, int cgroup_fd, struct child_fds *given)
{
	int *const kept[] = {
		&given->userns_fd, &given->group_fd, &given->lifeline, &given->disk_fd};
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_INTO_CGROUP |
			 CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
	};

	if (cgroup_fd < 0)
		args.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
	return clone_child_clone(child, args, kept, array_len(kept));
}

static void run_child(const struct build_context *context, const struct keeper_request *request,
	const struct child_fds *given)
{
	struct err err = {0};
	sigset_t none;

	/* Set again after the change of ids, which clears it. If the keeper is gone by now,
	 * waiting for the network namespace ends at once: no other process has the other end of
	 * the lifeline. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	become_sandbox(context, request, given, &err);
	/* On failure the descriptor may have moved to its final place already. */
	if (send(given->lifeline, &err, sizeof(err), MSG_NOSIGNAL) < 0)
		(void)!send(AGENT_LIFELINE_FD, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(1);
}

/*
 * Takes a network from the pool, which has its egress sockets already, if the sandbox needs them;
 * else makes a bare one.
 */
static int get_network(const struct build_context *context, bool has_egress,
	struct network *ret_network, struct err *err)
{
	*ret_network = NETWORK_NONE;
	if (has_egress && netns_pool_take(&context->networks, ret_network))
		return 0;
	return netns_make(context->own_netns_fd, &ret_network->netns_fd, err);
}

/* The network of a member has the descriptor of its sandbox's, and no sockets. */
static int join(int netns_fd, struct network *ret_network, struct err *err)
{
	*ret_network = NETWORK_NONE;
	ret_network->netns_fd = fcntl(netns_fd, F_DUPFD_CLOEXEC, 0);
	return ret_network->netns_fd < 0 ? err_sys(err, "share a network namespace") : 0;
}

static int send_network(const struct build_context *context, bool has_egress, int netns_fd,
	int lifeline, struct network *ret_network, struct err *err)
{
	int r = netns_fd >= 0 ? join(netns_fd, ret_network, err)
			      : get_network(context, has_egress, ret_network, err);

	if (r == 0) {
		r = (int)fdpass_send(lifeline, "N", 1, &ret_network->netns_fd, 1, MSG_DONTWAIT);
		if (r < 0)
			r = err_from(err, r, "hand over the network namespace");
	}
	if (r < 0)
		shutdown(lifeline, SHUT_WR); /* the child waits for a namespace */
	return r < 0 ? r : 0;
}

/* If it fails, what is cloned next has the name of what was cloned before, which the caller compares. */
static void name_next(struct build_context *context, const char *hostname)
{
	if (strcmp(context->hostname, hostname) != 0 &&
		sethostname(hostname, strlen(hostname)) == 0)
		snprintf(context->hostname, sizeof(context->hostname), "%s", hostname);
}

int build_start(struct build_context *context, const struct keeper_request *request,
	const struct cpus_share *cpus, bool is_ahead, int netns_fd, struct build *ret_build,
	struct err *err)
{
	/* The keeper opens it, not the child: a sandbox that is built ahead is renamed
	 * meanwhile. */
	auto_fd int disk_fd =
		request->primary[0] ? -1 : disk_open_root(&context->disks, request->id);
	auto_fd int cgroup_fd = -1, userns_fd = -1, ours = -1, theirs = -1;
	struct child_fds given;
	struct network network;
	int pair[2], r;
	pid_t pid;

	r = virtual_sys_prepare(
		context->sources.mount_area_fd, &context->cgroups, cpus->count, err);
	if (r < 0)
		return r;
	r = cgroup_make(&context->cgroups, request->id, &request->limits,
		userns_base(&context->userns.ranges, request->slot), &cgroup_fd, err);
	if (r < 0)
		return r;
	r = fail_point_check("build.groups_made", err);
	if (r < 0)
		return r;
	r = userns_get(&context->userns, request->slot,
		cgroup_tree_has(&context->cgroups, CGROUP_PIDS) ? 0 : request->limits.pids,
		&userns_fd, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make the lifeline");
	ours = pair[0];
	theirs = pair[1];
	given = (struct child_fds){.cpus = cpus,
		.is_ahead = is_ahead,
		.disk_fd = disk_fd,
		.userns_fd = userns_fd,
		.group_fd = cgroup_fd,
		.lifeline = theirs};
	name_next(context, request->hostname);
	pid = clone_into(&context->child, cgroup_fd, &given);
	if (pid < 0)
		return err_sys(err, "clone the sandbox");
	if (pid == 0)
		run_child(context, request, &given);
	fail_point("build.child_cloned");
	r = send_network(context, request->leads_out, netns_fd, ours, &network, err);
	fail_point("build.network_sent");
	if (r < 0)
		log_error("sandbox %s: %s", request->id, err->message);
	/* Without a network namespace the child fails by itself, and the keeper reaps it like
	 * any other. */
	*ret_build = (struct build){.pid = pid, .lifeline = take_fd(&ours), .network = network};
	return 0;
}

int build_open_own_uts(int *ret_fd, struct err *err)
{
	static const char path[] = "/proc/self/ns/uts";
	int fd;

	if (unshare(CLONE_NEWUTS) < 0)
		return err_sys(err, "make the keeper's host name");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	*ret_fd = fd;
	return 0;
}

int build_set_hostname(
	const struct build_context *context, pid_t pid, const char *hostname, struct err *err)
{
	auto_fd int sandbox_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int r = 0;

	if (sandbox_fd < 0)
		return err_sys(err, "open the sandbox");
	if (setns(sandbox_fd, CLONE_NEWUTS) < 0)
		return err_sys(err, "enter the sandbox to set its host name");
	if (sethostname(hostname, strlen(hostname)) < 0)
		r = err_sys(err, "set the host name");
	if (setns(context->own_uts_fd, CLONE_NEWUTS) < 0)
		abort();
	return r;
}
