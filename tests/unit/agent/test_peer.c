/* SPDX-License-Identifier: Apache-2.0 */
#include "test_agent_peer.h"

#include "agent/init.h"
#include "agent/process/start/isolated_init.h"
#include "base/err.h"
#include "base/fd.h"
#include "wire/fdpass.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The kernel's counters as a v1 sandbox shows them, in files that a command can write. */
static void play_counters(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0 ||
		system("cd /sys/fs/cgroup && mkdir memory pids && "
		       "printf 'oom_kill_disable 0\nunder_oom 0\noom_kill 7\n' "
		       ">memory/memory.oom_control && echo max 5 >pids/pids.events") != 0)
		_exit(77);
}

/* What an agent is started with. */
struct circumstances {
	unsigned long clone_flags;
	bool has_group;
	const int *refused; /* numbers of system calls */
	size_t refused_count;
	const struct listener_config *listener; /* in the place of a lifeline */
};

/* The listener of a filter that refuses just those; -1 for none. */
static int load_filter(const struct circumstances *given)
{
	struct sock_filter ops[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {.len = 1, .filter = ops};
	int fd;

	if (given->refused_count == 0)
		return -1;
	for (size_t i = 0; i < given->refused_count; i++) {
		ops[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)given->refused[i], 0, 1);
		ops[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	ops[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0)
		_exit(77);
	return fd;
}

/* The agent as the keeper would start it, but for the namespaces: orphans come to it too. */
static void run_agent(int lifeline, int group, const struct circumstances *given)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		dup2(null, i);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(init_run(&(struct init_fds){.lifeline = given->listener ? -1 : lifeline,
		.processes = {group, -1, -1, load_filter(given)},
		.listener = given->listener}));
}

/* A new group as the keeper makes one; its directory, or -1 where that cannot be done. */
static int make_group(struct peer *peer)
{
	static const char *const trees[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	static unsigned number;

	for (size_t i = 0; i < array_len(trees) && getuid() == 0; i++) {
		struct statfs tree;
		int fd;

		if (statfs(trees[i], &tree) < 0 || tree.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		peer->group_path =
			mem_printf("%s/test-agent-%d-%u", trees[i], (int)getpid(), number++);
		if (mkdir(peer->group_path, 0755) == 0) {
			fd = open(peer->group_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			assert_true(fd >= 0);
			assert_int_equal(fd_write_file(fd, "cgroup.max.depth", "1"), 0);
			return fd;
		}
		free(take_ptr(&peer->group_path));
	}
	return -1;
}

static void remove_group(struct peer *peer)
{
	char *line, *kill_file;

	if (!peer->group_path)
		return;
	/* Whatever a test left behind ends here. */
	kill_file = mem_printf("%s/cgroup.kill", peer->group_path);
	assert_int_equal(fd_write_file(AT_FDCWD, kill_file, "1"), 0);
	line = mem_printf("for i in $(seq 100); do rmdir %s/*/ %s 2>/dev/null; "
			  "[ -e %s ] || exit 0; sleep 0.02; done; exit 1",
		peer->group_path, peer->group_path, peer->group_path);
	assert_int_equal(system(line), 0);
	free(line);
	free(kill_file);
	free(take_ptr(&peer->group_path));
}

static void write_map(pid_t pid, const char *file, unsigned id)
{
	char *path = mem_printf("/proc/%d/%s", (int)pid, file);
	char *map = mem_printf("%u %u 1\n", id, id);

	assert_int_equal(fd_write_file(AT_FDCWD, path, map), 0);
	free(path);
	free(map);
}

/* Of a child in a user namespace: it is who we are. */
static void map_ids(pid_t pid)
{
	char *path = mem_printf("/proc/%d/setgroups", (int)pid);

	write_map(pid, "uid_map", getuid());
	assert_int_equal(fd_write_file(AT_FDCWD, path, "deny"), 0);
	write_map(pid, "gid_map", getgid());
	free(path);
}

/* Born into its group: a process that is moved waits for 11 ms. */
static pid_t clone_agent(unsigned long flags, int group)
{
	struct clone_args args = {
		.flags = flags | (group >= 0 ? CLONE_INTO_CGROUP : 0),
		.exit_signal = SIGCHLD,
		.cgroup = group >= 0 ? (uint64_t)group : 0,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void start_in(struct peer *peer, struct circumstances given)
{
	int ends[2], ready[2];
	char byte;
	int group;

	*peer = (struct peer){.link = -1, .control = -1, .in = BUF_INIT(4 * 1024 * 1024)};
	group = given.has_group ? make_group(peer) : -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	peer->agent = clone_agent(given.clone_flags, group);
	assert_true(peer->agent >= 0);
	if (peer->agent == 0) {
		close(ends[0]);
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 0)
			_exit(1);
		close(ready[0]);
		if (given.clone_flags & CLONE_NEWNS)
			play_counters();
		run_agent(ends[1], group, &given);
	}
	if (given.clone_flags & CLONE_NEWUSER)
		map_ids(peer->agent);
	fd_close(group);
	close(ready[0]);
	close(ready[1]);
	close(ends[1]);
	peer->lifeline = ends[0];
}

static void start(struct peer *peer, unsigned long clone_flags, bool with_group)
{
	start_in(peer, (struct circumstances){.clone_flags = clone_flags, .has_group = with_group});
}

void peer_start_filtered(struct peer *peer, const int *refused, size_t count)
{
	start_in(peer, (struct circumstances){
			       .has_group = true, .refused = refused, .refused_count = count});
}

void peer_start_listening(struct peer *peer, const struct listener_config *listener)
{
	start_in(peer, (struct circumstances){.listener = listener});
	fd_close(take_fd(&peer->lifeline));
}

void peer_start(struct peer *peer)
{
	start(peer, 0, true);
}

void peer_start_without_group(struct peer *peer)
{
	start(peer, 0, false);
}

void peer_start_init(struct peer *peer)
{
	start(peer, CLONE_NEWPID | (getuid() == 0 ? 0 : CLONE_NEWUSER), true);
}

void peer_start_with_mounts(struct peer *peer)
{
	start(peer, CLONE_NEWNS, true);
}

bool peer_has_groups(const struct peer *peer)
{
	if (!peer->group_path)
		print_message("not proven: no control group can be made here (not root?)\n");
	return peer->group_path != NULL;
}

size_t peer_count_groups(const struct peer *peer)
{
	char *line = mem_printf("ls -d %s/*/ 2>/dev/null | wc -l", peer->group_path);
	FILE *stream = popen(line, "r");
	int count = 0;

	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%d", &count), 1);
	pclose(stream);
	free(line);
	return (size_t)count;
}

bool peer_has_other_users(void)
{
	char *dir = peer_make_temp();
	bool has = chown(dir, 12345, 12345) == 0;

	peer_remove_temp(dir);
	return has;
}

void peer_drop_link(struct peer *peer)
{
	fd_close(take_fd(&peer->link));
	fd_close(take_fd(&peer->control));
	buf_fini(&peer->in);
}

pid_t peer_wait(struct peer *peer, int *ret_status)
{
	for (int waited_ms = 0; waited_ms < DEADLINE_MS; waited_ms += 5) {
		pid_t pid = waitpid(peer->agent, ret_status, WNOHANG);

		if (pid != 0)
			return pid;
		poll(NULL, 0, 5);
	}
	kill(peer->agent, SIGKILL);
	waitpid(peer->agent, ret_status, 0);
	fail_msg("the agent did not end");
	return -1;
}

void peer_fini(struct peer *peer)
{
	fd_close(take_fd(&peer->lifeline));
	peer_drop_link(peer);
	remove_group(peer);
}

void peer_stop(struct peer *peer)
{
	int status;

	fd_close(take_fd(&peer->lifeline));
	assert_int_equal(peer_wait(peer, &status), peer->agent);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	peer_fini(peer);
}

void peer_open_link(struct peer *peer)
{
	int link[2], control[2];

	peer_drop_link(peer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	assert_int_equal(fdpass_send(peer->lifeline, &(char){AGENT_LINK}, 1,
				 (int[]){link[1], control[1]}, 2, 0),
		1);
	close(link[1]);
	close(control[1]);
	peer->link = link[0];
	peer->control = control[0];
}

void peer_send(struct peer *peer, uint16_t kind, uint32_t id, const void *payload, size_t len)
{
	struct buf out = BUF_INIT(8 * 1024 * 1024);

	frame_put(&out, kind, id, payload, len);
	assert_int_equal(fd_write_full(peer->link, out.data, out.len), 0);
	buf_fini(&out);
}

void peer_send_u32(struct peer *peer, uint16_t kind, uint32_t id, uint32_t value)
{
	struct buf out = BUF_INIT(64);

	pack_u32(&out, value);
	peer_send(peer, kind, id, out.data, out.len);
	buf_fini(&out);
}

void peer_ack(struct peer *peer, uint32_t id, uint64_t offset)
{
	struct buf out = BUF_INIT(64);

	pack_u64(&out, offset);
	peer_send(peer, AGENT_ACK, id, out.data, out.len);
	buf_fini(&out);
}

void peer_signal(struct peer *peer, uint32_t id, int signal, bool whole_tree)
{
	struct buf out = BUF_INIT(64);

	pack_u32(&out, (uint32_t)signal);
	pack_u8(&out, whole_tree);
	peer_send(peer, AGENT_SIGNAL, id, out.data, out.len);
	buf_fini(&out);
}

void peer_resize(struct peer *peer, uint32_t id, uint16_t columns, uint16_t rows)
{
	struct buf out = BUF_INIT(64);

	pack_u16(&out, columns);
	pack_u16(&out, rows);
	peer_send(peer, AGENT_RESIZE, id, out.data, out.len);
	buf_fini(&out);
}

size_t peer_attach(struct peer *peer, uint32_t *ids, size_t size)
{
	peer_open_link(peer);
	return peer_attach_over(peer, ids, size);
}

size_t peer_attach_over(struct peer *peer, uint32_t *ids, size_t size)
{
	struct peer_frame frame;
	struct unpack in;
	uint32_t count;

	peer_send_u32(peer, AGENT_ATTACH, 0, AGENT_VERSION);
	assert_true(peer_next(peer, &frame));
	assert_int_equal(frame.kind, AGENT_HELLO);
	in = UNPACK_INIT(frame.payload, frame.len);
	assert_int_equal(unpack_u32(&in), AGENT_VERSION);
	count = unpack_u32(&in);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = unpack_u32(&in);

		if (i < size)
			ids[i] = id;
	}
	assert_true(unpack_done(&in));
	peer_frame_free(&frame);
	return count;
}

static struct buf pack_exec(
	unsigned flags, uint32_t uid, const char *cwd, const char *path, const char *const *argv)
{
	struct buf out = BUF_INIT(2 * 1024 * 1024);
	char env[256];
	uint32_t argc = 0;

	while (argv[argc])
		argc++;
	pack_u32(&out, flags);
	pack_u32(&out, uid);
	pack_u32(&out, uid == getuid() ? getgid() : uid);
	pack_u16(&out, 80);
	pack_u16(&out, 24);
	pack_str(&out, cwd);
	pack_u32(&out, argc);
	for (uint32_t i = 0; i < argc; i++)
		pack_str(&out, argv[i]);
	pack_u32(&out, 2);
	snprintf(env, sizeof(env), "PATH=%s", path);
	pack_str(&out, env);
	pack_str(&out, "MARK=here");
	pack_u32(&out, 0); /* groups */
	assert_false(out.failed);
	return out;
}

void peer_exec_as(struct peer *peer, uint32_t id, unsigned flags, uint32_t uid, const char *cwd,
	const char *path, const char *const *argv)
{
	struct buf payload = pack_exec(flags, uid, cwd, path, argv);

	peer_send(peer, AGENT_EXEC, id, payload.data, payload.len);
	buf_fini(&payload);
}

void peer_shell_in_cell(struct peer *peer, uint32_t id, unsigned flags, const char *line, int sock)
{
	struct buf payload = pack_exec(flags | AGENT_EXEC_ISOLATED, getuid(), "/", "/usr/bin:/bin",
		(const char *[]){"/bin/sh", "-c", line, NULL});

	peer_pass(peer, AGENT_CONTROL_ISOLATED, id, sock);
	peer_send(peer, AGENT_EXEC, id, payload.data, payload.len);
	buf_fini(&payload);
}

pid_t peer_start_isolated_init(const struct peer *peer, int *ret_sock)
{
	auto_fd int group =
		peer->group_path ? open(peer->group_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	unsigned long user = getuid() == 0 ? 0 : CLONE_NEWUSER;
	const struct err built = {.kind = ERR_NONE};
	int ends[2], ready[2];
	pid_t isolated_init;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	isolated_init = clone_agent(CLONE_NEWPID | user, group);
	assert_true(isolated_init >= 0);
	if (isolated_init == 0) {
		close(ends[0]);
		close(ready[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(ready[0], &byte, 1) != 0)
			_exit(1);
		_exit(isolated_init_run(ends[1], -1));
	}
	if (user)
		map_ids(isolated_init);
	close(ready[0]);
	close(ready[1]);
	/* What the keeper says before it runs the isolated init. */
	assert_int_equal(fd_write_full(ends[1], &built, sizeof(built)), 0);
	close(ends[1]);
	*ret_sock = ends[0];
	return isolated_init;
}

void peer_exec(struct peer *peer, uint32_t id, unsigned flags, const char *const *argv)
{
	peer_exec_as(peer, id, flags, getuid(), "/", "/usr/bin:/bin", argv);
}

void peer_shell(struct peer *peer, uint32_t id, unsigned flags, const char *line)
{
	peer_exec(peer, id, flags, (const char *[]){"/bin/sh", "-c", line, NULL});
}

static bool take_frame(struct peer *peer, struct peer_frame *ret_frame)
{
	struct frame frame;
	int n = frame_next(peer->in.data, peer->in.len, AGENT_UP_MAX, &frame);

	assert_true(n >= 0);
	if (n == 0)
		return false;
	*ret_frame = (struct peer_frame){.kind = frame.kind, .id = frame.id, .len = frame.len};
	ret_frame->payload = mem_new(frame.len + 1);
	if (frame.len > 0)
		memcpy(ret_frame->payload, frame.payload, frame.len);
	buf_consume(&peer->in, (size_t)n);
	return true;
}

/* 1, 0 at the end of the link, -ETIMEDOUT. */
static int next(struct peer *peer, int timeout_ms, struct peer_frame *ret_frame)
{
	while (peer->in.len == 0 || !take_frame(peer, ret_frame)) {
		struct pollfd pollfd = {.fd = peer->link, .events = POLLIN};
		ssize_t n;

		if (poll(&pollfd, 1, timeout_ms) <= 0)
			return -ETIMEDOUT;
		assert_int_equal(buf_reserve(&peer->in, 65536), 0);
		n = read(peer->link, peer->in.data + peer->in.len, 65536);
		if (n <= 0)
			return 0;
		peer->in.len += (size_t)n;
	}
	return 1;
}

bool peer_next(struct peer *peer, struct peer_frame *ret_frame)
{
	int r = next(peer, DEADLINE_MS, ret_frame);

	if (r < 0)
		fail_msg("no frame came");
	return r > 0;
}

bool peer_next_within(struct peer *peer, int timeout_ms, struct peer_frame *ret_frame)
{
	return next(peer, timeout_ms, ret_frame) > 0;
}

void peer_frame_free(struct peer_frame *frame)
{
	free(frame->payload);
	frame->payload = NULL;
}

bool peer_link_ends(struct peer *peer)
{
	struct peer_frame frame;

	while (peer_next(peer, &frame))
		peer_frame_free(&frame);
	return true;
}

void peer_result_init(struct peer_result *result)
{
	*result = (struct peer_result){
		.out = BUF_INIT(256 * 1024 * 1024), .err = BUF_INIT(256 * 1024 * 1024)};
}

void peer_result_fini(struct peer_result *result)
{
	buf_fini(&result->out);
	buf_fini(&result->err);
}

static void take_output(struct peer_result *result, struct unpack *in)
{
	uint64_t offset = unpack_u64(in);
	uint8_t stream = unpack_u8(in);
	uint32_t age_ms = unpack_u32(in);
	size_t len = (size_t)(in->end - in->at);

	assert_false(in->bad);
	assert_true(len > 0 && len <= AGENT_OUTPUT_CHUNK);
	assert_int_equal(offset, result->received);
	assert_true(stream == 1 || stream == 2);
	buf_append(stream == 1 ? &result->out : &result->err, in->at, len);
	result->received += len;
	result->age_ms = age_ms;
}

void peer_take(struct peer_result *result, const struct peer_frame *frame)
{
	struct unpack in = UNPACK_INIT(frame->payload, frame->len);

	switch (frame->kind) {
	case AGENT_STARTED:
		result->pid = unpack_u32(&in);
		break;
	case AGENT_FAILED:
		result->failed_stage = unpack_u8(&in);
		result->failed_errno = (int)unpack_u32(&in);
		break;
	case AGENT_STDIN_ACK:
		result->stdin_acked = unpack_u64(&in);
		result->stdin_received = unpack_u64(&in);
		assert_true(result->stdin_acked <= result->stdin_received);
		break;
	case AGENT_SURVIVORS:
		result->survivors = unpack_u32(&in);
		result->survivors_told++;
		break;
	case AGENT_OUTPUT:
		take_output(result, &in);
		return;
	case AGENT_EXITED:
		result->wait_status = unpack_u32(&in);
		result->end_offset = unpack_u64(&in);
		result->cpu_us = unpack_u64(&in);
		result->peak_bytes = unpack_u64(&in);
		result->duration_us = unpack_u64(&in);
		result->oom_kills = unpack_u32(&in);
		result->refused_forks = unpack_u32(&in);
		result->flags = unpack_u32(&in);
		result->denied_count = unpack_u32(&in);
		assert_true(result->denied_count <= AGENT_DENIED_MAX);
		for (uint32_t i = 0; i < result->denied_count; i++) {
			result->denied[i][0] = unpack_u32(&in);
			result->denied[i][1] = unpack_u32(&in);
		}
		result->exited = true;
		assert_int_equal(result->end_offset, result->received);
		break;
	default:
		fail_msg("frame of kind %u", frame->kind);
	}
	assert_true(unpack_done(&in));
}

void peer_collect(struct peer *peer, uint32_t id, bool acknowledge, struct peer_result *result)
{
	while (!result->exited && !result->failed_stage) {
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		if (frame.id == id) {
			peer_take(result, &frame);
			if (acknowledge && frame.kind == AGENT_OUTPUT)
				peer_ack(peer, id, result->received);
		}
		peer_frame_free(&frame);
	}
}

void peer_run(struct peer *peer, uint32_t id, const char *line, struct peer_result *result)
{
	peer_result_init(result);
	peer_shell(peer, id, 0, line);
	peer_collect(peer, id, true, result);
}

static void take_next(struct peer *peer, struct peer_result *result)
{
	struct peer_frame frame;

	assert_true(peer_next(peer, &frame));
	peer_take(result, &frame);
	peer_frame_free(&frame);
}

void peer_wait_for_output(struct peer *peer, struct peer_result *result, size_t len)
{
	while (result->out.len < len)
		take_next(peer, result);
}

void peer_wait_for_text(struct peer *peer, struct peer_result *result, const char *text)
{
	while (result->out.len == 0 ||
		!memmem(result->out.data, result->out.len, text, strlen(text))) {
		assert_false(result->exited);
		take_next(peer, result);
	}
}

void peer_wait_for_nobody(struct peer *peer, uint32_t id, struct peer_result *result)
{
	do {
		struct peer_frame frame;

		assert_true(peer_next(peer, &frame));
		if (frame.id == id)
			peer_take(result, &frame);
		peer_frame_free(&frame);
	} while (result->survivors_told == 0 || result->survivors > 0);
}

void peer_assert_text(const struct buf *buf, const char *text)
{
	assert_int_equal(buf->len, strlen(text));
	assert_memory_equal(buf->data ? buf->data : (const uint8_t *)"", text, buf->len);
}

bool peer_is_gone(const char *dir, const char *file)
{
	char *path = mem_printf("%s/%s", dir, file);
	FILE *stream = fopen(path, "r");
	int pid = 0;

	free(path);
	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%d", &pid), 1);
	fclose(stream);
	for (int i = 0; i < 1000; i++) {
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return true;
		poll(NULL, 0, 2);
	}
	kill(pid, SIGKILL);
	return false;
}

void peer_pass(struct peer *peer, uint32_t kind, uint32_t number, int fd)
{
	const struct agent_control message = {kind, number};

	assert_int_equal(fdpass_send(peer->control, &message, sizeof(message), &fd, 1, 0),
		(ssize_t)sizeof(message));
}

int peer_open_channel(struct peer *peer, const void *first, size_t len)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(fd_write_full(ends[0], first, len), 0);
	peer_pass(peer, AGENT_CONTROL_CHANNEL, 0, ends[1]);
	close(ends[1]);
	assert_int_equal(fd_set_timeout(ends[0], DEADLINE_MS), 0);
	return ends[0];
}

int peer_file(struct peer *peer, enum agent_file_op op, const struct buf *args)
{
	struct buf out = BUF_INIT(2 * 1024 * 1024);
	int channel;

	frame_put_header(&out, AGENT_FILE, 0, (uint32_t)(5 + args->len));
	pack_u8(&out, (uint8_t)op);
	pack_u32(&out, 1000) /* the user */;
	buf_append(&out, args->data, args->len);
	channel = peer_open_channel(peer, out.data, out.len);
	buf_fini(&out);
	return channel;
}

int peer_file_path(struct peer *peer, enum agent_file_op op, const char *path)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	int channel;

	pack_str(&args, path);
	channel = peer_file(peer, op, &args);
	buf_fini(&args);
	return channel;
}

bool peer_read(int channel, void *data, size_t len)
{
	int r = fd_read_full(channel, data, len);

	assert_true(r == 0 || r == -ENODATA || r == -ECONNRESET);
	return r == 0;
}

bool peer_answer(int channel, struct peer_answer *ret_answer)
{
	uint8_t raw[AGENT_FILE_ANSWER_LEN];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	struct agent_file_answer *a = &ret_answer->answer;

	if (!peer_read(channel, raw, sizeof(raw)))
		return false;
	a->errnum = unpack_u32(&in);
	a->kind = unpack_u8(&in);
	a->flags = unpack_u8(&in);
	a->target_len = unpack_u16(&in);
	a->mode = unpack_u32(&in);
	a->uid = unpack_u32(&in);
	a->gid = unpack_u32(&in);
	a->size = unpack_u64(&in);
	a->mtime_ns = unpack_u64(&in);
	a->ctime_ns = unpack_u64(&in);
	a->inode = unpack_u64(&in);
	assert_true(unpack_done(&in));
	assert_true(a->target_len < AGENT_PATH_MAX);
	ret_answer->target[a->target_len] = '\0';
	return peer_read(channel, ret_answer->target, a->target_len);
}

int peer_errnum(int channel, struct peer_answer *ret_answer)
{
	assert_true(peer_answer(channel, ret_answer));
	return (int)ret_answer->answer.errnum;
}

bool peer_at_end(int channel)
{
	char byte;

	return read(channel, &byte, 1) == 0;
}

char *peer_make_temp(void)
{
	/* In memory: ext4 takes seconds for trees that are made only to be removed. */
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	char *dir = mem_printf("%s/test-agent-XXXXXX", base);

	assert_non_null(mkdtemp(dir));
	return dir;
}

void peer_remove_temp(char *dir)
{
	char *line = mem_printf("rm -rf '%s'", dir);

	assert_int_equal(system(line), 0);
	free(line);
	free(dir);
}

int peer_setup(void **state)
{
	struct peer *peer = mem_new(sizeof(*peer));

	peer_start(peer);
	assert_int_equal(peer_attach(peer, NULL, 0), 0);
	*state = peer;
	return 0;
}

int peer_teardown(void **state)
{
	peer_stop(*state);
	free(*state);
	return 0;
}

void peer_kill_family(struct peer *peer, uint32_t id, const char *dir, struct peer_result *result)
{
	peer_signal(peer, id, SIGKILL, true);
	peer_collect(peer, id, true, result);
	assert_int_equal(WTERMSIG(result->wait_status), SIGKILL);
	assert_true(peer_is_gone(dir, "a"));
	assert_true(peer_is_gone(dir, "b"));
	assert_true(peer_is_gone(dir, "c"));
}

size_t peer_number_of(const char *line)
{
	FILE *stream = popen(line, "r");
	size_t number = 0;

	assert_non_null(stream);
	assert_int_equal(fscanf(stream, "%zu", &number), 1);
	pclose(stream);
	return number;
}
