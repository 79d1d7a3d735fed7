/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "deadline.h"
#include "http/stream.h"
#include "http/stream_private.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct fake {
	unsigned rooms, gones, sleeps, wakes, retimes;
};

static void room(void *arg)
{
	((struct fake *)arg)->rooms++;
}

static void gone(void *arg)
{
	((struct fake *)arg)->gones++;
}

static void fall_asleep(void *arg)
{
	((struct fake *)arg)->sleeps++;
}

static void wake(void *arg)
{
	((struct fake *)arg)->wakes++;
}

static void retime(void *arg)
{
	((struct fake *)arg)->retimes++;
}

static const struct stream_events events = {.room = room, .gone = gone};
static const struct stream_consumer consumer = {fall_asleep, wake, retime};

static void bytes_come_out_as_they_went_in_across_the_ring_s_end(void **state)
{
	struct stream *stream = stream_new(10000, NULL, NULL);
	struct fake fake = {0};
	unsigned char in = 0, out = 0;

	(void)state;
	stream_bind(stream, &consumer, &fake);
	for (size_t round = 0; round < 5000; round++) {
		unsigned char data[997];
		size_t len = 1 + round * 7919 % sizeof(data);
		ssize_t n;

		for (size_t i = 0; i < len; i++)
			data[i] = (unsigned char)(in + i);
		if (stream_offer(stream, data, len) == 0)
			in = (unsigned char)(in + len);
		n = stream_pull(stream, (char *)data, 1 + round * 104729 % sizeof(data));
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(data[i], out++);
	}
	stream_unbind(stream);
	stream_unref(stream);
}

static void an_offer_is_taken_whole_or_not_at_all(void **state)
{
	struct fake fake = {0};
	struct stream *stream = stream_new(100, &events, &fake);
	char data[200] = {0};

	(void)state;
	stream_bind(stream, &consumer, &fake);
	assert_int_equal(stream_offer(stream, data, 60), 0);
	assert_int_equal(stream_offer(stream, data, 41), -EAGAIN);
	assert_int_equal(stream_offer(stream, data, 40), 0);
	assert_int_equal(stream_offer(stream, data, 1), -EAGAIN);
	assert_int_equal(stream_offer(stream, data, 200), -EAGAIN);
	assert_int_equal(fake.rooms, 0);
	assert_int_equal(stream_pull(stream, data, 90), 90);
	assert_int_equal(fake.rooms, 0);
	assert_int_equal(stream_pull(stream, data, 90), 10);
	assert_int_equal(fake.rooms, 1);
	assert_int_equal(stream_offer(stream, data, 200), 0);
	assert_int_equal(stream_pull(stream, data, 200), 200);
	assert_int_equal(fake.rooms, 1);
	stream_unbind(stream);
	stream_unref(stream);
}

static void the_consumer_sleeps_when_empty_and_is_woken_once(void **state)
{
	struct fake fake = {0};
	struct stream *stream = stream_new(100, &events, &fake);
	char data[16];

	(void)state;
	stream_bind(stream, &consumer, &fake);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 0);
	assert_int_equal(fake.sleeps, 1);
	assert_int_equal(stream_offer(stream, "ab", 2), 0);
	assert_int_equal(stream_offer(stream, "cd", 2), 0);
	assert_int_equal(fake.wakes, 1);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 4);
	assert_memory_equal(data, "abcd", 4);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 0);
	stream_finish(stream);
	assert_int_equal(fake.wakes, 2);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), -ENODATA);
	assert_int_equal(stream_offer(stream, "x", 1), -EPIPE);
	stream_unbind(stream);
	stream_unref(stream);
}

static void what_was_offered_before_the_end_still_comes(void **state)
{
	struct stream *stream = stream_new(100, NULL, NULL);
	struct fake fake = {0};
	char data[16];

	(void)state;
	assert_int_equal(stream_offer(stream, "abc", 3), 0);
	stream_finish(stream);
	stream_bind(stream, &consumer, &fake);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 3);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), -ENODATA);
	stream_unbind(stream);
	stream_unref(stream);
}

static void the_producer_is_told_once_that_the_client_is_gone(void **state)
{
	struct fake fake = {0};
	struct stream *stream = stream_new(100, &events, &fake);

	(void)state;
	stream_bind(stream, &consumer, &fake);
	stream_ref(stream);
	stream_unbind(stream);
	stream_unref(stream);
	assert_int_equal(fake.gones, 1);
	assert_int_equal(stream_offer(stream, "x", 1), -EPIPE);
	stream_unref(stream);
	assert_int_equal(fake.gones, 1);
}

