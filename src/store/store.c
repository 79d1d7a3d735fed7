/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/schema.h"
#include "store/store_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The columns of a sandbox, in the order of bind_record and read_record. */
#define COLUMNS                                                                                    \
	"id, organization, user, project, status, template, driver, cpu_millis, memory_bytes,"     \
	" disk_bytes, pids, env, ports, labels, network, idle_timeout_s, lifetime_s, private,"     \
	" created_at, started_at, last_active_at, expires_at, end_reason, end_signal, end_detail," \
	" error_message, end_cpu_us, end_peak_bytes, start"
#define COLUMN_COUNT 29
#define S_COLUMNS                                                                                  \
	"s.id, s.organization, s.user, s.project, s.status, s.template, s.driver, s.cpu_millis,"   \
	" s.memory_bytes, s.disk_bytes, s.pids, s.env, s.ports, s.labels, s.network,"              \
	" s.idle_timeout_s, s.lifetime_s, s.private, s.created_at, s.started_at, "                 \
	"s.last_active_at,"                                                                        \
	" s.expires_at, s.end_reason, s.end_signal, s.end_detail, s.error_message,"                \
	" s.end_cpu_us, s.end_peak_bytes, s.start, w.slot"                                         \
	" FROM sandboxes s JOIN workspaces w ON w.id = s.id "
/* Those of a process, in the order of store_process.c. */
#define P_COLUMNS                                                                                  \
	"sandbox, number, pid, argv, cwd, uid, flags, timeout_ms, started_at, ended_at, "          \
	"exit_code,"                                                                               \
	" duration_us, output_bytes, survivors, end_reason, end_signal, end_detail, end_cpu_us,"   \
	" end_peak_bytes, end_profile, end_denied, start, restarts"
/* Those of a token, in the order of store_token.c. */
#define T_COLUMNS "id, name, organization, user, scopes, created_at, expires_at, last_used_at"
/* Those of a secret, in the order of store_secret.c. */
#define SECRET_COLUMNS "name, organization, user, url, header, prefix, trusted, changed_at, sealed"
/* ?31 and ?32 are the owner; NULL stands for the daemon, who owns all. */
#define SLOTS_IN_TURN 8
#define OWNED(t)      "(?31 IS NULL OR (" t "organization = ?31 AND " t "user = ?32))"

