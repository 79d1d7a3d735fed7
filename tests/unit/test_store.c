/* SPDX-License-Identifier: Apache-2.0 */
/* The store and its schema: what was acknowledged is there, also after a crash; owners see their own. */
#include "store/schema.h"
#include "store/store.h"
#include "wire/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct owner alice = {.organization = "org", .user = "alice"};
static const struct owner bob = {.organization = "org", .user = "bob"};
static const struct owner other_alice = {.organization = "other", .user = "alice"};

struct fixture {
	char dir[64];
	char path[96];
	struct store *store;
};

static void open_store(struct fixture *fixture)
{
	struct err err = {0};

	if (store_open(fixture->path, &fixture->store, &err) < 0)
		fail_msg("%s", err.message);
}

static void reopen(struct fixture *fixture)
{
	store_close(fixture->store);
	open_store(fixture);
}

static int setup_empty(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));

	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/sandlot-store-XXXXXX");
	if (!mkdtemp(fixture->dir))
		return -1;
	snprintf(fixture->path, sizeof(fixture->path), "%s/state.db", fixture->dir);
	*state = fixture;
	return 0;
}

static int setup(void **state)
{
	if (setup_empty(state) < 0)
		return -1;
	open_store(*state);
	return 0;
}

static int teardown(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	struct fixture *fixture = *state;

	store_close(fixture->store);
	for (size_t i = 0; i < array_len(suffixes); i++) {
		char *path = mem_printf("%s%s", fixture->path, suffixes[i]);

		unlink(path);
		free(path);
	}
	assert_int_equal(rmdir(fixture->dir), 0);
	free(fixture);
	return 0;
}

/* --- records --- */

static const char *id_of(unsigned n)
{
	static char ids[8][ID_LEN + 1];
	static unsigned next;
	char *id = ids[next++ % array_len(ids)];

	snprintf(id, ID_LEN + 1, "%026u", n);
	return id;
}

static struct sandbox_record draft(const struct owner *owner, const char *id, const char *project)
{
	struct sandbox_record record;

	sandbox_record_init(&record);
	record.owner = *owner;
	snprintf(record.id, sizeof(record.id), "%s", id);
	snprintf(record.project, sizeof(record.project), "%s", project);
	snprintf(record.template_name, sizeof(record.template_name), "host");
	snprintf(record.driver, sizeof(record.driver), "native");
	record.idle_timeout_s = record.lifetime_s = SANDBOX_NO_LIMIT;
	return record;
}

static int insert(struct store *store, const struct owner *owner, const char *id,
	const char *project, uint32_t *ret_slot, struct err *err)
{
	struct sandbox_record record = draft(owner, id, project);
	int r = store_sandbox_insert(store, &record, err);

	if (ret_slot)
		*ret_slot = record.slot;
	sandbox_record_fini(&record);
	return r;
}

static uint32_t must_insert(
	struct store *store, const struct owner *owner, const char *id, const char *project)
{
	struct err err = {0};
	uint32_t slot = 0;

	if (insert(store, owner, id, project, &slot, &err) < 0)
		fail_msg("%s", err.message);
	return slot;
}

static bool exists(struct store *store, const struct owner *owner, const char *id)
{
	struct sandbox_record record;
	struct err err = {0};

	if (store_sandbox_get(store, owner, id, &record, &err) < 0) {
		assert_string_equal(err.code, "sandbox_not_found");
		return false;
	}
	sandbox_record_fini(&record);
	return true;
}

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
	in.idle_timeout_s = 1;
	in.lifetime_s = 366 * 86400;
	in.is_private = true;
	in.created_at_ms = 1;
	in.started_at_ms = 2;
	in.last_active_at_ms = 3;
	in.expires_at_ms = INT64_MAX;
	in.end.reason = END_OOM;
	in.end.signal = 9;
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
	assert_int_equal(out.slot, in.slot);
	assert_true(json_equal(out.env, in.env));
	assert_true(json_equal(out.ports, in.ports));
	assert_true(json_equal(out.labels, in.labels));
	assert_true(json_equal(out.network, in.network));
	assert_int_equal(out.idle_timeout_s, in.idle_timeout_s);
	assert_int_equal(out.lifetime_s, in.lifetime_s);
	assert_true(out.is_private);
	assert_int_equal(out.created_at_ms, 1);
	assert_int_equal(out.started_at_ms, 2);
	assert_int_equal(out.last_active_at_ms, 3);
	assert_true(out.expires_at_ms == INT64_MAX);
	assert_int_equal(out.end.reason, END_OOM);
	assert_int_equal(out.end.signal, 9);
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
	assert_int_equal(store_sandbox_find(fixture->store, &bob, "web", &record, &err), -ENOENT);
	assert_int_equal(
		store_workspace_get(fixture->store, &bob, id_of(1), &workspace, &err), -ENOENT);
	assert_int_equal(store_sandbox_find(fixture->store, &alice, "web", &record, &err), 0);
	assert_string_equal(record.id, id_of(1));
	sandbox_record_fini(&record);
}

