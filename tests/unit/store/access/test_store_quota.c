/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: what is in the database never exceeds them, whoever asks and however many at a time. */
#include "store/access/store_quota.h"
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct owner whole_org = {.organization = "org"};

static void set_quota(struct fixture *fixture, const struct owner *whom, const char *text)
{
	struct quota quota;
	struct err err;

	assert_int_equal(quota_parse(text, &quota), 0);
	assert_int_equal(store_quota_put(fixture->store, whom, &quota, &err), 0);
}

static int add(struct fixture *fixture, const struct owner *owner, unsigned n, struct err *err)
{
	struct sandbox_record record = draft(owner, id_of(n), "");
	int r;

	record.status = SANDBOX_RUNNING;
	record.resources = (struct resources){1000, 1 << 30, 2u << 30, 10};
	r = store_sandbox_insert(fixture->store, &record, err);
	sandbox_record_fini(&record);
	return r;
}

static void must_add(struct fixture *fixture, const struct owner *owner, unsigned n)
{
	struct err err = {0};

	if (add(fixture, owner, n, &err) < 0)
		fail_msg("%s", err.message);
}

static void assert_refused(
	struct fixture *fixture, const struct owner *owner, unsigned n, const char *message)
{
	struct workspace_record workspace;
	struct err err = {0};

	assert_int_equal(add(fixture, owner, n, &err), -EAGAIN);
	assert_int_equal(err.kind, ERR_RATE);
	assert_string_equal(err.code, "quota_exceeded");
	assert_string_equal(err.message, message);
	assert_true(err.retry_after_s > 0);
	assert_false(exists(fixture->store, NULL, id_of(n)));
	assert_int_equal(
		store_workspace_get(fixture->store, NULL, id_of(n), &workspace, &err), -ENOENT);
}

static void set_status(struct fixture *fixture, unsigned n, enum sandbox_status status)
{
	struct sandbox_record record;
	struct err err;

	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(n), &record, &err), 0);
	record.status = status;
	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
}

static int claim(struct fixture *fixture, unsigned n, struct err *err)
{
	struct sandbox_record record;
	int r;

	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(n), &record, err), 0);
	r = store_sandbox_claim(fixture->store, &record, err);
	sandbox_record_fini(&record);
	return r;
}

static void without_a_quota_everything_fits(void **state)
{
	struct fixture *fixture = *state;
	struct quota_state quota;
	struct err err;

	for (unsigned n = 0; n < 20; n++)
		must_add(fixture, &alice, n);
	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_false(quota.is_set);
	assert_false(quota_limits_anything(&quota.limits));
	assert_int_equal(quota.used.of[QUOTA_SANDBOXES], 20);
	assert_int_equal(quota.used.of[QUOTA_CPU], 20000);
}

/* Where nobody has a quota none is looked for; that ends with the first, and begins again after the last. */
static void the_first_quota_of_all_holds_and_the_last_only_while_it_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	must_add(fixture, &alice, 0);
	set_quota(fixture, &alice, "sandboxes=1");
	assert_refused(fixture, &alice, 1,
		"the quota sandboxes of user alice is used up: limit 1, in use 1");
	assert_int_equal(store_quota_delete(fixture->store, &alice, &err), 0);
	must_add(fixture, &alice, 1);
	set_quota(fixture, &alice, "sandboxes=2");
	assert_refused(fixture, &alice, 2,
		"the quota sandboxes of user alice is used up: limit 2, in use 2");
}

