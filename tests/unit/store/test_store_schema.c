/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the store: what was acknowledged is there, also after a crash and with a newer program. */
#include "core/engine/sandbox_handle.h"
#include "store/db/db.h"
#include "store/db/db_sqlite.h"
#include "store/db/schema.h"
#include "store/template/store_build.h"
#include "store/work/store_job.h"
#include "store/work/store_project.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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
		struct db *db;

		if (db_open(path, DB_OWN, &db, &err) < 0 || db_configure(db, &err) < 0)
			_exit(1);
		sqlite3_progress_handler(db_sqlite_handle(db), 1, die_at_last, &steps);
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
			if (insert(fixture->store, &alice, id_of(i), "", &err) < 0 ||
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

/* --- older ones --- */

static void a_database_of_the_first_schema_is_taken_up_with_all_it_has(void **state)
{
	struct fixture *fixture = *state;
	struct process_record process;
	struct sandbox_record record;
	struct token_record token;
	struct err err;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &alice, id_of(2), "web");
	store_close(take_ptr(&fixture->store));
	execute(fixture->path, "DROP INDEX processes_running");
	execute(fixture->path, "DROP TABLE processes");
	execute(fixture->path, "ALTER TABLE sandboxes DROP COLUMN end_cpu_us");
	execute(fixture->path, "ALTER TABLE sandboxes DROP COLUMN end_peak_bytes");
	execute(fixture->path, "DROP TABLE tokens");
	execute(fixture->path,
		"CREATE TABLE tokens (hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
		" organization TEXT NOT NULL, user TEXT NOT NULL,"
		" admin INTEGER NOT NULL, created_at INTEGER NOT NULL)"
		" WITHOUT ROWID");
	execute(fixture->path,
		"INSERT INTO tokens VALUES (zeroblob(32), 'admin', 'default', 'admin',"
		" 1, 7)");
	execute(fixture->path, BACK_TO_SCHEMA_11);
	execute(fixture->path, "DROP TABLE secrets");
	execute(fixture->path, "DROP TABLE preview_links");
	execute(fixture->path, "DROP TABLE replays");
	execute(fixture->path, "DROP INDEX sandboxes_use");
	execute(fixture->path, "DROP INDEX workspaces_owner");
	execute(fixture->path, "ALTER TABLE sandboxes DROP COLUMN starting");
	execute(fixture->path, "ALTER TABLE sandboxes DROP COLUMN start");
	execute(fixture->path, "DROP TABLE quotas");
	execute(fixture->path, "DROP TABLE quota_pace");
	execute(fixture->path, "DROP TABLE audit");
	execute(fixture->path, "DROP TABLE audit_anchor");
	execute(fixture->path, "PRAGMA user_version = 1");
	open_store(fixture);
	assert_int_equal(version_of(fixture->path), schema_version());
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(2), &record, &err), 0);
	assert_int_equal(
		store_token_find(fixture->store, (unsigned char[32]){0}, 1, &token, &err), 0);
	assert_int_equal(token.scopes, SCOPE_ADMIN);
	assert_int_equal(token.created_at_ms, 7);
	assert_string_equal(record.project, "web");
	assert_string_equal(record.name, "");
	assert_int_equal(
		store_job_get(fixture->store, NULL, id_of(1), &(struct job_record){0}, &err),
		-ENOENT);
	snprintf(record.name, sizeof(record.name), "shop");
	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_find_name(fixture->store, &alice, "shop", &record, &err), 0);
	assert_string_equal(record.id, id_of(2));
	assert_int_equal(record.end.cpu_us, 0);
	assert_true(json_is_array(record.start));
	sandbox_record_fini(&record);
	process_record_init(&process);
	snprintf(process.sandbox_id, sizeof(process.sandbox_id), "%s", id_of(2));
	process.number = 1;
	assert_int_equal(store_process_insert(fixture->store, &process, &err), 0);
	process_record_fini(&process);
}

static bool join_names(const struct project_record *record, void *arg)
{
	char *names = arg;

	assert_true(id_is_valid(record->id));
	assert_int_equal(record->files + record->bytes, 0);
	assert_int_equal(json_object_size(record->defaults), 0);
	assert_true(record->created_at_ms > 0);
	strcat(strcat(names, record->name), " ");
	return true;
}

