/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work/store_execution.h"

#include "store/store_private.h"

#include <string.h>

#define OUTCOME	  21 /* its column; the parameter is one more */
#define REQUEST	  22
#define PRUNE_MAX (64 * STORE_PAGE)

static void bind_document(struct db_stmt *stmt, int at, const json_t *document)
{
	if (document)
		store_bind_json(stmt, at, document);
	else
		store_bind_optional(stmt, at, NULL);
}

static void bind_execution(struct db_stmt *stmt, const struct execution_record *record)
{
	db_bind_text(stmt, 1, record->id);
	db_bind_text(stmt, 2, record->owner.organization);
	db_bind_text(stmt, 3, record->owner.user);
	db_bind_text(stmt, 4, record->sandbox_id);
	db_bind_text(stmt, 5, record->context_id);
	db_bind_text(stmt, 6, record->language);
	db_bind_text(stmt, 7, record->handler);
	db_bind_int(stmt, 8, record->has_handler);
	db_bind_text(stmt, 9, execution_status_name(record->status));
	db_bind_int(stmt, 10, record->is_cancelling);
	db_bind_int(stmt, 11, record->process);
	db_bind_int(stmt, 12, (int64_t)record->from);
	db_bind_int(stmt, 13, (int64_t)record->timeout_ms);
	db_bind_int(stmt, 14, (int64_t)record->outcome_bytes);
	db_bind_int(stmt, 15, record->created_at_ms);
	db_bind_int(stmt, 16, record->ended_at_ms);
	db_bind_int(stmt, 17, record->is_fresh);
	db_bind_text(stmt, 18, record->function);
	db_bind_int(stmt, 19, record->version);
	db_bind_int(stmt, 20, (int64_t)record->duration_us);
	db_bind_int(stmt, 21, record->danger);
	bind_document(stmt, OUTCOME + 1, record->outcome);
}

/* All but outcome and request. */
static void read_execution(struct db_stmt *stmt, struct execution_record *record)
{
	char status[16];

	*record = (struct execution_record){.has_handler = db_column_int(stmt, 7) != 0,
		.is_cancelling = db_column_int(stmt, 9) != 0,
		.process = (uint32_t)db_column_int(stmt, 10),
		.from = (uint64_t)db_column_int(stmt, 11),
		.timeout_ms = (uint64_t)db_column_int(stmt, 12),
		.outcome_bytes = (uint64_t)db_column_int(stmt, 13),
		.created_at_ms = db_column_int(stmt, 14),
		.ended_at_ms = db_column_int(stmt, 15),
		.is_fresh = db_column_int(stmt, 16) != 0,
		.version = (uint32_t)db_column_int(stmt, 18),
		.duration_us = (uint64_t)db_column_int(stmt, 19),
		.danger = (danger_set)db_column_int(stmt, 20)};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, sizeof(record->owner.organization));
	store_read_text(stmt, 2, record->owner.user, sizeof(record->owner.user));
	store_read_text(stmt, 3, record->sandbox_id, sizeof(record->sandbox_id));
	store_read_text(stmt, 4, record->context_id, sizeof(record->context_id));
	store_read_text(stmt, 5, record->language, sizeof(record->language));
	store_read_text(stmt, 6, record->handler, sizeof(record->handler));
	store_read_text(stmt, 17, record->function, sizeof(record->function));
	store_read_text(stmt, 8, status, sizeof(status));
	if (execution_status_parse(status, &record->status) < 0)
		record->status = EXECUTION_LOST;
}

