/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/build/layer_child.h"

#include "base/fd.h"
#include "base/log.h"
#include "keeper/build/confine.h"
#include "keeper/disk/snapshot_store.h"
#include "keeper/mount/mounts.h"
#include "keeper/namespace/userns.h"
#include "keeper/sandbox/reply.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAM_BUFFER (1 << 20)
#define FDS_END	      8 /* descriptors from here on are out of the way */

/* What the process is made of. */
struct parts {
	const char *program; /* arguments of the agent's program */
	const char *option;
	int mount_fd;
	int userns_fd;
	int agent_fd;
	int stream_fd;
	int null_fd;
	int below_fd; /* of changes; else -1 */
	int merged_fd;
};

#define PARTS_INIT(context)                                                                        \
	((struct parts){.agent_fd = (context)->agent_fd, .below_fd = -1, .merged_fd = -1})

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int make_stream(struct parts *parts, int *ret_stream, struct err *err)
{
	int pair[2];

	parts->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (parts->null_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make the stream of a layer");
	for (int i = 0; i < 2; i++)
		(void)!setsockopt(
			pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &(int){STREAM_BUFFER}, sizeof(int));
	parts->stream_fd = pair[1];
	*ret_stream = pair[0];
	return 0;
}

/* A layer as root of the uid range of layers sees it. */
static int clone_layer(
	struct userns_cache *userns, int dir, uint64_t attrs, struct parts *parts, struct err *err)
{
	int r = userns_get(userns, KEEPER_LAYER_SLOT, 0, &parts->userns_fd, err);

	return r < 0 ? r
		     : mounts_clone(dir, "", SAFE | MOUNT_ATTR_IDMAP | attrs, parts->userns_fd,
			       &parts->mount_fd, err);
}

static int make_writer(struct userns_cache *userns, const struct layer_store *layers,
	const struct storage *storage, const char *name, struct parts *parts, int *ret_stream,
	struct err *err)
{
	auto_fd int dir = -1;
	int r;

	if (!userns->ranges.is_host)
		return err_explain(err, ERR_UNAVAILABLE, "images_need_root",
			"start sandlotd as root",
			"images need a daemon of root: without root the kernel maps no layers");
	parts->program = LAYER_WRITER;
	r = layer_store_begin(layers, storage, name, &dir, err);
	if (r < 0 || (r = clone_layer(userns, dir, 0, parts, err)) < 0)
		return r;
	return make_stream(parts, ret_stream, err);
}

/* Everything that the reader sees is cloned before the directory is let go. */
static int clone_opened(const struct build_context *context, const struct keeper_request *request,
	int dir, struct parts *parts, struct err *err)
{
	int r = mounts_clone(dir, "", SAFE | MOUNT_ATTR_RDONLY, -1, &parts->mount_fd, err);

	if (r == 0 && request->tree == KEEPER_TREE_CHANGES)
		r = rootfs_compare(&context->sources, dir, request->stack, parts->userns_fd,
			&parts->below_fd, &parts->merged_fd, err);
	return r;
}

/*
 * What a sandbox has written is read by root of its own uid range, who owns it. The range of a
 * snapshot's files may be another sandbox's by now, so they are shown as those of nobody's range.
 */
static int clone_tree(const struct build_context *context, struct userns_cache *userns,
	const struct keeper_request *request, struct parts *parts, struct err *err)
{
	const char *name =
		request->tree == KEEPER_TREE_WORKSPACE ? STORAGE_WORKSPACE : STORAGE_SYSTEM;
	bool is_snapshot = request->snapshot[0], is_mounted = false;
	uint32_t slot = is_snapshot ? KEEPER_LAYER_SLOT : request->slot;
	auto_fd int dir = -1;
	int r = userns_get(userns, slot, 0, &parts->userns_fd, err);

	if (r < 0)
		return r;
	r = is_snapshot
		    ? snapshot_store_open_tree(&context->disks, request->snapshot, name,
			      userns_base(&userns->ranges, slot), &dir, err)
		    : disk_open_tree(&context->disks, request->id, name, &is_mounted, &dir, err);
	if (r < 0)
		return r;
	r = clone_opened(context, request, dir, parts, err);
	if (is_snapshot)
		snapshot_store_close_tree(&context->disks);
	else if (is_mounted)
		disk_unmount_tree(&context->disks, request->id);
	return r;
}

static const char *option_of(const struct keeper_request *request)
{
	if (request->tree == KEEPER_TREE_CHANGES)
		return LAYER_READER_CHANGES;
	return request->has_content ? NULL : LAYER_READER_NAMES;
}

static int make_reader(const struct build_context *context, struct userns_cache *userns,
	const struct layer_store *layers, const struct keeper_request *request, struct parts *parts,
	int *ret_stream, struct err *err)
{
	int r;

	parts->program = LAYER_READER;
	parts->option = option_of(request);
	if (request->tree == KEEPER_TREE_LAYER) {
		auto_fd int dir = -1;

		r = layer_store_read(layers, request->layer, &dir, err);
		if (r == 0)
			r = clone_layer(userns, dir, MOUNT_ATTR_RDONLY, parts, err);
	} else {
		r = clone_tree(context, userns, request, parts, err);
	}
	return r < 0 ? r : make_stream(parts, ret_stream, err);
}

static int move_away(int *fd)
{
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, FDS_END);
	return *fd < 0 ? -1 : 0;
}

/* What was made for changes. */
static int place_compared(struct parts *parts)
{
	if (parts->below_fd < 0)
		return 0;
	return dup2(parts->below_fd, LAYER_BELOW_FD) < 0 ||
			       dup2(parts->merged_fd, LAYER_MERGED_FD) < 0
		       ? -1
		       : 0;
}

