/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_private.h"

#include <string.h>

#define RULE_MAX 512

int store_reached_add(struct store *store, const char *id, const char *rule, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_REACHED_ADD);
	db_bind_text(stmt, 1, id);
	db_bind_text(stmt, 2, rule);
	db_bind_int(stmt, 3, STORE_REACHED_MAX);
	r = db_run(stmt, "note what a sandbox reached", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Copies the rules after one: how many. */
static int read_page(struct store *store, const char *id, const char *after,
	char page[STORE_PAGE][RULE_MAX], struct err *err)
{
	struct db_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_REACHED_LIST);
	db_bind_text(stmt, 1, id);
	db_bind_text(stmt, 2, after);
	db_bind_int(stmt, 3, STORE_PAGE);
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, page[count++], RULE_MAX);
	if (code != DB_DONE)
		count = store_fail(store, "read what a sandbox reached", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_reached_list(struct store *store, const char *id,
	void (*each)(const char *rule, void *arg), void *arg, struct err *err)
{
	auto_free char(*page)[RULE_MAX] = mem_new(STORE_PAGE * sizeof(*page));
	char after[RULE_MAX] = "";
	int count;

	do {
		count = read_page(store, id, after, page, err);
		for (int i = 0; i < count; i++)
			each(page[i], arg);
		if (count > 0)
			memcpy(after, page[count - 1], sizeof(after));
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}
