/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes in the store: what was written comes back whole, and owners see their own. */
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_member_of_a_record_comes_back(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record in = draft(&alice, id_of(1), "project"), out;
	struct err err;

	in.status = SANDBOX_PAUSED;
	in.resources = (struct resources){1500, 1ull << 40, 1ull << 60, 77};
	json_object_set_new(in.env, "A", json_string("1 \"quoted\" \\ \u00fc"));
	json_array_append_new(in.ports, json_integer(65535));
	json_object_set_new(in.labels, "a.b/c", json_string("x'; DROP TABLE sandboxes; --"));
	json_object_set_new(in.network, "mode", json_string("none"));
	json_array_append_new(in.start, json_pack("{s:s}", "command", "it's \"run\""));
	in.idle_timeout_s = 1;
	in.lifetime_s = 366 * 86400;
	in.is_private = true;
	in.created_at_ms = 1;
	in.started_at_ms = 2;
	in.last_active_at_ms = 3;
	in.expires_at_ms = INT64_MAX;
	in.end.reason = END_OOM;
	in.end.signal = 9;
	in.end.cpu_us = 4;
	in.end.peak_memory_bytes = 1ull << 40;
	snprintf(in.end.detail, sizeof(in.end.detail), "detail");
	snprintf(in.error_message, sizeof(in.error_message), "message");
	assert_int_equal(store_sandbox_insert(fixture->store, &in, &err), 0);
	reopen(fixture);
	assert_int_equal(store_sandbox_get(fixture->store, &alice, in.id, &out, &err), 0);
	assert_string_equal(out.id, in.id);
	assert_int_equal(out.status, in.status);
	assert_memory_equal(&out.owner, &in.owner, sizeof(in.owner));
	assert_string_equal(out.project, in.project);
	assert_string_equal(out.template_name, in.template_name);
	assert_string_equal(out.driver, in.driver);
	assert_memory_equal(&out.resources, &in.resources, sizeof(in.resources));
	assert_true(json_equal(out.env, in.env));
	assert_true(json_equal(out.ports, in.ports));
	assert_true(json_equal(out.labels, in.labels));
	assert_true(json_equal(out.network, in.network));
	assert_true(json_equal(out.start, in.start));
	assert_int_equal(out.idle_timeout_s, in.idle_timeout_s);
	assert_int_equal(out.lifetime_s, in.lifetime_s);
	assert_true(out.is_private);
	assert_int_equal(out.created_at_ms, 1);
	assert_int_equal(out.started_at_ms, 2);
	assert_int_equal(out.last_active_at_ms, 3);
	assert_true(out.expires_at_ms == INT64_MAX);
	assert_int_equal(out.end.reason, END_OOM);
	assert_int_equal(out.end.signal, 9);
	assert_int_equal(out.end.cpu_us, 4);
	assert_true(out.end.peak_memory_bytes == 1ull << 40);
	assert_string_equal(out.end.detail, "detail");
	assert_string_equal(out.error_message, "message");
	sandbox_record_fini(&in);
	sandbox_record_fini(&out);
}

static void an_update_writes_the_whole_row(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &alice, id_of(2), "");
	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(1), &record, &err), 0);
	record.status = SANDBOX_RUNNING;
	json_object_set_new(record.labels, "k", json_string("v"));
	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(1), &record, &err), 0);
	assert_int_equal(record.status, SANDBOX_RUNNING);
	assert_string_equal(json_string_value(json_object_get(record.labels, "k")), "v");
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(2), &record, &err), 0);
	assert_int_equal(record.status, SANDBOX_CREATING);
	sandbox_record_fini(&record);
}

static void an_update_of_one_that_is_gone_is_not_found(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = draft(&alice, id_of(9), "");
	struct err err;

	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), -ENOENT);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_false(exists(fixture->store, NULL, id_of(9)));
	sandbox_record_fini(&record);
}

