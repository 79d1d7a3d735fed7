/* SPDX-License-Identifier: Apache-2.0 */
#include "store/access/store_audit.h"

#include "store/store_private.h"

#include <assert.h>
#include <string.h>

#define PRUNE_STEP 1024 /* dropped at a time: the lock is held meanwhile */

/* --- writing --- */

static void read_hash(struct db_stmt *stmt, int column, uint8_t hash[AUDIT_HASH_LEN])
{
	size_t len;
	const void *bytes = db_column_blob(stmt, column, &len);

	memset(hash, 0, AUDIT_HASH_LEN);
	if (bytes && len == AUDIT_HASH_LEN)
		memcpy(hash, bytes, AUDIT_HASH_LEN);
}

static int load_mark(
	struct store *store, enum query query, struct audit_mark *ret_mark, struct err *err)
{
	struct db_stmt *stmt = store_use(store, query);

	if (db_step(stmt) != DB_ROW) {
		db_reset(stmt);
		return store_fail(store, "read the audit log", err);
	}
	ret_mark->sequence = db_column_int(stmt, 0);
	read_hash(stmt, 1, ret_mark->hash);
	/* If the end was cut off, numbers go on where they had come to: the gap stays to be seen. */
	if (query == Q_AUDIT_HEAD && db_column_int(stmt, 2) > ret_mark->sequence)
		ret_mark->sequence = db_column_int(stmt, 2);
	db_reset(stmt);
	return 0;
}

int store_audit_load(struct store *store, struct err *err)
{
	static const uint8_t none[AUDIT_HASH_LEN];
	auto_(store_reader_close) struct store_reader reader = {0};
	int r = store_reader_open(
		store, &reader, err); /* if it cannot be, that is better known now */

	if (r == 0)
		r = load_mark(store, Q_AUDIT_ANCHOR, &store->audit_anchor, err);
	if (r == 0)
		r = load_mark(store, Q_AUDIT_HEAD, &store->audit_head, err);
	/* There is no row, but there were some. */
	if (r == 0 && memcmp(store->audit_head.hash, none, sizeof(none)) == 0)
		memcpy(store->audit_head.hash, store->audit_anchor.hash, sizeof(none));
	return r;
}

static int insert(struct store *store, const struct audit_entry *entry,
	const uint8_t hash[AUDIT_HASH_LEN], struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_AUDIT_APPEND);

	db_bind_int(stmt, 1, entry->sequence);
	db_bind_int(stmt, 2, entry->at_ms);
	db_bind_text(stmt, 3, entry->owner.organization);
	db_bind_text(stmt, 4, entry->owner.user);
	db_bind_text(stmt, 5, entry->token_id);
	db_bind_text(stmt, 6, entry->action);
	db_bind_text(stmt, 7, entry->object);
	db_bind_int(stmt, 8, entry->status);
	db_bind_text(stmt, 9, entry->code);
	db_bind_text(stmt, 10, entry->peer);
	db_bind_text(stmt, 11, entry->request_id);
	db_bind_text(stmt, 12, entry->detail);
	db_bind_blob(stmt, 13, hash, AUDIT_HASH_LEN);
	return db_run(stmt, "add to the audit log", err);
}

static int insert_all(struct store *store, const struct audit_entry *const entries[], size_t count,
	struct audit_mark *head, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		assert(entries[i]->sequence == head->sequence + 1);
		head->sequence++;
		audit_entry_hash(entries[i], head->hash, head->hash);
		r = insert(store, entries[i], head->hash, err);
	}
	return r;
}

int store_audit_append(struct store *store, const struct audit_entry *const entries[], size_t count,
	struct err *err)
{
	struct audit_mark head;
	int r;

