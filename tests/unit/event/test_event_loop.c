/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "event/event_loop.h"
#include "sem_await.h"

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

static void probe_init(struct probe *probe, struct event_loop *loop, uint32_t events)
{
	struct err err;

	memset(probe, 0, sizeof(*probe));
	sem_init(&probe->called, 0, 0);
	sem_init(&probe->released, 0, 0);
	probe->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(probe->fd >= 0);
	assert_int_equal(
		watch_open(loop, probe->fd, events, ready, released, probe, &probe->watch, &err),
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

static struct event_loop *open_loop(void)
{
	struct event_loop *loop = NULL;
	struct err err;

	assert_int_equal(event_loop_open("test", NULL, &loop, &err), 0);
	return loop;
}

static void a_watch_is_called_on_the_loop_s_thread(void **state)
{
	struct event_loop *loop = open_loop();
	struct probe probe;

	(void)state;
	probe_init(&probe, loop, EPOLLIN);
	for (int i = 1; i <= 3; i++) {
		poke(&probe);
		sem_await(&probe.called);
		assert_int_equal(probe.calls, i);
	}
	assert_true(probe.events & EPOLLIN);
	assert_false(pthread_equal(probe.thread, pthread_self()));
	watch_close(probe.watch);
	sem_await(&probe.released);
	event_loop_close(loop);
	probe_fini(&probe);
}

static void a_closed_watch_is_released_once_and_not_called_again(void **state)
{
	struct event_loop *loop = open_loop();
	struct probe probe, other;

	(void)state;
	probe_init(&probe, loop, EPOLLIN);
	probe_init(&other, loop, EPOLLIN);
	watch_close(probe.watch);
	sem_await(&probe.released);
	poke(&probe);
	poke(&other); /* once this was seen, the other would have been too */
	sem_await(&other.called);
	assert_int_equal(probe.calls, 0);
	watch_close(other.watch);
	sem_await(&other.released);
	event_loop_close(loop);
	probe_fini(&probe);
	probe_fini(&other);
}

static void a_watch_may_close_itself_from_within(void **state)
{
	struct event_loop *loop = open_loop();
	struct probe probe;

	(void)state;
	probe_init(&probe, loop, EPOLLIN);
	probe.closes = true;
	poke(&probe);
	sem_await(&probe.released);
	assert_int_equal(probe.calls, 1);
	event_loop_close(loop);
	probe_fini(&probe);
}

static void the_events_of_a_watch_can_be_changed(void **state)
{
	struct event_loop *loop = open_loop();
	struct probe probe, other;

	(void)state;
	probe_init(&probe, loop, 0);
	probe_init(&other, loop, EPOLLIN);
	poke(&probe);
	poke(&other);
	sem_await(&other.called);
	assert_int_equal(probe.calls, 0);
	watch_set(probe.watch, EPOLLIN);
	sem_await(&probe.called);
	assert_int_equal(probe.calls, 1);
	watch_close(probe.watch);
	watch_close(other.watch);
	event_loop_close(loop);
	probe_fini(&probe);
	probe_fini(&other);
}

static void closing_the_loop_releases_what_was_closed_before(void **state)
{
	struct event_loop *loop = open_loop();
	struct probe probes[100];

	(void)state;
	for (size_t i = 0; i < array_len(probes); i++)
		probe_init(&probes[i], loop, EPOLLIN);
	for (size_t i = 0; i < array_len(probes); i++)
		poke(&probes[i]);
	for (size_t i = 0; i < array_len(probes); i++)
		watch_close(probes[i].watch);
	event_loop_close(loop);
	for (size_t i = 0; i < array_len(probes); i++)
		probe_fini(&probes[i]);
}

static void a_descriptor_that_cannot_be_watched_is_an_error(void **state)
{
	struct event_loop *loop = open_loop();
	struct watch *watch = (struct watch *)&watch;
	struct probe probe = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(
		watch_open(loop, -1, EPOLLIN, ready, released, &probe, &watch, &err), -EBADF);
	assert_int_equal(err.kind, ERR_INTERNAL);
	assert_int_equal(probe.releases, 0);
	event_loop_close(loop);
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
	struct event_loop *loop = open_loop();

	(void)state;
	for (int round = 0; round < 100; round++) {
		struct probe probe;
		pthread_t thread;

		probe_init(&probe, loop, EPOLLIN);
		assert_int_equal(pthread_create(&thread, NULL, poke_a_lot, &probe), 0);
		if (round % 2)
			sem_await(&probe.called);
		watch_close(probe.watch);
		sem_await(&probe.released);
		pthread_join(thread, NULL);
		probe_fini(&probe);
	}
	event_loop_close(loop);
}

/* --- calls again --- */

struct repeater {
	int fd;
	struct watch *watch;
	atomic_int left;
	atomic_uint events; /* of all calls but the first */
	atomic_int calls;
	atomic_int *other_calls; /* made when this one is called for the last time */
	int seen_of_other;
	sem_t done;
};

static void repeat(void *arg, uint32_t events)
{
	struct repeater *repeater = arg;

	if (atomic_fetch_add(&repeater->calls, 1) > 0)
		atomic_fetch_or(&repeater->events, events);
	if (atomic_fetch_sub(&repeater->left, 1) > 1) {
		watch_call_again(repeater->watch);
		watch_call_again(repeater->watch);
		return;
	}
	repeater->seen_of_other = atomic_load(repeater->other_calls);
	sem_post(&repeater->done);
}

static void repeater_open(struct repeater *repeater, struct event_loop *loop, int times)
{
	struct err err;

	repeater->left = times;
	sem_init(&repeater->done, 0, 0);
	repeater->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(watch_open(loop, repeater->fd, EPOLLIN | EPOLLET, repeat, NULL, repeater,
				 &repeater->watch, &err),
		0);
}

/* A pair: the second begins while the first goes on, so both must have turns. */
static void who_asks_for_another_call_has_it_after_the_others(void **state)
{
	struct event_loop *loop = open_loop();
	struct repeater one = {0}, other = {0};

	(void)state;
	one.other_calls = &other.calls;
	other.other_calls = &one.calls;
	repeater_open(&one, loop, 100000);
	repeater_open(&other, loop, 10);
	sem_await(&other.done);
	sem_await(&one.done);
	assert_int_equal(one.calls, 100000);
	assert_int_equal(one.events, 0);
	assert_int_equal(other.calls, 10);
	assert_int_equal(one.seen_of_other, 10);
	watch_close(one.watch);
	watch_close(other.watch);
	event_loop_close(loop);
	close(one.fd);
	close(other.fd);
}

/* --- posts --- */

struct posted {
	struct post post;
	struct event_loop *loop;
	atomic_int runs;
	int again;
	struct posted *before; /* was posted before this one */
	bool was_in_order;
	sem_t ran;
};

static void run_posted(void *arg)
{
	struct posted *posted = arg;

	posted->was_in_order = !posted->before || posted->before->runs > 0;
	atomic_fetch_add(&posted->runs, 1);
	if (posted->again-- > 0)
		event_loop_post(posted->loop, &posted->post);
	sem_post(&posted->ran);
}

static void posted_init(struct posted *posted, struct event_loop *loop)
{
	*posted = (struct posted){.post = {.run = run_posted, .arg = posted}, .loop = loop};
	sem_init(&posted->ran, 0, 0);
}

static void posts_run_in_their_order_and_may_post_themselves_again(void **state)
{
	struct event_loop *loop = open_loop();
	struct posted one, other;

	(void)state;
	posted_init(&one, loop);
	posted_init(&other, loop);
	one.again = 2;
	other.before = &one;
	event_loop_post(loop, &one.post);
	event_loop_post(loop, &other.post);
	sem_await(&other.ran);
	assert_true(other.was_in_order);
	for (int i = 0; i < 3; i++)
		sem_await(&one.ran);
	event_loop_close(loop);
	assert_int_equal(one.runs, 3);
	assert_int_equal(other.runs, 1);
}

/* --- a guard --- */

static void *poke_many(void *arg)
{
	struct probe *probes = arg;

	for (int i = 0; i < 50; i++)
		(void)!write(probes[i].fd, &(uint64_t){1}, 8);
	return NULL;
}

static void note_call(void *arg, uint32_t events)
{
	struct probe *probe = arg;

	(void)events;
	if (probe->releases > 0) /* not a release here: closed under the guard */
		atomic_store(&probe->late, true);
	(void)!read(probe->fd, &(uint64_t){0}, 8);
}

/* No release is waited for: a watch that was closed under the guard is not called, so its owner may go. */
static void to_the_holder_of_the_guard_a_close_is_final(void **state)
{
	pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	struct event_loop *loop;
	struct err err;

	(void)state;
	assert_int_equal(event_loop_open("test", &guard, &loop, &err), 0);
	for (int round = 0; round < 50; round++) {
		struct probe *probes = mem_new(50 * sizeof(*probes));
		pthread_t thread;

		for (int i = 0; i < 50; i++) {
			probes[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			assert_int_equal(watch_open(loop, probes[i].fd, EPOLLIN, note_call, NULL,
						 &probes[i], &probes[i].watch, &err),
				0);
		}
		assert_int_equal(pthread_create(&thread, NULL, poke_many, probes), 0);
		for (int i = 0; i < 50; i++) {
			pthread_mutex_lock(&guard);
			watch_call_again(probes[i].watch);
			watch_close(probes[i].watch);
			probes[i].releases = 1;
			pthread_mutex_unlock(&guard);
		}
		pthread_join(thread, NULL);
		for (int i = 0; i < 50; i++) {
			assert_false(probes[i].late);
			close(probes[i].fd);
		}
		free(probes);
	}
	event_loop_close(loop);
}

static void stop(void *arg)
{
	event_loop_stop(arg);
}

static void a_loop_may_stop_itself_and_be_waited_for(void **state)
{
	struct event_loop *loop = open_loop();
	struct post post = {.run = stop, .arg = loop};
	struct posted late;

	(void)state;
	event_loop_post(loop, &post);
	event_loop_join(loop);
	posted_init(&late, loop);
	event_loop_post(loop, &late.post);
	event_loop_close(loop);
	assert_int_equal(late.runs, 0);
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	watch_close(NULL);
	event_loop_close(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_is_called_on_the_loop_s_thread),
		cmocka_unit_test(a_closed_watch_is_released_once_and_not_called_again),
		cmocka_unit_test(a_watch_may_close_itself_from_within),
		cmocka_unit_test(the_events_of_a_watch_can_be_changed),
		cmocka_unit_test(closing_the_loop_releases_what_was_closed_before),
		cmocka_unit_test(a_descriptor_that_cannot_be_watched_is_an_error),
		cmocka_unit_test(a_watch_can_be_closed_from_any_thread_at_any_moment),
		cmocka_unit_test(who_asks_for_another_call_has_it_after_the_others),
		cmocka_unit_test(posts_run_in_their_order_and_may_post_themselves_again),
		cmocka_unit_test(to_the_holder_of_the_guard_a_close_is_final),
		cmocka_unit_test(a_loop_may_stop_itself_and_be_waited_for),
		cmocka_unit_test(closing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