static void each_kind_is_held(void **state)
{
	static const struct {
		const char *quota, *message;
	} cases[] = {
		{"sandboxes=2", "the quota sandboxes of user alice is used up: limit 2, in use 2"},
		{"running=2", "the quota running of user alice is used up: limit 2, in use 2"},
		{"workspaces=2",
			"the quota workspaces of user alice is used up: limit 2, in use 2"},
		{"cpu=2.5", "the quota cpu of user alice is used up: limit 2.5, in use 2"},
		{"memory=2Gi",
			"the quota memory of user alice is used up: limit 2 GiB, in use 2 GiB"},
		{"disk=5Gi", "the quota disk of user alice is used up: limit 5 GiB, in use 4 GiB"},
		{"creates_per_minute=2",
			"the quota creates_per_minute of user alice is used up: limit 2, in use 2"},
	};
	struct fixture *fixture = *state;
	struct err err;

	for (size_t i = 0; i < array_len(cases); i++) {
		set_quota(fixture, &alice, cases[i].quota);
		execute(fixture->path, "DELETE FROM quota_pace");
		must_add(fixture, &alice, 1);
		must_add(fixture, &alice, 2);
		assert_refused(fixture, &alice, 3, cases[i].message);
		must_add(fixture, &bob, 4); /* others are not concerned */
		for (unsigned n = 1; n <= 4; n++)
			assert_int_equal(store_workspace_delete(fixture->store, id_of(n), &err), 0);
	}
}

static void an_organization_counts_all_its_users(void **state)
{
	struct fixture *fixture = *state;

	set_quota(fixture, &whole_org, "sandboxes=2");
	must_add(fixture, &alice, 1);
	must_add(fixture, &bob, 2);
	assert_refused(fixture, &alice, 3,
		"the quota sandboxes of organization org is used up: limit 2, in use 2");
	must_add(fixture, &other_alice, 4);
}

static void defaults_hold_for_whoever_has_nothing_else(void **state)
{
	struct quota organization, user;
	struct fixture *fixture = *state;
	struct err err;

	assert_int_equal(quota_parse("sandboxes=3", &organization), 0);
	assert_int_equal(quota_parse("sandboxes=1", &user), 0);
	store_quota_set_defaults(fixture->store, &organization, &user);
	must_add(fixture, &alice, 1);
	assert_refused(fixture, &alice, 2,
		"the quota sandboxes of user alice is used up: limit 1, in use 1");
	user.limits[QUOTA_SANDBOXES] = QUOTA_UNLIMITED;
	assert_int_equal(store_quota_put(fixture->store, &alice, &user, &err), 0);
	must_add(fixture, &alice, 2);
	must_add(fixture, &bob, 3);
	assert_refused(fixture, &alice, 4,
		"the quota sandboxes of organization org is used up: limit 3, in use 3");
	assert_int_equal(store_quota_delete(fixture->store, &alice, &err), 0);
	assert_int_equal(store_quota_delete(fixture->store, &alice, &err), -ENOENT);
	assert_refused(fixture, &alice, 4,
		"the quota sandboxes of organization org is used up: limit 3, in use 3");
}

static void zero_means_none_at_all(void **state)
{
	struct fixture *fixture = *state;

	set_quota(fixture, &alice, "creates_per_minute=0");
	assert_refused(fixture, &alice, 1,
		"the quota creates_per_minute of user alice is used up: limit 0, in use 0");
	set_quota(fixture, &alice, "sandboxes=0");
	assert_refused(fixture, &alice, 1,
		"the quota sandboxes of user alice is used up: limit 0, in use 0");
}

static void a_stopped_one_runs_only_if_there_is_room(void **state)
{
	struct fixture *fixture = *state;
	struct quota_state quota;
	struct err err;

	must_add(fixture, &alice, 1);
	must_add(fixture, &alice, 2);
	must_add(fixture, &alice, 3);
	set_status(fixture, 1, SANDBOX_STOPPED);
	set_status(fixture, 2, SANDBOX_STOPPED);
	set_quota(fixture, &alice, "running=2");
	assert_int_equal(claim(fixture, 1, &err), 0);
	/* Not written as running yet, but it counts. */
	assert_int_equal(claim(fixture, 2, &err), -EAGAIN);
	assert_string_equal(err.code, "quota_exceeded");
	set_status(fixture, 1, SANDBOX_ERROR);
	assert_int_equal(claim(fixture, 2, &err), 0);
	set_status(fixture, 2, SANDBOX_RUNNING);
	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(quota.used.of[QUOTA_RUNNING], 2);
	/* A paused one still has its memory. */
	set_status(fixture, 2, SANDBOX_PAUSED);
	assert_int_equal(claim(fixture, 1, &err), -EAGAIN);
}