static const char *const queries[Q_COUNT] = {
	[Q_BEGIN] = "BEGIN IMMEDIATE",
	[Q_COMMIT] = "COMMIT",
	[Q_ROLLBACK] = "ROLLBACK",
	[Q_SANDBOX_INSERT] =
		"INSERT INTO sandboxes (" COLUMNS
		") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
		" ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)",
	[Q_SANDBOX_UPDATE] =
		"UPDATE sandboxes SET (" COLUMNS
		") = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
		" ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29),"
		" starting = 0"
		" WHERE id = ?1",
	[Q_SANDBOX_GET] = "SELECT " S_COLUMNS "WHERE s.id = ?1 AND " OWNED("s."),
	[Q_SANDBOX_FIND] = "SELECT " S_COLUMNS "WHERE s.project = ?1 AND " OWNED("s."),
	[Q_SANDBOX_DELETE] = "DELETE FROM sandboxes WHERE id = ?1",
	[Q_SANDBOX_LIST] = "SELECT " S_COLUMNS "WHERE s.id > ?1 AND " OWNED(
		"s.") " AND (?2 IS NULL OR s.status = ?2) AND (?3 IS NULL OR s.template = ?3)"
		      " AND (?4 IS NULL OR s.project = ?4)"
		      " AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(s.labels) AS l"
		      " WHERE l.key = ?5 AND l.value = ?6))"
		      " ORDER BY s.id LIMIT ?7",
	[Q_SANDBOX_DUE] = "SELECT id FROM sandboxes WHERE (expires_at > 0 AND expires_at <= ?1)"
			  " OR (status = 'running' AND idle_timeout_s >= 0"
			  " AND last_active_at + idle_timeout_s * 1000 <= ?1) LIMIT ?2",
	[Q_SANDBOX_TOUCH] = "UPDATE sandboxes SET last_active_at = ?2 WHERE id = ?1",
	[Q_SANDBOX_END_ALL] =
		"UPDATE sandboxes SET status = 'stopped', end_reason = ?1, end_signal = 0,"
		" end_detail = ?2 WHERE status IN ('running', 'paused')",
	[Q_SANDBOX_CLAIM] = "UPDATE sandboxes SET starting = 1 WHERE id = ?1",
	[Q_WORKSPACE_INSERT] = "INSERT INTO workspaces (id, organization, user, slot, created_at) "
			       "VALUES (?1, ?2, ?3, ?4, ?5)",
	[Q_WORKSPACE_GET] = "SELECT id, organization, user, slot, created_at FROM workspaces WHERE "
			    "id = ?1 AND " OWNED(""),
	[Q_WORKSPACE_DELETE] = "DELETE FROM workspaces WHERE id = ?1",
	[Q_WORKSPACE_SLOTS] = "SELECT slot FROM workspaces",
	[Q_PROCESS_INSERT] = "INSERT INTO processes (" P_COLUMNS
			     ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
			     " ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)",
	[Q_PROCESS_UPDATE] = "UPDATE processes SET (" P_COLUMNS
			     ") = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
			     " ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"
			     " WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_DELETE] = "DELETE FROM processes WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_GET] = "SELECT " P_COLUMNS " FROM processes WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_LIST] =
		"SELECT " P_COLUMNS " FROM processes WHERE sandbox = ?1 AND (?2 = 0 OR ended_at = 0"
		" OR survivors > 0) ORDER BY number",
	[Q_PROCESS_LAST] = "SELECT max(number) FROM processes WHERE sandbox = ?1",
	[Q_PROCESS_SURPLUS] =
		"SELECT number FROM processes WHERE sandbox = ?1 AND ended_at > 0 AND"
		" survivors = 0 ORDER BY ended_at DESC, number DESC LIMIT ?2 OFFSET ?3",
	/* One that had ended before keeps its end, but nobody of it is left. */
	[Q_PROCESS_END_ALL] =
		"UPDATE processes SET survivors = 0,"
		" exit_code = iif(ended_at = 0, 137, exit_code),"
		" end_reason = iif(ended_at = 0, ?3, end_reason),"
		" end_signal = iif(ended_at = 0, 9, end_signal),"
		" end_detail = iif(ended_at = 0, ?4, end_detail),"
		" duration_us = iif(ended_at = 0, (?2 - started_at) * 1000, duration_us),"
		" ended_at = iif(ended_at = 0, ?2, ended_at)"
		" WHERE (?1 IS NULL OR sandbox = ?1) AND (ended_at = 0 OR survivors > 0)",
	[Q_PROCESS_FORGET] = "DELETE FROM processes WHERE sandbox = ?1",
	[Q_PREVIEW_LINK_ADD] =
		"INSERT INTO preview_links (hash, id, sandbox, port, created_at, expires_at)"
		" SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ?7 >"
		" (SELECT count(*) FROM preview_links WHERE sandbox = ?3 AND port = ?4)",
	[Q_PREVIEW_LINK_GET] = "SELECT id, sandbox, port, created_at, expires_at FROM preview_links"
			       " WHERE hash = ?1 AND expires_at > ?2",
	[Q_PREVIEW_LINK_LIST] =
		"SELECT id, sandbox, port, created_at, expires_at FROM preview_links"
		" WHERE sandbox = ?1 AND port = ?2 AND expires_at > ?3"
		" ORDER BY created_at, id LIMIT ?4",
	[Q_PREVIEW_LINK_DELETE] =
		"DELETE FROM preview_links WHERE sandbox = ?1 AND port = ?2 AND id = ?3",
	[Q_PREVIEW_LINK_CLEAN] = "DELETE FROM preview_links WHERE expires_at <= ?1",
	/* One that is put again keeps its age. */
	[Q_TOKEN_PUT] =
		"INSERT OR REPLACE INTO tokens (" T_COLUMNS ", hash) VALUES (?1, ?2, ?3, ?4, ?5,"
		" coalesce((SELECT created_at FROM tokens WHERE id = ?1), ?6), ?7,"
		" coalesce((SELECT last_used_at FROM tokens WHERE id = ?1), 0), ?8)",
	[Q_TOKEN_FIND] = "SELECT " T_COLUMNS
			 " FROM tokens WHERE hash = ?1 AND (expires_at = 0 OR expires_at > ?2)",
	[Q_TOKEN_GET] = "SELECT " T_COLUMNS " FROM tokens WHERE id = ?1 AND " OWNED(""),
	[Q_TOKEN_LIST] = "SELECT " T_COLUMNS
			 " FROM tokens WHERE id > ?1 AND " OWNED("") " ORDER BY id LIMIT ?2",
	[Q_TOKEN_DELETE] = "DELETE FROM tokens WHERE id = ?1 AND " OWNED(""),
	[Q_TOKEN_TOUCH] = "UPDATE tokens SET last_used_at = ?2 WHERE id = ?1",
	[Q_AUDIT_APPEND] = "INSERT INTO audit (sequence, at, organization, user, token, action, "
			   "object, status, code, peer, request, detail, hash)"
			   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
	[Q_AUDIT_HEAD] = "SELECT max(sequence), hash,"
			 " (SELECT seq FROM sqlite_sequence WHERE name = 'audit') FROM audit",
	[Q_AUDIT_ANCHOR] = "SELECT sequence, hash FROM audit_anchor",
	[Q_AUDIT_MOVE_ANCHOR] = "UPDATE audit_anchor SET (sequence, hash) ="
				" (SELECT sequence, hash FROM audit WHERE sequence <= ?1 ORDER BY "
				"sequence DESC LIMIT 1)"
				" WHERE EXISTS (SELECT 1 FROM audit WHERE sequence <= ?1)",
	/* One that is put again is always let in. */
	[Q_SECRET_PUT] =
		"INSERT OR REPLACE INTO secrets (" SECRET_COLUMNS
		") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9"
		" WHERE ?10 > (SELECT count(*) FROM secrets WHERE organization = ?2 AND user = ?3"
		" AND name <> ?1)",
	[Q_SECRET_LIST] =
		"SELECT " SECRET_COLUMNS " FROM secrets WHERE " OWNED("") " ORDER BY name",
	[Q_SECRET_DELETE] = "DELETE FROM secrets WHERE name = ?1 AND " OWNED(""),
	[Q_QUOTA_GET] = "SELECT sandboxes, running, workspaces, cpu_millis, memory_bytes,"
			" disk_bytes, creates_per_minute FROM quotas"
			" WHERE organization = ?1 AND user = ?2",
	[Q_QUOTA_PUT] = "INSERT OR REPLACE INTO quotas (organization, user, sandboxes, running,"
			" workspaces, cpu_millis, memory_bytes, disk_bytes, creates_per_minute)"
			" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[Q_QUOTA_DELETE] = "DELETE FROM quotas WHERE organization = ?1 AND user = ?2",
	[Q_QUOTA_USE] =
		"SELECT count(*), ifnull(sum(live), 0), ifnull(sum(live * cpu_millis), 0),"
		" ifnull(sum(live * memory_bytes), 0), ifnull(sum(disk_bytes), 0)"
		" FROM (SELECT status IN ('creating', 'running', 'paused') OR starting AS live,"
		" cpu_millis, memory_bytes, disk_bytes FROM sandboxes"
		" WHERE organization = ?1 AND (?2 = '' OR user = ?2))",
	[Q_QUOTA_WORKSPACES] = "SELECT count(*) FROM workspaces WHERE organization = ?1"
			       " AND (?2 = '' OR user = ?2)",
	[Q_QUOTA_PACE_GET] = "SELECT until FROM quota_pace WHERE organization = ?1 AND user = ?2",
	[Q_QUOTA_PACE_PUT] = "INSERT OR REPLACE INTO quota_pace (organization, user, until)"
			     " VALUES (?1, ?2, ?3)",
	[Q_REPLAY_GET] = "SELECT print, object, created_at, answer FROM replays WHERE"
			 " organization = ?1 AND user = ?2 AND key = ?3 AND created_at >= ?4",
	[Q_REPLAY_PUT] = "INSERT INTO replays (organization, user, key, print, object, created_at)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[Q_REPLAY_ANSWER] = "UPDATE replays SET answer = ?4 WHERE"
			    " organization = ?1 AND user = ?2 AND key = ?3",
	[Q_REPLAY_DELETE] = "DELETE FROM replays WHERE"
			    " organization = ?1 AND user = ?2 AND key = ?3",
	[Q_REPLAY_EXPIRE] = "DELETE FROM replays WHERE created_at < ?1",
	[Q_REPLAY_PRUNE] = "DELETE FROM replays WHERE organization = ?1 AND user = ?2 AND key IN"
			   " (SELECT key FROM replays WHERE organization = ?1 AND user = ?2"
			   " ORDER BY created_at DESC LIMIT -1 OFFSET ?3)",
	[Q_AUDIT_PRUNE] = "DELETE FROM audit WHERE sequence <= (SELECT sequence FROM audit_anchor)",
};

