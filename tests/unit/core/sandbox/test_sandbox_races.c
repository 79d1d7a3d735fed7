/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that meet (src/core/sandbox.c): rows, handles and what runs must agree whoever comes first. */
#include "core_fixture.h"

#include "core/engine/agent_link.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Threads that ensure the same project all get the same sandbox, which one of them made. */
#define CROWD 8

struct visitor {
	struct world *world;
	pthread_barrier_t *start;
	struct sandbox *sandbox;
	bool created;
	int r;
	struct err err;
};

static void *visit(void *arg)
{
	struct visitor *visitor = arg;
	struct sandbox_record draft;

	world_draft(&draft, "", "crowd");
	pthread_barrier_wait(visitor->start);
	visitor->r = sandbox_ensure(visitor->world->engine, &draft, &visitor->sandbox,
		&visitor->created, &visitor->err);
	sandbox_record_fini(&draft);
	return NULL;
}

static void a_crowd_that_ensures_one_project_gets_one_sandbox(void **state)
{
	struct world *world = *state;

	for (int round = 0; round < 20; round++) {
		struct visitor visitors[CROWD] = {0};
		pthread_t threads[CROWD];
		pthread_barrier_t start;
		unsigned created = 0, starts = fake_calls(&world->driver, FAKE_START);
		struct err err;

		pthread_barrier_init(&start, NULL, CROWD);
		for (int i = 0; i < CROWD; i++) {
			visitors[i] = (struct visitor){.world = world, .start = &start};
			assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
		}
		for (int i = 0; i < CROWD; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&start);
		for (int i = 0; i < CROWD; i++) {
			if (visitors[i].r < 0)
				fail_msg("round %d, visitor %d: %s", round, i,
					visitors[i].err.message);
			assert_ptr_equal(visitors[i].sandbox, visitors[0].sandbox);
			created += visitors[i].created;
		}
		assert_int_equal(created, 1);
		assert_int_equal(fake_calls(&world->driver, FAKE_START), starts + 1);
		assert_int_equal(sandbox_delete(visitors[0].sandbox, END_OPERATOR, &err), 0);
		for (int i = 0; i < CROWD; i++)
			sandbox_unref(visitors[i].sandbox);
	}
}

/*
 * Somebody comes at the narrowest moment of another's verb, which is made wide for it: a function of
 * the store has just been done, or one of the driver begins. The intruder then waits for the verb, or
 * is done first; for that it gets INTRUSION_MS.
 */
#define INTRUSION_MS 100

static struct intrusion {
	int when; /* an enum store_op, or an enum fake_op */
	void *(*act)(void *arg);
	void *arg;
	pthread_t thread;
	bool began, joined;
} intrusion;

static void intrude(void)
{
	struct timespec until;

	if (intrusion.began)
		return;
	intrusion.began = true;
	if (pthread_create(&intrusion.thread, NULL, intrusion.act, intrusion.arg) != 0)
		abort();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += INTRUSION_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	intrusion.joined = pthread_timedjoin_np(intrusion.thread, NULL, &until) == 0;
}

static bool is_intruder(void)
{
	return intrusion.began && pthread_equal(pthread_self(), intrusion.thread);
}

static void intrude_on_the_store(enum store_op op, const char *id)
{
	(void)id;
	if ((int)op == intrusion.when && !is_intruder())
		intrude();
}

static void intrude_on_the_driver(enum fake_op op, const char *id, void *arg)
{
	(void)id;
	(void)arg;
	if ((int)op == intrusion.when && !is_intruder())
		intrude();
}

static void expect_intruder(int when, void *(*act)(void *arg), void *arg)
{
	intrusion = (struct intrusion){.when = when, .act = act, .arg = arg};
}

static void await_intruder(void)
{
	assert_true(intrusion.began);
	if (!intrusion.joined)
		pthread_join(intrusion.thread, NULL);
	atomic_store(&store_script.after, NULL);
}