static void a_start_that_was_cut_short_holds_nothing_after_a_restart(void **state)
{
	struct fixture *fixture = *state;
	struct quota_state quota;
	struct err err;

	set_quota(fixture, &alice, "running=1");
	must_add(fixture, &alice, 1);
	set_status(fixture, 1, SANDBOX_STOPPED);
	assert_int_equal(claim(fixture, 1, &err), 0);
	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(quota.used.of[QUOTA_RUNNING], 1);
	reopen(fixture);
	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(quota.used.of[QUOTA_RUNNING], 0);
}

static void a_purge_needs_no_quota(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record;
	struct err err;

	must_add(fixture, &alice, 1);
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	set_quota(fixture, &alice, "sandboxes=0,running=0,creates_per_minute=0");
	record = draft(&alice, id_of(1), "");
	assert_int_equal(store_sandbox_hold(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
}

static int resize(struct fixture *fixture, unsigned n, const struct resources *to, struct err *err)
{
	struct sandbox_record record;
	int r;

	assert_int_equal(store_sandbox_get(fixture->store, NULL, id_of(n), &record, err), 0);
	record.resources = *to;
	r = store_sandbox_update(fixture->store, &record, err);
	sandbox_record_fini(&record);
	return r;
}

static void assert_used(struct fixture *fixture, enum quota_kind kind, uint64_t amount)
{
	struct quota_state quota;
	struct err err;

	assert_int_equal(store_quota_get(fixture->store, &alice, &quota, &err), 0);
	assert_int_equal(quota.used.of[kind], amount);
}

static void a_number_that_grows_later_is_held_too(void **state)
{
	static const struct {
		const char *quota;
		struct resources to;
		enum quota_kind kind;
	} cases[] = {
		{"cpu=1.5", {2000, 1 << 30, 2u << 30, 10}, QUOTA_CPU},
		{"memory=1Gi", {1000, 2u << 30, 2u << 30, 10}, QUOTA_MEMORY},
		{"disk=3Gi", {1000, 1 << 30, 4ull << 30, 10}, QUOTA_DISK},
	};
	struct fixture *fixture = *state;
	struct sandbox_record record;
	struct err err;

	must_add(fixture, &alice, 1);
	for (size_t i = 0; i < array_len(cases); i++) {
		set_quota(fixture, &alice, cases[i].quota);
		assert_int_equal(resize(fixture, 1, &cases[i].to, &err), -EAGAIN);
		assert_string_equal(err.code, "quota_exceeded");
		assert_non_null(strstr(err.message, quota_name(cases[i].kind)));
		assert_int_equal(
			store_sandbox_get(fixture->store, NULL, id_of(1), &record, &err), 0);
		assert_int_equal(record.resources.cpu_millis, 1000);
		assert_int_equal(record.resources.memory_bytes, 1 << 30);
		assert_int_equal(record.resources.disk_bytes, 2u << 30);
		sandbox_record_fini(&record);
	}
	/* Who has more than they may have now can still change what does not grow. */
	set_quota(fixture, &alice, "disk=1Gi,memory=1,cpu=0.1");
	set_status(fixture, 1, SANDBOX_PAUSED);
	/* One that does not run takes neither processors nor memory. */
	set_status(fixture, 1, SANDBOX_STOPPED);
	set_quota(fixture, &alice, "cpu=0.1,memory=1");
	assert_int_equal(
		resize(fixture, 1, &(struct resources){9000, 9u << 20, 2u << 30, 10}, &err), 0);
}

static void a_disk_counts_as_long_as_its_workspace_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	set_quota(fixture, &alice, "disk=5Gi");
	must_add(fixture, &alice, 1);
	must_add(fixture, &alice, 2);
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	assert_used(fixture, QUOTA_DISK, 4ull << 30);
	assert_refused(fixture, &alice, 3,
		"the quota disk of user alice is used up: limit 5 GiB, in use 4 GiB");
	must_add(fixture, &alice, 1); /* takes up what it has */
	assert_used(fixture, QUOTA_DISK, 4ull << 30);
	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	must_add(fixture, &alice, 3);
}

static void a_disk_counts_its_highest_limit_until_it_was_measured(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	set_quota(fixture, &alice, "disk=5Gi");
	must_add(fixture, &alice, 1);
	assert_int_equal(
		resize(fixture, 1, &(struct resources){1000, 1 << 30, 4ull << 30, 10}, &err), 0);
	assert_int_equal(
		resize(fixture, 1, &(struct resources){1000, 1 << 30, 1 << 20, 10}, &err), 0);
	assert_used(fixture, QUOTA_DISK, 4ull << 30);
	assert_int_equal(add(fixture, &alice, 2, &err), -EAGAIN);
	assert_int_equal(store_workspace_set_disk(fixture->store, id_of(1), 1 << 20, &err), 0);
	must_add(fixture, &alice, 2);
}

/* --- a crowd --- */

struct crowd {
	struct fixture *fixture;
	atomic_uint next, made;
};

static void *join_in(void *arg)
{
	struct crowd *crowd = arg;
	struct sandbox_record record;
	char id[ID_LEN + 1];
	struct err err;

	snprintf(id, sizeof(id), "%026u", atomic_fetch_add(&crowd->next, 1));
	record = draft(&alice, id, "");
	if (store_sandbox_insert(crowd->fixture->store, &record, &err) == 0)
		atomic_fetch_add(&crowd->made, 1);
	sandbox_record_fini(&record);
	return NULL;
}

static void fifty_at_once_against_ten_make_ten(void **state)
{
	struct crowd crowd = {.fixture = *state};
	pthread_t threads[50];

	set_quota(*state, &whole_org, "sandboxes=10");
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, join_in, &crowd), 0);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(crowd.made, 10);
}

