/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/stand_in.h"
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
	struct stand_ins stand_ins = {0};
	struct address four = stand_in_for(&stand_ins, "a.test"), six = stand_in_as_v6(four), other;

	(void)state;
	assert_false(address_is_v4(six));
	assert_true(stand_in_is_one(six));
	assert_string_equal(stand_in_name(&stand_ins, six), "a.test");
	other = six;
	other.bytes.s6_addr[11] ^= 1;
	assert_false(stand_in_is_one(other));
	assert_null(stand_in_name(&stand_ins, other));
	assert_false(address_is_public(six));
	stand_ins_fini(&stand_ins);
}

static void a_name_keeps_its_address(void **state)
{
	struct stand_ins stand_ins = {0};
	struct address a = stand_in_for(&stand_ins, "a.test");
	struct address b = stand_in_for(&stand_ins, "b.test");

	(void)state;
	assert_false(address_equals(a, b));
	assert_true(address_equals(stand_in_for(&stand_ins, "a.test"), a));
	assert_string_equal(stand_in_name(&stand_ins, a), "a.test");
	assert_string_equal(stand_in_name(&stand_ins, b), "b.test");
	assert_true(stand_in_is_one(a));
	stand_ins_fini(&stand_ins);
}

static void an_address_that_was_not_given_out_stands_for_nobody(void **state)
{
	struct stand_ins stand_ins = {0};

	(void)state;
	assert_null(stand_in_name(&stand_ins, v4(EGRESS_STAND_IN_FIRST)));
	stand_in_for(&stand_ins, "a.test");
	assert_null(stand_in_name(&stand_ins, v4(EGRESS_STAND_IN_FIRST + 1)));
	assert_null(stand_in_name(&stand_ins, v4(EGRESS_STAND_IN_FIRST + STAND_IN_MAX)));
	assert_null(stand_in_name(&stand_ins, v4(EGRESS_OWN_ADDRESS)));
	assert_null(stand_in_name(&stand_ins, v4(0x01020304)));
	assert_false(stand_in_is_one(v4(EGRESS_OWN_ADDRESS)));
	stand_ins_fini(&stand_ins);
}

static void the_oldest_is_forgotten_and_its_address_rests(void **state)
{
	struct stand_ins stand_ins = {0};
	struct address first = stand_in_for(&stand_ins, "first.test"), other;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < EGRESS_STAND_IN_COUNT - 1; i++) {
		snprintf(name, sizeof(name), "n%u.test", i);
		other = stand_in_for(&stand_ins, name);
		assert_false(address_equals(other, first));
		if (i + 1 >= STAND_IN_MAX)
			assert_null(stand_in_name(&stand_ins, first));
	}
	/* All others were given out; now it is its turn again. */
	assert_true(address_equals(stand_in_for(&stand_ins, "next.test"), first));
	assert_string_equal(stand_in_name(&stand_ins, first), "next.test");
	assert_string_equal(stand_in_name(&stand_ins, other), name);
	stand_ins_fini(&stand_ins);
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
