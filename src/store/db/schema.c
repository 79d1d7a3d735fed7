/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/schema.h"

#include "base/err.h"
#include "base/fail_point.h"
#include "base/mem.h"
#include "store/db/db.h"

#include <stdio.h>

#define SQLITE_NOW_MS "CAST(strftime('%s', 'now') AS INTEGER) * 1000"

/*
 * SQLite's. These parts of it are written differently elsewhere: WITHOUT ROWID, AUTOINCREMENT, BLOB, zeroblob(),
 * RAISE in triggers, IS NOT between values, json_extract(), strftime(), indexes with a WHERE (PostgreSQL has them too), names that need quotes
 * ("user", "key"), and an INTEGER of 64 bits (BIGINT). Another database has a list of its own of the same length,
 * because a number of the schema means the same tables everywhere; what came before its first release is one step,
 * and the steps before that are empty. Its texts compare byte by byte.
 */
static const char *const sqlite[] = {
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

	/* 12: a number by which an older database is known (generation.h). */
	"CREATE TABLE generation ("
	" one INTEGER PRIMARY KEY CHECK (one = 1),"
	" number INTEGER NOT NULL"
	");"
	"INSERT INTO generation VALUES (1, 1);"
	"CREATE TRIGGER generation_workspace_comes AFTER INSERT ON workspaces"
	" BEGIN UPDATE generation SET number = number + 1; END;"
	"CREATE TRIGGER generation_workspace_goes AFTER DELETE ON workspaces"
	" BEGIN UPDATE generation SET number = number + 1; END;"
	"CREATE TRIGGER generation_sandbox_comes AFTER INSERT ON sandboxes"
	" BEGIN UPDATE generation SET number = number + 1; END;"
	"CREATE TRIGGER generation_sandbox_goes AFTER DELETE ON sandboxes"
	" BEGIN UPDATE generation SET number = number + 1; END;",

	/* 13: how the clock of the database goes (store_clock.h); one row. */
	"CREATE TABLE clock ("
	" id INTEGER PRIMARY KEY CHECK (id = 1),"
	" boot_id TEXT NOT NULL,"
	" base INTEGER NOT NULL,"
	" skew INTEGER NOT NULL,"
	" last INTEGER NOT NULL"
	");",

	/* 14: a workspace remembers the size of its disk, so that a kept one counts too. How much one that
	 * was kept before this could hold is not known any more: it is measured (core/sandbox/disk_count.c). */
	"ALTER TABLE workspaces ADD COLUMN disk_bytes INTEGER NOT NULL DEFAULT -1;"
	"UPDATE workspaces SET disk_bytes ="
	" ifnull((SELECT s.disk_bytes FROM sandboxes s WHERE s.id = workspaces.id), -1);"
	"DROP INDEX workspaces_owner;"
	"CREATE INDEX workspaces_owner ON workspaces(organization, user, disk_bytes);"
	"CREATE INDEX workspaces_unmeasured ON workspaces(id) WHERE disk_bytes < 0;",

	/* 15: what is kept of the output of processes counts too; -1: to be measured. */
	"ALTER TABLE workspaces ADD COLUMN output_bytes INTEGER NOT NULL DEFAULT -1;"
	"DROP INDEX workspaces_unmeasured;"
	"DROP INDEX workspaces_owner;"
	"CREATE INDEX workspaces_owner ON workspaces(organization, user, disk_bytes, "
	"output_bytes);",

	/* 16: names that people give sandboxes. */
	"ALTER TABLE sandboxes ADD COLUMN name TEXT;"
	"CREATE UNIQUE INDEX sandboxes_name ON sandboxes(organization, user, name)"
	" WHERE name IS NOT NULL;",

	/* 17: when a sandbox was removed, and its name, remembered by the workspace that it left. Those that were
	 * left before this are counted from the first look on (store_workspace_due). */
	"ALTER TABLE workspaces ADD COLUMN removed_at INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE workspaces ADD COLUMN name TEXT NOT NULL DEFAULT '';",

	/* 18: workspaces without uid ranges, which their files on disk say. */
	"CREATE TABLE workspaces_18 ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL DEFAULT -1,"
	" output_bytes INTEGER NOT NULL DEFAULT -1,"
	" removed_at INTEGER NOT NULL DEFAULT 0,"
	" name TEXT NOT NULL DEFAULT ''"
	") WITHOUT ROWID;"
	"INSERT INTO workspaces_18"
	" SELECT id, organization, user, created_at, disk_bytes, output_bytes, removed_at, name"
	" FROM workspaces;"
	"DROP TABLE workspaces;"
	"ALTER TABLE workspaces_18 RENAME TO workspaces;"
	"CREATE INDEX workspaces_owner ON workspaces(organization, user, disk_bytes, "
	"output_bytes);"
	"CREATE TRIGGER generation_workspace_comes AFTER INSERT ON workspaces"
	" BEGIN UPDATE generation SET number = number + 1; END;"
	"CREATE TRIGGER generation_workspace_goes AFTER DELETE ON workspaces"
	" BEGIN UPDATE generation SET number = number + 1; END;",

	/* 19: what sandboxes reached, as rules for their allowlists. */
	"CREATE TABLE reached ("
	" sandbox TEXT NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,"
	" rule TEXT NOT NULL,"
	" PRIMARY KEY (sandbox, rule)"
	") WITHOUT ROWID;",

	/* 20: jobs (core/job/job.h). One of a key is not over at a time. */
	"CREATE TABLE jobs ("
	" id TEXT PRIMARY KEY,"
	" kind TEXT NOT NULL,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" target TEXT NOT NULL,"
	" key TEXT,"
	" input TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" cancelling INTEGER NOT NULL,"
	" tries INTEGER NOT NULL,"
	" progress TEXT NOT NULL,"
	" done_bytes INTEGER NOT NULL,"
	" total_bytes INTEGER NOT NULL,"
	" result TEXT NOT NULL,"
	" error_code TEXT NOT NULL,"
	" error_message TEXT NOT NULL,"
	" error_remedy TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" started_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL"
	");"
	"CREATE INDEX jobs_owner ON jobs(organization, user, id);"
	"CREATE INDEX jobs_active ON jobs(id) WHERE ended_at = 0;"
	"CREATE UNIQUE INDEX jobs_key ON jobs(organization, user, kind, key)"
	" WHERE key IS NOT NULL AND ended_at = 0;",

	/* 21: templates that are made of images, and what a sandbox took of one. */
	"ALTER TABLE sandboxes ADD COLUMN image TEXT NOT NULL DEFAULT '{}';"
	"CREATE TABLE templates ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" version INTEGER NOT NULL,"
	" reference TEXT NOT NULL,"
	" digest TEXT NOT NULL,"
	" image TEXT NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" used_at INTEGER NOT NULL,"
	" PRIMARY KEY (organization, user, name)"
	");"
	"CREATE TABLE layers ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" diff_id TEXT NOT NULL,"
	" PRIMARY KEY (organization, user, diff_id)"
	");",

	/* 22: what a template is to be made of, how it is set, and the job that makes it. */
	"ALTER TABLE templates ADD COLUMN source TEXT NOT NULL DEFAULT '{}';"
	"ALTER TABLE templates ADD COLUMN options TEXT NOT NULL DEFAULT '{}';"
	"ALTER TABLE templates ADD COLUMN job TEXT NOT NULL DEFAULT '';"
	"UPDATE templates SET source = CASE reference WHEN '' THEN '{\"archive\":true}'"
	" ELSE json_object('image', reference) END;",

	/* 23: sandboxes in which templates are built, and the layers that steps of builds have made. */
	"CREATE TABLE builders ("
	" id TEXT PRIMARY KEY"
	") WITHOUT ROWID;"
	"CREATE TABLE build_cache ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" step TEXT NOT NULL,"
	" diff_id TEXT NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" used_at INTEGER NOT NULL,"
	" PRIMARY KEY (organization, user, step)"
	") WITHOUT ROWID;",

	/* 24: snapshots, with what a new sandbox of their files needs. */
	"CREATE TABLE snapshots ("
	" id TEXT PRIMARY KEY,"
	" status INTEGER NOT NULL,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" sandbox TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" checkpoint INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" settings TEXT NOT NULL"
	");"
	"CREATE INDEX snapshots_owner ON snapshots(organization, user, id);"
	"CREATE INDEX snapshots_sandbox ON snapshots(sandbox, id);",

	/* 25: what the store of layers has and when it was used last (store_layer.h), and a quota of it. All that is
	 * known of before counts as used now; what it takes is measured later. */
	"CREATE TABLE layer_files ("
	" name TEXT PRIMARY KEY,"
	" stack INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" used_at INTEGER NOT NULL,"
	" gone INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"ALTER TABLE layers ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;"
	"UPDATE layers SET used_at = " SQLITE_NOW_MS ";"
	"INSERT OR IGNORE INTO layer_files"
	" SELECT diff_id, 0, -1, " SQLITE_NOW_MS ", 0 FROM layers;"
	"INSERT OR IGNORE INTO layer_files"
	" SELECT stack, 1, 0, " SQLITE_NOW_MS ", 0 FROM"
	" (SELECT json_extract(image, '$.stack') AS stack FROM templates"
	" UNION SELECT json_extract(image, '$.stack') FROM sandboxes"
	" UNION SELECT json_extract(settings, '$.image.stack') FROM snapshots)"
	" WHERE stack IS NOT NULL;"
	"ALTER TABLE quotas ADD COLUMN images_bytes INTEGER NOT NULL DEFAULT -2;",
	/* 26: what kind of error a job ended with, and the job that a sandbox waits for before it is made. */
	"ALTER TABLE jobs ADD COLUMN error_kind TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN job TEXT NOT NULL DEFAULT '';"
	"CREATE INDEX sandboxes_job ON sandboxes(job) WHERE job <> '';",

	/* 27: whether a layer has the library of Python, and its byte code. */
	"ALTER TABLE layer_files ADD COLUMN python INTEGER NOT NULL DEFAULT 0;",

	/* 28: executions, and what came of them. */
	"CREATE TABLE executions ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" sandbox TEXT NOT NULL,"
	" context TEXT NOT NULL,"
	" language TEXT NOT NULL,"
	" handler TEXT NOT NULL,"
	" has_handler INTEGER NOT NULL,"
	" status TEXT NOT NULL,"
	" cancelling INTEGER NOT NULL,"
	" process INTEGER NOT NULL,"
	" first_byte INTEGER NOT NULL,"
	" timeout_ms INTEGER NOT NULL,"
	" outcome_bytes INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL,"
	" outcome TEXT"
	");"
	"CREATE INDEX executions_owner ON executions(organization, user, id, ended_at, created_at,"
	" outcome_bytes);"
	"CREATE INDEX executions_running ON executions(ended_at) WHERE ended_at = 0;",

	/* 29: packages that sandboxes have beside their template, and what is known of a built layer. */
	"ALTER TABLE sandboxes ADD COLUMN dependencies TEXT NOT NULL DEFAULT '{}';"
	"ALTER TABLE build_cache ADD COLUMN note TEXT NOT NULL DEFAULT '{}';",

	/* 30: sessions of browsers. One lasts no longer than the token that it was begun with: the one of this id
	 * and this hash. */
	"CREATE TABLE logins ("
	" id TEXT PRIMARY KEY,"
	" hash BLOB NOT NULL UNIQUE,"
	" token TEXT NOT NULL,"
	" token_hash BLOB,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" scopes TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" expires_at INTEGER NOT NULL,"
	" last_used_at INTEGER NOT NULL,"
	" address TEXT NOT NULL,"
	" agent TEXT NOT NULL"
	");"
	"CREATE INDEX logins_owner ON logins(organization, user, id);",

	/* 31: executions in sandboxes of their own, what they were asked, and copies of their artifacts; functions. */
	"ALTER TABLE executions ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN \"function\" TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE executions ADD COLUMN version INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN duration_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN request TEXT;"
	"CREATE TABLE artifacts ("
	" execution TEXT NOT NULL,"
	" digest TEXT NOT NULL,"
	" PRIMARY KEY (execution, digest)"
	") WITHOUT ROWID;"
	"CREATE INDEX artifacts_digest ON artifacts(digest);"
	"CREATE TABLE functions ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" version INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" spec TEXT NOT NULL,"
	" PRIMARY KEY (organization, user, name, version)"
	") WITHOUT ROWID;",

	/* 32: interpreters that keep their state between executions. */
	"CREATE TABLE contexts ("
	" id TEXT PRIMARY KEY,"
	" sandbox TEXT NOT NULL REFERENCES sandboxes(id) ON DELETE CASCADE,"
	" language TEXT NOT NULL,"
	" cwd TEXT NOT NULL,"
	" idle_timeout_s INTEGER NOT NULL,"
	" process INTEGER NOT NULL,"
	" starts INTEGER NOT NULL,"
	" lost INTEGER NOT NULL,"
	" reason TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" used_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL,"
	" env TEXT NOT NULL"
	");"
	"CREATE INDEX contexts_sandbox ON contexts(sandbox, id);",

	/* 33: sandboxes that wait in pools. */
	"CREATE TABLE pooled ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" template TEXT NOT NULL,"
	" stamp TEXT NOT NULL,"
	" state INTEGER NOT NULL,"
	" created_at INTEGER NOT NULL"
	") WITHOUT ROWID;",

	/* 34: projects and their files, one for each that a sandbox names; sandboxes of one project for several
	 * sessions. */
	"CREATE TABLE projects ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" labels TEXT NOT NULL,"
	" defaults TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" updated_at INTEGER NOT NULL,"
	" files INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL"
	");"
	"CREATE UNIQUE INDEX projects_name ON projects(organization, user, name);"
	"CREATE TABLE project_files ("
	" id TEXT PRIMARY KEY,"
	" project TEXT NOT NULL,"
	" path TEXT NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" sha256 TEXT NOT NULL,"
	" type TEXT NOT NULL,"
	" executable INTEGER NOT NULL,"
	" uploader TEXT NOT NULL,"
	" created_at INTEGER NOT NULL"
	");"
	"CREATE UNIQUE INDEX project_files_path ON project_files(project, path);"
	"CREATE INDEX project_files_content ON project_files(project, sha256);"
	"INSERT INTO projects SELECT '01' || substr(lower(hex(randomblob(12))), 1, 24),"
	" organization, user, project, '{}', '{}', " SQLITE_NOW_MS ", " SQLITE_NOW_MS ", 0, 0"
	" FROM (SELECT DISTINCT organization, user, project FROM sandboxes"
	" WHERE project IS NOT NULL);"
	"ALTER TABLE quotas ADD COLUMN projects_bytes INTEGER NOT NULL DEFAULT -2;"
	"ALTER TABLE sandboxes ADD COLUMN session TEXT NOT NULL DEFAULT '';"
	"DROP INDEX sandboxes_tuple;"
	"CREATE UNIQUE INDEX sandboxes_tuple ON sandboxes(organization, user,"
	" coalesce(project, ''), session) WHERE project IS NOT NULL OR session <> '';",

	/* 35: launches, and how each went. */
	"CREATE TABLE launches ("
	" id TEXT PRIMARY KEY,"
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" project TEXT NOT NULL,"
	" sandbox TEXT NOT NULL,"
	" status TEXT NOT NULL,"
	" failed_stage TEXT NOT NULL,"
	" cause TEXT NOT NULL,"
	" document TEXT NOT NULL,"
	" created_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL"
	");"
	"CREATE INDEX launches_owner ON launches(organization, user, id);",

	/* 36: members, which are sandboxes of their own beside another. */
	"ALTER TABLE sandboxes ADD COLUMN parent_id TEXT;"
	"ALTER TABLE sandboxes ADD COLUMN role TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN members TEXT NOT NULL DEFAULT '[]';"
	"CREATE INDEX sandboxes_parent ON sandboxes(parent_id) WHERE parent_id IS NOT NULL;",

	/* 37: files that name packages of sandboxes, whose records have their hashes. */
	"CREATE TABLE dependency_files ("
	" organization TEXT NOT NULL,"
	" user TEXT NOT NULL,"
	" sha256 TEXT NOT NULL,"
	" content BLOB NOT NULL,"
	" bytes INTEGER NOT NULL,"
	" used_at INTEGER NOT NULL,"
	" PRIMARY KEY (organization, user, sha256)"
	");",

	/* 38: what becomes of dangerous commands (model/process/danger.h); -2: as the default says. */
	"ALTER TABLE quotas ADD COLUMN danger INTEGER NOT NULL DEFAULT -2;"
	"ALTER TABLE executions ADD COLUMN danger INTEGER NOT NULL DEFAULT 0;",

	/* 39: files that came from a directory which the project follows go when they are gone from it. */
	"ALTER TABLE project_files ADD COLUMN synced INTEGER NOT NULL DEFAULT 0;",

	/* 40: links for a frame in a page of that origin, by a name of their own. */
	"ALTER TABLE preview_links ADD COLUMN frame_origin TEXT NOT NULL DEFAULT '';",
};

