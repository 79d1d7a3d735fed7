/* SPDX-License-Identifier: Apache-2.0 */
#include "store/schema.h"

#include "base/err.h"

#include <sqlite3.h>
#include <stdio.h>

static const char *const migrations[] = {
	/* 1: sandboxes, the workspaces that outlive them, and tokens. */
	"CREATE TABLE workspaces ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" slot INTEGER NOT NULL UNIQUE,"
	" created_at INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY REFERENCES workspaces(id),"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" project TEXT,"
	" status TEXT NOT NULL,"
	" template TEXT NOT NULL,"
	" driver TEXT NOT NULL,"
	" cpu_millis INTEGER NOT NULL,"
	" memory_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL,"
	" pids INTEGER NOT NULL,"
	" env TEXT NOT NULL,"
	" ports TEXT NOT NULL,"
	" labels TEXT NOT NULL,"
	" network TEXT NOT NULL,"
	" idle_timeout_s INTEGER NOT NULL,"
	" lifetime_s INTEGER NOT NULL,"
	" private INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" started_at INTEGER NOT NULL,"
	" last_active_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL,"
	" end_reason TEXT NOT NULL,"
	" end_signal INTEGER NOT NULL,"
	" end_detail TEXT NOT NULL,"
	" error_message TEXT NOT NULL"
	") WITHOUT ROWID;"
	"CREATE UNIQUE INDEX sandboxes_tuple ON sandboxes(organization, user, project)"
	" WHERE project IS NOT NULL;"
	"CREATE TABLE tokens ("
	" hash BLOB PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" admin INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL"
	") WITHOUT ROWID;",

	/* 2: commands whose output is kept, and what a sandbox had used when it ended. */
	"CREATE TABLE processes ("
	" sandbox TEXT NOT NULL REFERENCES workspaces(id),"
	" number INTEGER NOT NULL,"
	" pid INTEGER NOT NULL,"
	" argv TEXT NOT NULL,"
	" cwd TEXT NOT NULL,"
	" uid INTEGER NOT NULL,"
	" flags INTEGER NOT NULL,"
	" timeout_ms INTEGER NOT NULL,"
	" started_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL,"
	" exit_code INTEGER NOT NULL,"
	" duration_us INTEGER NOT NULL,"
	" output_bytes INTEGER NOT NULL,"
	" survivors INTEGER NOT NULL,"
	" end_reason TEXT NOT NULL,"
	" end_signal INTEGER NOT NULL,"
	" end_detail TEXT NOT NULL,"
	" end_cpu_us INTEGER NOT NULL,"
	" end_peak_bytes INTEGER NOT NULL,"
	" PRIMARY KEY (sandbox, number)"
	") WITHOUT ROWID;"
	"CREATE INDEX processes_running ON processes(sandbox) WHERE ended_at = 0;"
	"ALTER TABLE sandboxes ADD COLUMN end_cpu_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN end_peak_bytes INTEGER NOT NULL DEFAULT 0;",

	/* 3: tokens of many owners, with scopes in the place of one bit. */
	"ALTER TABLE tokens ADD COLUMN name TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE tokens ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE tokens ADD COLUMN last_used_at INTEGER NOT NULL DEFAULT 0;"
	"UPDATE tokens SET scopes = 'admin' WHERE admin;"
	"ALTER TABLE tokens DROP COLUMN admin;",

	/* 4: the audit log. AUTOINCREMENT remembers the last number even when its row was taken away.
	 * Only what the anchor has passed may be deleted, and it moves only along the chain. */
	"CREATE TABLE audit ("
	" sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
	" at INTEGER NOT NULL,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" token TEXT NOT NULL,"
	" action TEXT NOT NULL,"
	" object TEXT NOT NULL,"
	" status INTEGER NOT NULL,"
	" code TEXT NOT NULL,"
	" peer TEXT NOT NULL,"
	" request TEXT NOT NULL,"
	" detail TEXT NOT NULL,"
	" hash BLOB NOT NULL"
	");"
	"CREATE INDEX audit_organization ON audit(organization, sequence);"
	"CREATE TABLE audit_anchor ("
	" one INTEGER PRIMARY KEY CHECK (one = 1),"
	" sequence INTEGER NOT NULL,"
	" hash BLOB NOT NULL"
	");"
	"INSERT INTO audit_anchor VALUES (1, 0, zeroblob(32));"
	"CREATE TRIGGER audit_grows_at_its_end BEFORE INSERT ON audit"
	" WHEN NEW.sequence <= (SELECT max(sequence) FROM audit)"
	" BEGIN SELECT RAISE(ABORT, 'the audit log only grows at its end'); END;"
	"CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit"
	" BEGIN SELECT RAISE(ABORT, 'an entry of the audit log is never changed'); END;"
	"CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit"
	" WHEN OLD.sequence > (SELECT sequence FROM audit_anchor)"
	" BEGIN SELECT RAISE(ABORT, 'an entry of the audit log is never deleted'); END;"
	"CREATE TRIGGER audit_anchor_moves_on BEFORE UPDATE ON audit_anchor"
	" WHEN NEW.sequence <= OLD.sequence OR"
	" NEW.hash IS NOT (SELECT hash FROM audit WHERE sequence = NEW.sequence)"
	" BEGIN SELECT RAISE(ABORT, 'the anchor only moves on along the audit log'); END;"
	"CREATE TRIGGER audit_anchor_stays BEFORE DELETE ON audit_anchor"
	" BEGIN SELECT RAISE(ABORT, 'the anchor of the audit log is never deleted'); END;",

	/* 5: quotas. A user of '' is the whole organization. One that is being started counts as
	 * running before it does. */
	"CREATE TABLE quotas ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" sandboxes INTEGER NOT NULL,"
	" running INTEGER NOT NULL,"
	" workspaces INTEGER NOT NULL,"
	" cpu_millis INTEGER NOT NULL,"
	" memory_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL,"
	" creates_per_minute INTEGER NOT NULL,"
	" PRIMARY KEY (organization, user)"
	") WITHOUT ROWID;"
	"CREATE TABLE quota_pace ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" until INTEGER NOT NULL,"
	" PRIMARY KEY (organization, user)"
	") WITHOUT ROWID;"
	"ALTER TABLE sandboxes ADD COLUMN starting INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX sandboxes_use ON sandboxes(organization, user, status, starting, cpu_millis,"
	" memory_bytes, disk_bytes);"
	"CREATE INDEX workspaces_owner ON workspaces(organization, user);",

	/* 6: requests that can be answered again. */
	"CREATE TABLE replays ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" print BLOB NOT NULL,"
	" object TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" answer TEXT,"
	" PRIMARY KEY (organization, user, key)"
	") WITHOUT ROWID;"
	"CREATE INDEX replays_age ON replays(created_at);"
	"CREATE INDEX replays_owner ON replays(organization, user, created_at);",

	/* 7: the system calls that were refused to a command, and by which profile. */
	"ALTER TABLE processes ADD COLUMN end_profile TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE processes ADD COLUMN end_denied TEXT NOT NULL DEFAULT '[]';",
	/* 8: links that open a preview; they go with the workspace. */
	"CREATE TABLE preview_links ("
	" hash BLOB PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" sandbox TEXT NOT NULL REFERENCES workspaces(id) ON DELETE CASCADE,"
	" port INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"CREATE INDEX preview_links_sandbox ON preview_links(sandbox, port);"
	"CREATE INDEX preview_links_expiry ON preview_links(expires_at);",

	/* 9: secrets that requests of sandboxes are given; their values are sealed. */
	"CREATE TABLE secrets ("
	" name TEXT NOT NULL,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" url TEXT NOT NULL,"
	" header TEXT NOT NULL,"
	" prefix TEXT NOT NULL,"
	" trusted INTEGER NOT NULL,"
	" changed_at INTEGER NOT NULL,"
	" sealed BLOB NOT NULL,"
	" PRIMARY KEY (organization, user, name)"
	") WITHOUT ROWID;",

	/* 10: start commands, and the processes that run them. */
	"ALTER TABLE sandboxes ADD COLUMN start TEXT NOT NULL DEFAULT '[]';"
	"ALTER TABLE processes ADD COLUMN start TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE processes ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;",

	/* 11: which form of a start command a process runs. */
	"ALTER TABLE processes ADD COLUMN start_digest INTEGER NOT NULL DEFAULT 0;",
};

