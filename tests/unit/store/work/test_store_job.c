/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_job.h"
#include "store/work/store_launch.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct job_record make(const struct owner *owner, unsigned n, const char *key)
{
	struct job_record record;

	job_record_init(&record);
	snprintf(record.id, sizeof(record.id), "%s", id_of(n));
	snprintf(record.kind, sizeof(record.kind), "pull");
	snprintf(record.target, sizeof(record.target), "debian:12");
	snprintf(record.key, sizeof(record.key), "%s", key);
	record.owner = *owner;
	record.created_at_ms = n;
	return record;
}

static int add(struct store *store, const struct owner *owner, unsigned n, const char *key)
{
	struct job_record record = make(owner, n, key);
	struct err err;
	int r = store_job_insert(store, &record, &err);

	job_record_fini(&record);
	return r;
}

static void a_job_is_read_as_it_was_written(void **state)
{
	struct fixture *fixture = *state;
	struct job_record in = make(&alice, 1, "key"), out;
	struct err err;

	json_object_set_new(in.input, "reference", json_string("debian:12"));
	assert_int_equal(store_job_insert(fixture->store, &in, &err), 0);
	in.state = JOB_FAILED;
	in.is_cancelling = true;
	in.tries = 3;
	in.done_bytes = 5;
	in.total_bytes = 7;
	in.started_at_ms = 8;
	in.ended_at_ms = 9;
	snprintf(in.progress, sizeof(in.progress), "half");
	snprintf(in.error_code, sizeof(in.error_code), "gone");
	snprintf(in.error_message, sizeof(in.error_message), "it is gone");
	snprintf(in.error_remedy, sizeof(in.error_remedy), "look for it");
	json_object_set_new(in.result, "digest", json_string("x"));
	assert_int_equal(store_job_update(fixture->store, &in, &err), 0);
	reopen(fixture);
	assert_int_equal(store_job_get(fixture->store, &alice, in.id, &out, &err), 0);
	assert_string_equal(out.kind, in.kind);
	assert_string_equal(out.target, in.target);
	assert_string_equal(out.key, in.key);
	assert_int_equal(out.state, JOB_FAILED);
	assert_true(out.is_cancelling);
	assert_int_equal(out.tries, 3);
	assert_int_equal(out.done_bytes, 5);
	assert_int_equal(out.total_bytes, 7);
	assert_int_equal(out.created_at_ms, 1);
	assert_int_equal(out.started_at_ms, 8);
	assert_int_equal(out.ended_at_ms, 9);
	assert_string_equal(out.progress, "half");
	assert_string_equal(out.error_code, "gone");
	assert_string_equal(out.error_message, "it is gone");
	assert_string_equal(out.error_remedy, "look for it");
	assert_true(json_equal(out.input, in.input));
	assert_true(json_equal(out.result, in.result));
	job_record_fini(&out);
	assert_int_equal(store_job_get(fixture->store, &bob, in.id, &out, &err), -ENOENT);
	job_record_fini(&in);
}

static void a_key_is_had_once_until_its_job_is_over(void **state)
{
	struct fixture *fixture = *state;
	struct job_record record;
	struct err err;

	assert_int_equal(add(fixture->store, &alice, 1, "key"), 0);
	assert_int_equal(add(fixture->store, &alice, 2, "key"), -EEXIST);
	assert_int_equal(add(fixture->store, &bob, 3, "key"), 0);
	assert_int_equal(add(fixture->store, &alice, 4, ""), 0);
	assert_int_equal(add(fixture->store, &alice, 5, ""), 0);
	assert_int_equal(store_job_find(fixture->store, &alice, "pull", "key", &record, &err), 0);
	assert_string_equal(record.id, id_of(1));
	record.ended_at_ms = 1;
	assert_int_equal(store_job_update(fixture->store, &record, &err), 0);
	job_record_fini(&record);
	assert_int_equal(
		store_job_find(fixture->store, &alice, "pull", "key", &record, &err), -ENOENT);
	assert_int_equal(add(fixture->store, &alice, 6, "key"), 0);
}

static void an_owner_has_a_bounded_number_that_are_not_over(void **state)
{
	struct fixture *fixture = *state;
	struct job_record record;
	struct err err;

	for (unsigned i = 0; i < STORE_JOBS_ACTIVE_MAX; i++)
		assert_int_equal(add(fixture->store, &alice, i, ""), 0);
	assert_int_equal(add(fixture->store, &alice, 100, ""), -EAGAIN);
	assert_int_equal(add(fixture->store, &bob, 101, ""), 0);
	assert_int_equal(store_job_get(fixture->store, &alice, id_of(0), &record, &err), 0);
	record.ended_at_ms = 1;
	assert_int_equal(store_job_update(fixture->store, &record, &err), 0);
	job_record_fini(&record);
	assert_int_equal(add(fixture->store, &alice, 100, ""), 0);
}

struct seen {
	char ids[STORE_JOBS_ACTIVE_MAX][ID_LEN + 1];
	unsigned count, stop_after;
};

static bool see(const struct job_record *record, void *arg)
{
	struct seen *seen = arg;

	memcpy(seen->ids[seen->count++], record->id, ID_LEN + 1);
	return seen->count != seen->stop_after;
}

static void lists_have_the_newest_first_and_go_on_from_a_page(void **state)
{
	struct fixture *fixture = *state;
	struct store_job_filter filter = {.owner = &alice, .limit = 2};
	struct seen seen = {0};
	char ids[4][ID_LEN + 1];
	struct job_record record;
	struct launch_record launch = {.document = json_object()};
	struct err err;

	for (unsigned i = 1; i <= 3; i++)
		assert_int_equal(add(fixture->store, &alice, i, ""), 0);
	assert_int_equal(add(fixture->store, &bob, 4, ""), 0);
	assert_int_equal(store_job_list(fixture->store, &filter, see, &seen, &err), 0);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.ids[0], id_of(3));
	filter.before = seen.ids[1];
	seen.count = 0;
	assert_int_equal(store_job_list(fixture->store, &filter, see, &seen, &err), 0);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.ids[0], id_of(1));
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(store_job_get(fixture->store, NULL, id_of(i), &record, &err), 0);
		record.ended_at_ms = 1;
		assert_int_equal(store_job_update(fixture->store, &record, &err), 0);
		job_record_fini(&record);
	}
	filter = (struct store_job_filter){.is_active = true, .limit = 8};
	seen = (struct seen){0};
	assert_int_equal(store_job_list(fixture->store, &filter, see, &seen, &err), 0);
	assert_int_equal(seen.count, 1);
	assert_int_equal(store_job_excess(fixture->store, &alice, 1, ids, 4, &err), 2);
	assert_string_equal(ids[0], id_of(2));
	assert_int_equal(store_job_delete(fixture->store, ids[0], &err), 0);
	assert_int_equal(store_job_excess(fixture->store, &alice, 1, ids, 4, &err), 1);
	/* The log of a launch is kept as long as its row. */
	snprintf(launch.id, sizeof(launch.id), "%s", id_of(1));
	launch.owner = alice;
	assert_int_equal(store_launch_insert(fixture->store, &launch, &err), 0);
	assert_int_equal(store_job_excess(fixture->store, &alice, 0, ids, 4, &err), 1);
	assert_string_equal(ids[0], id_of(3));
	json_decref(launch.document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_is_read_as_it_was_written, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_key_is_had_once_until_its_job_is_over, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_owner_has_a_bounded_number_that_are_not_over, setup, teardown),
		cmocka_unit_test_setup_teardown(
			lists_have_the_newest_first_and_go_on_from_a_page, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