/* --- small helpers --- */

int store_fail(struct store *store, const char *what, struct err *err)
{
	int code = sqlite3_extended_errcode(store->db);

	if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE)
		return err_explain(err, ERR_NO_SPACE, NULL, "free space below the data directory",
			"%s: the disk that holds the state is full", what);
	return err_set(err, ERR_INTERNAL, "%s: %s", what, sqlite3_errmsg(store->db));
}

sqlite3_stmt *store_use(struct store *store, enum query query)
{
	sqlite3_stmt *stmt = store->stmts[query];

	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return stmt;
}

int store_run(struct store *store, sqlite3_stmt *stmt, const char *what, struct err *err)
{
	int code = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return code == SQLITE_DONE ? 0 : store_fail(store, what, err);
}

void store_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

/* An empty string is NULL in the database. */
static void bind_optional(sqlite3_stmt *stmt, int at, const char *text)
{
	if (text && text[0])
		store_bind_text(stmt, at, text);
}

void store_bind_owner(sqlite3_stmt *stmt, const struct owner *owner)
{
	if (!owner)
		return;
	store_bind_text(stmt, 31, owner->organization);
	store_bind_text(stmt, 32, owner->user);
}

void store_bind_json(sqlite3_stmt *stmt, int at, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	assert(text);
	sqlite3_bind_text(stmt, at, text, -1, free);
}

