/* SPDX-License-Identifier: Apache-2.0 */
/* When backups of the state are written. */
#include "core/engine/backups.h"

#include "base/log.h"
#include "store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_MS	  3600000
#define RECONNECT 20000 /* ms for what must happen */
#define DAY_MS	  (24 * HOUR_MS)

static void one_is_due_when_the_newest_is_a_day_old(void **state)
{
	(void)state;
	assert_int_equal(backups_first_due_ms(false, 0), 0);
	assert_int_equal(backups_first_due_ms(true, DAY_MS), 0);
	assert_int_equal(backups_first_due_ms(true, 40 * (int64_t)DAY_MS), 0);
	assert_int_equal(backups_first_due_ms(true, DAY_MS - HOUR_MS), HOUR_MS);
	assert_int_equal(backups_first_due_ms(true, 0), DAY_MS);
	/* The clock was set back: nobody knows how old it is. */
	assert_int_equal(backups_first_due_ms(true, -HOUR_MS), 0);
}

static void a_start_after_a_long_time_writes_one_and_tells_of_a_failure(void **state)
{
	struct fixture *fixture = *state;
	char path[128], names[2][STORE_BACKUP_NAME_MAX];
	struct store_backup_rule rule = {.dir = path, .keep = 2, .reserve_bytes = UINT64_MAX / 2};
	struct backups *backups;
	struct err err = {0};

	log_open("test", LOG_ERROR + 1);
	snprintf(path, sizeof(path), "%s/backups", fixture->dir);
	assert_int_equal(backups_open(fixture->store, &rule, &backups, &err), 0);
	assert_string_equal(backups_dir(backups), path);
	for (int i = 0; i < RECONNECT && !backups_has_failed(backups, &err); i++)
		usleep(1000); /* the thread tries at once */
	assert_int_equal(err.kind, ERR_NO_SPACE);
	backups_close(backups);
	assert_int_equal(store_backup_list(path, "", names, 2, &err), 0);

	rule.reserve_bytes = 0;
	assert_int_equal(backups_open(fixture->store, &rule, &backups, &err), 0);
	for (int i = 0; i < RECONNECT && store_backup_list(path, "", names, 2, &err) == 0; i++)
		usleep(1000);
	backups_close(backups);
	/* The next start finds one of today. */
	assert_int_equal(backups_open(fixture->store, &rule, &backups, &err), 0);
	backups_close(backups);
	assert_int_equal(store_backup_list(path, "", names, 2, &err), 1);
	{
		auto_free char *file = mem_printf("%s/%s", path, names[0]);

		assert_int_equal(unlink(file), 0);
	}
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_due_when_the_newest_is_a_day_old),
		cmocka_unit_test_setup_teardown(
			a_start_after_a_long_time_writes_one_and_tells_of_a_failure, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