static void an_ensure_that_meets_a_creation_waits_for_it(void **state)
{
	struct world *world = *state;
	struct visitor first = {.world = world}, second;
	pthread_barrier_t alone;

	pthread_barrier_init(&alone, NULL, 1);
	first.start = &alone;
	second = first;
	expect_intruder(STORE_INSERT, visit, &second);
	atomic_store(&store_script.after, intrude_on_the_store);
	visit(&first);
	await_intruder();
	pthread_barrier_destroy(&alone);
	assert_int_equal(first.r, 0);
	if (second.r < 0)
		fail_msg("%s", second.err.message);
	assert_ptr_equal(first.sandbox, second.sandbox);
	assert_true(first.created && !second.created);
	sandbox_unref(first.sandbox);
	sandbox_unref(second.sandbox);
}

/* One that creates, or deletes, or purges an id. */
struct rival {
	struct world *world;
	const char *id;
	struct sandbox *sandbox;
	int r;
	struct err err;
};

static void *create_it(void *arg)
{
	struct rival *rival = arg;
	struct sandbox_record draft;

	world_draft(&draft, rival->id, "");
	rival->r = sandbox_create(rival->world->engine, &draft, &rival->sandbox, &rival->err);
	sandbox_record_fini(&draft);
	return NULL;
}

static void *delete_it(void *arg)
{
	struct rival *rival = arg;

	rival->r = sandbox_get(
		rival->world->engine, &world_owner, rival->id, &rival->sandbox, &rival->err);
	if (rival->r == 0)
		rival->r = sandbox_delete(rival->sandbox, END_OPERATOR, &rival->err);
	return NULL;
}

static void a_delete_that_meets_a_creation_comes_after_it(void **state)
{
	struct world *world = *state;
	struct rival maker = {.world = world, .id = world_id('d')}, deleter = maker;

	expect_intruder(STORE_INSERT, delete_it, &deleter);
	atomic_store(&store_script.after, intrude_on_the_store);
	create_it(&maker);
	await_intruder();
	assert_int_equal(maker.r, 0);
	assert_int_equal(deleter.r, 0);
	assert_ptr_equal(maker.sandbox, deleter.sandbox);
	world_assert_agree(world, maker.id);
	assert_false(world_has_row(world, maker.id));
	sandbox_unref(maker.sandbox);
	sandbox_unref(deleter.sandbox);
}

/* The new one must not be mistaken for the old one, nor lose anything to its end. */
static void assert_new_one_is_whole(struct world *world, struct rival *maker)
{
	struct agent_link *link = NULL;
	struct virtual_proc machine;
	struct err err;

	world_assert_agree(world, maker->id);
	if (maker->r < 0) {
		assert_int_equal(maker->r, -EEXIST); /* it came too early */
		return;
	}
	assert_int_equal(world_status(maker->sandbox), SANDBOX_RUNNING);
	assert_int_equal(sandbox_use(maker->sandbox, &link, &err), 0);
	agent_link_unref(link);
	assert_true(world_has_row(world, maker->id));
	assert_true(world_has_workspace(world, maker->id));
	fake_look(&world->driver, maker->id, &machine);
	assert_true(machine.running && machine.has_layer && machine.has_workspace);
}

static void a_creation_that_meets_a_deletion_is_whole_or_refused(void **state)
{
	static const struct {
		bool of_store;
		int when;
	} moments[] = {{true, STORE_DELETE}, {false, FAKE_STOP}, {false, FAKE_CLEAN}};
	struct world *world = *state;
	const char *id = world_id('e');

	for (size_t i = 0; i < array_len(moments); i++) {
		struct rival maker = {.world = world, .id = id};
		struct sandbox *old = world_create(world, id);
		struct err err;

		expect_intruder(moments[i].when, create_it, &maker);
		if (moments[i].of_store)
			atomic_store(&store_script.after, intrude_on_the_store);
		else
			fake_set_hook(&world->driver, intrude_on_the_driver, NULL);
		assert_int_equal(sandbox_delete(old, END_OPERATOR, &err), 0);
		await_intruder();
		fake_set_hook(&world->driver, NULL, NULL);
		assert_int_equal(sandbox_start(old, &err), -ENOENT);
		assert_new_one_is_whole(world, &maker);
		sandbox_unref(old);
		sandbox_unref(maker.sandbox);
		if (maker.r == 0)
			assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	}
}