static void bind_record(sqlite3_stmt *stmt, const struct sandbox_record *record)
{
	store_bind_text(stmt, 1, record->id);
	store_bind_text(stmt, 2, record->owner.organization);
	store_bind_text(stmt, 3, record->owner.user);
	bind_optional(stmt, 4, record->project);
	store_bind_text(stmt, 5, sandbox_status_name(record->status));
	store_bind_text(stmt, 6, record->template_name);
	store_bind_text(stmt, 7, record->driver);
	sqlite3_bind_int64(stmt, 8, (int64_t)record->resources.cpu_millis);
	sqlite3_bind_int64(stmt, 9, (int64_t)record->resources.memory_bytes);
	sqlite3_bind_int64(stmt, 10, (int64_t)record->resources.disk_bytes);
	sqlite3_bind_int64(stmt, 11, (int64_t)record->resources.pids);
	store_bind_json(stmt, 12, record->env);
	store_bind_json(stmt, 13, record->ports);
	store_bind_json(stmt, 14, record->labels);
	store_bind_json(stmt, 15, record->network);
	sqlite3_bind_int64(stmt, 16, record->idle_timeout_s);
	sqlite3_bind_int64(stmt, 17, record->lifetime_s);
	sqlite3_bind_int(stmt, 18, record->is_private);
	sqlite3_bind_int64(stmt, 19, record->created_at_ms);
	sqlite3_bind_int64(stmt, 20, record->started_at_ms);
	sqlite3_bind_int64(stmt, 21, record->last_active_at_ms);
	sqlite3_bind_int64(stmt, 22, record->expires_at_ms);
	store_bind_text(stmt, 23, end_reason_name(record->end.reason));
	sqlite3_bind_int(stmt, 24, record->end.signal);
	store_bind_text(stmt, 25, record->end.detail);
	store_bind_text(stmt, 26, record->error_message);
	sqlite3_bind_int64(stmt, 27, (int64_t)record->end.cpu_us);
	sqlite3_bind_int64(stmt, 28, (int64_t)record->end.peak_memory_bytes);
	store_bind_json(stmt, 29, record->start);
}

void store_read_text(sqlite3_stmt *stmt, int column, char *text, size_t size)
{
	const unsigned char *value = sqlite3_column_text(stmt, column);

	snprintf(text, size, "%s", value ? (const char *)value : "");
}

json_t *store_read_json(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	json_t *value = text ? json_loads(text, 0, NULL) : NULL;

	return value ? value : json_null();
}

