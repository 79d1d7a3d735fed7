/* SPDX-License-Identifier: Apache-2.0 */
/* What tells start commands apart (src/model/sandbox/start_spec.c). */
#include "model/sandbox/start_spec.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t digest_of(const char *text)
{
	json_auto_t *spec = json_loads(text, 0, NULL);

	assert_non_null(spec);
	return start_spec_digest(spec);
}

static void any_difference_is_one(void **state)
{
	static const char *const specs[] = {
		"{\"name\":\"a\",\"command\":\"x\"}",
		"{\"name\":\"b\",\"command\":\"x\"}",
		"{\"name\":\"a\",\"command\":\"y\"}",
		"{\"name\":\"a\",\"command\":\"x\",\"cwd\":\"/\"}",
		"{\"name\":\"a\",\"command\":\"x\",\"env\":{\"A\":\"1\"}}",
		"{\"name\":\"a\",\"command\":\"x\",\"env\":{\"A\":\"2\"}}",
	};

	(void)state;
	for (size_t i = 0; i < array_len(specs); i++) {
		assert_true(digest_of(specs[i]) != 0);
		for (size_t j = 0; j < i; j++)
			assert_true(digest_of(specs[i]) != digest_of(specs[j]));
	}
}

static void the_order_of_members_is_none(void **state)
{
	(void)state;
	assert_true(digest_of("{\"name\":\"a\",\"env\":{\"A\":\"1\",\"B\":\"2\"}}") ==
		    digest_of("{\"env\":{\"B\":\"2\",\"A\":\"1\"},\"name\":\"a\"}"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_difference_is_one),
		cmocka_unit_test(the_order_of_members_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
