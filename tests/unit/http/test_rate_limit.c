/* SPDX-License-Identifier: Apache-2.0 */
#include "http/address_key.h"
#include "http/rate_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <cmocka.h>

#define BURST	   500
#define PER_SECOND 10

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage storage = {.ss_family = AF_INET};

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&storage)->sin_addr) != 1) {
		storage.ss_family = AF_INET6;
		assert_int_equal(
			inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&storage)->sin6_addr),
			1);
	}
	return storage;
}

static unsigned count(struct rate_limit *rate_limit, const char *source, uint64_t now_ms)
{
	struct sockaddr_storage storage = address(source);

	return rate_limit_count(rate_limit, address_key_of((struct sockaddr *)&storage), now_ms);
}

static int setup(void **state)
{
	*state = rate_limit_new(BURST, PER_SECOND);
	return 0;
}

static int teardown(void **state)
{
	rate_limit_free(*state);
	return 0;
}

static void exhaust(struct rate_limit *rate_limit, const char *source, uint64_t now_ms)
{
	for (int i = 0; i < BURST; i++)
		assert_int_equal(count(rate_limit, source, now_ms), 0);
	assert_true(count(rate_limit, source, now_ms) >= 1);
}

static void a_source_that_comes_too_often_has_to_wait_and_no_other_has(void **state)
{
	exhaust(*state, "10.0.0.1", 1000);
	assert_int_equal(count(*state, "10.0.0.2", 1000), 0);
	assert_int_equal(count(*state, "2001:db8::1", 1000), 0);
	assert_true(count(*state, "10.0.0.1", 1000) >= 1);
}

static void waiting_helps_a_little_and_long_waiting_no_more_than_all(void **state)
{
	exhaust(*state, "10.0.0.1", 1000);
	for (int i = 0; i < PER_SECOND; i++)
		assert_int_equal(count(*state, "10.0.0.1", 2000), 0);
	assert_true(count(*state, "10.0.0.1", 2000) >= 1);
	exhaust(*state, "10.0.0.1", 2000 + 86400000);
}

static void an_ipv6_source_is_its_network_and_a_mapped_address_is_the_address(void **state)
{
	exhaust(*state, "2001:db8:0:1::1", 1000);
	assert_true(count(*state, "2001:db8:0:1:ffff::2", 1000) >= 1);
	assert_int_equal(count(*state, "2001:db8:0:2::1", 1000), 0);
	exhaust(*state, "10.0.0.1", 1000);
	assert_true(count(*state, "::ffff:10.0.0.1", 1000) >= 1);
	assert_int_equal(count(*state, "::1", 1000), 0);
}

/* More sources than there is room for: none is refused for what others did, and memory stays. */
static void many_sources_do_not_disturb_each_other(void **state)
{
	char text[32];

	for (unsigned i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		assert_int_equal(count(*state, text, 1000 + i), 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(a_source_that_comes_too_often_has_to_wait_and_no_other_has),
		TEST(waiting_helps_a_little_and_long_waiting_no_more_than_all),
		TEST(an_ipv6_source_is_its_network_and_a_mapped_address_is_the_address),
		TEST(many_sources_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
