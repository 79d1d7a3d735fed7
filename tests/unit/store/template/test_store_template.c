/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in the database: who changes one is called without the lock, and again if the row became another one. */
#include "store/template/store_template.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct changer {
	struct store *store;
	int rounds;
	bool is_disturbed; /* the first round changes the row behind its own back */
	bool uses;	   /* the first round notes a use */
};

static int add_version(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	struct changer *changer = arg;
	struct template_record now;
	struct changer other = {.store = changer->store};

	changer->rounds++;
	/* Any call of the store would wait for ever if its lock were held. */
	if (store_template_find(changer->store, &alice, "app", &now, err) == 0) {
		assert_int_equal(now.version, record->version);
		assert_false(is_new);
		if (changer->uses && changer->rounds == 1)
			assert_int_equal(store_template_touch(changer->store, &now, 5000, err), 0);
		template_record_fini(&now);
	} else {
		assert_true(is_new);
	}
	if (changer->is_disturbed && changer->rounds == 1)
		assert_int_equal(store_template_change(
					 changer->store, &alice, "app", add_version, &other, err),
			0);
	record->version++;
	return 0;
}

static void assert_version(struct store *store, int64_t version, int64_t used_at_ms)
{
	struct template_record record;
	struct err err;

	assert_int_equal(store_template_find(store, &alice, "app", &record, &err), 0);
	assert_int_equal(record.version, version);
	assert_int_equal(record.used_at_ms, used_at_ms);
	template_record_fini(&record);
}

static void a_change_may_use_the_store(void **state)
{
	struct fixture *fixture = *state;
	struct changer changer;
	struct err err;

	for (int version = 1; version <= 2; version++) {
		changer = (struct changer){.store = fixture->store};
		assert_int_equal(store_template_change(fixture->store, &alice, "app", add_version,
					 &changer, &err),
			0);
		assert_int_equal(changer.rounds, 1);
		assert_version(fixture->store, version, 0);
	}
}

static void a_row_that_became_another_one_is_changed_anew(void **state)
{
	struct fixture *fixture = *state;
	struct changer changer;
	struct err err;

	for (int version = 2; version <= 4; version += 2) {
		changer = (struct changer){.store = fixture->store, .is_disturbed = true};
		assert_int_equal(store_template_change(fixture->store, &alice, "app", add_version,
					 &changer, &err),
			0);
		assert_int_equal(changer.rounds, 2);
		assert_version(fixture->store, version, 0);
	}
}

static void a_use_meanwhile_is_kept_and_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct changer changer = {0};
	struct err err;

	changer.store = fixture->store;
	assert_int_equal(
		store_template_change(fixture->store, &alice, "app", add_version, &changer, &err),
		0);
	changer = (struct changer){.store = fixture->store, .uses = true};
	assert_int_equal(
		store_template_change(fixture->store, &alice, "app", add_version, &changer, &err),
		0);
	assert_int_equal(changer.rounds, 1);
	assert_version(fixture->store, 2, 5000);
}

#define with_store(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_store(a_change_may_use_the_store),
		with_store(a_row_that_became_another_one_is_changed_anew),
		with_store(a_use_meanwhile_is_kept_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