static void what_is_somebody_else_s_is_not_found(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct sandbox_record record;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "web");
	assert_true(exists(fixture->store, &alice, id_of(1)));
	assert_true(exists(fixture->store, NULL, id_of(1)));
	assert_false(exists(fixture->store, &bob, id_of(1)));
	assert_false(exists(fixture->store, &other_alice, id_of(1)));
	assert_int_equal(
		store_sandbox_find(fixture->store, &bob, "web", "", &record, &err), -ENOENT);
	assert_int_equal(
		store_workspace_get(fixture->store, &bob, id_of(1), &workspace, &err), -ENOENT);
	assert_int_equal(store_sandbox_find(fixture->store, &alice, "web", "", &record, &err), 0);
	assert_string_equal(record.id, id_of(1));
	sandbox_record_fini(&record);
}

static void an_id_is_given_once(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(insert(fixture->store, &alice, id_of(1), "", &err), -EEXIST);
	assert_string_equal(err.code, "sandbox_exists");
	assert_int_equal(insert(fixture->store, &bob, id_of(1), "", &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
}

static void a_project_has_one_sandbox_and_no_project_any_number(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "web");
	assert_int_equal(insert(fixture->store, &alice, id_of(2), "web", &err), -EEXIST);
	assert_string_equal(err.code, "project_has_sandbox");
	must_insert(fixture->store, &bob, id_of(3), "web");
	must_insert(fixture->store, &other_alice, id_of(4), "web");
	must_insert(fixture->store, &alice, id_of(5), "");
	must_insert(fixture->store, &alice, id_of(6), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	must_insert(fixture->store, &alice, id_of(7), "web");
}

/* --- lists --- */

struct seen {
	char text[512]; /* the last digits of the ids */
	unsigned count;
};

static bool see(const struct sandbox_record *record, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	seen->count++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%d ", atoi(record->id));
	return true;
}

static const char *list(struct store *store, struct store_filter filter, struct seen *seen)
{
	struct err err = {0};

	*seen = (struct seen){0};
	if (!filter.limit)
		filter.limit = 100;
	if (store_sandbox_list(store, &filter, see, seen, &err) < 0)
		fail_msg("%s", err.message);
	return seen->text;
}

static void put(struct store *store, const struct owner *owner, unsigned n,
	enum sandbox_status status, const char *project, const char *label)
{
	struct sandbox_record record = draft(owner, id_of(n), project);
	struct err err;

	record.status = status;
	json_object_set_new(record.labels, "team", json_string(label));
	assert_int_equal(store_sandbox_insert(store, &record, &err), 0);
	sandbox_record_fini(&record);
}

static void lists_are_filtered_ordered_and_paged(void **state)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->store;
	struct seen seen;

	put(store, &alice, 5, SANDBOX_RUNNING, "e", "red");
	put(store, &alice, 3, SANDBOX_STOPPED, "c", "blue");
	put(store, &alice, 4, SANDBOX_RUNNING, "d", "blue");
	put(store, &bob, 1, SANDBOX_RUNNING, "e", "red");
	put(store, &other_alice, 2, SANDBOX_RUNNING, "", "red");
	assert_string_equal(list(store, (struct store_filter){.owner = &alice}, &seen), "3 4 5 ");
	assert_string_equal(list(store, (struct store_filter){0}, &seen), "1 2 3 4 5 ");
	assert_string_equal(list(store, (struct store_filter){.limit = 2}, &seen), "1 2 ");
	assert_string_equal(
		list(store, (struct store_filter){.limit = 2, .after = id_of(2)}, &seen), "3 4 ");
	assert_string_equal(list(store, (struct store_filter){.after = id_of(5)}, &seen), "");
	assert_string_equal(
		list(store, (struct store_filter){.owner = &alice, .status = "running"}, &seen),
		"4 5 ");
	assert_string_equal(list(store, (struct store_filter){.project = "e"}, &seen), "1 5 ");
	assert_string_equal(
		list(store, (struct store_filter){.label_key = "team", .label_value = "red"},
			&seen),
		"1 2 5 ");
	assert_string_equal(
		list(store, (struct store_filter){.label_key = "red", .label_value = "team"},
			&seen),
		"");
	assert_string_equal(
		list(store, (struct store_filter){.template_name = "host"}, &seen), "1 2 3 4 5 ");
	assert_string_equal(
		list(store, (struct store_filter){.template_name = "other"}, &seen), "");
	assert_string_equal(list(store, (struct store_filter){.status = "' OR 1=1 --"}, &seen), "");
}

static void the_idle_and_the_expired_are_due(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		enum sandbox_status status;
		int64_t idle_s, active_ms, expires_ms;
		bool due;
	} rows[] = {
		{SANDBOX_RUNNING, 10, 1000, 0, true},  /* idle since 11 s */
		{SANDBOX_RUNNING, 10, 1001, 0, false}, /* a moment before */
		{SANDBOX_STOPPED, 10, 0, 0, false},    /* stopped already */
		{SANDBOX_PAUSED, 10, 0, 0, false},
		{SANDBOX_RUNNING, SANDBOX_NO_LIMIT, 0, 0, false},
		{SANDBOX_RUNNING, 0, 11000, 0, true},
		{SANDBOX_STOPPED, SANDBOX_NO_LIMIT, 0, 11000, true}, /* past its end in any state */
		{SANDBOX_STOPPED, SANDBOX_NO_LIMIT, 0, 11001, false},
	};
	char ids[16][ID_LEN + 1];
	bool found[array_len(rows)] = {false};
	struct err err;
	int count;

	for (unsigned i = 0; i < array_len(rows); i++) {
		struct sandbox_record record = draft(&alice, id_of(i), "");

		record.status = rows[i].status;
		record.idle_timeout_s = rows[i].idle_s;
		record.last_active_at_ms = rows[i].active_ms;
		record.expires_at_ms = rows[i].expires_ms;
		assert_int_equal(store_sandbox_insert(fixture->store, &record, &err), 0);
		sandbox_record_fini(&record);
	}
	count = store_sandbox_due(fixture->store, 11000, ids, array_len(ids), &err);
	for (int i = 0; i < count; i++)
		found[atoi(ids[i])] = true;
	for (unsigned i = 0; i < array_len(rows); i++)
		assert_int_equal(found[i], rows[i].due);
	assert_int_equal(store_sandbox_due(fixture->store, 11000, ids, 2, &err), 2);
	assert_int_equal(store_sandbox_touch(fixture->store, id_of(0), 5000, &err), 0);
	assert_int_equal(
		store_sandbox_due(fixture->store, 11000, ids, array_len(ids), &err), count - 1);
}

