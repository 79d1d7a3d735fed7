/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the conformance suite share, and those that are not in test_driver.c. */
#pragma once

#include "model/id.h"
#include "subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

extern const struct subject *subject;
extern struct driver *driver;
extern uint64_t last_link; /* the number of the link that was made last */

/* Ends a test of what the driver does not claim to do. */
#define NEEDS(capability)                                                                          \
	do {                                                                                       \
		if (!driver_can(driver, capability))                                               \
			skip();                                                                    \
	} while (0)

#define NEEDS_AGENT                                                                                \
	do {                                                                                       \
		if (!subject->has_agent)                                                           \
			skip();                                                                    \
	} while (0)

void new_id(char id[ID_LEN + 1]);

/* Starts a sandbox that must come up; its link, attached. */
int must_start_as(const struct driver_spec *spec);
int must_start(const char *id);
void must_stop(const char *id);
void must_clean(const char *id, unsigned parts);

/* Ends it, and removes all that it had. */
void discard(const char *id, int link);

bool is_listed(bool stored, const char *id);
/* What the list says must be what a question about one sandbox says. */
bool is_stored(const char *id);

void assert_not_found(int r, const struct err *err);

/* Runs a line that must succeed with just that output. */
void must_print(int link, uint32_t number, const char *line, const char *expected);

/* Has the agent look at a directory, over a channel. */
void must_stat(const char *id, const char *path);

/* --- kept_files.c --- */

void a_workspace_outlives_a_stop_and_a_delete_but_no_purge(void **state);
void files_stay_the_sandbox_s_own_over_a_new_daemon(void **state);
void a_reset_empties_system_and_scratch(void **state);
void what_a_sandbox_has_written_can_be_read(void **state);
void a_layer_is_shown_to_a_running_sandbox(void **state);
void a_sandbox_starts_from_a_stack_of_layers(void **state);
void changes_are_told_beside_what_was_there(void **state);
void a_snapshot_is_all_files_at_one_moment(void **state);
void a_snapshot_may_be_used_up(void **state);
void a_snapshot_that_is_not_used_up_goes(void **state);
void files_stay_if_there_is_no_such_snapshot(void **state);
void a_running_sandbox_is_shown_the_files_of_a_project(void **state);

/* --- running.c --- */

void a_sandbox_is_what_its_spec_says(void **state);
void a_frozen_sandbox_uses_no_processor(void **state);
void a_disk_takes_as_much_as_its_limit(void **state);
void a_limit_that_is_changed_holds(void **state);
void a_limit_below_what_is_in_use_is_refused(void **state);
void a_running_sandbox_gets_another_host_name(void **state);
void a_terminal_is_one(void **state);
void root_inside_has_no_power_over_pid_1(void **state);
