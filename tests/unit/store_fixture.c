/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

const struct owner alice = {.organization = "org", .user = "alice"};
const struct owner bob = {.organization = "org", .user = "bob"};
const struct owner other_alice = {.organization = "other", .user = "alice"};

void open_store(struct fixture *fixture)
{
	struct err err = {0};

	if (store_open(fixture->path, &fixture->store, &err) < 0)
		fail_msg("%s", err.message);
}

void reopen(struct fixture *fixture)
{
	store_close(fixture->store);
	open_store(fixture);
}

int setup_empty(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));

	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/sandlot-store-XXXXXX");
	if (!mkdtemp(fixture->dir))
		return -1;
	snprintf(fixture->path, sizeof(fixture->path), "%s/state.db", fixture->dir);
	*state = fixture;
	return 0;
}

int setup(void **state)
{
	if (setup_empty(state) < 0)
		return -1;
	open_store(*state);
	return 0;
}

int teardown(void **state)
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

const char *id_of(unsigned n)
{
	static char ids[8][ID_LEN + 1];
	static unsigned next;
	char *id = ids[next++ % array_len(ids)];

	snprintf(id, ID_LEN + 1, "%026u", n);
	return id;
}

struct sandbox_record draft(const struct owner *owner, const char *id, const char *project)
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

int insert(struct store *store, const struct owner *owner, const char *id, const char *project,
	struct err *err)
{
	struct sandbox_record record = draft(owner, id, project);
	int r = store_sandbox_insert(store, &record, err);

	sandbox_record_fini(&record);
	return r;
}

void must_insert(
	struct store *store, const struct owner *owner, const char *id, const char *project)
{
	struct err err = {0};

	if (insert(store, owner, id, project, &err) < 0)
		fail_msg("%s", err.message);
}

bool exists(struct store *store, const struct owner *owner, const char *id)
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

void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	sqlite3_close(db);
}
