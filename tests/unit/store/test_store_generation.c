/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which database belongs to which workspaces: one that is missing, empty, older or damaged is refused and left
 * as it is, and a backup brings it back.
 */
#include "store_fixture.h"

#include "base/fd.h"
#include "base/log.h"
#include "store/generation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct stage {
	struct fixture *fixture;
	char stamp[128], backups[128];
	struct store_options options;
};

static int stage_setup(void **state)
{
	struct stage *stage = mem_new(sizeof(*stage));

	log_open("test", LOG_ERROR + 1);
	if (setup_empty((void **)&stage->fixture) < 0)
		return -1;
	snprintf(stage->stamp, sizeof(stage->stamp), "%s/.generation", stage->fixture->dir);
	snprintf(stage->backups, sizeof(stage->backups), "%s/backups", stage->fixture->dir);
	stage->options = (struct store_options){
		.stamp_fd = open(stage->stamp, O_RDWR | O_CREAT | O_CLOEXEC, 0600),
		.has_workspaces = true,
		.is_accepted = true,
		.backup = {.dir = stage->backups, .keep = 3}};
	*state = stage;
	return 0;
}

static void remove_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static int stage_teardown(void **state)
{
	struct stage *stage = *state;

	close(stage->options.stamp_fd);
	remove_files(stage->backups);
	(void)rmdir(stage->backups);
	store_close(take_ptr(&stage->fixture->store));
	remove_files(stage->fixture->dir);
	assert_int_equal(teardown((void **)&stage->fixture), 0);
	free(stage);
	return 0;
}

static int try_open(struct stage *stage, bool is_accepted, struct err *err)
{
	stage->options.is_accepted = is_accepted;
	return store_open_checked(
		stage->fixture->path, &stage->options, &stage->fixture->store, err);
}

static void must_open(struct stage *stage, bool is_accepted)
{
	struct err err = {0};

	if (try_open(stage, is_accepted, &err) < 0)
		fail_msg("%s", err.message);
}

static void close_stage(struct stage *stage)
{
	store_close(take_ptr(&stage->fixture->store));
}

static void assert_refused(struct stage *stage, const char *code)
{
	struct err err = {0};

	assert_true(try_open(stage, false, &err) < 0);
	assert_null(stage->fixture->store);
	assert_string_equal(err.code, code);
	assert_non_null(strstr(err.message, stage->fixture->path));
	assert_non_null(strstr(err.remedy, "sandlot restore"));
}

static void copy_file(const char *from, const char *to)
{
	auto_fd int in = open(from, O_RDONLY | O_CLOEXEC);
	auto_fd int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char bytes[65536];
	ssize_t n;

	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(fd_write_full(out, bytes, (size_t)n), 0);
	assert_int_equal(n, 0);
}

static unsigned list_backups(struct stage *stage, char names[][STORE_BACKUP_NAME_MAX], unsigned max)
{
	struct err err;
	int count = store_backup_list(stage->backups, "", names, max, &err);

	assert_true(count >= 0);
	return (unsigned)count;
}

/* --- refused --- */

static void a_database_that_is_missing_is_refused_beside_workspaces(void **state)
{
	struct stage *stage = *state;

	assert_refused(stage, "database_empty");
	assert_int_equal(access(stage->fixture->path, F_OK), -1);
	must_open(stage, true);
}

