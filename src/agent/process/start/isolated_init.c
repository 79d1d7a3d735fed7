/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/start/isolated_init.h"

#include "agent/process/start/spawn.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Receives the whole request of the agent; 0 or -errno. The caller frees *ret_payload. */
static int receive(
	int sock, uint8_t **ret_payload, uint32_t *ret_len, struct spawn_target *ret_target)
{
	auto_free uint8_t *payload = NULL;
	int fds[FDPASS_MAX];
	uint8_t raw[4];
	ssize_t n = fdpass_recv(sock, raw, sizeof(raw), fds, MSG_WAITALL);
	uint32_t len = unpack_u32(&UNPACK_INIT(raw, sizeof(raw)));
	int r;

	if (n != (ssize_t)sizeof(raw) || len > AGENT_DOWN_MAX || fds[2] < 0)
		return -EPROTO;
	payload = mem_new(len);
	r = fd_read_full(sock, payload, len);
	if (r < 0)
		return r;
	*ret_target =
		(struct spawn_target){.fds = {fds[0], fds[1], fds[2], -1}, .group_fd = fds[3]};
	*ret_payload = take_ptr(&payload);
	*ret_len = len;
	return 0;
}

/* Returns the pid; or -errno with its stage. */
static pid_t start(int sock, int score_fd, int *ret_stage)
{
	auto_free uint8_t *payload = NULL;
	struct spawn_base base;
	struct payload_exec exec;
	struct spawn_target target;
	struct frame frame = {0};
	int r = receive(sock, &payload, &frame.len, &target);

	*ret_stage = AGENT_STAGE_SETUP;
	frame.payload = payload;
	if (r == 0)
		r = payload_exec_parse(&frame, &exec);
	if (r < 0)
		return r;
	spawn_prepare(&base, score_fd, -1);
	target.is_terminal = exec.flags & AGENT_EXEC_PTY;
	r = spawn_run(&base, &exec, &target, ret_stage);
	payload_exec_fini(&exec);
	for (size_t i = 0; i < 3; i++)
		fd_close(target.fds[i]);
	fd_close(target.group_fd);
	return r;
}

static int tell_start(int sock, pid_t pid, int stage)
{
	auto_fd int pid_fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct buf words = BUF_INIT(8);
	ssize_t n;

	if (pid > 0 && pid_fd < 0)
		return -errno;
	pack_u32(&words, pid > 0 ? 0 : (uint32_t)stage);
	pack_u32(&words, pid > 0 ? 0 : (uint32_t)-pid);
	n = fdpass_send(sock, words.data, words.len, &pid_fd, pid_fd >= 0, 0);
	buf_fini(&words);
	return n < 0 ? (int)n : 0;
}

/* Waits for the main process, reaping others, and then kills and reaps those that are left. */
static void wait_for_all(pid_t pid, int *ret_status, struct rusage *ret_usage)
{
	struct rusage usage;
	pid_t ended;
	int status;

	do {
		ended = wait4(-1, &status, 0, &usage);
	} while (ended != pid && (ended > 0 || errno == EINTR));
	*ret_status = status;
	*ret_usage = usage;
	/* Where it is not PID 1, -1 would mean the whole machine. */
	if (getpid() == 1)
		kill(-1, SIGKILL);
	while (wait4(-1, &status, 0, NULL) > 0 || errno == EINTR)
		;
}

int isolated_init_run(int sock, int score_fd)
{
	struct buf words = BUF_INIT(12);
	struct rusage usage;
	int stage, status, r;
	uint8_t byte;
	pid_t pid;

	umask(022);
	prctl(PR_SET_DUMPABLE, 0);
	spawn_block_signals();
	if (fcntl(sock, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	pid = start(sock, score_fd, &stage);
	if (tell_start(sock, pid, stage) < 0 || pid < 0 || fd_read_full(sock, &byte, 1) < 0)
		return 1;
	wait_for_all(pid, &status, &usage);
	pack_u32(&words, (uint32_t)status);
	pack_u64(&words, (uint64_t)usage.ru_maxrss * 1024);
	r = fd_write_full(sock, words.data, words.len);
	return r < 0;
}
