/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_clock.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/store_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MS	 1000  /* less than this is no step: two clocks are never read at the same moment */
#define WRITE_MS 60000 /* how much time a crash of the host may take back at most */

int64_t store_clock_ms(const struct store *store)
{
	return store->clock.base_ms + (int64_t)clock_steady_ms();
}

int64_t store_clock_to_wall(const struct store *store, int64_t ms)
{
	return ms + atomic_load(&store->clock.skew_ms);
}

static void read_boot_id(char id[STORE_BOOT_ID_MAX])
{
	if (fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, STORE_BOOT_ID_MAX) <= 0)
		id[0] = '\0';
	id[strcspn(id, "\n")] = '\0';
}

/* The lock is held, or nobody else has the store yet. */
static int write_row(struct store *store, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_CLOCK_PUT);
	int64_t now = store_clock_ms(store);
	int r;

	db_bind_text(stmt, 1, store->clock.boot_id);
	db_bind_int(stmt, 2, store->clock.base_ms);
	db_bind_int(stmt, 3, atomic_load(&store->clock.skew_ms));
	db_bind_int(stmt, 4, now);
	r = db_run(stmt, "write the clock", err);
	if (r == 0)
		store->clock.written_ms = now;
	return r;
}

int store_clock_load(struct store *store, struct err *err)
{
	struct store_clock *clock = &store->clock;
	struct db_stmt *stmt = store_use(store, Q_CLOCK_GET);
	int code = db_step(stmt);
	int64_t steady_ms = (int64_t)clock_steady_ms(), wall_ms = clock_wall_ms();
	char boot_id[STORE_BOOT_ID_MAX] = "";
	int64_t base_ms = 0, skew_ms = 0, last_ms = 0;

	if (code == DB_ROW) {
		store_read_text(stmt, 0, boot_id, sizeof(boot_id));
		base_ms = db_column_int(stmt, 1);
		skew_ms = db_column_int(stmt, 2);
		last_ms = db_column_int(stmt, 3);
	}
	db_reset(stmt);
	if (code != DB_ROW && code != DB_DONE)
		return store_fail(store, "read the clock", err);
	read_boot_id(clock->boot_id);
	/* After a boot nothing but the wall clock knows how long the machine was off. */
	if (!boot_id[0] || strcmp(boot_id, clock->boot_id) != 0)
		base_ms = wall_ms - skew_ms - steady_ms;
	/* A machine that has forgotten the time must not take back any. */
	if (base_ms + steady_ms < last_ms)
		base_ms = last_ms - steady_ms;
	clock->base_ms = base_ms;
	/* Times that were shown stay as they were, unless the wall clock was set meanwhile. */
	if (!boot_id[0] || llabs(wall_ms - steady_ms - base_ms - skew_ms) >= STEP_MS)
		skew_ms = wall_ms - steady_ms - base_ms;
	atomic_store(&clock->skew_ms, skew_ms);
	/* Without room the next start may take back what passed since the last write. */
	return store_forgive_full(write_row(store, err), err);
}

int store_clock_follow(struct store *store, struct err *err)
{
	struct store_clock *clock = &store->clock;
	int64_t now = store_clock_ms(store), skew_ms = clock_wall_ms() - now;
	int64_t step_ms = skew_ms - atomic_load(&clock->skew_ms);
	bool has_stepped = llabs(step_ms) >= STEP_MS;
	int r = 0;

	if (has_stepped) {
		log_warning("the wall clock was set %s by %" PRId64
			    " s; no timeout is moved by that",
			step_ms > 0 ? "forward" : "back", (int64_t)llabs(step_ms) / 1000);
		atomic_store(&clock->skew_ms, skew_ms);
	}
	pthread_mutex_lock(&store->lock);
	if (has_stepped || now - clock->written_ms >= WRITE_MS)
		r = write_row(store, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