static void an_id_is_given_once(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(insert(fixture->store, &alice, id_of(1), "", NULL, &err), -EEXIST);
	assert_string_equal(err.code, "sandbox_exists");
	assert_int_equal(insert(fixture->store, &bob, id_of(1), "", NULL, &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
}

static void a_project_has_one_sandbox_and_no_project_any_number(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "web");
	assert_int_equal(insert(fixture->store, &alice, id_of(2), "web", NULL, &err), -EEXIST);
	assert_string_equal(err.code, "project_has_sandbox");
	must_insert(fixture->store, &bob, id_of(3), "web");
	must_insert(fixture->store, &other_alice, id_of(4), "web");
	must_insert(fixture->store, &alice, id_of(5), "");
	must_insert(fixture->store, &alice, id_of(6), "");
	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	must_insert(fixture->store, &alice, id_of(7), "web");
}

/* --- workspaces and uid ranges --- */

static void a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner(void **state)
{
	struct fixture *fixture = *state;
	uint32_t slot = must_insert(fixture->store, &alice, id_of(1), "");
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_sandbox_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, &alice, id_of(1), &workspace, &err), 0);
	assert_int_equal(workspace.slot, slot);
	assert_int_not_equal(must_insert(fixture->store, &bob, id_of(2), ""), slot);
	assert_int_equal(insert(fixture->store, &bob, id_of(1), "", NULL, &err), -EEXIST);
	assert_string_equal(err.code, "id_taken");
	reopen(fixture);
	assert_int_not_equal(must_insert(fixture->store, &bob, id_of(3), ""), slot);
	assert_int_equal(must_insert(fixture->store, &alice, id_of(1), ""), slot);
}

static void a_purged_workspace_frees_its_uid_range(void **state)
{
	struct fixture *fixture = *state;
	uint32_t slot = must_insert(fixture->store, &alice, id_of(1), "");
	struct workspace_record workspace;
	struct err err;

	assert_int_equal(store_workspace_delete(fixture->store, id_of(1), &err), 0);
	assert_false(exists(fixture->store, NULL, id_of(1)));
	assert_int_equal(
		store_workspace_get(fixture->store, NULL, id_of(1), &workspace, &err), -ENOENT);
	assert_int_equal(must_insert(fixture->store, &bob, id_of(2), ""), slot);
	assert_int_equal(
		store_workspace_delete(fixture->store, id_of(1), &err), 0); /* again: fine */
	assert_true(exists(fixture->store, &bob, id_of(2)));
}

static void no_two_workspaces_share_a_uid_range(void **state)
{
	struct fixture *fixture = *state;
	bool taken[64] = {false};
	struct err err;

	for (unsigned i = 0; i < 40; i++) {
		uint32_t slot;

		if (i == 20) {
			for (unsigned j = 0; j < 20; j += 3) {
				struct workspace_record workspace;

				assert_int_equal(store_workspace_get(fixture->store, NULL, id_of(j),
							 &workspace, &err),
					0);
				taken[workspace.slot] = false;
				assert_int_equal(
					store_workspace_delete(fixture->store, id_of(j), &err), 0);
			}
			reopen(fixture);
		}
		slot = must_insert(fixture->store, &alice, id_of(i), "");
		assert_true(slot < array_len(taken));
		assert_false(taken[slot]);
		taken[slot] = true;
	}
}

static void a_failed_insert_keeps_no_uid_range(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first = must_insert(fixture->store, &alice, id_of(1), "web");
	struct err err;

	for (unsigned i = 0; i < 10; i++) {
		struct workspace_record workspace;

		assert_int_equal(
			insert(fixture->store, &alice, id_of(50), "web", NULL, &err), -EEXIST);
		assert_int_equal(
			store_workspace_get(fixture->store, NULL, id_of(50), &workspace, &err),
			-ENOENT);
	}
	assert_int_equal(must_insert(fixture->store, &alice, id_of(2), ""), first + 1);
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	sqlite3_close(db);
}