static void check_projects(struct fixture *fixture, const struct owner *owner, const char *expected,
	const char *in_other_order)
{
	char names[64] = "";
	struct err err;

	assert_int_equal(
		store_project_list(fixture->store, owner, NULL, 10, join_names, names, &err), 0);
	assert_true(strcmp(names, expected) == 0 || strcmp(names, in_other_order) == 0);
}

static void each_project_of_schema_33_that_was_a_word_is_one(void **state)
{
	struct fixture *fixture = *state;
	struct project_record project;
	struct sandbox_record record;
	struct err err;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "web");
	must_insert(fixture->store, &alice, id_of(2), "shop");
	must_insert(fixture->store, &alice, id_of(3), "");
	must_insert(fixture->store, &bob, id_of(4), "web");
	must_insert(fixture->store, &other_alice, id_of(5), "");
	store_close(take_ptr(&fixture->store));
	execute(fixture->path, BACK_TO_SCHEMA_33);
	open_store(fixture);
	assert_int_equal(version_of(fixture->path), schema_version());
	check_projects(fixture, &alice, "shop web ", "web shop ");
	check_projects(fixture, &bob, "web ", "");
	check_projects(fixture, &other_alice, "", "");
	assert_int_equal(store_project_get(fixture->store, &bob, "web", &project, &err), 0);
	assert_true(store_project_delete(fixture->store, &bob, project.id, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT); /* its sandbox has it */
	project_record_fini(&project);
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(1), &record, &err), 0);
	assert_string_equal(record.project, "web");
	assert_string_equal(record.session, "");
	sandbox_record_fini(&record);
	assert_true(insert(fixture->store, &alice, id_of(6), "web", &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
}

static void files_of_projects_of_schema_38_follow_no_directory(void **state)
{
	struct fixture *fixture = *state;
	auto_free struct project_file *file = mem_new(sizeof(*file));
	struct err err;

	open_store(fixture);
	store_close(take_ptr(&fixture->store));
	execute(fixture->path,
		"INSERT INTO project_files (id, project, path, bytes, sha256, type, executable,"
		" uploader, created_at)"
		" VALUES ('f', 'p', 'a.txt', 1, 'x', 'text/plain', 0, 'alice', 1);"
		"ALTER TABLE project_files DROP COLUMN synced;"
		"ALTER TABLE preview_links DROP COLUMN frame_origin; PRAGMA user_version = 38;");
	open_store(fixture);
	assert_int_equal(version_of(fixture->path), schema_version());
	assert_int_equal(store_project_file_get(fixture->store, "p", "a.txt", file, &err), 0);
	assert_string_equal(file->id, "f");
	assert_false(file->is_synced);
}

static void jobs_and_sandboxes_of_schema_25_wait_for_nothing_and_say_what_they_said(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record;
	struct job_record job;
	struct err err;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
	job_record_init(&job);
	snprintf(job.id, sizeof(job.id), "%s", id_of(2));
	job.owner = alice;
	job.state = JOB_FAILED;
	job.ended_at_ms = 1;
	job.error_kind = ERR_TIMEOUT;
	snprintf(job.error_message, sizeof(job.error_message), "too late");
	assert_int_equal(store_job_insert(fixture->store, &job, &err), 0);
	job_record_fini(&job);
	assert_int_equal(store_job_get(fixture->store, &alice, id_of(2), &job, &err), 0);
	assert_int_equal(job.error_kind, ERR_TIMEOUT);
	job_record_fini(&job);
	store_close(take_ptr(&fixture->store));
	execute(fixture->path, BACK_TO_SCHEMA_25);
	open_store(fixture);
	assert_int_equal(store_job_get(fixture->store, &alice, id_of(2), &job, &err), 0);
	assert_int_equal(job.error_kind, ERR_NONE);
	assert_string_equal(job.error_message, "too late");
	job_record_fini(&job);
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(1), &record, &err), 0);
	assert_string_equal(record.job, "");
	sandbox_record_fini(&record);
}

static long long log_blocks(const struct fixture *fixture)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s-wal", fixture->path);
	assert_int_equal(stat(path, &st), 0);
	return (long long)st.st_blocks * 512;
}

/* So that a full disk can still take what is written down. */
static void the_log_has_its_room_before_it_is_needed_and_keeps_it(void **state)
{
	struct fixture *fixture = *state;

	open_store(fixture);
	assert_true(log_blocks(fixture) >= 8 << 20);
	must_insert(fixture->store, &alice, id_of(1), "");
	store_close(fixture->store);
	fixture->store = NULL;
	assert_true(log_blocks(fixture) >= 8 << 20);
	open_store(fixture);
	assert_true(exists(fixture->store, &alice, id_of(1)));
}