/* Runs a statement that takes a whole record. */
static int write_execution(struct store *store, enum query query,
	const struct execution_record *record, const char *what, struct err *err)
{
	struct db_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	bind_execution(stmt, record);
	if (query == Q_EXECUTION_INSERT)
		bind_document(stmt, REQUEST + 1, record->request);
	r = db_run(stmt, what, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_execution_insert(
	struct store *store, const struct execution_record *record, struct err *err)
{
	return write_execution(store, Q_EXECUTION_INSERT, record, "add an execution", err);
}

int store_execution_update(
	struct store *store, const struct execution_record *record, struct err *err)
{
	return write_execution(store, Q_EXECUTION_UPDATE, record, "write an execution", err);
}

int store_execution_get(struct store *store, const struct owner *owner, const char *id,
	struct execution_record *ret_record, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_EXECUTION_GET);
	db_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	code = db_step(stmt);
	if (code == DB_ROW) {
		read_execution(stmt, ret_record);
		ret_record->outcome = store_read_json(stmt, OUTCOME);
		ret_record->request = store_read_json(stmt, REQUEST);
	} else if (code != DB_DONE) {
		r = store_fail(store, "read an execution", err);
	}
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return code == DB_DONE ? execution_not_found(id, err) : r;
}

static int read_page(struct store *store, const struct store_execution_filter *filter,
	const char *before, unsigned limit, struct execution_record page[STORE_PAGE],
	struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_EXECUTION_LIST);
	store_bind_optional(stmt, 1, before);
	store_bind_optional(stmt, 2, filter->status);
	store_bind_optional(stmt, 3, filter->language);
	store_bind_optional(stmt, 4, filter->sandbox);
	db_bind_int(stmt, 5, filter->is_active);
	db_bind_int(stmt, 6, store_page(limit));
	store_bind_optional(stmt, 7, filter->function);
	db_bind_int(stmt, 8, filter->since_ms);
	db_bind_int(stmt, 9, filter->until_ms);
	store_bind_owner(stmt, filter->owner);
	while ((code = db_step(stmt)) == DB_ROW)
		read_execution(stmt, &page[count++]);
	r = code == DB_DONE ? count : store_fail(store, "list executions", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_execution_list(struct store *store, const struct store_execution_filter *filter,
	bool (*each)(const struct execution_record *record, void *arg), void *arg, struct err *err)
{
	auto_free struct execution_record *page = mem_new(STORE_PAGE * sizeof(*page));
	const char *before = filter->before;
	unsigned limit = filter->limit;
	char last[ID_LEN + 1];
	bool goes_on = true;
	int count;

	do {
		count = read_page(store, filter, before, limit, page, err);
		if (count > 0) {
			memcpy(last, page[count - 1].id, sizeof(last));
			before = last;
			limit -= (unsigned)count;
		}
		for (int i = 0; i < count && goes_on; i++)
			goes_on = each(&page[i], arg);
	} while (count == STORE_PAGE && goes_on);
	return count < 0 ? count : 0;
}

/* Ids of what is beyond the rule, or older than it says if there is no owner; how many. */
static int list_excess(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, char ids[STORE_PAGE][ID_LEN + 1], struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int count = 0, r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, owner ? Q_EXECUTION_EXCESS : Q_EXECUTION_OLD);
	if (owner) {
		db_bind_int(stmt, 1, rule->count);
		db_bind_int(stmt, 2, rule->since_ms);
		db_bind_int(stmt, 3, (int64_t)rule->bytes);
		db_bind_int(stmt, 4, STORE_PAGE);
		store_bind_owner(stmt, owner);
	} else {
		db_bind_int(stmt, 1, rule->since_ms);
		db_bind_int(stmt, 2, STORE_PAGE);
	}
	while ((code = db_step(stmt)) == DB_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	r = code == DB_DONE ? count : store_fail(store, "list executions", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_execution_stats(struct store *store, const struct store_execution_filter *filter,
	void (*each)(const struct store_execution_stats *stats, void *arg), void *arg,
	struct err *err)
{
	auto_free struct store_execution_stats *groups = mem_new(filter->limit * sizeof(*groups));
	struct db_stmt *stmt;
	enum db_result code;
	size_t count = 0;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_EXECUTION_STATS);
	store_bind_optional(stmt, 1, filter->sandbox);
	store_bind_optional(stmt, 2, filter->function);
	db_bind_int(stmt, 3, filter->since_ms);
	db_bind_int(stmt, 4, filter->until_ms);
	db_bind_int(stmt, 5, filter->limit);
	store_bind_owner(stmt, filter->owner);
	while ((code = db_step(stmt)) == DB_ROW && count < filter->limit) {
		struct store_execution_stats stats = {.count = (uint64_t)db_column_int(stmt, 2),
			.failed = (uint64_t)db_column_int(stmt, 3),
			.p50_us = (uint64_t)db_column_int(stmt, 4),
			.p95_us = (uint64_t)db_column_int(stmt, 5)};

		store_read_text(stmt, 0, stats.sandbox, sizeof(stats.sandbox));
		store_read_text(stmt, 1, stats.function, sizeof(stats.function));
		groups[count++] = stats;
	}
	if (code != DB_DONE && code != DB_ROW)
		r = store_fail(store, "count executions", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; r == 0 && i < count; i++)
		each(&groups[i], arg);
	return r;
}

/* How many went; a page at most. */
static int prune_page(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, struct err *err)
{
	char ids[STORE_PAGE][ID_LEN + 1];
	int count = list_excess(store, owner, rule, ids, err), r = count;

	for (int i = 0; i < count && r >= 0; i++) {
		struct db_stmt *stmt;

		pthread_mutex_lock(&store->lock);
		stmt = store_use(store, Q_EXECUTION_DELETE);
		db_bind_text(stmt, 1, ids[i]);
		r = db_run(stmt, "forget an execution", err);
		pthread_mutex_unlock(&store->lock);
	}
	return r < 0 ? r : count;
}

static int prune(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, struct err *err)
{
	int count, sum = 0;

	do {
		count = prune_page(store, owner, rule, err);
		sum += count;
	} while (count == STORE_PAGE && sum < PRUNE_MAX);
	return count < 0 ? count : sum;
}

int store_execution_prune(struct store *store, const struct owner *owner,
	const struct store_execution_rule *rule, struct err *err)
{
	return prune(store, owner, rule, err);
}

int store_execution_expire(struct store *store, int64_t since_ms, struct err *err)
{
	return prune(store, NULL, &(struct store_execution_rule){.since_ms = since_ms}, err);
}

/* --- copies of artifacts --- */

static struct db_stmt *use_artifact(
	struct store *store, enum query query, const char *execution, const char *digest)
{
	struct db_stmt *stmt = store_use(store, query);

	db_bind_text(stmt, 1, execution);
	db_bind_text(stmt, 2, digest);
	return stmt;
}

int store_artifact_put(
	struct store *store, const char *execution, const char *digest, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_artifact(store, Q_ARTIFACT_PUT, execution, digest), "note an artifact", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_artifact_stale(struct store *store, struct store_artifact *ret_artifact, struct err *err)
{
	struct db_stmt *stmt;
	enum db_result code;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_ARTIFACT_STALE);
	code = db_step(stmt);
	if (code == DB_ROW) {
		ret_artifact->is_shared = db_column_int(stmt, 2) > 1;
		store_read_text(stmt, 0, ret_artifact->execution, sizeof(ret_artifact->execution));
		store_read_text(stmt, 1, ret_artifact->digest, sizeof(ret_artifact->digest));
	}
	r = code == DB_ROW || code == DB_DONE ? code == DB_ROW
					      : store_fail(store, "look for artifacts", err);
	db_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_artifact_delete(
	struct store *store, const struct store_artifact *artifact, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = db_run(use_artifact(store, Q_ARTIFACT_DELETE, artifact->execution, artifact->digest),
		"forget an artifact", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}