/* 0-2 lead nowhere, 3 is the stream, some read from more; all others end with exec. */
static int place_descriptors(struct parts *parts, struct err *err)
{
	if (move_away(&parts->stream_fd) < 0 || move_away(&parts->agent_fd) < 0 ||
		move_away(&parts->userns_fd) < 0 ||
		(parts->below_fd >= 0 &&
			(move_away(&parts->below_fd) < 0 || move_away(&parts->merged_fd) < 0)))
		return err_sys(err, "place descriptors");
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(parts->null_fd, fd) < 0)
			return err_sys(err, "set descriptor %d", fd);
	}
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0 ||
		dup2(parts->stream_fd, LAYER_WRITER_FD) < 0 || place_compared(parts) < 0)
		return err_sys(err, "set descriptor %d", LAYER_WRITER_FD);
	return 0;
}

/* Returns on failure. */
static int become(const struct build_context *context, struct parts *parts, struct err *err)
{
	char *const argv[] = {
		(char *)"sandlot-agent", (char *)parts->program, (char *)parts->option, NULL};
	char *const environment[] = {NULL};
	int listener, r;

	if (unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP) < 0)
		return err_sys(err, "make namespaces");
	if ((r = rootfs_enter_alone(&context->sources, parts->mount_fd, err)) < 0 ||
		(r = place_descriptors(parts, err)) < 0)
		return r;
	setsid();
	r = confine(parts->userns_fd, KEEPER_PROFILE_DEFAULT, &context->isolation.walls, &listener,
		err);
	if (r < 0)
		return r;
	syscall(SYS_execveat, parts->agent_fd, "", argv, environment, AT_EMPTY_PATH);
	return err_sys(err, "run %s", parts->program);
}

/* The first process of a PID namespace, so that it can neither see nor signal another. */
static void run(const struct build_context *context, struct parts *parts)
{
	struct err err = {0};
	sigset_t none;
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0 || (pid = fork()) < 0) {
		log_error("%s cannot be started: %s", parts->program, strerror(errno));
		return;
	}
	if (pid > 0) {
		close(parts->stream_fd); /* the daemon is to see its end */
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	become(context, parts, &err);
	log_error("%s cannot be started: %s", parts->program, err.message);
	_exit(1);
}

/* Tells the daemon, and goes on as that process. Returns on failure. */
static void answer_and_run(const struct build_context *context, struct parts *parts, int stream,
	struct keeper_answer *reply, int conn)
{
	reply_send(conn, reply, &stream, reply->result < 0 ? 0 : 1);
	if (reply->result < 0)
		return;
	close(stream);
	close(conn);
	run(context, parts);
}

void layer_child_run(const struct build_context *context, const struct layer_store *layers,
	const char *name, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	struct userns_cache userns = context->userns;
	struct parts parts = PARTS_INIT(context);
	int stream = -1;

	reply.result =
		make_writer(&userns, layers, &context->storage, name, &parts, &stream, &reply.err);
	answer_and_run(context, &parts, stream, &reply, conn);
}

void layer_child_read(const struct build_context *context, const struct layer_store *layers,
	const struct keeper_request *request, int conn)
{
	struct keeper_answer reply = {.version = KEEPER_VERSION, .wait_status = -1};
	/* Namespaces that are kept are not among the descriptors that helpers share. */
	struct userns_cache userns = {.ranges = context->userns.ranges};
	struct parts parts = PARTS_INIT(context);
	int stream = -1;

	reply.result = make_reader(context, &userns, layers, request, &parts, &stream, &reply.err);
	answer_and_run(context, &parts, stream, &reply, conn);
}

/* Whether root of that process's user namespace is the first uid of the range. */
static bool is_in_range(pid_t pid, uint32_t base_uid)
{
	char path[48], text[64] = "";
	unsigned inside = 1, outside = 0;
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	       sscanf(text, "%u %u", &inside, &outside) == 2 && inside == 0 && outside == base_uid;
}

/* The sandbox whose first process that is, by descriptors. */
static int open_sandbox(const struct build_context *context, pid_t pid, uint32_t slot,
	int *ret_pidfd, int *ret_userns_fd, struct err *err)
{
	uint32_t base_uid = userns_base(&context->userns.ranges, slot);
	auto_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), userns_fd = -1;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	userns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pidfd < 0 || userns_fd < 0 || !is_in_range(pid, base_uid))
		return err_set(err, ERR_CONFLICT, "the sandbox does not run");
	*ret_pidfd = take_fd(&pidfd);
	*ret_userns_fd = take_fd(&userns_fd);
	return 0;
}

int layer_child_show(const struct build_context *context, pid_t pid, uint32_t slot,
	const char *layer, struct err *err)
{
	uint32_t base_uid = userns_base(&context->userns.ranges, slot);
	auto_fd int pidfd = -1, userns_fd = -1;
	int r = open_sandbox(context, pid, slot, &pidfd, &userns_fd, err);

	return r < 0 ? r
		     : rootfs_show_layer(&context->sources, layer, userns_fd, base_uid, pidfd, err);
}

int layer_child_show_dir(const struct build_context *context, pid_t pid, uint32_t slot, int dir_fd,
	const char *place, struct err *err)
{
	auto_fd int pidfd = -1, userns_fd = -1;
	int r = open_sandbox(context, pid, slot, &pidfd, &userns_fd, err);

	return r < 0 ? r : rootfs_show_dir(dir_fd, place, pidfd, err);
}