static void a_database_that_is_empty_is_refused_beside_workspaces(void **state)
{
	struct stage *stage = *state;

	close(open(stage->fixture->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_refused(stage, "database_empty");
	/* One that is not empty as a file, but has no tables. */
	execute(stage->fixture->path, "CREATE TABLE x (y); DROP TABLE x");
	assert_refused(stage, "database_empty");
	must_open(stage, true);
}

static void without_workspaces_a_new_database_is_made(void **state)
{
	struct stage *stage = *state;

	stage->options.has_workspaces = false;
	must_open(stage, false);
	must_insert(stage->fixture->store, &alice, id_of(1), "");
	close_stage(stage);
	/* Also after everything was purged and the state thrown away: there is nothing to lose. */
	remove_files(stage->fixture->dir);
	stage->options.has_workspaces = false;
	must_open(stage, false);
}

static void a_database_that_is_older_is_refused_until_it_is_accepted(void **state)
{
	struct stage *stage = *state;
	char copy[160];

	snprintf(copy, sizeof(copy), "%s.old", stage->fixture->path);
	must_open(stage, true);
	must_insert(stage->fixture->store, &alice, id_of(1), "");
	close_stage(stage);
	copy_file(stage->fixture->path, copy);
	must_open(stage, false);
	must_insert(stage->fixture->store, &alice, id_of(2), "");
	close_stage(stage);
	copy_file(copy, stage->fixture->path);
	assert_refused(stage, "database_older");
	assert_refused(stage, "database_older");
	must_open(stage, true);
	assert_true(exists(stage->fixture->store, &alice, id_of(1)));
	assert_false(exists(stage->fixture->store, &alice, id_of(2)));
	close_stage(stage);
	must_open(stage, false); /* from now on it is the one */
}

/* Within one run of the daemon: each change counts. The stamp is not synced for that. */
static void a_copy_from_the_same_run_is_older_too(void **state)
{
	struct stage *stage = *state;
	struct err err;
	char copy[160];

	snprintf(copy, sizeof(copy), "%s.old", stage->fixture->path);
	must_open(stage, true);
	must_insert(stage->fixture->store, &alice, id_of(1), "");
	execute(stage->fixture->path, "PRAGMA wal_checkpoint(FULL)");
	copy_file(stage->fixture->path, copy);
	assert_int_equal(store_workspace_delete(stage->fixture->store, id_of(1), &err), 0);
	close_stage(stage);
	copy_file(copy, stage->fixture->path);
	assert_refused(stage, "database_older");
}

static void after_a_failure_of_power_only_what_was_synced_counts(void **state)
{
	struct stage *stage = *state;
	struct generation other = {.written = 50, .durable = 20, .boot = "another-boot"};
	struct generation here;

	generation_init(&here);
	assert_int_equal(generation_write(&other, stage->options.stamp_fd, true), 0);
	assert_int_equal(generation_floor(&here, stage->options.stamp_fd), 20);
	memcpy(other.boot, here.boot, sizeof(other.boot));
	assert_int_equal(generation_write(&other, stage->options.stamp_fd, true), 0);
	assert_int_equal(generation_floor(&here, stage->options.stamp_fd), 50);
	assert_int_equal(ftruncate(stage->options.stamp_fd, 0), 0);
	assert_int_equal(generation_floor(&here, stage->options.stamp_fd), 0);
	assert_int_equal(pwrite(stage->options.stamp_fd, "nonsense", 8, 0), 8);
	assert_int_equal(generation_floor(&here, stage->options.stamp_fd), 0);
}

static void the_stamp_follows_what_comes_and_goes(void **state)
{
	struct stage *stage = *state;
	struct generation here;
	uint64_t before;
	struct err err;

	generation_init(&here);
	must_open(stage, true);
	before = generation_floor(&here, stage->options.stamp_fd);
	assert_int_equal(before, store_generation(stage->fixture->store));
	must_insert(stage->fixture->store, &alice, id_of(1), "");
	assert_true(generation_floor(&here, stage->options.stamp_fd) > before);
	before = generation_floor(&here, stage->options.stamp_fd);
	assert_int_equal(store_sandbox_delete(stage->fixture->store, id_of(1), &err), 0);
	assert_true(generation_floor(&here, stage->options.stamp_fd) > before);
	before = generation_floor(&here, stage->options.stamp_fd);
	close_stage(stage);
	snprintf(here.boot, sizeof(here.boot), "the-next-boot");
	assert_int_equal(generation_floor(&here, stage->options.stamp_fd), before);
}

/* --- full --- */

/* As on a full disk: no file may grow. Another connection keeps the log, and what is mapped beside it. */
static void a_database_that_cannot_grow_is_opened_for_what_can_be_read(void **state)
{
	struct stage *stage = *state;
	auto_free char *log = mem_printf("%s-wal", stage->fixture->path);
	struct rlimit before, full;
	struct err err = {0};
	sqlite3 *holder;
	struct stat st;
	int r;

	must_open(stage, true);
	assert_int_equal(sqlite3_open(stage->fixture->path, &holder), SQLITE_OK);
	assert_int_equal(sqlite3_exec(holder, "BEGIN; SELECT * FROM generation", NULL, NULL, NULL),
		SQLITE_OK);
	for (unsigned i = 0; i < 8; i++)
		must_insert(stage->fixture->store, &alice, id_of(i), "");
	close_stage(stage);
	assert_int_equal(stat(log, &st), 0);
	assert_true(st.st_size > 32768);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	full = (struct rlimit){.rlim_cur = (rlim_t)st.st_size, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
	must_open(stage, false);
	r = insert(stage->fixture->store, &alice, id_of(9), "", &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(err.kind, ERR_NO_SPACE);
	assert_true(exists(stage->fixture->store, &alice, id_of(7)));
	must_insert(stage->fixture->store, &alice, id_of(9), "");
	sqlite3_close(holder);
}

/* --- damaged --- */

static void overwrite_middle(const char *path)
{
	auto_fd int fd = open(path, O_RDWR | O_CLOEXEC);
	char garbage[8192];
	struct stat st;

	memset(garbage, 0xa5, sizeof(garbage));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, garbage, sizeof(garbage), st.st_size / 2 / 4096 * 4096),
		sizeof(garbage));
}

static uint64_t sum_of(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t sum = 14695981039346656037u;
	unsigned char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sum = (sum ^ bytes[i]) * 1099511628211u;
	}
	return sum;
}

static void a_damaged_database_is_named_and_left_as_it_is(void **state)
{
	struct stage *stage = *state;
	struct err err = {0};
	uint64_t sum;

	must_open(stage, true);
	for (unsigned i = 0; i < 200; i++)
		must_insert(stage->fixture->store, &alice, id_of(i), "");
	close_stage(stage);
	overwrite_middle(stage->fixture->path);
	sum = sum_of(stage->fixture->path);
	assert_refused(stage, "database_damaged");
	assert_true(try_open(stage, true, &err) < 0); /* nobody can want it */
	assert_string_equal(err.code, "database_damaged");
	assert_true(sum_of(stage->fixture->path) == sum);
}

static void what_is_no_database_is_named_as_damaged(void **state)
{
	struct stage *stage = *state;
	FILE *file = fopen(stage->fixture->path, "we");

	for (int i = 0; i < 1000; i++)
		fputs("this is not a database ", file);
	fclose(file);
	assert_refused(stage, "database_damaged");
}

/* --- from before generations --- */

static void a_database_from_before_is_opened_with_all_it_has_and_gets_its_generation(void **state)
{
	struct stage *stage = *state;
	char names[4][STORE_BACKUP_NAME_MAX];

	must_open(stage, true);
	must_insert(stage->fixture->store, &alice, id_of(1), "web");
	close_stage(stage);
	execute(stage->fixture->path, BACK_TO_SCHEMA_11);
	assert_int_equal(ftruncate(stage->options.stamp_fd, 0), 0);
	must_open(stage, false);
	assert_true(exists(stage->fixture->store, &alice, id_of(1)));
	assert_int_equal(list_backups(stage, names, 4), 1); /* before the migration */
	close_stage(stage);
	/* The backup has the schema of before, and so is older than the workspaces. */
	{
		auto_free char *backup = mem_printf("%s/%s", stage->backups, names[0]);

		copy_file(backup, stage->fixture->path);
	}
	assert_refused(stage, "database_older");
	must_open(stage, true);
	assert_true(exists(stage->fixture->store, &alice, id_of(1)));
}

/* --- backups --- */

static void a_backup_brings_everything_back(void **state)
{
	struct stage *stage = *state;
	char names[4][STORE_BACKUP_NAME_MAX];
	auto_free char *backup = NULL;
	struct err err = {0};

	must_open(stage, true);
	must_insert(stage->fixture->store, &alice, id_of(1), "web");
	if (store_backup(stage->fixture->store, &stage->options.backup, &err) < 0)
		fail_msg("%s", err.message);
	must_insert(stage->fixture->store, &alice, id_of(2), "");
	close_stage(stage);
	overwrite_middle(stage->fixture->path);
	assert_int_equal(list_backups(stage, names, 4), 1);
	backup = mem_printf("%s/%s", stage->backups, names[0]);
	copy_file(backup, stage->fixture->path);
	assert_refused(stage, "database_older");
	must_open(stage, true);
	assert_true(exists(stage->fixture->store, &alice, id_of(1)));
	assert_false(exists(stage->fixture->store, &alice, id_of(2)));
}

static void only_the_newest_backups_are_kept(void **state)
{
	struct stage *stage = *state;
	char names[8][STORE_BACKUP_NAME_MAX], last[STORE_BACKUP_NAME_MAX];
	struct err err = {0};

	must_open(stage, true);
	for (unsigned i = 0; i < 6; i++) {
		must_insert(stage->fixture->store, &alice, id_of(i), "");
		assert_int_equal(
			store_backup(stage->fixture->store, &stage->options.backup, &err), 0);
		if (i == 2) {
			assert_int_equal(list_backups(stage, names, 8), 3);
			memcpy(last, names[2], sizeof(last));
		}
	}
	assert_int_equal(list_backups(stage, names, 8), 3);
	assert_true(strcmp(names[0], last) > 0);
	assert_true(strcmp(names[0], names[1]) < 0 && strcmp(names[1], names[2]) < 0);
	assert_int_equal(store_backup_list(stage->backups, names[1], names, 8, &err), 1);
}

/* Without a stamp nothing else says how far the one before it had come. */
static void backups_of_a_database_that_began_anew_are_newer_than_those_of_the_one_before(
	void **state)
{
	struct stage *stage = *state;
	char names[8][STORE_BACKUP_NAME_MAX], last[STORE_BACKUP_NAME_MAX];
	struct err err = {0};

	must_open(stage, true);
	for (unsigned i = 0; i < 4; i++) {
		must_insert(stage->fixture->store, &alice, id_of(i), "");
		assert_int_equal(
			store_backup(stage->fixture->store, &stage->options.backup, &err), 0);
	}
	assert_true(store_backup_newest(stage->backups, last));
	close_stage(stage);
	remove_files(stage->fixture->dir);
	assert_int_equal(ftruncate(stage->options.stamp_fd, 0), 0);
	must_open(stage, true);
	assert_int_equal(store_backup(stage->fixture->store, &stage->options.backup, &err), 0);
	assert_int_equal(list_backups(stage, names, 8), 3);
	assert_string_equal(names[1], last);
	assert_true(strcmp(names[2], last) > 0);
}

static void a_backup_without_room_fails_and_leaves_nothing(void **state)
{
	struct stage *stage = *state;
	struct store_backup_rule rule = stage->options.backup;
	char names[1][STORE_BACKUP_NAME_MAX];
	struct err err = {0};
	DIR *dir;

	must_open(stage, true);
	rule.reserve_bytes = UINT64_MAX / 2;
	assert_true(store_backup(stage->fixture->store, &rule, &err) < 0);
	assert_int_equal(err.kind, ERR_NO_SPACE);
	assert_null(strstr(err.message, stage->backups)); /* clients are shown it */
	assert_int_equal(list_backups(stage, names, 1), 0);
	dir = opendir(stage->backups);
	assert_non_null(dir);
	for (int i = 0; i < 2; i++)
		assert_int_equal(readdir(dir)->d_name[0], '.');
	assert_null(readdir(dir));
	closedir(dir);
	must_insert(stage->fixture->store, &alice, id_of(1), "");
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_STAGE(a_database_that_is_missing_is_refused_beside_workspaces),
		ON_STAGE(a_database_that_is_empty_is_refused_beside_workspaces),
		ON_STAGE(without_workspaces_a_new_database_is_made),
		ON_STAGE(a_database_that_is_older_is_refused_until_it_is_accepted),
		ON_STAGE(a_copy_from_the_same_run_is_older_too),
		ON_STAGE(after_a_failure_of_power_only_what_was_synced_counts),
		ON_STAGE(the_stamp_follows_what_comes_and_goes),
		ON_STAGE(a_database_that_cannot_grow_is_opened_for_what_can_be_read),
		ON_STAGE(a_damaged_database_is_named_and_left_as_it_is),
		ON_STAGE(what_is_no_database_is_named_as_damaged),
		ON_STAGE(a_database_from_before_is_opened_with_all_it_has_and_gets_its_generation),
		ON_STAGE(a_backup_brings_everything_back),
		ON_STAGE(only_the_newest_backups_are_kept),
		ON_STAGE(
			backups_of_a_database_that_began_anew_are_newer_than_those_of_the_one_before),
		ON_STAGE(a_backup_without_room_fails_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