static void when_all_uid_ranges_are_taken_the_answer_says_what_to_do(void **state)
{
	struct fixture *fixture = *state;
	char sql[256];
	struct err err;

	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		" INSERT INTO workspaces SELECT printf('%%026d', i), 'o', 'u', i, 0 FROM n",
		KEEPER_SLOT_COUNT - 1);
	execute(fixture->path, sql);
	reopen(fixture);
	assert_int_equal(
		insert(fixture->store, &alice, "new00000000000000000000000", "", NULL, &err),
		-EAGAIN);
	assert_string_equal(err.code, "no_uid_range");
	assert_true(err.remedy[0]);
	assert_int_equal(store_workspace_delete(fixture->store, id_of(17), &err), 0);
	assert_int_equal(must_insert(fixture->store, &alice, "new00000000000000000000000", ""), 17);
}

/* A database that was tampered with, or written by a version with more ranges, is no reason to die. */
static void a_uid_range_that_cannot_be_is_deleted_as_any_other(void **state)
{
	struct fixture *fixture = *state;
	struct err err;

	execute(fixture->path, "INSERT INTO workspaces VALUES"
			       " ('zzzzzzzzzzzzzzzzzzzzzzzzzz', 'o', 'u', 999999999, 0)");
	reopen(fixture);
	assert_int_equal(
		store_workspace_delete(fixture->store, "zzzzzzzzzzzzzzzzzzzzzzzzzz", &err), 0);
	assert_int_equal(must_insert(fixture->store, &alice, id_of(1), ""), 0);
}

/* --- lists --- */

struct seen {
	char text[512]; /* the last digits of the ids */
	unsigned count;
};

static void see(const struct sandbox_record *record, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	seen->count++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%d ", atoi(record->id));
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

/* --- tokens --- */

static void a_token_is_known_by_its_hash_and_replaced_by_its_id(void **state)
{
	struct fixture *fixture = *state;
	struct token_record in = {.id = "admin", .owner = alice, .is_admin = true}, out;
	unsigned char hash[32] = {1, 0, 2}, other[32] = {1, 0, 3};
	struct err err;

	assert_int_equal(store_token_get(fixture->store, hash, &out, &err), -EACCES);
	assert_int_equal(store_token_put(fixture->store, &in, hash, &err), 0);
	reopen(fixture);
	assert_int_equal(store_token_get(fixture->store, hash, &out, &err), 0);
	assert_string_equal(out.id, "admin");
	assert_string_equal(out.owner.organization, alice.organization);
	assert_string_equal(out.owner.user, alice.user);
	assert_true(out.is_admin);
	assert_int_equal(store_token_get(fixture->store, other, &out, &err), -EACCES);
	assert_int_equal(store_token_put(fixture->store, &in, other, &err), 0);
	assert_int_equal(store_token_get(fixture->store, other, &out, &err), 0);
	assert_int_equal(
		store_token_get(fixture->store, hash, &out, &err), -EACCES); /* the old one */
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

/* --- opening --- */

static void a_database_in_a_place_that_does_not_exist_is_an_error(void **state)
{
	struct store *store = NULL;
	struct err err = {0};

	(void)state;
	assert_true(store_open("/nonexistent/state.db", &store, &err) < 0);
	assert_null(store);
	assert_non_null(strstr(err.message, "/nonexistent/state.db"));
	store_close(NULL);
}

static void what_is_no_database_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	FILE *file = fopen(fixture->path, "we");
	struct err err = {0};

	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		fputs("this is not a database ", file);
	fclose(file);
	assert_true(store_open(fixture->path, &fixture->store, &err) < 0);
	assert_int_equal(err.kind, ERR_INTERNAL);
	assert_true(err.message[0]);
}

static int version_of(const char *path)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;
	int version;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	version = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return version;
}

static void a_fresh_database_gets_the_newest_schema(void **state)
{
	struct fixture *fixture = *state;

	open_store(fixture);
	assert_int_equal(version_of(fixture->path), schema_version());
	must_insert(fixture->store, &alice, id_of(1), "");
}

static void a_database_opened_again_is_as_it_was(void **state)
{
	struct fixture *fixture = *state;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "web");
	for (int i = 0; i < 3; i++)
		reopen(fixture);
	assert_int_equal(version_of(fixture->path), schema_version());
	assert_true(exists(fixture->store, &alice, id_of(1)));
}

static void a_newer_database_is_refused_and_left_alone(void **state)
{
	struct fixture *fixture = *state;
	char sql[64];
	struct err err = {0};
	struct store *store = NULL;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
	store_close(take_ptr(&fixture->store));
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu", schema_version() + 1);
	execute(fixture->path, sql);
	assert_true(store_open(fixture->path, &store, &err) < 0);
	assert_null(store);
	assert_string_equal(err.code, "database_too_new");
	assert_true(err.remedy[0]);
	assert_int_equal(version_of(fixture->path), schema_version() + 1);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu", schema_version());
	execute(fixture->path, sql);
	open_store(fixture);
	assert_true(exists(fixture->store, &alice, id_of(1)));
}