static const char *const *const migrations[DB_DIALECT_COUNT] = {[DB_SQLITE] = sqlite};

size_t schema_version(void)
{
	return array_len(sqlite);
}

static int apply(struct db *db, size_t version, struct err *err)
{
	int r = db_begin(db, err);

	if (r < 0)
		return r;
	r = db_exec(db, migrations[db_dialect(db)][version - 1], "change the schema", err);
	if (r == 0)
		r = fail_point_check("migration.applied", err);
	if (r == 0)
		r = db_write_version(db, version, err);
	if (r == 0)
		r = db_commit(db, err);
	if (r < 0)
		db_rollback(db);
	return r;
}

static int apply_due(struct db *db, size_t version, struct err *err)
{
	while (version < schema_version()) {
		int r;

		fail_point("migration.due");
		r = apply(db, ++version, err);
		if (r < 0) {
			err_prefix(err, "migrate to schema %zu", version);
			return r;
		}
		fail_point("migration.committed");
	}
	return 0;
}

int schema_migrate(struct db *db, struct err *err)
{
	size_t version = 0;
	int r = db_read_version(db, &version, err);

	if (r < 0)
		return r;
	if (version > schema_version())
		return err_explain(err, ERR_INTERNAL, "database_too_new",
			"run the version of sandlotd that wrote it, or a newer one",
			"the database %s has schema %zu, this program knows %zu", db_place(db),
			version, schema_version());
	if (version == schema_version())
		return 0;
	r = db_check_references(db, false, err);
	if (r == 0)
		r = apply_due(db, version, err);
	return r < 0 ? r : db_check_references(db, true, err);
}