static void heartbeats_come_only_when_it_is_quiet(void **state)
{
	struct fake fake = {0};
	struct stream *stream = stream_new(100, &events, &fake);
	uint64_t now = clock_steady_ms();
	char data[32];

	(void)state;
	assert_int_equal(stream_beat(stream), 0);
	stream_set_heartbeat(stream, 3600000);
	stream_bind(stream, &consumer, &fake);
	assert_int_equal(fake.retimes, 1);
	assert_true(stream_beat(stream) >= now + 3600000);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 0);
	stream_set_heartbeat(stream, 1);
	assert_int_equal(fake.retimes, 2);
	while (stream_pull(stream, data, sizeof(data)) == 0)
		assert_true(stream_beat(stream) > now);
	assert_int_equal(stream_offer(stream, "x", 1), 0);
	stream_set_heartbeat(stream, 0);
	assert_int_equal(stream_beat(stream), 0);
	assert_int_equal(stream_pull(stream, data, sizeof(data)), 1);
	stream_unbind(stream);
	stream_unref(stream);
}

/* --- pulled streams --- */

/* Gives the pieces one after the other; an empty one is a moment without any, the end is NULL. */
struct source {
	struct fake fake;
	struct stream *stream;
	const char *const *pieces;
	unsigned pulls;
	bool pokes; /* itself, while it is asked and has nothing */
};

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct source *source = arg;
	const char *piece = *source->pieces;
	size_t len = piece ? strlen(piece) : 0;

	source->pulls++;
	if (!piece)
		return -ENODATA;
	source->pieces++;
	assert_true(len <= size);
	memcpy(data, piece, len);
	if (len == 0 && source->pokes)
		stream_poke(source->stream);
	return (ssize_t)len;
}

static const struct stream_events pulled = {.gone = gone, .pull = pull};

static void source_init(struct source *source, const char *const *pieces)
{
	*source = (struct source){.pieces = pieces};
	source->stream = stream_new_pulled(&pulled, source);
	stream_bind(source->stream, &consumer, &source->fake);
}

static void source_fini(struct source *source)
{
	assert_int_equal(source->fake.gones, 0);
	stream_unbind(source->stream);
	stream_unref(source->stream);
	assert_int_equal(source->fake.gones, 1);
}

static void a_pulled_stream_gives_what_it_is_asked_for_until_its_end(void **state)
{
	static const char *const pieces[] = {"ab", "c", NULL};
	struct source source;
	char data[16];

	(void)state;
	source_init(&source, pieces);
	assert_int_equal(source.pulls, 0); /* not before somebody can send */
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 2);
	assert_memory_equal(data, "ab", 2);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 1);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), -ENODATA);
	assert_int_equal(source.fake.sleeps, 0);
	source_fini(&source);
}

static void a_poke_wakes_the_sleeper_once(void **state)
{
	static const char *const pieces[] = {"", "x", "", NULL};
	struct source source;
	char data[16];

	(void)state;
	source_init(&source, pieces);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 0);
	assert_int_equal(source.fake.sleeps, 1);
	assert_int_equal(source.fake.wakes, 0);
	stream_poke(source.stream);
	stream_poke(source.stream);
	assert_int_equal(source.fake.wakes, 1);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 1);
	/* A poke while it was awake: the next pull has seen it, so that one may sleep. */
	stream_poke(source.stream);
	assert_int_equal(source.fake.wakes, 1);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 0);
	assert_int_equal(source.fake.sleeps, 2);
	stream_poke(source.stream);
	assert_int_equal(source.fake.wakes, 2);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), -ENODATA);
	source_fini(&source);
}

static void a_poke_while_it_is_being_asked_is_not_lost(void **state)
{
	static const char *const pieces[] = {"", "late", NULL};
	struct source source;
	char data[16];

	(void)state;
	source_init(&source, pieces);
	source.pokes = true;
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 4);
	assert_int_equal(source.pulls, 2); /* asked again, without sleeping in between */
	assert_int_equal(source.fake.sleeps, 0);
	source_fini(&source);
}

static void a_finished_one_is_not_asked_any_more(void **state)
{
	static const char *const pieces[] = {"", "never"};
	struct source source;
	char data[16];

	(void)state;
	source_init(&source, pieces);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 0);
	stream_finish(source.stream);
	assert_int_equal(source.fake.wakes, 1);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), -ENODATA);
	assert_int_equal(source.pulls, 1);
	source_fini(&source);
}

/* Lets a millisecond pass, so that a heartbeat of that interval is due. */
static void pass_time(void)
{
	uint64_t now = clock_steady_ms();

	while (clock_steady_ms() <= now + 1)
		;
}

