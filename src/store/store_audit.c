/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_audit.h"

#include "store/store_private.h"

#include <assert.h>
#include <string.h>

#define PRUNE_STEP 1024 /* dropped at a time: the lock is held meanwhile */
#define COLUMNS                                                                                    \
	"sequence, at, organization, user, token, action, object, status, code, peer, request,"    \
	" detail, hash"
/* The organization, if there is one, by its index. */
#define LIST(and_organization)                                                                     \
	"SELECT " COLUMNS " FROM audit WHERE sequence < ?1 AND (?2 IS NULL OR user = ?2)"          \
	" AND (?3 IS NULL OR action = ?3) AND (?4 IS NULL OR object = ?4 OR"                       \
	" (object > ?4 || '/' AND object < ?4 || '0'))" and_organization                           \
	" ORDER BY sequence DESC LIMIT ?5"

/* --- a connection for one reader: it may take long, and so holds up nobody who writes --- */

static int reader_fail(sqlite3 *reader, struct err *err)
{
	return err_set(err, ERR_INTERNAL, "read the audit log: %s",
		reader ? sqlite3_errmsg(reader) : "out of memory");
}

struct reader {
	sqlite3 *db;
	pthread_mutex_t *lock; /* held; NULL before it was opened */
};

/* One after another: the library keeps the descriptor of a closed connection for the next one, and so
 * there is never more than one of them. */
static int open_reader(struct store *store, struct reader *reader, struct err *err)
{
	reader->lock = &store->reader_lock;
	pthread_mutex_lock(reader->lock);
	if (sqlite3_open_v2(store->path, &reader->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK)
		return reader_fail(reader->db, err);
	sqlite3_busy_timeout(reader->db, STORE_BUSY_MS);
	return 0;
}

static void close_reader(struct reader *reader)
{
	sqlite3_close(reader->db);
	if (reader->lock)
		pthread_mutex_unlock(reader->lock);
}

/* --- writing --- */

static void read_hash(sqlite3_stmt *stmt, int column, uint8_t hash[AUDIT_HASH_LEN])
{
	const void *bytes = sqlite3_column_blob(stmt, column);

	memset(hash, 0, AUDIT_HASH_LEN);
	if (bytes && sqlite3_column_bytes(stmt, column) == AUDIT_HASH_LEN)
		memcpy(hash, bytes, AUDIT_HASH_LEN);
}

static int load_mark(
	struct store *store, enum query query, struct audit_mark *ret_mark, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, query);

	if (sqlite3_step(stmt) != SQLITE_ROW) {
		sqlite3_reset(stmt);
		return store_fail(store, "read the audit log", err);
	}
	ret_mark->sequence = sqlite3_column_int64(stmt, 0);
	read_hash(stmt, 1, ret_mark->hash);
	/* If the end was cut off, numbers go on where they had come to: the gap stays to be seen. */
	if (query == Q_AUDIT_HEAD && sqlite3_column_int64(stmt, 2) > ret_mark->sequence)
		ret_mark->sequence = sqlite3_column_int64(stmt, 2);
	sqlite3_reset(stmt);
	return 0;
}

