/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native/keeper_watch.h"

#include "base/fd.h"
#include "base/log.h"
#include "driver/driver.h"
#include "wire/keeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_MS      1000 /* between an answer and the next question */
#define LOOK_MS	      250
#define RETRY_AFTER_S 3 /* the time in which a supervisor has started both again */

enum keeper_health {
	KEEPER_ANSWERS,
	KEEPER_IS_SILENT,
	KEEPER_IS_GONE,
};

struct keeper_watch {
	int sock;
	uint64_t patience_ms;		  /* 0: without an end */
	int trouble_fd, gone_fd, stop_fd; /* eventfds */
	_Atomic enum keeper_health health;
	pthread_t thread;
	bool runs;
};

int keeper_watch_explain_gone(struct err *err, const char *why)
{
	int r = err_explain(err, ERR_UNAVAILABLE, DRIVER_SERVES_NOBODY,
		"try again in a few seconds; sandlotd leaves, and has to be started again",
		"the keeper is gone: %s", why);

	if (err)
		err->retry_after_s = RETRY_AFTER_S;
	return r;
}

int keeper_watch_explain_silence(struct err *err)
{
	int r = err_explain(err, ERR_UNAVAILABLE, DRIVER_SERVES_NOBODY,
		"see what the process sandlot-keeper waits for; if it is killed, its sandboxes end "
		"and "
		"sandlotd leaves to be started again",
		"the keeper runs but does not answer");

	if (err)
		err->retry_after_s = RETRY_AFTER_S;
	return r;
}

/* Makes the descriptor readable, or not readable any more. */
static void set_readable(int event_fd, bool is_readable)
{
	uint64_t value = 1;

	if (is_readable)
		(void)!write(event_fd, &value, sizeof(value));
	else
		(void)!read(event_fd, &value, sizeof(value));
}

static void set_health(struct keeper_watch *watch, enum keeper_health health)
{
	enum keeper_health before = atomic_exchange(&watch->health, health);

	if (before == health)
		return;
	if (health == KEEPER_ANSWERS)
		log_info("the keeper answers again");
	else if (health == KEEPER_IS_SILENT)
		log_error("the keeper has not answered for %d s", KEEPER_WATCH_SILENT_MS / 1000);
	set_readable(watch->trouble_fd, health != KEEPER_ANSWERS);
	if (health == KEEPER_IS_GONE)
		set_readable(watch->gone_fd, true);
}

/* Waits for a packet; 1 if one came, 0 after ms, -1 if the keeper hung up or the watch is being closed. */
static int wait_for_packet(struct keeper_watch *watch, int ms)
{
	struct pollfd fds[] = {
		{.fd = watch->sock, .events = POLLIN}, {.fd = watch->stop_fd, .events = POLLIN}};
	int n;

	do
		n = poll(fds, array_len(fds), ms);
	while (n < 0 && errno == EINTR);
	if (fds[1].revents)
		return -1;
	/* Without a packet before it, the end of the connection reads as one of no bytes. */
	return n > 0 ? 1 : n;
}

/*
 * Asks once and waits for the answer, as long as its patience lasts. It counts only time in which this
 * thread ran, so neither a suspended machine nor a stopped daemon makes a keeper seem to hang.
 * False when the keeper is gone, or given up.
 */
static bool ask(struct keeper_watch *watch)
{
	const struct keeper_request request = {.kind = KEEPER_HELLO};
	struct keeper_answer answer;
	uint64_t waited_ms = 0;
	int r;

	if (send(watch->sock, &request, keeper_request_size(&request),
		    MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return false;
	while ((r = wait_for_packet(watch, LOOK_MS)) == 0) {
		waited_ms += LOOK_MS;
		if (waited_ms >= KEEPER_WATCH_SILENT_MS)
			set_health(watch, KEEPER_IS_SILENT);
		if (watch->patience_ms > 0 && waited_ms >= watch->patience_ms) {
			log_error("the keeper has not answered for %llu s, and is given up",
				(unsigned long long)waited_ms / 1000);
			return false;
		}
	}
	if (r < 0 || recv(watch->sock, &answer, sizeof(answer), MSG_DONTWAIT) <= 0)
		return false;
	set_health(watch, KEEPER_ANSWERS);
	return true;
}

static void *run(void *arg)
{
	struct keeper_watch *watch = arg;

	pthread_setname_np(pthread_self(), "keeper-watch");
	/* The keeper sends nothing unasked, so a packet in the pause is the end of the
	 * connection. */
	while (ask(watch) && wait_for_packet(watch, PAUSE_MS) == 0)
		;
	set_health(watch, KEEPER_IS_GONE);
	return NULL;
}

/* A caller may see it before the thread does. */
static bool has_hung_up(const struct keeper_watch *watch)
{
	struct pollfd keeper = {.fd = watch->sock, .events = POLLRDHUP};

	return poll(&keeper, 1, 0) > 0;
}

int keeper_watch_check(struct keeper_watch *watch, struct err *err)
{
	if (has_hung_up(watch))
		return keeper_watch_explain_gone(err, "its connection has ended");
	switch (atomic_load(&watch->health)) {
	case KEEPER_IS_GONE:
		return keeper_watch_explain_gone(err, "its connection has ended, or it hangs");
	case KEEPER_IS_SILENT:
		return keeper_watch_explain_silence(err);
	default:
		return 0;
	}
}

int keeper_watch_trouble_fd(const struct keeper_watch *watch)
{
	return watch->trouble_fd;
}

int keeper_watch_gone_fd(const struct keeper_watch *watch)
{
	return watch->gone_fd;
}

int keeper_watch_open(const struct sockaddr_un *address, uint64_t patience_ms,
	struct keeper_watch **ret_watch, struct err *err)
{
	struct keeper_watch *watch = mem_new(sizeof(*watch));
	int r = 0;

	watch->patience_ms = patience_ms;

	watch->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	watch->trouble_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->gone_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch->sock < 0 || watch->trouble_fd < 0 || watch->gone_fd < 0 || watch->stop_fd < 0)
		r = err_sys(err, "watch the keeper");
	else if ((r = fd_set_timeout(watch->sock, KEEPER_WATCH_SILENT_MS)) < 0)
		err_from(err, r, "watch the keeper");
	else if (connect(watch->sock, (const struct sockaddr *)address, sizeof(*address)) < 0)
		r = errno == EAGAIN ? keeper_watch_explain_silence(err)
				    : keeper_watch_explain_gone(err, strerror(errno));
	if (r == 0) {
		r = -pthread_create(&watch->thread, NULL, run, watch);
		watch->runs = r == 0;
		if (r < 0)
			err_from(err, r, "start the keeper's watch");
	}
	if (r < 0) {
		keeper_watch_close(watch);
		return r;
	}
	*ret_watch = watch;
	return 0;
}

void keeper_watch_close(struct keeper_watch *watch)
{
	if (!watch)
		return;
	if (watch->runs) {
		set_readable(watch->stop_fd, true);
		pthread_join(watch->thread, NULL);
	}
	fd_close(watch->sock);
	fd_close(watch->trouble_fd);
	fd_close(watch->gone_fd);
	fd_close(watch->stop_fd);
	free(watch);
}
