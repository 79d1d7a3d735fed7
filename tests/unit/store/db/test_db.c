/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of database a place means, and that two kinds live in one program. */
#include "base/mem.h"
#include "store/db/db_ops.h"
#include "store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A kind of this test's own: a statement gives one row with the number that was bound. */
struct counter {
	struct db base;
	unsigned resets;
};

struct counter_stmt {
	struct db_stmt base;
	int64_t value;
	bool is_done;
};

static int counter_prepare(
	struct db *db, const char *sql, struct db_stmt **ret_stmt, struct err *err)
{
	struct counter_stmt *stmt = mem_new(sizeof(*stmt));

	(void)sql;
	(void)err;
	*stmt = (struct counter_stmt){.base.db = db};
	*ret_stmt = &stmt->base;
	return 0;
}

static void counter_finalize(struct db_stmt *stmt)
{
	free(stmt);
}

static void counter_bind_int(struct db_stmt *stmt, int at, int64_t value)
{
	((struct counter_stmt *)stmt)->value = value * at;
}

static enum db_result counter_step(struct db_stmt *base)
{
	struct counter_stmt *stmt = (struct counter_stmt *)base;
	bool was_done = stmt->is_done;

	stmt->is_done = true;
	return was_done ? DB_DONE : DB_ROW;
}

static void counter_reset(struct db_stmt *stmt)
{
	((struct counter *)stmt->db)->resets++;
}

static int64_t counter_column_int(struct db_stmt *stmt, int column)
{
	return ((struct counter_stmt *)stmt)->value + column;
}

static const struct db_ops counter_ops = {
	.name = "counter",
	.scheme = "counter",
	.prepare = counter_prepare,
	.finalize = counter_finalize,
	.bind_int = counter_bind_int,
	.step = counter_step,
	.reset = counter_reset,
	.column_int = counter_column_int,
};

static int64_t add_one(struct db *db)
{
	struct db_stmt *stmt;
	struct err err;
	int64_t sum;

	assert_int_equal(db_prepare(db, "SELECT ?1 + 1", &stmt, &err), 0);
	db_bind_int(stmt, 1, 41);
	assert_int_equal(db_step(stmt), DB_ROW);
	sum = db_column_int(stmt, 0);
	assert_int_equal(db_step(stmt), DB_DONE);
	assert_int_equal(db_run(stmt, "run again", &err), 0);
	db_finalize(stmt);
	return sum;
}

static void each_connection_goes_to_its_own_kind(void **state)
{
	struct fixture *fixture = *state;
	struct counter counter = {.base.ops = &counter_ops};
	struct db_stmt *stmt;
	struct db *sqlite;
	struct err err;

	assert_int_equal(db_open(fixture->path, DB_OWN, &sqlite, &err), 0);
	assert_string_equal(db_place(sqlite), fixture->path);
	assert_int_equal(db_dialect(sqlite), DB_SQLITE);
	assert_int_equal(db_prepare(sqlite, "SELECT ?1 + 1", &stmt, &err), 0);
	db_bind_int(stmt, 1, 41);
	assert_int_equal(db_step(stmt), DB_ROW);
	assert_int_equal(db_column_int(stmt, 0), 42);
	assert_int_equal(add_one(&counter.base), 41);
	assert_int_equal(counter.resets, 1);
	assert_int_equal(db_step(stmt), DB_DONE);
	db_finalize(stmt);
	db_close(sqlite);
}

static void what_a_kind_need_not_do_is_no_failure(void **state)
{
	struct counter counter = {.base.ops = &counter_ops};
	struct err err;

	(void)state;
	assert_int_equal(db_check_references(&counter.base, false, &err), 0);
	assert_int_equal(db_sync(&counter.base), 0);
	db_reserve(&counter.base);
	db_finalize(NULL);
	db_close(NULL);
}

static void a_url_of_an_unknown_kind_is_refused_with_the_kinds_that_there_are(void **state)
{
	struct fixture *fixture = *state;
	struct db *db = NULL;
	char path[160];
	struct err err;

	assert_true(db_open("postgresql://joe:hunter2@host/db", DB_OWN, &db, &err) < 0);
	assert_null(db);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.code, "database_unknown");
	assert_non_null(strstr(err.message, "postgresql"));
	assert_non_null(strstr(err.message, "SQLite"));
	assert_null(strstr(err.message, "hunter2"));
	assert_false(db_is_missing("postgresql://host/db"));

	/* A colon alone makes no URL. */
	snprintf(path, sizeof(path), "%s/a:b", fixture->dir);
	assert_true(db_is_missing(path));
	assert_int_equal(db_open(path, DB_OWN, &db, &err), 0);
	db_close(db);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			each_connection_goes_to_its_own_kind, setup_empty, teardown),
		cmocka_unit_test(what_a_kind_need_not_do_is_no_failure),
		cmocka_unit_test_setup_teardown(
			a_url_of_an_unknown_kind_is_refused_with_the_kinds_that_there_are,
			setup_empty, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