/* What a copy that is put back must not find beside it. */
static void a_log_of_a_database_that_was_closed_is_empty(void **state)
{
	struct fixture *fixture = *state;
	char copy[160], log[128];

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
	store_close(fixture->store);
	snprintf(copy, sizeof(copy), "cp %s %s.copy", fixture->path, fixture->path);
	assert_int_equal(system(copy), 0);
	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(2), "");
	store_close(fixture->store);
	snprintf(log, sizeof(log), "%s.copy", fixture->path);
	assert_int_equal(rename(log, fixture->path), 0);
	open_store(fixture);
	assert_true(exists(fixture->store, &alice, id_of(1)));
	assert_false(exists(fixture->store, &alice, id_of(2)));
}

/* Its name is no path: nothing of it is to lie in the directory where somebody runs a test. */
static void a_database_in_memory_makes_no_file(void **state)
{
	struct fixture *fixture = *state;
	struct err err = {0};
	char before[PATH_MAX];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(fixture->dir), 0);
	assert_int_equal(store_open(":memory:", &fixture->store, &err), 0);
	store_close(fixture->store);
	fixture->store = NULL;
	assert_int_equal(chdir(before), 0);
	assert_int_equal(rmdir(fixture->dir), 0);
	assert_int_equal(mkdir(fixture->dir, 0700), 0);
}

static void sandboxes_and_built_layers_from_before_have_no_packages(void **state)
{
	struct fixture *fixture = *state;
	struct build_cache_entry entry = {.diff_id = "sha256:00", .bytes = 7};
	struct sandbox_record record;
	struct err err;

	open_store(fixture);
	must_insert(fixture->store, &alice, id_of(1), "");
	assert_int_equal(store_build_cache_put(fixture->store, &alice, "step", &entry, &err), 0);
	store_close(take_ptr(&fixture->store));
	execute(fixture->path, BACK_TO_SCHEMA_27);
	open_store(fixture);
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(1), &record, &err), 0);
	assert_int_equal(json_object_size(record.dependencies), 0);
	assert_int_equal(store_build_cache_get(fixture->store, &alice, "step", &entry, &err), 0);
	assert_int_equal(json_object_size(entry.note), 0);
	json_decref(entry.note);
	/* And those of now are kept. */
	json_object_set_new(record.dependencies, "layer", json_string("11"));
	assert_int_equal(store_sandbox_update(fixture->store, &record, &err), 0);
	sandbox_record_fini(&record);
	assert_int_equal(store_sandbox_get(fixture->store, &alice, id_of(1), &record, &err), 0);
	assert_string_equal(json_string_value(json_object_get(record.dependencies, "layer")), "11");
	sandbox_record_fini(&record);
	entry.note = json_pack("{s:{}}", "python");
	assert_int_equal(store_build_cache_put(fixture->store, &alice, "step", &entry, &err), 0);
	json_decref(entry.note);
	assert_int_equal(store_build_cache_get(fixture->store, &alice, "step", &entry, &err), 0);
	assert_non_null(json_object_get(entry.note, "python"));
	json_decref(entry.note);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup_empty, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FRESH(a_database_in_a_place_that_does_not_exist_is_an_error),
		FRESH(what_is_no_database_is_an_error),
		FRESH(a_fresh_database_gets_the_newest_schema),
		FRESH(a_database_opened_again_is_as_it_was),
		FRESH(a_newer_database_is_refused_and_left_alone),
		FRESH(a_migration_that_is_killed_anywhere_is_done_by_the_next_start),
		FRESH(what_was_acknowledged_survives_the_death_of_the_process),
		FRESH(a_database_of_the_first_schema_is_taken_up_with_all_it_has),
		FRESH(each_project_of_schema_33_that_was_a_word_is_one),
		FRESH(files_of_projects_of_schema_38_follow_no_directory),
		FRESH(jobs_and_sandboxes_of_schema_25_wait_for_nothing_and_say_what_they_said),
		FRESH(sandboxes_and_built_layers_from_before_have_no_packages),
		FRESH(the_log_has_its_room_before_it_is_needed_and_keeps_it),
		FRESH(a_log_of_a_database_that_was_closed_is_empty),
		FRESH(a_database_in_memory_makes_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
