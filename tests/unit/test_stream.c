/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "http/stream.h"
#include "http/stream_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

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

static const struct stream_events events = {room, gone};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_out_as_they_went_in_across_the_ring_s_end),
		cmocka_unit_test(an_offer_is_taken_whole_or_not_at_all),
		cmocka_unit_test(the_consumer_sleeps_when_empty_and_is_woken_once),
		cmocka_unit_test(what_was_offered_before_the_end_still_comes),
		cmocka_unit_test(the_producer_is_told_once_that_the_client_is_gone),
		cmocka_unit_test(heartbeats_come_only_when_it_is_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
