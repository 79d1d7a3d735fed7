/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_count.h"

#include "store/store_private.h"

#define STATES_MAX 16

int store_count_read(struct store *store, enum store_count_kind kind,
	void (*each)(const char *state, int64_t count, void *arg), void *arg, struct err *err)
{
	static const enum query queries[] = {
		[STORE_COUNT_SANDBOXES] = Q_SANDBOX_STATES, [STORE_COUNT_JOBS] = Q_JOB_STATES};
	struct {
		char state[32];
		int64_t count;
	} rows[STATES_MAX];
	struct db_stmt *stmt;
	int code, count = 0, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, queries[kind]);
	while ((code = db_step(stmt)) == DB_ROW && count < STATES_MAX) {
		store_read_text(stmt, 0, rows[count].state, sizeof(rows[count].state));
		rows[count++].count = db_column_int(stmt, 1);
	}
	if (code != DB_DONE && code != DB_ROW)
		r = store_fail(store, "count", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (int i = 0; i < count && r == 0; i++)
		each(rows[i].state, rows[i].count, arg);
	return r;
}
