/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/start/isolated_process.h"

#include "base/err.h"
#include "base/fd.h"
#include "wire/agent.h"
#include "wire/fdpass.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The isolated command is built before the agent hears of it, so its init answers at once. */
#define RECONNECT_MS 2000

/* Receives the keeper's result of the build, and the listener. */
static int take_listener(struct isolated_process *isolated)
{
	int fds[FDPASS_MAX];
	struct err built;
	ssize_t n = fdpass_recv(isolated->sock, &built, sizeof(built), fds, 0);

	isolated->listener_fd = fds[0];
	if (n < 0)
		return (int)n;
	return n == (ssize_t)sizeof(built) && built.kind == ERR_NONE ? 0 : -ECONNRESET;
}

static int send_command(const struct isolated_process *isolated, const struct frame *frame,
	const struct spawn_target *target)
{
	/* A command without input gets the agent's own: /dev/null. */
	int fds[FDPASS_MAX] = {target->fds[0] < 0 ? 0 : target->fds[0], target->fds[1],
		target->fds[2], target->group_fd};
	struct buf head = BUF_INIT(4);
	ssize_t n;

	pack_u32(&head, frame->len);
	n = fdpass_send(isolated->sock, head.data, head.len, fds, target->group_fd < 0 ? 3 : 4, 0);
	buf_fini(&head);
	if (n < 0)
		return (int)n;
	return fd_write_full(isolated->sock, frame->payload, frame->len);
}

/* The pid that the process of a pidfd has in our namespace. */
static pid_t number_of(int pid_fd)
{
	char path[48], text[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	if (fd_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -EIO;
	at = strstr(text, "\nPid:");
	return at ? atoi(at + strlen("\nPid:")) : -EIO;
}

static pid_t receive_pid(struct isolated_process *isolated, int *ret_stage)
{
	uint8_t raw[2 * 4];
	int fds[FDPASS_MAX];
	ssize_t n = fdpass_recv(isolated->sock, raw, sizeof(raw), fds, MSG_WAITALL);
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	uint32_t stage = unpack_u32(&in), errnum = unpack_u32(&in);

	isolated->pid_fd = fds[0];
	if (n != (ssize_t)sizeof(raw))
		return n < 0 ? (int)n : -ECONNRESET;
	if (stage == 0)
		return isolated->pid_fd >= 0 ? number_of(isolated->pid_fd) : -EPROTO;
	if (stage > AGENT_STAGE_EXEC || errnum == 0 || errnum > 4095)
		return -EPROTO;
	*ret_stage = (int)stage;
	return -(int)errnum;
}

pid_t isolated_process_start(struct isolated_process *isolated, const struct frame *frame,
	const struct spawn_target *target, int *ret_stage)
{
	int r;

	*ret_stage = AGENT_STAGE_SETUP;
	r = fd_set_timeout(isolated->sock, RECONNECT_MS);
	if (r == 0)
		r = take_listener(isolated);
	if (r == 0)
		r = send_command(isolated, frame, target);
	if (r == 0)
		r = receive_pid(isolated, ret_stage);
	/* Until now the isolated init has not reaped the process, so no other could have its
	 * pid. */
	if (r > 0 && fd_write_full(isolated->sock, "", 1) < 0)
		r = -ECONNRESET;
	return r;
}

int isolated_process_signal(const struct isolated_process *isolated, int signal)
{
	return syscall(SYS_pidfd_send_signal, isolated->pid_fd, signal, NULL, 0) < 0 ? -errno : 0;
}

void isolated_process_read_end(
	struct isolated_process *isolated, int *ret_wait_status, uint64_t *ret_peak_bytes)
{
	uint8_t raw[4 + 8];
	bool is_told = fd_read_full(isolated->sock, raw, sizeof(raw)) == 0;
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));

	*ret_wait_status = is_told ? (int)unpack_u32(&in) : SIGKILL;
	*ret_peak_bytes = is_told ? unpack_u64(&in) : 0;
}

void isolated_process_close(struct isolated_process *isolated)
{
	fd_close(isolated->sock);
	fd_close(isolated->pid_fd);
	fd_close(isolated->listener_fd);
	*isolated = ISOLATED_PROCESS_NONE;
}
