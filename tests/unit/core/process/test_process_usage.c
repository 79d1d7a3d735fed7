/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which background processes keep their sandbox awake (src/core/process/process_usage.h). The clock of the core goes
 * ahead by minutes when the test says so; the agent is played.
 */
#include "process_stage.h"

#include "base/clock.h"
#include "core/process/process_state.h"
#include "core/process/process_usage.h"
#include "wire/agent.h"
#include "wire/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE_US (PROCESS_USAGE_ROUND_MS * 1000ull)

static atomic_ullong ahead_us;

uint64_t __real_clock_steady_us(void);
uint64_t __wrap_clock_steady_us(void);

uint64_t __wrap_clock_steady_us(void)
{
	return __real_clock_steady_us() + ahead_us;
}

struct played {
	struct stage stage;
	uint64_t cpu_us;   /* that the agent has told */
	uint64_t said_len; /* of output */
};

static void start(struct played *played, struct world *world, bool is_background, bool keeps_awake)
{
	struct process_spec spec = stage_spec();

	*played = (struct played){0};
	spec.is_background = is_background;
	spec.keeps_awake = keeps_awake;
	stage_init(&played->stage, world);
	stage_run(&played->stage, &spec);
	say_started(&played->stage, 1);
	heard_wait(&played->stage.heard, has_started);
}

/* Answers the question. The output behind it tells when the core has it. */
static void answer(struct played *played, uint64_t more_us)
{
	struct buf payload = BUF_INIT(8);

	expect_kind(&played->stage, AGENT_USAGE);
	played->cpu_us += more_us;
	pack_u64(&payload, played->cpu_us);
	wire_write(played->stage.peer, AGENT_USED, played->stage.id, payload.data, payload.len);
	buf_fini(&payload);
	say_text(&played->stage, played->said_len++, 1, "x");
	heard_wait_output(&played->stage.heard, 1, played->said_len);
}

/* A round of the reaper, a minute after the one before. */
static void pass_minute(struct played *played, uint64_t cpu_us)
{
	ahead_us += MINUTE_US;
	process_usage_sample(played->stage.sandbox);
	answer(played, cpu_us);
}

/* What is decided when the sandbox would be stopped. */
static enum process_activity decide(struct played *played)
{
	return process_usage_check(played->stage.sandbox);
}

static void more_than_a_hundredth_of_a_core_over_a_minute_keeps_it_awake(void **state)
{
	struct played played;
	char text[PROCESS_USAGE_TEXT_MAX];

	start(&played, *state, true, false);
	for (int i = 0; i < 3; i++)
		pass_minute(&played, MINUTE_US / 20);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_BUSY);
	assert_true(process_usage_explain(played.stage.sandbox, text));
	/* The minutes are a little longer than those of the clock. */
	assert_true(strstr(text, "uses 4% of a core") || strstr(text, "uses 5% of a core"));
	stage_fini(&played.stage, true);
}

static void half_a_hundredth_does_not(void **state)
{
	struct played played;
	char text[PROCESS_USAGE_TEXT_MAX];

	start(&played, *state, true, false);
	for (int i = 0; i < 3; i++)
		pass_minute(&played, MINUTE_US / 200);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	assert_false(process_usage_explain(played.stage.sandbox, text));
	stage_fini(&played.stage, true);
}

/* What it did long ago, and what it does for a moment, is not what it does. */
static void it_is_the_mean_of_the_last_minutes_that_counts(void **state)
{
	struct played played;

	start(&played, *state, true, false);
	pass_minute(&played, MINUTE_US);
	for (int i = 0; i < 3; i++)
		pass_minute(&played, 0);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	/* Half a second in two minutes. */
	pass_minute(&played, 500000);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	for (int i = 0; i < 2; i++)
		pass_minute(&played, MINUTE_US / 2);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_BUSY);
	stage_fini(&played.stage, true);
}

static void an_old_answer_is_asked_for_again_and_a_silent_agent_is_not_waited_for(void **state)
{
	struct played played;

	start(&played, *state, true, false);
	for (int i = 0; i < 2; i++)
		pass_minute(&played, MINUTE_US / 2);
	ahead_us += 10000000;
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_ASKED);
	answer(&played, 0);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_BUSY);
	ahead_us += 10000000;
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_ASKED);
	expect_kind(&played.stage, AGENT_USAGE);
	ahead_us += 10000000;
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	stage_fini(&played.stage, true);
}

static void one_that_is_to_keep_it_awake_does_so_without_a_question(void **state)
{
	struct played played;
	char text[PROCESS_USAGE_TEXT_MAX];

	start(&played, *state, true, true);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_BUSY);
	assert_true(process_usage_explain(played.stage.sandbox, text));
	assert_non_null(strstr(text, "is to keep it awake"));
	stage_fini(&played.stage, true);
}

static void one_that_is_not_in_the_background_is_not_asked_about(void **state)
{
	struct played played;

	start(&played, *state, false, false);
	ahead_us += MINUTE_US;
	process_usage_sample(played.stage.sandbox);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	assert_int_equal(played.stage.process->usage.asked_us, 0);
	stage_fini(&played.stage, true);
}

static void a_start_command_never_counts(void **state)
{
	struct played played;

	start(&played, *state, true, false);
	pthread_mutex_lock(&played.stage.process->lock);
	snprintf(played.stage.process->record.start, sizeof(played.stage.process->record.start),
		"web");
	pthread_mutex_unlock(&played.stage.process->lock);
	ahead_us += MINUTE_US;
	process_usage_sample(played.stage.sandbox);
	assert_int_equal(decide(&played), PROCESS_ACTIVITY_NONE);
	assert_int_equal(played.stage.process->usage.asked_us, 0);
	stage_fini(&played.stage, true);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(more_than_a_hundredth_of_a_core_over_a_minute_keeps_it_awake),
		IN_WORLD(half_a_hundredth_does_not),
		IN_WORLD(it_is_the_mean_of_the_last_minutes_that_counts),
		IN_WORLD(an_old_answer_is_asked_for_again_and_a_silent_agent_is_not_waited_for),
		IN_WORLD(one_that_is_to_keep_it_awake_does_so_without_a_question),
		IN_WORLD(one_that_is_not_in_the_background_is_not_asked_about),
		IN_WORLD(a_start_command_never_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
