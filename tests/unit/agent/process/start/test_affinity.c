/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/start/affinity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_list_binds_to_what_it_names(void **state)
{
	struct affinity affinity;

	(void)state;
	affinity_parse(&affinity, "0,17,1023");
	assert_true(affinity.is_bound);
	assert_int_equal(CPU_COUNT(&affinity.set), 3);
	assert_true(CPU_ISSET(0, &affinity.set) && CPU_ISSET(17, &affinity.set) &&
		    CPU_ISSET(1023, &affinity.set));
}

static void what_is_no_list_binds_to_nothing(void **state)
{
	static const char *const lists[] = {NULL, "", ",", "x", "1,x", "1;2", "1024", "1 "};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct affinity affinity;

		affinity_parse(&affinity, lists[i]);
		assert_false(affinity.is_bound);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_binds_to_what_it_names),
		cmocka_unit_test(what_is_no_list_binds_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