size_t schema_version(void)
{
	return sizeof(migrations) / sizeof(migrations[0]);
}

static int read_version(sqlite3 *db, size_t *ret_version, struct err *err)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL) != SQLITE_OK ||
		sqlite3_step(stmt) != SQLITE_ROW) {
		sqlite3_finalize(stmt);
		return err_set(
			err, ERR_INTERNAL, "read the schema version: %s", sqlite3_errmsg(db));
	}
	*ret_version = (size_t)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return 0;
}

int schema_migrate(sqlite3 *db, struct err *err)
{
	size_t version = 0;
	int r = read_version(db, &version, err);

	if (r < 0)
		return r;
	if (version > schema_version())
		return err_explain(err, ERR_INTERNAL, "database_too_new",
			"run the version of sandlotd that wrote it, or a newer one",
			"the database has schema %zu, this program knows %zu", version,
			schema_version());
	for (; version < schema_version(); version++) {
		char done[64];

		snprintf(done, sizeof(done), "PRAGMA user_version = %zu; COMMIT", version + 1);
		if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
			sqlite3_exec(db, migrations[version], NULL, NULL, NULL) != SQLITE_OK ||
			sqlite3_exec(db, done, NULL, NULL, NULL) != SQLITE_OK) {
			r = err_set(err, ERR_INTERNAL, "migrate the database to schema %zu: %s",
				version + 1, sqlite3_errmsg(db));
			sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
			return r;
		}
	}
	return 0;
}