struct growing {
	struct fixture *fixture;
	unsigned n;
	atomic_uint *grown;
};

static void *grow(void *arg)
{
	struct growing *growing = arg;
	struct sandbox_record record;
	char id[ID_LEN + 1];
	struct err err;

	snprintf(id, sizeof(id), "%026u", growing->n);
	assert_int_equal(store_sandbox_get(growing->fixture->store, NULL, id, &record, &err), 0);
	record.resources.disk_bytes = 3ull << 30;
	if (store_sandbox_update(growing->fixture->store, &record, &err) == 0)
		atomic_fetch_add(growing->grown, 1);
	sandbox_record_fini(&record);
	return NULL;
}

static void of_many_that_grow_at_once_as_many_do_as_there_is_room_for(void **state)
{
	struct growing growing[20];
	pthread_t threads[array_len(growing)];
	atomic_uint grown = 0;

	for (unsigned n = 0; n < array_len(growing); n++)
		must_add(*state, &alice, n);
	set_quota(*state, &whole_org, "disk=47Gi"); /* 40 are in use, and each wants one more */
	for (unsigned n = 0; n < array_len(growing); n++) {
		growing[n] = (struct growing){*state, n, &grown};
		assert_int_equal(pthread_create(&threads[n], NULL, grow, &growing[n]), 0);
	}
	for (unsigned n = 0; n < array_len(growing); n++)
		pthread_join(threads[n], NULL);
	assert_int_equal(grown, 7);
	assert_used(*state, QUOTA_DISK, 47ull << 30);
}

/* --- texts --- */

