/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of requests that are sent again: one owner's are not another's, and they do not pile up. */
#include "base/clock.h"
#include "store/access/store_idempotency.h"
#include "store_fixture.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct idempotency_record record_of(const char *object)
{
	struct idempotency_record record = {.print = {1, 2, 3}};

	snprintf(record.object, sizeof(record.object), "%s", object);
	return record;
}

/* Whether the key was known; *record is then what is known. */
static int begin(struct fixture *fixture, const struct owner *owner, const char *key,
	struct idempotency_record *record)
{
	struct err err = {0};
	int r = store_idempotency_begin(fixture->store, owner, key, record, &err);

	if (r < 0)
		fail_msg("%s", err.message);
	return r;
}

static void what_was_answered_is_known_again_also_after_a_restart(void **state)
{
	struct fixture *fixture = *state;
	struct idempotency_record record = record_of(id_of(1));
	struct err err;

	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
	record = record_of(id_of(2));
	assert_int_equal(begin(fixture, &alice, "key", &record), 1);
	assert_string_equal(record.object, id_of(1));
	assert_int_equal(record.print[2], 3);
	assert_null(record.answer); /* it was cut short */
	assert_int_equal(
		store_idempotency_finish(fixture->store, &alice, "key", "{\"a\":1}", &err), 0);
	reopen(fixture);
	record = record_of(id_of(2));
	assert_int_equal(begin(fixture, &alice, "key", &record), 1);
	assert_string_equal(record.answer, "{\"a\":1}");
	free(record.answer);
}

static void a_key_is_its_owner_s(void **state)
{
	struct fixture *fixture = *state;
	struct idempotency_record record = record_of(id_of(1));

	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
	assert_int_equal(begin(fixture, &bob, "key", &record), 0);
	assert_int_equal(begin(fixture, &other_alice, "key", &record), 0);
	assert_int_equal(begin(fixture, &alice, "KEY", &record), 0);
}

static void what_failed_may_be_tried_again(void **state)
{
	struct fixture *fixture = *state;
	struct idempotency_record record = record_of(id_of(1));
	struct err err;

	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
	assert_int_equal(store_idempotency_forget(fixture->store, &alice, "key", &err), 0);
	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
}

static void a_key_is_forgotten_after_a_day(void **state)
{
	struct fixture *fixture = *state;
	struct idempotency_record record = record_of(id_of(1));
	char *sql = mem_printf("UPDATE replays SET created_at = %lld",
		(long long)(clock_wall_ms() - IDEMPOTENCY_KEPT_MS - 1));

	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
	execute(fixture->path, sql);
	free(sql);
	assert_int_equal(begin(fixture, &alice, "key", &record), 0);
}

static unsigned count_keys(const struct fixture *fixture)
{
	sqlite3_stmt *stmt;
	unsigned count;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM replays WHERE user = 'alice'",
				 -1, &stmt, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	count = (unsigned)sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return count;
}

static void the_oldest_go_when_there_are_too_many(void **state)
{
	struct fixture *fixture = *state;
	struct idempotency_record record = record_of(id_of(1));
	char key[16];

	assert_int_equal(begin(fixture, &bob, "key", &record), 0);
	for (unsigned i = 0; i < IDEMPOTENCY_KEPT_MAX + 200; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(begin(fixture, &alice, key, &record), 0);
	}
	assert_in_range(count_keys(fixture), IDEMPOTENCY_KEPT_MAX, IDEMPOTENCY_KEPT_MAX + 64);
	assert_int_equal(begin(fixture, &alice, key, &record), 1); /* the newest is there */
	assert_int_equal(begin(fixture, &bob, "key", &record), 1); /* and so is somebody else's */
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_STORE(what_was_answered_is_known_again_also_after_a_restart),
		WITH_STORE(a_key_is_its_owner_s),
		WITH_STORE(what_failed_may_be_tried_again),
		WITH_STORE(a_key_is_forgotten_after_a_day),
		WITH_STORE(the_oldest_go_when_there_are_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