static void a_creation_that_meets_a_purge_is_whole_or_refused(void **state)
{
	struct world *world = *state;
	const char *id = world_id('f');

	/* Once of a sandbox that runs, once of a workspace that was left. */
	for (int round = 0; round < 2; round++) {
		struct rival maker = {.world = world, .id = id};
		struct sandbox *old = world_create(world, id);
		struct err err;

		if (round == 1)
			assert_int_equal(sandbox_delete(old, END_OPERATOR, &err), 0);
		expect_intruder(FAKE_CLEAN, create_it, &maker);
		fake_set_hook(&world->driver, intrude_on_the_driver, NULL);
		assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
		await_intruder();
		fake_set_hook(&world->driver, NULL, NULL);
		assert_new_one_is_whole(world, &maker);
		sandbox_unref(old);
		sandbox_unref(maker.sandbox);
		if (maker.r == 0)
			assert_int_equal(sandbox_purge(world->engine, &world_owner, id, &err), 0);
	}
}

/* --- a storm --- */

#define STORM_THREADS 6
#define STORM_STEPS   150

struct storm {
	struct world *world;
	unsigned seed;
	int bad; /* a failure that no race explains */
	struct err err;
};

static bool is_expected(int r, const struct err *err)
{
	return r == 0 || err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND;
}

static int step(struct storm *storm, const char *id, struct err *err)
{
	struct engine *engine = storm->world->engine;
	unsigned verb = (unsigned)rand_r(&storm->seed) % 10;
	struct sandbox *sandbox = NULL;
	struct sandbox_record draft;
	struct agent_link *link = NULL;
	bool created;
	int r;

	if (verb == 9)
		return sandbox_purge(engine, &world_owner, id, err);
	if (verb <= 1) {
		world_draft(&draft, id, "");
		r = verb == 0 ? sandbox_create(engine, &draft, &sandbox, err)
			      : sandbox_ensure(engine, &draft, &sandbox, &created, err);
		sandbox_record_fini(&draft);
	} else {
		r = sandbox_get(engine, &world_owner, id, &sandbox, err);
	}
	if (r == 0 && verb == 2)
		r = sandbox_stop(sandbox, END_OPERATOR, err);
	else if (r == 0 && verb == 3)
		r = sandbox_start(sandbox, err);
	else if (r == 0 && verb == 4)
		r = sandbox_reset(sandbox, err);
	else if (r == 0 && verb == 5)
		r = sandbox_delete(sandbox, END_OPERATOR, err);
	else if (r == 0 && verb == 6)
		r = sandbox_pause(sandbox, err);
	else if (r == 0 && verb == 7)
		r = sandbox_resume(sandbox, err);
	else if (r == 0 && verb == 8)
		r = sandbox_use(sandbox, &link, err);
	agent_link_unref(link);
	sandbox_unref(sandbox);
	return r;
}

static void *rage(void *arg)
{
	struct storm *storm = arg;

	for (int i = 0; i < STORM_STEPS && !storm->bad; i++) {
		char letter = (char)('0' + rand_r(&storm->seed) % 3);
		struct err err = {0};
		int r = step(storm, world_id(letter), &err);

		if (!is_expected(r, &err)) {
			storm->bad = r;
			storm->err = err;
		}
	}
	return NULL;
}

static void after_a_storm_of_verbs_rows_and_reality_agree(void **state)
{
	struct world *world = *state;
	struct storm storms[STORM_THREADS];
	pthread_t threads[STORM_THREADS];

	for (int i = 0; i < STORM_THREADS; i++) {
		storms[i] = (struct storm){.world = world, .seed = (unsigned)i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, rage, &storms[i]), 0);
	}
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < STORM_THREADS; i++) {
		if (storms[i].bad)
			fail_msg("unexpected: %s", storms[i].err.message);
	}
	for (char letter = '0'; letter < '3'; letter++)
		world_assert_agree(world, world_id(letter));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_WORLD(a_crowd_that_ensures_one_project_gets_one_sandbox),
		IN_WORLD(an_ensure_that_meets_a_creation_waits_for_it),
		IN_WORLD(a_delete_that_meets_a_creation_comes_after_it),
		IN_WORLD(a_creation_that_meets_a_deletion_is_whole_or_refused),
		IN_WORLD(a_creation_that_meets_a_purge_is_whole_or_refused),
		IN_WORLD(after_a_storm_of_verbs_rows_and_reality_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
