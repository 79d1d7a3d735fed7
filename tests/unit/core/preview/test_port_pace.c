/* SPDX-License-Identifier: Apache-2.0 */
/* How often ports are looked at (src/core/port_pace.c). */
#include "core/preview/port_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Ticks up to the next look, that one included. */
static unsigned ticks(struct port_pace *pace, unsigned agent_reports)
{
	unsigned count = 1;

	while (!port_pace_tick(pace, agent_reports))
		count++;
	return count;
}

static void looks_become_rare_while_nothing_happens_but_never_end(void **state)
{
	static const unsigned expected[] = {1, 2, 4, 8, 8, 8};
	struct port_pace pace = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(ticks(&pace, 7), expected[i]);
}

static void at_each_tick_while_something_happens(void **state)
{
	struct port_pace pace = {0};

	(void)state;
	for (unsigned agent_reports = 1; agent_reports < 20; agent_reports++)
		assert_true(port_pace_tick(&pace, agent_reports));
}

static void what_happens_or_has_changed_makes_it_quick_again(void **state)
{
	struct port_pace pace = {0};

	(void)state;
	for (int i = 0; i < 10; i++)
		ticks(&pace, 1);
	assert_int_equal(ticks(&pace, 2), 1);
	for (int i = 0; i < 10; i++)
		ticks(&pace, 2);
	port_pace_quicken(&pace);
	assert_int_equal(ticks(&pace, 2), 1);
	assert_int_equal(ticks(&pace, 2), 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_become_rare_while_nothing_happens_but_never_end),
		cmocka_unit_test(at_each_tick_while_something_happens),
		cmocka_unit_test(what_happens_or_has_changed_makes_it_quick_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
