/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/streams/pty.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define TTY_GID	 5 /* as devpts is mounted, and as grantpt() has it */
#define TTY_MODE 0620
#define CTRL_D	 4

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* Where only one user exists (a test) the terminal is that user's already. */
static int give_to(int slave, const struct payload_exec *exec, uid_t own_uid)
{
	if (fchown(slave, exec->uid, TTY_GID) < 0 && exec->uid != own_uid)
		return -errno;
	return fchmod(slave, TTY_MODE) < 0 ? -errno : 0;
}

/* The kernel's defaults, but that the eraser of a line knows characters of several bytes. */
static int set_up(int slave)
{
	struct termios settings;

	if (tcgetattr(slave, &settings) < 0)
		return -errno;
	settings.c_iflag |= IUTF8;
	return tcsetattr(slave, TCSANOW, &settings) < 0 ? -errno : 0;
}

int pty_open(const struct payload_exec *exec, uid_t own_uid, int *ret_master, int *ret_slave)
{
	auto_fd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	auto_fd int slave = -1;
	int locked = 0;
	int r;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if ((r = give_to(slave, exec, own_uid)) < 0 || (r = set_up(slave)) < 0)
		return r;
	pty_resize(master, exec->columns, exec->rows);
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}

void pty_resize(int master, uint16_t columns, uint16_t rows)
{
	struct winsize size = {.ws_col = columns, .ws_row = rows};

	/* Fails only for what is no terminal. */
	(void)!ioctl(master, TIOCSWINSZ, &size);
}

uint8_t pty_eof(int master)
{
	struct termios settings;

	/* 0 is "there is none": then the byte that most programs take for it. */
	if (tcgetattr(master, &settings) < 0 || settings.c_cc[VEOF] == 0)
		return CTRL_D;
	return settings.c_cc[VEOF];
}
