/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "core/engine/db_writer.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_state.h"
#include "core_fixture.h"
#include "event/event_loop_private.h"
#include "model/access/owner.h"

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

static int64_t used_after(struct engine *engine, const struct owner *owner)
{
	struct sandbox_record record;
	struct sandbox *sandbox;

	sandbox_record_init(&record);
	id_new(clock_wall_ms(), record.id);
	record.owner = *owner;
	sandbox = sandbox_attach(engine, &record);
	atomic_store(&engine->used_ms, 0);
	sandbox_note_use(sandbox);
	sandbox_handle_detach(sandbox);
	sandbox_unref(sandbox);
	return atomic_load(&engine->used_ms);
}

/* Else what is made for pools would wait for itself. */
static void what_happens_in_one_that_waits_is_nobodys_use(void **state)
{
	static const struct owner someone = {.organization = "org", .user = "me"};
	struct world *world = *state;

	assert_int_equal(used_after(world->engine, &owner_pool), 0);
	assert_int_not_equal(used_after(world->engine, &someone), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_event_loop_ends_before_the_database_writer,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			what_happens_in_one_that_waits_is_nobodys_use, world_setup, world_teardown),
	};

	return cmocka_run_group_tests_name("core/engine", tests, NULL, NULL);
}