	pthread_mutex_lock(&store->lock);
	head = store->audit_head;
	r = db_begin(store->db, err);
	if (r == 0) {
		r = insert_all(store, entries, count, &head, err);
		if (r == 0)
			r = db_commit(store->db, err);
		if (r < 0)
			db_rollback(store->db);
		else
			store->audit_head = head;
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Moves the anchor on and deletes what it has passed. The lock is held. */
static int drop_until(struct store *store, int64_t sequence, struct err *err)
{
	struct db_stmt *stmt = store_use(store, Q_AUDIT_MOVE_ANCHOR);
	struct audit_mark anchor;
	int r;

	db_bind_int(stmt, 1, sequence);
	r = db_run(stmt, "move the anchor of the audit log", err);
	if (r == 0)
		r = db_run(store_use(store, Q_AUDIT_PRUNE), "drop old entries", err);
	if (r == 0)
		r = load_mark(store, Q_AUDIT_ANCHOR, &anchor, err);
	if (r == 0)
		r = db_commit(store->db, err);
	if (r < 0)
		db_rollback(store->db);
	else
		store->audit_anchor = anchor;
	return r;
}

int store_audit_prune(struct store *store, uint64_t keep, struct err *err)
{
	int64_t count, surplus;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	count = store->audit_head.sequence - store->audit_anchor.sequence;
	surplus = count - (int64_t)keep;
	if (surplus > PRUNE_STEP)
		surplus = PRUNE_STEP;
	/* Not one by one: a sixteenth more than asked for is kept before it is worth it. */
	if (count > (int64_t)(keep + keep / 16)) {
		r = db_begin(store->db, err);
		if (r == 0)
			r = drop_until(store, store->audit_anchor.sequence + surplus, err);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

struct audit_mark store_audit_head(struct store *store)
{
	struct audit_mark head;

	pthread_mutex_lock(&store->lock);
	head = store->audit_head;
	pthread_mutex_unlock(&store->lock);
	return head;
}

/* --- reading --- */

/* False if it did not fit: nothing that we wrote is so long, or has a NUL inside. */
static bool read_text(struct db_stmt *stmt, int column, char *text, size_t size)
{
	store_read_text(stmt, column, text, size);
	return db_column_bytes(stmt, column) == strlen(text);
}

static bool read_entry(
	struct db_stmt *stmt, struct audit_entry *entry, uint8_t hash[AUDIT_HASH_LEN])
{
	bool is_whole = true;

	*entry = (struct audit_entry){.sequence = db_column_int(stmt, 0),
		.at_ms = db_column_int(stmt, 1),
		.status = (int)db_column_int(stmt, 7)};
	is_whole &= read_text(stmt, 2, entry->owner.organization, MODEL_NAME_MAX);
	is_whole &= read_text(stmt, 3, entry->owner.user, MODEL_NAME_MAX);
	is_whole &= read_text(stmt, 4, entry->token_id, sizeof(entry->token_id));
	is_whole &= read_text(stmt, 5, entry->action, sizeof(entry->action));
	is_whole &= read_text(stmt, 6, entry->object, sizeof(entry->object));
	is_whole &= read_text(stmt, 8, entry->code, sizeof(entry->code));
	is_whole &= read_text(stmt, 9, entry->peer, sizeof(entry->peer));
	is_whole &= read_text(stmt, 10, entry->request_id, sizeof(entry->request_id));
	is_whole &= read_text(stmt, 11, entry->detail, sizeof(entry->detail));
	read_hash(stmt, 12, hash);
	return is_whole;
}

static void bind_filter(struct db_stmt *stmt, int at, const char *text)
{
	if (text && text[0])
		db_bind_text(stmt, at, text);
}

/* An entry as it is listed. */
struct row {
	struct audit_entry entry;
	uint8_t hash[AUDIT_HASH_LEN];
};

static void bind_list(struct db_stmt *stmt, const struct store_audit_filter *filter, bool is_one)
{
	db_bind_int(stmt, 1, filter->before ? filter->before : INT64_MAX);
	bind_filter(stmt, 2, filter->user);
	bind_filter(stmt, 3, filter->action);
	bind_filter(stmt, 4, filter->object);
	db_bind_int(stmt, 5, store_page(filter->limit));
	if (is_one)
		db_bind_text(stmt, 6, filter->organization);
}

/* Copies the next entries: how many. */
static int read_page(struct store *store, const struct store_audit_filter *filter,
	struct row page[STORE_PAGE], struct err *err)
{
	bool is_one = filter->organization && filter->organization[0];
	auto_(store_reader_close) struct store_reader reader = {0};
	struct db_stmt *stmt = NULL;
	int code, count = 0, r = store_reader_open(store, &reader, err);

	if (r == 0)
		r = store_prepare(reader.db, is_one ? Q_AUDIT_LIST_OF : Q_AUDIT_LIST, &stmt, err);
	if (r < 0)
		return r;
	bind_list(stmt, filter, is_one);
	for (; (code = db_step(stmt)) == DB_ROW; count++) /* store_audit_verify verifies */
		(void)read_entry(stmt, &page[count].entry, page[count].hash);
	r = code == DB_DONE ? count : db_error(reader.db, "read the audit log", err);
	db_finalize(stmt);
	return r;
}

int store_audit_list(struct store *store, const struct store_audit_filter *filter,
	void (*each)(const struct audit_entry *entry, const uint8_t *hash, void *arg), void *arg,
	struct err *err)
{
	auto_free struct row *page = mem_new(STORE_PAGE * sizeof(*page));
	struct store_audit_filter rest = *filter;
	int count;

	do {
		count = read_page(store, &rest, page, err);
		for (int i = 0; i < count; i++)
			each(&page[i].entry, page[i].hash, arg);
		if (count > 0) {
			rest.before = page[count - 1].entry.sequence;
			rest.limit -= (unsigned)count;
		}
	} while (count == STORE_PAGE);
	return count < 0 ? count : 0;
}

/* --- verifying --- */

/* What must be found on the way, besides a chain that holds. */
struct walk {
	const struct audit_mark *marks[2]; /* NULL: none */
	struct audit_report report;
};

static void find(struct walk *walk, enum audit_flaw flaw, int64_t sequence)
{
	if (walk->report.flaw != AUDIT_WHOLE)
		return;
	walk->report.flaw = flaw;
	walk->report.bad = sequence;
}

static void check_marks(struct walk *walk)
{
	const struct audit_mark *head = &walk->report.head;

	for (size_t i = 0; i < array_len(walk->marks); i++) {
		const struct audit_mark *mark = walk->marks[i];

		if (mark && mark->sequence == head->sequence &&
			memcmp(mark->hash, head->hash, AUDIT_HASH_LEN) != 0)
			find(walk, AUDIT_REWRITTEN, mark->sequence);
	}
}

static void check_entry(struct walk *walk, const struct audit_entry *entry, const uint8_t *stored)
{
	struct audit_mark *head = &walk->report.head;
	uint8_t hash[AUDIT_HASH_LEN];

	if (entry->sequence != head->sequence + 1)
		find(walk, AUDIT_MISSING, head->sequence + 1);
	audit_entry_hash(entry, head->hash, hash);
	if (memcmp(hash, stored, AUDIT_HASH_LEN) != 0)
		find(walk, AUDIT_CHANGED, entry->sequence);
	head->sequence = entry->sequence;
	memcpy(head->hash, stored, AUDIT_HASH_LEN);
	walk->report.count++;
	check_marks(walk);
}

static int read_anchor(struct db *reader, struct audit_mark *ret_anchor, struct err *err)
{
	struct db_stmt *stmt = NULL;
	int r = store_prepare(reader, Q_AUDIT_ANCHOR, &stmt, err);

	if (r < 0)
		return r;
	if (db_step(stmt) == DB_ROW) {
		ret_anchor->sequence = db_column_int(stmt, 0);
		read_hash(stmt, 1, ret_anchor->hash);
	} else {
		r = db_error(reader, "read the audit log", err);
	}
	db_finalize(stmt);
	return r;
}

static int walk_all(struct db *reader, struct walk *walk, struct err *err)
{
	struct db_stmt *stmt = NULL;
	uint8_t hash[AUDIT_HASH_LEN];
	struct audit_entry entry;
	int r = read_anchor(reader, &walk->report.anchor, err);

	if (r < 0)
		return r;
	walk->report.head = walk->report.anchor;
	check_marks(walk);
	r = store_prepare(reader, Q_AUDIT_WALK, &stmt, err);
	if (r < 0)
		return r;
	while ((r = db_step(stmt)) == DB_ROW) {
		if (!read_entry(stmt, &entry, hash))
			find(walk, AUDIT_CHANGED, entry.sequence);
		check_entry(walk, &entry, hash);
	}
	if (r == DB_FAILED)
		r = db_error(reader, "read the audit log", err);
	db_finalize(stmt);
	return r;
}

int store_audit_verify(struct store *store, const struct audit_mark *known,
	struct audit_report *ret_report, struct err *err)
{
	/* Taken first: what is written from here on only adds to what is walked. */
	struct audit_mark own = store_audit_head(store);
	struct walk walk = {.marks = {&own, known}};
	auto_(store_reader_close) struct store_reader reader = {0};
	int r = store_reader_open(store, &reader, err);

	if (r < 0)
		return r;
	/* One view of anchor and entries, though the log grows and is pruned meanwhile. */
	r = db_begin(reader.db, err);
	if (r == 0)
		r = walk_all(reader.db, &walk, err);
	db_rollback(reader.db);
	if (r < 0)
		return r;
	for (size_t i = 0; i < array_len(walk.marks); i++) {
		if (walk.marks[i] && walk.marks[i]->sequence > walk.report.head.sequence)
			find(&walk, AUDIT_CUT, walk.report.head.sequence + 1);
	}
	*ret_report = walk.report;
	return 0;
}
