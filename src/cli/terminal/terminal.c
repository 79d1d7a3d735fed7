/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/terminal.h"

#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SIZE_MAX_CELLS 1000 /* what the daemon takes */

static const int held_signals[] = {SIGWINCH, SIGCONT, SIGTSTP};
static const int fatal_signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

/* A handler has no argument: what it restores must be found here. Set while the terminal is raw. */
static const struct termios *volatile to_restore;

bool terminal_is_there(void)
{
	return isatty(STDIN_FILENO) == 1;
}

static int bounded(int cells, int otherwise)
{
	if (cells <= 0)
		return otherwise;
	return cells < SIZE_MAX_CELLS ? cells : SIZE_MAX_CELLS;
}

struct terminal_size terminal_size(void)
{
	static const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	struct winsize size = {0};

	for (size_t i = 0; i < array_len(fds); i++) {
		if (ioctl(fds[i], TIOCGWINSZ, &size) == 0)
			break;
	}
	return (struct terminal_size){bounded(size.ws_col, 80), bounded(size.ws_row, 24)};
}

static void restore_and_die(int signal_number)
{
	if (to_restore)
		tcsetattr(STDIN_FILENO, TCSANOW, to_restore);
	raise(signal_number); /* SA_RESETHAND: this time it ends us */
}

int terminal_open(struct terminal *terminal, struct err *err)
{
	struct sigaction fatal = {.sa_handler = restore_and_die, .sa_flags = (int)SA_RESETHAND};
	sigset_t set;

	if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
		return err_sys(err, "read the state of the terminal");
	for (size_t i = 0; i < array_len(fatal_signals); i++)
		sigaction(fatal_signals[i], &fatal, NULL);
	sigemptyset(&set);
	for (size_t i = 0; i < array_len(held_signals); i++)
		sigaddset(&set, held_signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, "hold signals");
	terminal->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (terminal->signal_fd < 0)
		return err_sys(err, "hold signals");
	return 0;
}

void terminal_close(struct terminal *terminal)
{
	terminal_restore(terminal);
	fd_close(take_fd(&terminal->signal_fd));
}

int terminal_make_raw(struct terminal *terminal, struct err *err)
{
	struct termios raw = terminal->before;

	if (terminal->is_raw)
		return 0;
	cfmakeraw(&raw);
	to_restore = &terminal->before;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return err_sys(err, "make the terminal raw");
	terminal->is_raw = true;
	return 0;
}

void terminal_restore(struct terminal *terminal)
{
	if (!terminal->is_raw)
		return;
	/* Not TCSAFLUSH: what was typed ahead is for the shell that comes after us. */
	tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	to_restore = NULL;
	terminal->is_raw = false;
}

int terminal_take_signal(struct terminal *terminal, enum terminal_event *ret, struct err *err)
{
	bool was_raw = terminal->is_raw;
	struct signalfd_siginfo info;

	*ret = TERMINAL_NOTHING;
	if (read(terminal->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	*ret = TERMINAL_RESIZED;
	if (info.ssi_signo == SIGWINCH)
		return 0;
	terminal_restore(terminal);
	if (info.ssi_signo == SIGTSTP)
		raise(SIGSTOP);
	/* Whoever had the terminal meanwhile may have left it in any state. */
	return was_raw ? terminal_make_raw(terminal, err) : 0;
}
