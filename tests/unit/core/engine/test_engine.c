/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/db_writer.h"
#include "core/engine/sandbox_state.h"
#include "core_fixture.h"
#include "event/event_loop_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct engine *closing; /* the engine that a test closes */
static bool had_loop;	       /* when its database writer was closed */

void __real_db_writer_close(struct db_writer *writer);
void __wrap_db_writer_close(struct db_writer *writer);

void __wrap_db_writer_close(struct db_writer *writer)
{
	had_loop = closing && closing->loop->has_thread;
	__real_db_writer_close(writer);
}

/* Timers and links give work to the writer on the thread of the event loop. */
static void the_event_loop_ends_before_the_database_writer(void **state)
{
	struct world *world = *state;

	closing = world->engine;
	world_close(world);
	closing = NULL;
	assert_false(had_loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_event_loop_ends_before_the_database_writer,
			world_setup, world_teardown),
	};

	return cmocka_run_group_tests_name("core/engine", tests, NULL, NULL);
}