static void a_heartbeat_comes_only_when_a_pull_gave_nothing(void **state)
{
	static const char *const pieces[] = {"half an ", "event", "", "", "next", NULL};
	struct source source;
	char data[32];

	(void)state;
	source_init(&source, pieces);
	stream_set_heartbeat(source.stream, 1);
	pass_time();
	assert_true(stream_beat(source.stream) > 0); /* nobody was asked yet: no moment for one */
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 8);
	pass_time();
	assert_true(stream_beat(source.stream) > 0); /* it may be in the middle of something */
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 5);
	assert_memory_equal(data, "event", 5);
	pass_time();
	assert_true(stream_beat(source.stream) > 0);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 0);
	pass_time();
	assert_true(stream_beat(source.stream) > 0); /* now it is quiet */
	assert_int_equal(source.fake.wakes, 1);
	assert_int_equal(stream_pull(source.stream, data, 3), 3);
	assert_int_equal(source.pulls, 3); /* a heartbeat is not cut in two by what comes */
	assert_int_equal(stream_pull(source.stream, data + 3, sizeof(data) - 3), 5);
	assert_memory_equal(data, ": ping\n\n", 8);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 0);
	stream_poke(source.stream);
	assert_int_equal(stream_pull(source.stream, data, sizeof(data)), 4);
	assert_memory_equal(data, "next", 4);
	source_fini(&source);
}

/* The real thing: one thread makes pieces and pokes, the other pulls and sleeps. */
struct mill {
	struct stream *stream;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned made, given;
	bool awake;
};

#define MILL_PIECES 20000u

static ssize_t mill_pull(void *arg, char *data, size_t size)
{
	struct mill *mill = arg;
	ssize_t n = 0;

	(void)size;
	pthread_mutex_lock(&mill->lock);
	if (mill->given < mill->made) {
		data[0] = (char)mill->given++;
		n = 1;
	} else if (mill->given == MILL_PIECES) {
		n = -ENODATA;
	}
	pthread_mutex_unlock(&mill->lock);
	return n;
}

static void mill_sleep(void *arg)
{
	struct mill *mill = arg;

	pthread_mutex_lock(&mill->lock);
	mill->awake = false;
	pthread_mutex_unlock(&mill->lock);
}

static void mill_wake(void *arg)
{
	struct mill *mill = arg;

	pthread_mutex_lock(&mill->lock);
	mill->awake = true;
	pthread_cond_signal(&mill->changed);
	pthread_mutex_unlock(&mill->lock);
}

static void mill_retime(void *arg)
{
	(void)arg;
}

static void *make_pieces(void *arg)
{
	struct mill *mill = arg;

	for (unsigned i = 0; i < MILL_PIECES; i++) {
		pthread_mutex_lock(&mill->lock);
		mill->made++;
		pthread_mutex_unlock(&mill->lock);
		stream_poke(mill->stream);
	}
	return NULL;
}

static void no_poke_is_lost_between_two_threads(void **state)
{
	static const struct stream_events mill_events = {.pull = mill_pull};
	static const struct stream_consumer sleeper = {mill_sleep, mill_wake, mill_retime};
	struct mill mill = {.awake = true};
	struct timespec until;
	pthread_t thread;
	unsigned got = 0;
	ssize_t n = 0;

	(void)state;
	pthread_mutex_init(&mill.lock, NULL);
	pthread_cond_init(&mill.changed, NULL);
	mill.stream = stream_new_pulled(&mill_events, &mill);
	stream_bind(mill.stream, &sleeper, &mill);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_MS / 1000;
	assert_int_equal(pthread_create(&thread, NULL, make_pieces, &mill), 0);
	while (n != -ENODATA) {
		int waited = 0;
		char byte;

		n = stream_pull(mill.stream, &byte, 1);
		if (n == 1)
			assert_int_equal((unsigned char)byte, got++ % 256);
		pthread_mutex_lock(&mill.lock);
		while (!mill.awake && waited == 0)
			waited = pthread_cond_timedwait(&mill.changed, &mill.lock, &until);
		pthread_mutex_unlock(&mill.lock);
		assert_int_equal(waited, 0);
	}
	assert_int_equal(got, MILL_PIECES);
	pthread_join(thread, NULL);
	stream_unbind(mill.stream);
	stream_unref(mill.stream);
	pthread_mutex_destroy(&mill.lock);
	pthread_cond_destroy(&mill.changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_out_as_they_went_in_across_the_ring_s_end),
		cmocka_unit_test(an_offer_is_taken_whole_or_not_at_all),
		cmocka_unit_test(the_consumer_sleeps_when_empty_and_is_woken_once),
		cmocka_unit_test(what_was_offered_before_the_end_still_comes),
		cmocka_unit_test(the_producer_is_told_once_that_the_client_is_gone),
		cmocka_unit_test(heartbeats_come_only_when_it_is_quiet),
		cmocka_unit_test(a_pulled_stream_gives_what_it_is_asked_for_until_its_end),
		cmocka_unit_test(a_poke_wakes_the_sleeper_once),
		cmocka_unit_test(a_poke_while_it_is_being_asked_is_not_lost),
		cmocka_unit_test(a_finished_one_is_not_asked_any_more),
		cmocka_unit_test(a_heartbeat_comes_only_when_a_pull_gave_nothing),
		cmocka_unit_test(no_poke_is_lost_between_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
