/* SPDX-License-Identifier: Apache-2.0 */
/* That nobody has more than a share of the workers: lanes alone, and requests on them. */
#include "http/fair_queue.h"

#include "http_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WITH_OTHER "X-API-Key: " OTHER_TOKEN "\r\n"
#define NARROW	   1u
#define WIDE	   2u
#define WORKERS	   16 /* of which an object has 2, and an owner 6 and 6 */
#define OF_OBJECT  2
#define OF_OWNER   6

/* A pass whose item tells that it ran. */
struct traveller {
	struct work_item item;
	struct fair_queue_entry entry;
	atomic_bool has_run;
};

static void run(struct work_item *item)
{
	atomic_store(&((struct traveller *)item)->has_run, true);
}

static struct traveller *traveller_new(unsigned narrow_max, unsigned wide_max)
{
	struct traveller *traveller = mem_new(sizeof(*traveller));

	traveller->item.run = run;
	traveller->entry = (struct fair_queue_entry){.item = &traveller->item,
		.claims = {{NARROW, narrow_max}, {WIDE, wide_max}},
		.count = 2};
	return traveller;
}

static void who_waits_is_let_in_when_another_leaves_in_order_of_arrival(void **state)
{
	struct traveller *all[3];
	struct workers *workers;
	struct fair_queue *fair_queue;
	struct err err;

	(void)state;
	assert_int_equal(workers_open(1, 8, &workers, &err), 0);
	fair_queue = fair_queue_new(workers, 8);
	for (int i = 0; i < 3; i++) {
		all[i] = traveller_new(1, 8);
		assert_int_equal(fair_queue_enter(fair_queue, &all[i]->entry), i == 0);
	}
	fair_queue_leave(fair_queue, &all[0]->entry);
	assert_int_equal(all[1]->entry.held, 2);
	assert_int_equal(all[2]->entry.held, 0);
	fair_queue_leave(fair_queue, &all[1]->entry);
	assert_int_equal(all[2]->entry.held, 2);
	fair_queue_leave(fair_queue, &all[2]->entry);
	workers_close(workers); /* runs what was handed over */
	assert_false(all[0]->has_run);
	assert_true(all[1]->has_run);
	assert_true(all[2]->has_run);
	fair_queue_free(fair_queue);
	for (int i = 0; i < 3; i++)
		free(all[i]);
}

static void who_waits_for_a_narrow_lane_takes_no_place_in_the_wide_one(void **state)
{
	struct traveller *stuck = traveller_new(1, 2), *waits = traveller_new(1, 2);
	struct traveller *free_one = traveller_new(1, 2);
	struct workers *workers;
	struct fair_queue *fair_queue;
	struct err err;

	(void)state;
	assert_int_equal(workers_open(1, 8, &workers, &err), 0);
	fair_queue = fair_queue_new(workers, 8);
	free_one->entry.claims[0].key = NARROW + 100;
	assert_int_equal(fair_queue_enter(fair_queue, &stuck->entry), 1);
	assert_int_equal(fair_queue_enter(fair_queue, &waits->entry), 0);
	assert_int_equal(fair_queue_enter(fair_queue, &free_one->entry), 1);
	/* The narrow one has room, and the wide one has had it all the time. */
	fair_queue_leave(fair_queue, &stuck->entry);
	assert_int_equal(waits->entry.held, 2);
	fair_queue_leave(fair_queue, &waits->entry);
	fair_queue_leave(fair_queue, &free_one->entry);
	workers_close(workers);
	fair_queue_free(fair_queue);
	free(stuck);
	free(waits);
	free(free_one);
}

static void too_many_who_wait_are_refused_but_not_who_ends_something(void **state)
{
	struct traveller *in = traveller_new(8, 1), *waits = traveller_new(8, 1);
	struct traveller *refused = traveller_new(8, 1), *patient = traveller_new(8, 1);
	struct workers *workers;
	struct fair_queue *fair_queue;
	struct err err;

	(void)state;
	assert_int_equal(workers_open(1, 8, &workers, &err), 0);
	fair_queue = fair_queue_new(workers, 1);
	patient->entry.must_run = true;
	assert_int_equal(fair_queue_enter(fair_queue, &in->entry), 1);
	assert_int_equal(fair_queue_enter(fair_queue, &waits->entry), 0);
	assert_int_equal(fair_queue_enter(fair_queue, &refused->entry), -EAGAIN);
	assert_int_equal(refused->entry.held, 0);
	assert_int_equal(fair_queue_enter(fair_queue, &patient->entry), 0);
	fair_queue_leave(fair_queue, &in->entry);
	fair_queue_leave(fair_queue, &waits->entry);
	fair_queue_leave(fair_queue, &patient->entry);
	workers_close(workers);
	assert_true(patient->has_run);
	assert_false(refused->has_run);
	fair_queue_free(fair_queue); /* which asserts that nobody is left */
	free(in);
	free(waits);
	free(refused);
	free(patient);
}

/* --- requests --- */

static void ask_as(
	struct fixture *fixture, const char *line, const char *token, int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fds[i] = client_connect(fixture->port);
		client_request(fds[i], fixture->port, line, token, NULL);
	}
}

static void ask(struct fixture *fixture, const char *line, int *fds, unsigned count)
{
	ask_as(fixture, line, WITH_TOKEN, fds, count);
}

