/* SPDX-License-Identifier: Apache-2.0 */
/* Lists call back without the locks of the store, and go over pages. */
#include "core/engine/sandbox_handle.h"
#include "store/access/store_audit.h"
#include "store/access/store_secret.h"
#include "store/store_private.h"
#include "store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 150 /* more than two pages */

struct seen {
	struct store *store;
	unsigned count, locked, unordered;
	char last[MODEL_NAME_MAX];
	int64_t sequence;
};

static void look_at_locks(struct seen *seen)
{
	seen->count++;
	if (pthread_mutex_trylock(&seen->store->lock) != 0) {
		seen->locked++;
		return;
	}
	pthread_mutex_unlock(&seen->store->lock);
	if (pthread_mutex_trylock(&seen->store->reader_lock) != 0)
		seen->locked++;
	else
		pthread_mutex_unlock(&seen->store->reader_lock);
}

static void look_at_name(struct seen *seen, const char *name)
{
	look_at_locks(seen);
	seen->unordered += strcmp(seen->last, name) >= 0;
	snprintf(seen->last, sizeof(seen->last), "%s", name);
}

static void look_at_sequence(struct seen *seen, int64_t sequence)
{
	look_at_locks(seen);
	seen->unordered += sequence <= seen->sequence;
	seen->sequence = sequence;
}

static void assert_seen(const struct seen *seen, unsigned count)
{
	assert_int_equal(seen->count, count);
	assert_int_equal(seen->locked, 0);
	assert_int_equal(seen->unordered, 0);
}

static bool see_sandbox(const struct sandbox_record *record, void *arg)
{
	struct seen *seen = arg;

	look_at_name(seen, record->id);
	return seen->count < ROWS - 1;
}

static void sandboxes_are_listed_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct seen all = {.store = fixture->store}, some = all;
	struct store_filter filter = {.owner = &alice, .limit = ROWS};
	struct err err;

	for (unsigned i = 0; i < ROWS; i++)
		must_insert(fixture->store, &alice, id_of(i), "");
	must_insert(fixture->store, &bob, id_of(ROWS), "");
	assert_int_equal(store_sandbox_list(fixture->store, &filter, see_sandbox, &all, &err), 0);
	assert_seen(&all, ROWS - 1); /* until the callback says false */
	filter.limit = STORE_PAGE + 1;
	assert_int_equal(store_sandbox_list(fixture->store, &filter, see_sandbox, &some, &err), 0);
	assert_seen(&some, STORE_PAGE + 1);
}

static void see_process(const struct process_record *record, void *arg)
{
	look_at_sequence(arg, record->number);
}

static void processes_are_listed_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct seen all = {.store = fixture->store}, running = all;
	const char *id = id_of(1);
	struct err err;

	must_insert(fixture->store, &alice, id, "");
	for (unsigned i = 1; i <= ROWS; i++) {
		struct process_record record = {
			.number = i, .argv = json_array(), .cwd = mem_strdup("/")};

		snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", id);
		record.ended_at_ms = i % 2;
		assert_int_equal(store_process_insert(fixture->store, &record, &err), 0);
		process_record_fini(&record);
	}
	assert_int_equal(store_process_list(fixture->store, id, false, see_process, &all, &err), 0);
	assert_seen(&all, ROWS);
	assert_int_equal(
		store_process_list(fixture->store, id, true, see_process, &running, &err), 0);
	assert_seen(&running, ROWS / 2);
}

static void see_token(const struct token_record *token, void *arg)
{
	look_at_name(arg, token->id);
}

static void tokens_are_listed_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct seen seen = {.store = fixture->store};
	struct err err;

	for (unsigned i = 0; i < ROWS; i++) {
		struct token_record token = {.owner = alice};
		const unsigned char hash[32] = {(unsigned char)i};

		snprintf(token.id, sizeof(token.id), "t%03u", i);
		assert_int_equal(store_token_put(fixture->store, &token, hash, &err), 0);
	}
	assert_int_equal(
		store_token_list(fixture->store, &alice, "", ROWS - 1, see_token, &seen, &err), 0);
	assert_seen(&seen, ROWS - 1);
}

static void see_secret(
	const struct secret_record *record, const void *sealed, size_t len, void *arg)
{
	struct seen *seen = arg;
	char name[MODEL_NAME_MAX];

	/* The owner goes before the name. */
	snprintf(name, sizeof(name), "%.20s %.30s", record->owner.user, record->name);
	look_at_name(seen, name);
	assert_int_equal(len, strlen(record->name));
	assert_memory_equal(sealed, record->name, len);
}

static void put_secrets(struct store *store, const struct owner *owner)
{
	struct secret_record record = {.owner = *owner};
	struct err err;

	for (unsigned i = 0; i < ROWS / 2; i++) {
		snprintf(record.name, sizeof(record.name), "s%03u", i);
		assert_int_equal(
			store_secret_put(store, &record, record.name, strlen(record.name), &err),
			0);
	}
}

static void secrets_are_listed_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct seen own = {.store = fixture->store}, all = own;
	struct err err;

	put_secrets(fixture->store, &alice);
	put_secrets(fixture->store, &bob);
	assert_int_equal(store_secret_list(fixture->store, &bob, see_secret, &own, &err), 0);
	assert_seen(&own, ROWS / 2);
	assert_int_equal(store_secret_list(fixture->store, NULL, see_secret, &all, &err), 0);
	assert_seen(&all, ROWS);
}

static void see_entry(const struct audit_entry *entry, const uint8_t *hash, void *arg)
{
	(void)hash;
	look_at_sequence(arg, -entry->sequence);
}

static void the_audit_log_is_listed_without_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct seen seen = {.store = fixture->store, .sequence = INT64_MIN};
	const struct store_audit_filter filter = {.limit = ROWS - 1};
	struct err err;

	for (unsigned i = 1; i <= ROWS; i++) {
		struct audit_entry entry = {.sequence = i, .owner = alice};
		const struct audit_entry *const entries[] = {&entry};

		assert_int_equal(store_audit_append(fixture->store, entries, 1, &err), 0);
	}
	assert_int_equal(store_audit_list(fixture->store, &filter, see_entry, &seen, &err), 0);
	assert_seen(&seen, ROWS - 1);
}

#define FRESH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(sandboxes_are_listed_without_the_lock),
		FRESH(processes_are_listed_without_the_lock),
		FRESH(tokens_are_listed_without_the_lock),
		FRESH(secrets_are_listed_without_the_lock),
		FRESH(the_audit_log_is_listed_without_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