static void read_record(sqlite3_stmt *stmt, struct sandbox_record *record)
{
	char name[32];

	*record = (struct sandbox_record){0};
	store_read_text(stmt, 0, record->id, sizeof(record->id));
	store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
	store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
	store_read_text(stmt, 3, record->project, MODEL_NAME_MAX);
	store_read_text(stmt, 4, name, sizeof(name));
	if (sandbox_status_parse(name, &record->status) < 0)
		record->status = SANDBOX_ERROR;
	store_read_text(stmt, 5, record->template_name, MODEL_NAME_MAX);
	store_read_text(stmt, 6, record->driver, sizeof(record->driver));
	record->resources =
		(struct resources){.cpu_millis = (uint64_t)sqlite3_column_int64(stmt, 7),
			.memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 8),
			.disk_bytes = (uint64_t)sqlite3_column_int64(stmt, 9),
			.pids = (uint64_t)sqlite3_column_int64(stmt, 10)};
	record->env = store_read_json(stmt, 11);
	record->ports = store_read_json(stmt, 12);
	record->labels = store_read_json(stmt, 13);
	record->network = store_read_json(stmt, 14);
	record->idle_timeout_s = sqlite3_column_int64(stmt, 15);
	record->lifetime_s = sqlite3_column_int64(stmt, 16);
	record->is_private = sqlite3_column_int(stmt, 17);
	record->created_at_ms = sqlite3_column_int64(stmt, 18);
	record->started_at_ms = sqlite3_column_int64(stmt, 19);
	record->last_active_at_ms = sqlite3_column_int64(stmt, 20);
	record->expires_at_ms = sqlite3_column_int64(stmt, 21);
	store_read_text(stmt, 22, name, sizeof(name));
	if (end_reason_parse(name, &record->end.reason) < 0)
		record->end.reason = END_NONE;
	record->end.signal = sqlite3_column_int(stmt, 23);
	store_read_text(stmt, 24, record->end.detail, sizeof(record->end.detail));
	store_read_text(stmt, 25, record->error_message, sizeof(record->error_message));
	record->end.cpu_us = (uint64_t)sqlite3_column_int64(stmt, 26);
	record->end.peak_memory_bytes = (uint64_t)sqlite3_column_int64(stmt, 27);
	record->start = store_read_json(stmt, 28);
	record->slot = (uint32_t)sqlite3_column_int64(stmt, 29);
}

/* --- opening --- */

static int prepare_all(struct store *store, struct err *err)
{
	for (int q = 0; q < Q_COUNT; q++) {
		if (sqlite3_prepare_v3(store->db, queries[q], -1, SQLITE_PREPARE_PERSISTENT,
			    &store->stmts[q], NULL) != SQLITE_OK)
			return store_fail(store, queries[q], err);
	}
	return 0;
}

static int load_slots(struct store *store, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_WORKSPACE_SLOTS);
	int code;

	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		uint32_t slot = (uint32_t)sqlite3_column_int64(stmt, 0);

		if (slot < KEEPER_SLOT_COUNT)
			store->slots[slot / 8] |= (uint8_t)(1u << slot % 8);
	}
	sqlite3_reset(stmt);
	return code == SQLITE_DONE ? 0 : store_fail(store, "read uid ranges", err);
}

/* A start that a daemon before us did not finish holds nothing any more. */
static int forget_claims(struct store *store, struct err *err)
{
	if (sqlite3_exec(store->db, "UPDATE sandboxes SET starting = 0 WHERE starting", NULL, NULL,
		    NULL) != SQLITE_OK)
		return store_fail(store, "forget unfinished starts", err);
	return 0;
}

