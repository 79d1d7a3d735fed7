/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CORES 4

static struct settings settings_with(const char *flag, const char *value)
{
	char program[] = "sandlotd", *argv[] = {program, (char *)flag, (char *)value, NULL};
	struct settings settings;
	struct err err;

	assert_int_equal(settings_read(flag ? 3 : 1, argv, &settings, &err), 0);
	return settings;
}

/* Descriptors that all of it may need at once. */
static uint64_t sum_of(const struct descriptor_plan *plan, unsigned cost)
{
	return (uint64_t)cost * (plan->api_connections + plan->preview_connections) +
	       2ull * (plan->egress_connections + plan->egress_pipes + plan->processes) +
	       plan->egress_lookups + 3ull * plan->archive_downloads + 5ull * plan->running;
}

static void the_sum_of_all_limits_stays_below_what_the_process_may_have(void **state)
{
	struct settings plain = settings_with(NULL, NULL);
	struct settings tls = settings_with("--tls-certificate", "/chain.pem");
	unsigned last = 0;

	(void)state;
	for (uint64_t limit = 1360; limit < 1 << 21; limit += limit / 7) {
		struct descriptor_plan plan;
		struct err err;

		assert_int_equal(descriptors_plan(&plain, limit, CORES, &plan, &err), 0);
		assert_true(sum_of(&plan, 2) < limit);
		assert_true(plan.api_connections >= last);
		last = plan.api_connections;
		assert_int_equal(descriptors_plan(&tls, limit, CORES, &plan, &err), 0);
		assert_true(sum_of(&plan, 4) + 2ull * 2 * CORES * plan.tls_crowd < limit);
		assert_true(plan.tls_crowd > 0);
	}
}

static void with_enough_the_limits_are_those_that_were_set(void **state)
{
	struct settings settings = settings_with("--api-connections", "5000");
	struct descriptor_plan plan;
	struct err err;

	(void)state;
	assert_int_equal(descriptors_plan(&settings, 1 << 20, CORES, &plan, &err), 0);
	assert_int_equal(plan.api_connections, 5000);
	assert_int_equal(plan.preview_connections, 8192);
	assert_int_equal(plan.egress_connections, 16384);
	assert_int_equal(plan.egress_lookups, 2048);
	assert_int_equal(plan.archive_downloads, 32);
	assert_int_equal(plan.running, 16384);
	assert_true(plan.needed < 1 << 20);
}

static void too_few_are_refused_with_the_number_that_is_needed(void **state)
{
	struct settings settings = settings_with(NULL, NULL);
	struct descriptor_plan plan;
	struct err err = {0};
	unsigned needed;

	(void)state;
	assert_true(descriptors_plan(&settings, 256, CORES, &plan, &err) < 0);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, " 256 "));
	assert_int_equal(sscanf(strstr(err.message, "at least"), "at least %u", &needed), 1);
	assert_true(needed <= 1024); /* which many systems give */
	assert_true(descriptors_plan(&settings, needed - 1, CORES, &plan, &err) < 0);
	assert_int_equal(descriptors_plan(&settings, needed, CORES, &plan, &err), 0);
	assert_true(plan.api_connections > 0 && plan.processes > 0 && plan.running > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_of_all_limits_stays_below_what_the_process_may_have),
		cmocka_unit_test(with_enough_the_limits_are_those_that_were_set),
		cmocka_unit_test(too_few_are_refused_with_the_number_that_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
