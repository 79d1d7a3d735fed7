/* SPDX-License-Identifier: Apache-2.0 */
#include "core/alarm.h"

#include "base/fd.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct alarm {
	int fd;
	struct watch *watch;
	void (*ring)(void *arg);
	void (*release)(void *arg);
	void *arg;
};

void alarm_set(struct alarm *alarm, uint64_t ms)
{
	/* A value of zero would disarm it. */
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(ms / 1000),
					  .tv_nsec = (long)(ms % 1000) * 1000000 + 1}};

	timerfd_settime(alarm->fd, 0, &when, NULL);
}

static void ready(void *arg, uint32_t events)
{
	struct alarm *alarm = arg;
	uint64_t expirations;

	(void)events;
	if (read(alarm->fd, &expirations, sizeof(expirations)) > 0)
		alarm->ring(alarm->arg);
}

static void alarm_free(struct alarm *alarm)
{
	fd_close(alarm->fd);
	free(alarm);
}

static void released(void *arg)
{
	struct alarm *alarm = arg;

	alarm->release(alarm->arg);
	alarm_free(alarm);
}

int alarm_open(struct reactor *reactor, uint64_t ms, void (*ring)(void *arg),
	void (*release)(void *arg), void *arg, struct alarm **ret_alarm, struct err *err)
{
	struct alarm *alarm = mem_new(sizeof(*alarm));
	int r;

	alarm->ring = ring;
	alarm->release = release;
	alarm->arg = arg;
	alarm->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->fd < 0) {
		free(alarm);
		return err_sys(err, "make a timer");
	}
	alarm_set(alarm, ms);
	/* The caller must have it before it rings. */
	*ret_alarm = alarm;
	r = watch_open(reactor, alarm->fd, EPOLLIN, ready, released, alarm, &alarm->watch, err);
	if (r < 0) {
		*ret_alarm = NULL;
		alarm_free(alarm);
	}
	return r;
}

void alarm_close(struct alarm *alarm)
{
	if (alarm)
		watch_close(alarm->watch);
}