/* --- sudden death --- */

static int die_at_last(void *arg)
{
	if (--*(int *)arg == 0)
		kill(getpid(), SIGKILL);
	return 0;
}

/* Migrates in a child that dies after so many steps of the database's machine. Whether it died. */
static bool migrate_and_die(const char *path, int steps)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err;
		sqlite3 *db;

		if (sqlite3_open(path, &db) != SQLITE_OK)
			_exit(1);
		sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		sqlite3_progress_handler(db, 1, die_at_last, &steps);
		_exit(schema_migrate(db, &err) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void a_migration_that_is_killed_anywhere_is_done_by_the_next_start(void **state)
{
	struct fixture *fixture = *state;
	unsigned deaths = 0;
	bool died = true;

	for (int steps = 1; died; steps += 1 + steps / 8) {
		char *wal = mem_printf("%s-wal", fixture->path),
		     *shm = mem_printf("%s-shm", fixture->path);

		died = migrate_and_die(fixture->path, steps);
		deaths += died;
		open_store(fixture);
		assert_int_equal(version_of(fixture->path), schema_version());
		must_insert(fixture->store, &alice, id_of(1), "web");
		store_close(take_ptr(&fixture->store));
		unlink(fixture->path);
		unlink(wal);
		unlink(shm);
		free(wal);
		free(shm);
	}
	assert_true(deaths > 10);
}

/* A child adds sandboxes and says so; it is killed; what it said must be there, and nothing by half. */
static void what_was_acknowledged_survives_the_death_of_the_process(void **state)
{
	struct fixture *fixture = *state;
	struct workspace_record workspace;
	struct err err;
	int pipe_fds[2], status;
	unsigned said = 0;
	uint8_t byte;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		open_store(fixture);
		for (unsigned i = 0;; i++) {
			if (insert(fixture->store, &alice, id_of(i), "", NULL, &err) < 0 ||
				write(pipe_fds[1], "x", 1) != 1)
				_exit(1);
		}
	}
	close(pipe_fds[1]);
	while (said < 50 && read(pipe_fds[0], &byte, 1) == 1)
		said++;
	kill(pid, SIGKILL);
	while (read(pipe_fds[0], &byte, 1) == 1)
		said++;
	close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && said >= 50);
	open_store(fixture);
	for (unsigned i = 0; i < said; i++)
		assert_true(exists(fixture->store, &alice, id_of(i)));
	/* The one under way is there with its workspace, or not at all. */
	assert_int_equal(exists(fixture->store, NULL, id_of(said)),
		store_workspace_get(fixture->store, NULL, id_of(said), &workspace, &err) == 0);
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define FRESH(test)  cmocka_unit_test_setup_teardown(test, setup_empty, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(every_member_of_a_record_comes_back),
		OPENED(an_update_writes_the_whole_row),
		OPENED(an_update_of_one_that_is_gone_is_not_found),
		OPENED(what_is_somebody_else_s_is_not_found),
		OPENED(an_id_is_given_once),
		OPENED(a_project_has_one_sandbox_and_no_project_any_number),
		OPENED(a_workspace_outlives_its_sandbox_and_is_taken_up_by_its_owner),
		OPENED(a_purged_workspace_frees_its_uid_range),
		OPENED(no_two_workspaces_share_a_uid_range),
		OPENED(a_failed_insert_keeps_no_uid_range),
		OPENED(when_all_uid_ranges_are_taken_the_answer_says_what_to_do),
		OPENED(a_uid_range_that_cannot_be_is_deleted_as_any_other),
		OPENED(lists_are_filtered_ordered_and_paged),
		OPENED(the_idle_and_the_expired_are_due),
		OPENED(a_token_is_known_by_its_hash_and_replaced_by_its_id),
		OPENED(many_threads_write_without_losing_anything),
		FRESH(a_database_in_a_place_that_does_not_exist_is_an_error),
		FRESH(what_is_no_database_is_an_error),
		FRESH(a_fresh_database_gets_the_newest_schema),
		FRESH(a_database_opened_again_is_as_it_was),
		FRESH(a_newer_database_is_refused_and_left_alone),
		FRESH(a_migration_that_is_killed_anywhere_is_done_by_the_next_start),
		FRESH(what_was_acknowledged_survives_the_death_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
