/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/interrupt.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int interrupt_hold(struct interrupt *interrupt, struct err *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;

	if (interrupt->fd >= 0)
		return 0;
	sigemptyset(&set);
	for (size_t i = 0; i < array_len(signals); i++) {
		struct sigaction now;

		/* What nohup or a shell's "&" made us ignore stays ignored; a blocked signal would
		 * be queued all the same. */
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(err, "hold signals");
	interrupt->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (interrupt->fd < 0)
		return err_sys(err, "hold signals");
	return 0;
}

void interrupt_fini(struct interrupt *interrupt)
{
	fd_close(take_fd(&interrupt->fd));
}

void interrupt_watch(struct interrupt *interrupt, bool is_watched)
{
	interrupt->is_watched = is_watched && interrupt->fd >= 0;
}

int interrupt_fd(const struct interrupt *interrupt)
{
	return interrupt->is_watched ? interrupt->fd : -1;
}

int interrupt_check(struct interrupt *interrupt, struct err *err)
{
	struct signalfd_siginfo info;

	if (!interrupt->is_watched ||
		read(interrupt->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	interrupt->signal = (int)info.ssi_signo;
	err_explain(err, ERR_UNAVAILABLE, "interrupted", NULL, "interrupted");
	return -EINTR;
}

int interrupt_wait(struct interrupt *interrupt, int fd, short events, int wait_ms, struct err *err)
{
	struct pollfd fds[2] = {
		{.fd = fd, .events = events},
		{.fd = interrupt_fd(interrupt), .events = POLLIN},
	};
	uint64_t deadline_ms = clock_steady_ms() + (uint64_t)wait_ms;
	int r;

	for (;;) {
		uint64_t now_ms = clock_steady_ms();

		if (now_ms >= deadline_ms)
			return 0;
		if (poll(fds, 2, (int)(deadline_ms - now_ms)) <= 0)
			continue;
		r = interrupt_check(interrupt, err);
		if (r < 0)
			return r;
		if (fds[0].revents)
			return 1;
	}
}
