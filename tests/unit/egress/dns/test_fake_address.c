/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/fake_address.h"
#include "wire/egress.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct address v4(uint32_t address)
{
	return address_from_v4((struct in_addr){htonl(address)});
}

static void a_name_has_an_address_of_each_kind(void **state)
{
	struct fake_addresses fake_addresses = {0};
	struct address four = fake_address_for(&fake_addresses, "a.test"),
		       six = fake_address_as_v6(four), other;

	(void)state;
	assert_false(address_is_v4(six));
	assert_true(fake_address_is_one(six));
	assert_string_equal(fake_address_name(&fake_addresses, six), "a.test");
	other = six;
	other.bytes.s6_addr[11] ^= 1;
	assert_false(fake_address_is_one(other));
	assert_null(fake_address_name(&fake_addresses, other));
	assert_false(address_is_public(six));
	fake_addresses_fini(&fake_addresses);
}

static void a_name_keeps_its_address(void **state)
{
	struct fake_addresses fake_addresses = {0};
	struct address a = fake_address_for(&fake_addresses, "a.test");
	struct address b = fake_address_for(&fake_addresses, "b.test");

	(void)state;
	assert_false(address_equals(a, b));
	assert_true(address_equals(fake_address_for(&fake_addresses, "a.test"), a));
	assert_string_equal(fake_address_name(&fake_addresses, a), "a.test");
	assert_string_equal(fake_address_name(&fake_addresses, b), "b.test");
	assert_true(fake_address_is_one(a));
	fake_addresses_fini(&fake_addresses);
}

static void an_address_that_was_not_given_out_stands_for_nobody(void **state)
{
	struct fake_addresses fake_addresses = {0};

	(void)state;
	assert_null(fake_address_name(&fake_addresses, v4(EGRESS_STAND_IN_FIRST)));
	fake_address_for(&fake_addresses, "a.test");
	assert_null(fake_address_name(&fake_addresses, v4(EGRESS_STAND_IN_FIRST + 1)));
	assert_null(
		fake_address_name(&fake_addresses, v4(EGRESS_STAND_IN_FIRST + FAKE_ADDRESS_MAX)));
	assert_null(fake_address_name(&fake_addresses, v4(EGRESS_OWN_ADDRESS)));
	assert_null(fake_address_name(&fake_addresses, v4(0x01020304)));
	assert_false(fake_address_is_one(v4(EGRESS_OWN_ADDRESS)));
	fake_addresses_fini(&fake_addresses);
}

static void the_oldest_is_forgotten_and_its_address_rests(void **state)
{
	struct fake_addresses fake_addresses = {0};
	struct address first = fake_address_for(&fake_addresses, "first.test"), other;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < EGRESS_STAND_IN_COUNT - 1; i++) {
		snprintf(name, sizeof(name), "n%u.test", i);
		other = fake_address_for(&fake_addresses, name);
		assert_false(address_equals(other, first));
		if (i + 1 >= FAKE_ADDRESS_MAX)
			assert_null(fake_address_name(&fake_addresses, first));
	}
	/* All others were given out; now it is its turn again. */
	assert_true(address_equals(fake_address_for(&fake_addresses, "next.test"), first));
	assert_string_equal(fake_address_name(&fake_addresses, first), "next.test");
	assert_string_equal(fake_address_name(&fake_addresses, other), name);
	fake_addresses_fini(&fake_addresses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_an_address_of_each_kind),
		cmocka_unit_test(a_name_keeps_its_address),
		cmocka_unit_test(an_address_that_was_not_given_out_stands_for_nobody),
		cmocka_unit_test(the_oldest_is_forgotten_and_its_address_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