/* How many of the answers have that status. */
static unsigned take_answers(const int *fds, unsigned count, int status)
{
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++) {
		struct reply reply;
		char value[256];

		client_receive(fds[i], &reply, true);
		found += reply.status == status;
		assert_true(reply.status != 429 || reply_header(&reply, "Retry-After", value));
		reply_fini(&reply);
		close(fds[i]);
	}
	return found;
}

static void expect_answer(struct fixture *fixture, const char *token)
{
	struct reply reply;

	client_call(fixture->port, "GET /echo/x", token, NULL, &reply);
	assert_int_equal(reply.status, 200);
	reply_fini(&reply);
}

static void an_object_that_does_not_answer_keeps_its_share_of_the_workers_alone(void **state)
{
	int slow[WORKERS * 2], other;
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, WORKERS, 0);
	ask(&fixture, "GET /block/a", slow, array_len(slow));
	fixture_wait(&fixture, &fixture.admitted, array_len(slow));
	fixture_wait(&fixture, &fixture.entered, OF_OBJECT);
	ask(&fixture, "GET /block/b", &other, 1);
	fixture_wait(&fixture, &fixture.entered, OF_OBJECT + 1);
	expect_answer(&fixture, WITH_TOKEN);
	assert_int_equal(fixture.entered, OF_OBJECT + 1);
	fixture_let_go(&fixture, array_len(slow) + 1);
	assert_int_equal(take_answers(slow, array_len(slow), 200), array_len(slow));
	assert_int_equal(take_answers(&other, 1, 200), 1);
	fixture_close(&fixture);
}

static void an_owner_keeps_no_other_from_being_served_nor_from_ending_its_own(void **state)
{
	int slow[3 * 2 * OF_OBJECT], rest[WORKERS];
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, WORKERS, 0);
	ask(&fixture, "GET /block/a", slow, 4);
	ask(&fixture, "GET /block/b", slow + 4, 4);
	ask(&fixture, "GET /block/c", slow + 8, 4);
	fixture_wait(&fixture, &fixture.admitted, array_len(slow));
	fixture_wait(&fixture, &fixture.entered, OF_OWNER);
	/* Nothing of what it waits for answers, and yet it is served. */
	expect_answer(&fixture, WITH_TOKEN);
	ask(&fixture, "GET /block", rest, array_len(rest));
	fixture_wait(&fixture, &fixture.admitted, array_len(slow) + 1 + array_len(rest));
	fixture_wait(&fixture, &fixture.entered, 2 * OF_OWNER);
	expect_answer(&fixture, WITH_OTHER);
	assert_int_equal(fixture.entered, 2 * OF_OWNER);
	fixture_let_go(&fixture, array_len(slow) + array_len(rest));
	assert_int_equal(take_answers(slow, array_len(slow), 200), array_len(slow));
	assert_int_equal(take_answers(rest, array_len(rest), 200), array_len(rest));
	fixture_close(&fixture);
}

static void many_owners_leave_threads_for_the_operator_and_for_open_routes(void **state)
{
	enum { OWNERS = 8, OF_ALL = WORKERS - 1 };
	int slow[OWNERS][OF_OWNER];
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, WORKERS, 0);
	for (unsigned i = 0; i < OWNERS; i++) {
		char token[64];

		snprintf(token, sizeof(token), "X-API-Key: " OWNER_TOKEN "%u\r\n", i);
		ask_as(&fixture, "GET /block", token, slow[i], OF_OWNER);
	}
	fixture_wait(&fixture, &fixture.admitted, OWNERS * OF_OWNER);
	fixture_wait(&fixture, &fixture.entered, OF_ALL);
	expect_answer(&fixture, "X-API-Key: " OPERATOR_TOKEN "\r\n");
	assert_int_equal(fixture_call(&fixture, "GET /plain", NULL, NULL), 200);
	assert_int_equal(fixture.entered, OF_ALL);
	fixture_let_go(&fixture, OWNERS * OF_OWNER);
	for (unsigned i = 0; i < OWNERS; i++)
		assert_int_equal(take_answers(slow[i], OF_OWNER, 200), OF_OWNER);
	fixture_close(&fixture);
}

static void when_too_many_wait_for_an_object_the_rest_is_told_to_come_again(void **state)
{
	enum { SERVED = 1 + 8 * 8, REFUSED = 5 }; /* one in, and eight for each worker wait */
	int fds[SERVED + REFUSED];
	struct fixture fixture;

	(void)state;
	fixture_open(&fixture, 8, 0);
	ask(&fixture, "GET /block/a", fds, array_len(fds));
	fixture_wait(&fixture, &fixture.accounts, REFUSED);
	fixture_let_go(&fixture, SERVED);
	assert_int_equal(take_answers(fds, array_len(fds), 429), REFUSED);
	assert_int_equal(fixture.accounts, array_len(fds));
	fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_is_let_in_when_another_leaves_in_order_of_arrival),
		cmocka_unit_test(who_waits_for_a_narrow_lane_takes_no_place_in_the_wide_one),
		cmocka_unit_test(too_many_who_wait_are_refused_but_not_who_ends_something),
		cmocka_unit_test(
			an_object_that_does_not_answer_keeps_its_share_of_the_workers_alone),
		cmocka_unit_test(an_owner_keeps_no_other_from_being_served_nor_from_ending_its_own),
		cmocka_unit_test(many_owners_leave_threads_for_the_operator_and_for_open_routes),
		cmocka_unit_test(when_too_many_wait_for_an_object_the_rest_is_told_to_come_again),
	};

	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
