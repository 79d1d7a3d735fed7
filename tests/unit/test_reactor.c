/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "core/reactor.h"
#include "core_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct probe {
	int fd; /* an eventfd, or one end of a socket pair */
	struct watch *watch;
	atomic_int calls, releases;
	atomic_uint events;
	atomic_bool late; /* called after the release */
	pthread_t thread; /* that it was last called on */
	bool closes;	  /* itself, when called */
	sem_t called, released;
};

static void ready(void *arg, uint32_t events)
{
	struct probe *probe = arg;
	uint64_t value;

	(void)!read(probe->fd, &value, sizeof(value));
	atomic_fetch_add(&probe->calls, 1);
	atomic_store(&probe->events, events);
	if (atomic_load(&probe->releases) > 0)
		atomic_store(&probe->late, true);
	probe->thread = pthread_self();
	if (probe->closes)
		watch_close(probe->watch);
	sem_post(&probe->called);
}

static void released(void *arg)
{
	struct probe *probe = arg;

	atomic_fetch_add(&probe->releases, 1);
	sem_post(&probe->released);
}

static void probe_init(struct probe *probe, struct reactor *reactor, uint32_t events)
{
	struct err err;

	memset(probe, 0, sizeof(*probe));
	sem_init(&probe->called, 0, 0);
	sem_init(&probe->released, 0, 0);
	probe->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(probe->fd >= 0);
	assert_int_equal(
		watch_open(reactor, probe->fd, events, ready, released, probe, &probe->watch, &err),
		0);
}

static void probe_fini(struct probe *probe)
{
	assert_int_equal(probe->releases, 1);
	assert_false(probe->late);
	close(probe->fd);
	sem_destroy(&probe->called);
	sem_destroy(&probe->released);
}

static void poke(struct probe *probe)
{
	assert_int_equal(write(probe->fd, &(uint64_t){1}, 8), 8);
}

static struct reactor *open_reactor(void)
{
	struct reactor *reactor = NULL;
	struct err err;

	assert_int_equal(reactor_open(&reactor, &err), 0);
	return reactor;
}

static void a_watch_is_called_on_the_reactor_s_thread(void **state)
{
	struct reactor *reactor = open_reactor();
	struct probe probe;

	(void)state;
	probe_init(&probe, reactor, EPOLLIN);
	for (int i = 1; i <= 3; i++) {
		poke(&probe);
		world_await(&probe.called);
		assert_int_equal(probe.calls, i);
	}
	assert_true(probe.events & EPOLLIN);
	assert_false(pthread_equal(probe.thread, pthread_self()));
	watch_close(probe.watch);
	world_await(&probe.released);
	reactor_close(reactor);
	probe_fini(&probe);
}

static void a_closed_watch_is_released_once_and_not_called_again(void **state)
{
	struct reactor *reactor = open_reactor();
	struct probe probe, other;

	(void)state;
	probe_init(&probe, reactor, EPOLLIN);
	probe_init(&other, reactor, EPOLLIN);
	watch_close(probe.watch);
	world_await(&probe.released);
	poke(&probe);
	poke(&other); /* once this was seen, the other would have been too */
	world_await(&other.called);
	assert_int_equal(probe.calls, 0);
	watch_close(other.watch);
	world_await(&other.released);
	reactor_close(reactor);
	probe_fini(&probe);
	probe_fini(&other);
}

static void a_watch_may_close_itself_from_within(void **state)
{
	struct reactor *reactor = open_reactor();
	struct probe probe;

	(void)state;
	probe_init(&probe, reactor, EPOLLIN);
	probe.closes = true;
	poke(&probe);
	world_await(&probe.released);
	assert_int_equal(probe.calls, 1);
	reactor_close(reactor);
	probe_fini(&probe);
}

static void the_events_of_a_watch_can_be_changed(void **state)
{
	struct reactor *reactor = open_reactor();
	struct probe probe, other;

	(void)state;
	probe_init(&probe, reactor, 0);
	probe_init(&other, reactor, EPOLLIN);
	poke(&probe);
	poke(&other);
	world_await(&other.called);
	assert_int_equal(probe.calls, 0);
	watch_set(probe.watch, EPOLLIN);
	world_await(&probe.called);
	assert_int_equal(probe.calls, 1);
	watch_close(probe.watch);
	watch_close(other.watch);
	reactor_close(reactor);
	probe_fini(&probe);
	probe_fini(&other);
}

static void closing_the_reactor_releases_what_was_closed_before(void **state)
{
	struct reactor *reactor = open_reactor();
	struct probe probes[100];

	(void)state;
	for (size_t i = 0; i < array_len(probes); i++)
		probe_init(&probes[i], reactor, EPOLLIN);
	for (size_t i = 0; i < array_len(probes); i++)
		poke(&probes[i]);
	for (size_t i = 0; i < array_len(probes); i++)
		watch_close(probes[i].watch);
	reactor_close(reactor);
	for (size_t i = 0; i < array_len(probes); i++)
		probe_fini(&probes[i]);
}

static void a_descriptor_that_cannot_be_watched_is_an_error(void **state)
{
	struct reactor *reactor = open_reactor();
	struct watch *watch = (struct watch *)&watch;
	struct probe probe = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(
		watch_open(reactor, -1, EPOLLIN, ready, released, &probe, &watch, &err), -EBADF);
	assert_int_equal(err.kind, ERR_INTERNAL);
	assert_int_equal(probe.releases, 0);
	reactor_close(reactor);
}

/* Two threads: one pokes, one closes at any moment. */
static void *poke_a_lot(void *arg)
{
	struct probe *probe = arg;

	for (int i = 0; i < 200; i++)
		(void)!write(probe->fd, &(uint64_t){1}, 8);
	return NULL;
}

static void a_watch_can_be_closed_from_any_thread_at_any_moment(void **state)
{
	struct reactor *reactor = open_reactor();

	(void)state;
	for (int round = 0; round < 100; round++) {
		struct probe probe;
		pthread_t thread;

		probe_init(&probe, reactor, EPOLLIN);
		assert_int_equal(pthread_create(&thread, NULL, poke_a_lot, &probe), 0);
		if (round % 2)
			world_await(&probe.called);
		watch_close(probe.watch);
		world_await(&probe.released);
		pthread_join(thread, NULL);
		probe_fini(&probe);
	}
	reactor_close(reactor);
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	watch_close(NULL);
	reactor_close(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_is_called_on_the_reactor_s_thread),
		cmocka_unit_test(a_closed_watch_is_released_once_and_not_called_again),
		cmocka_unit_test(a_watch_may_close_itself_from_within),
		cmocka_unit_test(the_events_of_a_watch_can_be_changed),
		cmocka_unit_test(closing_the_reactor_releases_what_was_closed_before),
		cmocka_unit_test(a_descriptor_that_cannot_be_watched_is_an_error),
		cmocka_unit_test(a_watch_can_be_closed_from_any_thread_at_any_moment),
		cmocka_unit_test(closing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