static void a_quota_is_read_strictly(void **state)
{
	static const char *const wrong[] = {"sandboxes", "sandboxes=", "sandboxes=-1",
		"sandboxes=1,", ",sandboxes=1", "sandboxes=1,sandboxes=2", "nonsense=1",
		"sandboxes=1Gi", "cpu=x", "cpu=-1", "cpu=nan", "memory=1X", "sandboxes= 1"};
	struct quota quota;

	(void)state;
	assert_int_equal(quota_parse("", &quota), 0);
	assert_false(quota_limits_anything(&quota));
	assert_int_equal(quota_parse("cpu=1.5,memory=8Gi", &quota), 0);
	assert_int_equal(quota.limits[QUOTA_CPU], 1500);
	assert_int_equal(quota.limits[QUOTA_MEMORY], 8ll << 30);
	assert_int_equal(quota.limits[QUOTA_DISK], QUOTA_UNSET);
	for (size_t i = 0; i < array_len(wrong); i++) {
		if (quota_parse(wrong[i], &quota) == 0)
			fail_msg("taken: %s", wrong[i]);
	}
}

static void a_claim_counts_beside_the_rows_until_it_is_given_back(void **state)
{
	const struct owner one = {"org", "one"}, two = {"org", "two"}, other = {"other", "one"};
	const struct quota_amounts amounts = {
		.of = {[QUOTA_SANDBOXES] = 1, [QUOTA_MEMORY] = 1 << 30}};
	struct quota_claim first, second, third;
	struct fixture *fixture = *state;
	struct quota_state used;
	struct err err = {0};

	set_quota(fixture, &whole_org, "sandboxes=2");
	must_add(fixture, &one, 1);
	assert_int_equal(store_quota_claim(fixture->store, &two, &amounts, &first, &err), 0);
	assert_int_equal(store_quota_get(fixture->store, &two, &used, &err), 0);
	assert_int_equal(used.used.of[QUOTA_SANDBOXES], 1);
	assert_int_equal(used.used.of[QUOTA_MEMORY], 1 << 30);
	assert_refused(fixture, &one, 2,
		"the quota sandboxes of organization org is used up: limit 2, in use 2");
	assert_int_equal(store_quota_claim(fixture->store, &one, &amounts, &second, &err), -EAGAIN);
	assert_string_equal(err.code, "quota_exceeded");
	/* It concerns nobody else, and one that was refused counts nothing. */
	assert_int_equal(store_quota_claim(fixture->store, &other, &amounts, &third, &err), 0);
	store_quota_give_back(fixture->store, &second);
	assert_int_equal(store_quota_get(fixture->store, &whole_org, &used, &err), 0);
	assert_int_equal(used.used.of[QUOTA_SANDBOXES], 2);
	store_quota_give_back(fixture->store, &first);
	store_quota_give_back(fixture->store, &first);
	must_add(fixture, &one, 3);
	store_quota_give_back(fixture->store, &third);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_STORE(without_a_quota_everything_fits),
		WITH_STORE(the_first_quota_of_all_holds_and_the_last_only_while_it_is_there),
		WITH_STORE(each_kind_is_held),
		WITH_STORE(an_organization_counts_all_its_users),
		WITH_STORE(defaults_hold_for_whoever_has_nothing_else),
		WITH_STORE(zero_means_none_at_all),
		WITH_STORE(a_stopped_one_runs_only_if_there_is_room),
		WITH_STORE(a_start_that_was_cut_short_holds_nothing_after_a_restart),
		WITH_STORE(a_purge_needs_no_quota),
		WITH_STORE(fifty_at_once_against_ten_make_ten),
		WITH_STORE(a_number_that_grows_later_is_held_too),
		WITH_STORE(a_disk_counts_as_long_as_its_workspace_is_kept),
		WITH_STORE(a_disk_counts_its_highest_limit_until_it_was_measured),
		WITH_STORE(of_many_that_grow_at_once_as_many_do_as_there_is_room_for),
		WITH_STORE(a_claim_counts_beside_the_rows_until_it_is_given_back),
		cmocka_unit_test(a_quota_is_read_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