int store_open(const char *path, struct store **ret_store, struct err *err)
{
	struct store *store = mem_new(sizeof(*store));
	int r = 0;

	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->reader_lock, NULL);
	store->path = mem_strdup(path);
	quota_clear(&store->default_quotas[0]);
	quota_clear(&store->default_quotas[1]);
	if (sqlite3_open_v2(path, &store->db,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK) {
		r = err_set(err, ERR_INTERNAL, "open the database %s: %s", path,
			store->db ? sqlite3_errmsg(store->db) : "out of memory");
		store_close(store);
		return r;
	}
	sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
	/* NORMAL: no fsync at each commit; the log is synced before it is folded into the database. */
	if (sqlite3_exec(store->db,
		    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = "
		    "ON;"
		    "PRAGMA cache_size = -2048; PRAGMA journal_size_limit = 8388608;",
		    NULL, NULL, NULL) != SQLITE_OK)
		r = store_fail(store, "configure the database", err);
	if (r == 0)
		r = schema_migrate(store->db, err);
	if (r == 0)
		r = prepare_all(store, err);
	if (r == 0)
		r = load_slots(store, err);
	if (r == 0)
		r = forget_claims(store, err);
	if (r == 0)
		r = store_audit_load(store, err);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	for (int q = 0; q < Q_COUNT; q++)
		sqlite3_finalize(store->stmts[q]);
	sqlite3_close(store->db);
	pthread_mutex_destroy(&store->reader_lock);
	free(store->path);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

/* --- sandboxes --- */

/* The lowest free uid range from `from` on; KEEPER_SLOT_COUNT if there is none. */
static uint32_t find_free_slot(const struct store *store, uint32_t from)
{
	uint32_t slot = from > store->lowest_free ? from : store->lowest_free;

	while (slot < KEEPER_SLOT_COUNT && store->slots[slot / 8] & (1u << slot % 8))
		slot++;
	return slot;
}

/*
 * The uid range that is taken next. A low one, because the keeper has the namespaces of these at hand. If it
 * builds ahead (keeper/birth.h) a few take turns: else a sandbox that ends would change which is next.
 */
static uint32_t next_slot(const struct store *store)
{
	uint32_t lowest = find_free_slot(store, 0);
	uint32_t slot = find_free_slot(store, store->turn);

	return slot < KEEPER_SLOT_COUNT && slot - lowest < store->slots_in_turn ? slot : lowest;
}

static int take_slot(struct store *store, uint32_t *ret_slot, struct err *err)
{
	uint32_t slot = next_slot(store);

	if (slot == KEEPER_SLOT_COUNT)
		return err_explain(err, ERR_UNAVAILABLE, "no_uid_range",
			"purge sandboxes that are not needed",
			"all %d uid ranges are taken by sandboxes and kept workspaces",
			KEEPER_SLOT_COUNT);
	store->slots[slot / 8] |= (uint8_t)(1u << slot % 8);
	if (slot == store->lowest_free)
		store->lowest_free++;
	store->turn = slot + 1;
	*ret_slot = slot;
	return 0;
}

void store_take_slots_in_turn(struct store *store)
{
	store->slots_in_turn = SLOTS_IN_TURN;
}

uint32_t store_next_slot(struct store *store)
{
	uint32_t slot;

	pthread_mutex_lock(&store->lock);
	slot = next_slot(store);
	pthread_mutex_unlock(&store->lock);
	return slot;
}

static void free_slot(struct store *store, uint32_t slot)
{
	if (slot >= KEEPER_SLOT_COUNT)
		return;
	store->slots[slot / 8] &= (uint8_t) ~(1u << slot % 8);
	if (slot < store->lowest_free)
		store->lowest_free = slot;
}

static int read_workspace(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *record)
{
	sqlite3_stmt *stmt = store_use(store, Q_WORKSPACE_GET);
	int code;

	store_bind_text(stmt, 1, id);
	store_bind_owner(stmt, owner);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		store_read_text(stmt, 0, record->id, sizeof(record->id));
		store_read_text(stmt, 1, record->owner.organization, MODEL_NAME_MAX);
		store_read_text(stmt, 2, record->owner.user, MODEL_NAME_MAX);
		record->slot = (uint32_t)sqlite3_column_int64(stmt, 3);
		record->created_at_ms = sqlite3_column_int64(stmt, 4);
	}
	sqlite3_reset(stmt);
	return code == SQLITE_ROW ? 0 : -ENOENT;
}

/* The workspace of a new sandbox: the owner's own one of that id, or a fresh row with a uid range. */
static int claim_workspace(
	struct store *store, struct sandbox_record *record, bool *ret_fresh, struct err *err)
{
	struct workspace_record kept;
	sqlite3_stmt *stmt;
	int r;