/* --- many threads --- */

#define WRITERS 4
#define WRITES	25

struct writer {
	struct store *store;
	unsigned first;
	int failed;
};

static void *write_a_lot(void *arg)
{
	struct writer *writer = arg;
	struct err err;

	for (unsigned i = 0; i < WRITES && !writer->failed; i++) {
		char id[ID_LEN + 1];
		struct sandbox_record record;

		snprintf(id, sizeof(id), "%026u", writer->first + i);
		record = draft(&alice, id, "");
		writer->failed |= store_sandbox_insert(writer->store, &record, &err) < 0;
		record.status = SANDBOX_RUNNING;
		writer->failed |= store_sandbox_update(writer->store, &record, &err) < 0;
		sandbox_record_fini(&record);
		writer->failed |= store_sandbox_get(writer->store, &alice, id, &record, &err) < 0 ||
				  record.status != SANDBOX_RUNNING;
		sandbox_record_fini(&record);
	}
	return NULL;
}

static void many_threads_write_without_losing_anything(void **state)
{
	struct fixture *fixture = *state;
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	struct seen seen;

	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.store = fixture->store, .first = i * 1000};
		assert_int_equal(pthread_create(&threads[i], NULL, write_a_lot, &writers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(writers[i].failed, 0);
	}
	list(fixture->store, (struct store_filter){.limit = 1000}, &seen);
	assert_int_equal(seen.count, WRITERS * WRITES);
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(every_member_of_a_record_comes_back),
		OPENED(an_update_writes_the_whole_row),
		OPENED(an_update_of_one_that_is_gone_is_not_found),
		OPENED(what_is_somebody_else_s_is_not_found),
		OPENED(an_id_is_given_once),
		OPENED(a_project_has_one_sandbox_and_no_project_any_number),
		OPENED(lists_are_filtered_ordered_and_paged),
		OPENED(the_idle_and_the_expired_are_due),
		OPENED(many_threads_write_without_losing_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
