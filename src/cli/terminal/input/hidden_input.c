/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/input/hidden_input.h"

#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* Those that end or stop a program at its terminal. They are held, so that it is shown again before they act. */
static const int held_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

static int hide(const struct termios *before)
{
	struct termios hidden = *before;

	hidden.c_lflag &= ~(tcflag_t)ECHO;
	hidden.c_lflag |= ECHONL;
	return tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
}

static void show(const struct termios *before)
{
	tcsetattr(STDIN_FILENO, TCSADRAIN, before);
}

/* What was ignored before us stays ignored. */
static void collect_signals(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < array_len(held_signals); i++) {
		struct sigaction now;

		if (sigaction(held_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, held_signals[i]);
	}
}

/* Lets the signal act that has come. Whoever was only stopped goes on. */
static int obey_signal(int signal_fd, const struct termios *before, const sigset_t *held)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	show(before);
	raise((int)info.ssi_signo);
	sigprocmask(SIG_UNBLOCK, held, NULL);
	sigprocmask(SIG_BLOCK, held, NULL);
	return hide(before);
}

/* Whether the line has ended; -errno. */
static int read_some(struct buf *line)
{
	char bytes[4096];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	bool is_whole = n > 0 && bytes[n - 1] == '\n';
	int r = n < 0 ? -errno : buf_append(line, bytes, (size_t)n - is_whole);

	explicit_bzero(bytes, sizeof(bytes));
	return r < 0 ? r : n == 0 || is_whole;
}

static int read_line(
	struct buf *line, int signal_fd, const struct termios *before, const sigset_t *held)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	int r = hide(before) < 0 ? -errno : 0;

	while (r == 0) {
		if (poll(fds, array_len(fds), -1) < 0)
			r = -errno;
		else if (fds[1].revents)
			r = obey_signal(signal_fd, before, held) < 0 ? -errno : 0;
		else if (fds[0].revents)
			r = read_some(line);
	}
	show(before);
	return r < 0 ? r : 0;
}

int hidden_input_read(struct buf *line, struct err *err)
{
	auto_fd int signal_fd = -1;
	struct termios before;
	sigset_t held, mask;
	int r;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return err_sys(err, "read the state of the terminal");
	collect_signals(&held);
	signal_fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0 || sigprocmask(SIG_BLOCK, &held, &mask) < 0)
		return err_sys(err, "hold signals");
	r = read_line(line, signal_fd, &before, &held);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return r < 0 ? err_from(err, r, "read from the terminal") : 0;
}