	*ret_fresh = false;
	if (read_workspace(store, NULL, record->id, &kept) == 0) {
		if (strcmp(kept.owner.organization, record->owner.organization) != 0 ||
			strcmp(kept.owner.user, record->owner.user) != 0)
			return err_explain(err, ERR_CONFLICT, "id_taken",
				"choose another id, or none", "the id %s is taken", record->id);
		record->slot = kept.slot;
		return 0;
	}
	r = take_slot(store, &record->slot, err);
	if (r < 0)
		return r;
	*ret_fresh = true;
	stmt = store_use(store, Q_WORKSPACE_INSERT);
	store_bind_text(stmt, 1, record->id);
	store_bind_text(stmt, 2, record->owner.organization);
	store_bind_text(stmt, 3, record->owner.user);
	sqlite3_bind_int64(stmt, 4, record->slot);
	sqlite3_bind_int64(stmt, 5, record->created_at_ms);
	return store_run(store, stmt, "add a workspace", err);
}

static int project_is_taken(
	struct store *store, const struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_SANDBOX_FIND);
	char id[ID_LEN + 1] = "";

	store_bind_text(stmt, 1, record->project);
	store_bind_owner(stmt, &record->owner);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		store_read_text(stmt, 0, id, sizeof(id));
	sqlite3_reset(stmt);
	return err_explain(err, ERR_CONFLICT, "project_has_sandbox",
		"use POST /v1/sandboxes/ensure to get it, or delete it first",
		"project %s has the sandbox %s already", record->project, id);
}

static int insert_row(struct store *store, struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, Q_SANDBOX_INSERT);
	int code;

	bind_record(stmt, record);
	code = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	if (code == SQLITE_DONE)
		return 0;
	switch (sqlite3_extended_errcode(store->db)) {
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return err_explain(err, ERR_CONFLICT, "sandbox_exists",
			"use it, or choose another id; ensure returns an existing one",
			"sandbox %s exists already", record->id);
	case SQLITE_CONSTRAINT_UNIQUE:
		return project_is_taken(store, record, err);
	default:
		return store_fail(store, "add a sandbox", err);
	}
}

static int check_create(
	struct store *store, const struct sandbox_record *record, bool fresh, struct err *err)
{
	const struct quota_amounts demand = {
		.of = {[QUOTA_SANDBOXES] = 1,
			[QUOTA_RUNNING] = 1,
			[QUOTA_WORKSPACES] = fresh,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes,
			[QUOTA_DISK] = record->resources.disk_bytes,
			[QUOTA_CREATES] = 1}};

	return store_quota_check(store, &record->owner, &demand, err);
}