int store_audit_load(struct store *store, struct err *err)
{
	static const uint8_t none[AUDIT_HASH_LEN];
	auto_(close_reader) struct reader reader = {0};
	int r = open_reader(store, &reader, err); /* if it cannot be, that is better known now */

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
	sqlite3_stmt *stmt = store_use(store, Q_AUDIT_APPEND);

	sqlite3_bind_int64(stmt, 1, entry->sequence);
	sqlite3_bind_int64(stmt, 2, entry->at_ms);
	store_bind_text(stmt, 3, entry->owner.organization);
	store_bind_text(stmt, 4, entry->owner.user);
	store_bind_text(stmt, 5, entry->token_id);
	store_bind_text(stmt, 6, entry->action);
	store_bind_text(stmt, 7, entry->object);
	sqlite3_bind_int(stmt, 8, entry->status);
	store_bind_text(stmt, 9, entry->code);
	store_bind_text(stmt, 10, entry->peer);
	store_bind_text(stmt, 11, entry->request_id);
	store_bind_text(stmt, 12, entry->detail);
	sqlite3_bind_blob(stmt, 13, hash, AUDIT_HASH_LEN, SQLITE_TRANSIENT);
	return store_run(store, stmt, "add to the audit log", err);
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
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		r = insert_all(store, entries, count, &head, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0)
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
		else
			store->audit_head = head;
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Moves the anchor on and deletes what it has passed. The lock is held. */
static int drop_until(struct store *store, int64_t sequence, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_AUDIT_MOVE_ANCHOR);
	struct audit_mark anchor;
	int r;

	sqlite3_bind_int64(stmt, 1, sequence);
	r = store_run(store, stmt, "move the anchor of the audit log", err);
	if (r == 0)
		r = store_run(store, store_use(store, Q_AUDIT_PRUNE), "drop old entries", err);
	if (r == 0)
		r = load_mark(store, Q_AUDIT_ANCHOR, &anchor, err);
	if (r == 0)
		r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
	if (r < 0)
		(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
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
		r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
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
static bool read_text(sqlite3_stmt *stmt, int column, char *text, size_t size)
{
	store_read_text(stmt, column, text, size);
	return (size_t)sqlite3_column_bytes(stmt, column) == strlen(text);
}

static bool read_entry(sqlite3_stmt *stmt, struct audit_entry *entry, uint8_t hash[AUDIT_HASH_LEN])
{
	bool is_whole = true;

	*entry = (struct audit_entry){.sequence = sqlite3_column_int64(stmt, 0),
		.at_ms = sqlite3_column_int64(stmt, 1),
		.status = sqlite3_column_int(stmt, 7)};
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

static void bind_filter(sqlite3_stmt *stmt, int at, const char *text)
{
	if (text && text[0])
		store_bind_text(stmt, at, text);
}

static int list(sqlite3 *reader, sqlite3_stmt *stmt,
	void (*each)(const struct audit_entry *entry, const uint8_t *hash, void *arg), void *arg,
	struct err *err)
{
	uint8_t hash[AUDIT_HASH_LEN];
	struct audit_entry entry;
	int code;

	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		(void)read_entry(stmt, &entry, hash); /* verifying is for store_audit_verify */
		each(&entry, hash, arg);
	}
	return code == SQLITE_DONE ? 0 : reader_fail(reader, err);
}

int store_audit_list(struct store *store, const struct store_audit_filter *filter,
	void (*each)(const struct audit_entry *entry, const uint8_t *hash, void *arg), void *arg,
	struct err *err)
{
	bool is_one = filter->organization && filter->organization[0];
	auto_(close_reader) struct reader reader = {0};
	sqlite3_stmt *stmt = NULL;
	int r = open_reader(store, &reader, err);

	if (r < 0)
		return r;
	if (sqlite3_prepare_v2(reader.db, is_one ? LIST(" AND organization = ?6") : LIST(""), -1,
		    &stmt, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(stmt, 1, filter->before ? filter->before : INT64_MAX);
		bind_filter(stmt, 2, filter->user);
		bind_filter(stmt, 3, filter->action);
		bind_filter(stmt, 4, filter->object);
		sqlite3_bind_int64(stmt, 5, filter->limit);
		if (is_one)
			store_bind_text(stmt, 6, filter->organization);
		r = list(reader.db, stmt, each, arg, err);
	} else {
		r = reader_fail(reader.db, err);
	}
	sqlite3_finalize(stmt);
	return r;
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

static int read_anchor(sqlite3 *reader, struct audit_mark *ret_anchor, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(reader, "SELECT sequence, hash FROM audit_anchor", -1, &stmt,
		    NULL) == SQLITE_OK &&
		sqlite3_step(stmt) == SQLITE_ROW) {
		ret_anchor->sequence = sqlite3_column_int64(stmt, 0);
		read_hash(stmt, 1, ret_anchor->hash);
	} else {
		r = reader_fail(reader, err);
	}
	sqlite3_finalize(stmt);
	return r;
}

static int walk_all(sqlite3 *reader, struct walk *walk, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	uint8_t hash[AUDIT_HASH_LEN];
	struct audit_entry entry;
	int code, r;

	r = read_anchor(reader, &walk->report.anchor, err);
	if (r < 0)
		return r;
	walk->report.head = walk->report.anchor;
	check_marks(walk);
	if (sqlite3_prepare_v2(reader, "SELECT " COLUMNS " FROM audit ORDER BY sequence", -1, &stmt,
		    NULL) != SQLITE_OK)
		return reader_fail(reader, err);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (!read_entry(stmt, &entry, hash))
			find(walk, AUDIT_CHANGED, entry.sequence);
		check_entry(walk, &entry, hash);
	}
	sqlite3_finalize(stmt);
	return code == SQLITE_DONE ? 0 : reader_fail(reader, err);
}

int store_audit_verify(struct store *store, const struct audit_mark *known,
	struct audit_report *ret_report, struct err *err)
{
	/* Taken first: what is written from here on only adds to what is walked. */
	struct audit_mark own = store_audit_head(store);
	struct walk walk = {.marks = {&own, known}};
	auto_(close_reader) struct reader reader = {0};
	int r = open_reader(store, &reader, err);

	if (r < 0)
		return r;
	/* One view of anchor and entries, though the log grows and is pruned meanwhile. */
	sqlite3_exec(reader.db, "BEGIN", NULL, NULL, NULL);
	r = walk_all(reader.db, &walk, err);
	sqlite3_exec(reader.db, "COMMIT", NULL, NULL, NULL);
	if (r < 0)
		return r;
	for (size_t i = 0; i < array_len(walk.marks); i++) {
		if (walk.marks[i] && walk.marks[i]->sequence > walk.report.head.sequence)
			find(&walk, AUDIT_CUT, walk.report.head.sequence + 1);
	}
	*ret_report = walk.report;
	return 0;
}
