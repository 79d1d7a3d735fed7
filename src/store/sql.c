/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql.h"

/* Those of a sandbox, in the order of store_sandbox.c. */
#define COLUMNS                                                                                    \
	"id, organization, user, project, status, template, driver, cpu_millis, memory_bytes,"     \
	" disk_bytes, pids, env, ports, labels, network, idle_timeout_s, lifetime_s, private,"     \
	" created_at, started_at, last_active_at, expires_at, end_reason, end_signal, end_detail," \
	" error_message, end_cpu_us, end_peak_bytes, start"
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
	" end_peak_bytes, end_profile, end_denied, start, restarts, start_digest"
/* Those of a token, in the order of store_token.c. */
#define T_COLUMNS "id, name, organization, user, scopes, created_at, expires_at, last_used_at"
/* Those of a secret, in the order of store_secret.c. */
#define SECRET_COLUMNS "name, organization, user, url, header, prefix, trusted, changed_at, sealed"
/* ?31 and ?32 are the owner; NULL stands for the daemon, who owns all. */
#define OWNED(t) "(?31 IS NULL OR (" t "organization = ?31 AND " t "user = ?32))"

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
			     " ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
	[Q_PROCESS_UPDATE] = "UPDATE processes SET (" P_COLUMNS
			     ") = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
			     " ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)"
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

const char *sql_text(enum query query)
{
	return queries[query];
}
