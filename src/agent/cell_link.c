/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cell_link.h"

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

/* The cell is built before we hear of it, so it answers at once. */
#define PATIENCE_MS 2000

/* What the keeper said first, and the listener. */
static int take_listener(struct cell_link *cell)
{
	int fds[FDPASS_MAX];
	struct err built;
	ssize_t n = fdpass_recv(cell->sock, &built, sizeof(built), fds, 0);

	cell->listener_fd = fds[0];
	if (n < 0)
		return (int)n;
	return n == (ssize_t)sizeof(built) && built.kind == ERR_NONE ? 0 : -ECONNRESET;
}

static int send_command(
	const struct cell_link *cell, const struct frame *frame, const struct launch_seat *seat)
{
	/* Where the command has no input, it gets what we have: /dev/null. */
	int fds[FDPASS_MAX] = {
		seat->fds[0] < 0 ? 0 : seat->fds[0], seat->fds[1], seat->fds[2], seat->group_fd};
	struct buf head = BUF_INIT(4);
	ssize_t n;

	pack_u32(&head, frame->len);
	n = fdpass_send(cell->sock, head.data, head.len, fds, seat->group_fd < 0 ? 3 : 4, 0);
	buf_fini(&head);
	if (n < 0)
		return (int)n;
	return fd_write_full(cell->sock, frame->payload, frame->len);
}

/* The number that a pidfd's process has for us. */
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

static pid_t receive_pid(struct cell_link *cell, int *ret_stage)
{
	uint8_t raw[2 * 4];
	int fds[FDPASS_MAX];
	ssize_t n = fdpass_recv(cell->sock, raw, sizeof(raw), fds, MSG_WAITALL);
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	uint32_t stage = unpack_u32(&in), errnum = unpack_u32(&in);

	cell->pid_fd = fds[0];
	if (n != (ssize_t)sizeof(raw))
		return n < 0 ? (int)n : -ECONNRESET;
	if (stage == 0)
		return cell->pid_fd >= 0 ? number_of(cell->pid_fd) : -EPROTO;
	if (stage > AGENT_STAGE_EXEC || errnum == 0 || errnum > 4095)
		return -EPROTO;
	*ret_stage = (int)stage;
	return -(int)errnum;
}

pid_t cell_link_launch(struct cell_link *cell, const struct frame *frame,
	const struct launch_seat *seat, int *ret_stage)
{
	int r;

	*ret_stage = AGENT_STAGE_SETUP;
	r = fd_set_timeout(cell->sock, PATIENCE_MS);
	if (r == 0)
		r = take_listener(cell);
	if (r == 0)
		r = send_command(cell, frame, seat);
	if (r == 0)
		r = receive_pid(cell, ret_stage);
	/* Until now the warden has kept it from being buried, and its number from being anybody's. */
	if (r > 0 && fd_write_full(cell->sock, "", 1) < 0)
		r = -ECONNRESET;
	return r;
}

int cell_link_signal(const struct cell_link *cell, int signal)
{
	return syscall(SYS_pidfd_send_signal, cell->pid_fd, signal, NULL, 0) < 0 ? -errno : 0;
}

void cell_link_read_end(struct cell_link *cell, int *ret_wait_status, uint64_t *ret_peak_bytes)
{
	uint8_t raw[4 + 8];
	bool is_told = fd_read_full(cell->sock, raw, sizeof(raw)) == 0;
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));

	*ret_wait_status = is_told ? (int)unpack_u32(&in) : SIGKILL;
	*ret_peak_bytes = is_told ? unpack_u64(&in) : 0;
}

void cell_link_close(struct cell_link *cell)
{
	fd_close(cell->sock);
	fd_close(cell->pid_fd);
	fd_close(cell->listener_fd);
	*cell = CELL_LINK_NONE;
}