static int insert_sandbox(struct store *store, struct sandbox_record *record,
	int (*check)(struct store *store, const struct sandbox_record *record, bool fresh,
		struct err *err),
	struct err *err)
{
	bool fresh = false;
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		r = claim_workspace(store, record, &fresh, err);
		if (r == 0)
			r = insert_row(store, record, err);
		if (r == 0 && check)
			r = check(store, record, fresh, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0) {
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
			if (fresh)
				free_slot(store, record->slot);
		}
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
{
	return insert_sandbox(store, record, check_create, err);
}

int store_sandbox_hold(struct store *store, struct sandbox_record *record, struct err *err)
{
	return insert_sandbox(store, record, NULL, err);
}

int store_sandbox_claim(struct store *store, const struct sandbox_record *record, struct err *err)
{
	const struct quota_amounts demand = {
		.of = {[QUOTA_RUNNING] = 1,
			[QUOTA_CPU] = record->resources.cpu_millis,
			[QUOTA_MEMORY] = record->resources.memory_bytes}};
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	/* Most have no quota: their wake need not wait for a commit. */
	r = store_quota_applies(store, &record->owner, err);
	if (r <= 0) {
		pthread_mutex_unlock(&store->lock);
		return r;
	}
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		stmt = store_use(store, Q_SANDBOX_CLAIM);
		store_bind_text(stmt, 1, record->id);
		r = store_run(store, stmt, "claim a start", err);
		if (r == 0)
			r = store_quota_check(store, &record->owner, &demand, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0)
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_update(struct store *store, const struct sandbox_record *record, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_UPDATE);
	bind_record(stmt, record);
	r = store_run(store, stmt, "update a sandbox", err);
	if (r == 0 && sqlite3_changes(store->db) == 0)
		r = sandbox_not_found(record->id, err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int get_one(struct store *store, enum query query, const struct owner *owner,
	const char *key, struct sandbox_record *ret_record, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, query);
	store_bind_text(stmt, 1, key);
	store_bind_owner(stmt, owner);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		read_record(stmt, ret_record);
	else
		r = code == SQLITE_DONE ? sandbox_not_found(key, err)
					: store_fail(store, "read a sandbox", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_get(struct store *store, const struct owner *owner, const char *id,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_GET, owner, id, ret_record, err);
}

int store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	struct sandbox_record *ret_record, struct err *err)
{
	return get_one(store, Q_SANDBOX_FIND, owner, project, ret_record, err);
}

int store_sandbox_delete(struct store *store, const char *id, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_DELETE);
	store_bind_text(stmt, 1, id);
	r = store_run(store, stmt, "delete a sandbox", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_list(struct store *store, const struct store_filter *filter,
	void (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, r = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_LIST);
	store_bind_text(stmt, 1, filter->after ? filter->after : "");
	bind_optional(stmt, 2, filter->status);
	bind_optional(stmt, 3, filter->template_name);
	bind_optional(stmt, 4, filter->project);
	if (filter->label_key) {
		store_bind_text(stmt, 5, filter->label_key);
		store_bind_text(stmt, 6, filter->label_value);
	}
	sqlite3_bind_int64(stmt, 7, filter->limit);
	store_bind_owner(stmt, filter->owner);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sandbox_record record;

		read_record(stmt, &record);
		each(&record, arg);
		sandbox_record_fini(&record);
	}
	if (code != SQLITE_DONE)
		r = store_fail(store, "list sandboxes", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_due(
	struct store *store, int64_t now_ms, char ids[][ID_LEN + 1], unsigned max, struct err *err)
{
	sqlite3_stmt *stmt;
	int code, count = 0;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_DUE);
	sqlite3_bind_int64(stmt, 1, now_ms);
	sqlite3_bind_int64(stmt, 2, max);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		store_read_text(stmt, 0, ids[count++], ID_LEN + 1);
	if (code != SQLITE_DONE)
		count = store_fail(store, "look for sandboxes that are due", err);
	sqlite3_reset(stmt);
	pthread_mutex_unlock(&store->lock);
	return count;
}

int store_sandbox_touch(
	struct store *store, const char *id, int64_t last_active_at_ms, struct err *err)
{
	sqlite3_stmt *stmt;
	int r;

	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_TOUCH);
	store_bind_text(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, last_active_at_ms);
	r = store_run(store, stmt, "note a use", err);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int store_sandbox_end_all(
	struct store *store, enum end_reason reason, const char *detail, struct err *err)
{
	struct termination how = {.reason = reason};
	sqlite3_stmt *stmt;
	int r;

	snprintf(how.detail, sizeof(how.detail), "%s", detail);
	pthread_mutex_lock(&store->lock);
	stmt = store_use(store, Q_SANDBOX_END_ALL);
	store_bind_text(stmt, 1, end_reason_name(reason));
	store_bind_text(stmt, 2, detail);
	r = store_run(store, stmt, "end all sandboxes", err);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		r = store_process_end_all(store, NULL, &how, err);
	return r;
}

/* --- workspaces --- */

int store_workspace_get(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *ret_record, struct err *err)
{
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_workspace(store, owner, id, ret_record);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? sandbox_not_found(id, err) : 0;
}

static int delete_by_id(struct store *store, enum query query, const char *id, struct err *err)
{
	sqlite3_stmt *stmt = store_use(store, query);

	store_bind_text(stmt, 1, id);
	return store_run(store, stmt, "delete a workspace", err);
}

int store_workspace_delete(struct store *store, const char *id, struct err *err)
{
	struct workspace_record workspace;
	int r;

	pthread_mutex_lock(&store->lock);
	if (read_workspace(store, NULL, id, &workspace) < 0) {
		pthread_mutex_unlock(&store->lock);
		return 0;
	}
	r = store_run(store, store_use(store, Q_BEGIN), "begin", err);
	if (r == 0) {
		r = delete_by_id(store, Q_SANDBOX_DELETE, id, err);
		if (r == 0)
			r = delete_by_id(store, Q_PROCESS_FORGET, id, err);
		if (r == 0)
			r = delete_by_id(store, Q_WORKSPACE_DELETE, id, err);
		if (r == 0)
			r = store_run(store, store_use(store, Q_COMMIT), "commit", err);
		if (r < 0)
			(void)!store_run(store, store_use(store, Q_ROLLBACK), "roll back", NULL);
		else
			free_slot(store, workspace.slot);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}
