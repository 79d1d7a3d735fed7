/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/sql.h"

/* A list of columns, each with the number of its parameter, is turned into text by one of these. */
#define NAME(name, at)	name
#define OF_S(name, at)	"s." name
#define VALUE(name, at) "?" at
#define SET(name, at)	name " = ?" at

/* Those of a sandbox, in the order of store_sandbox.c. */
/* clang-format off */
#define SANDBOX(c) \
	c("id", "1") ", " c("organization", "2") ", " c("\"user\"", "3") ", " \
	c("project", "4") ", " c("status", "5") ", " c("template", "6") ", " \
	c("driver", "7") ", " c("cpu_millis", "8") ", " c("memory_bytes", "9") ", " \
	c("disk_bytes", "10") ", " c("pids", "11") ", " c("env", "12") ", " \
	c("ports", "13") ", " c("labels", "14") ", " c("network", "15") ", " \
	c("idle_timeout_s", "16") ", " c("lifetime_s", "17") ", " c("private", "18") ", " \
	c("created_at", "19") ", " c("started_at", "20") ", " c("last_active_at", "21") ", " \
	c("expires_at", "22") ", " c("end_reason", "23") ", " c("end_signal", "24") ", " \
	c("end_detail", "25") ", " c("error_message", "26") ", " c("end_cpu_us", "27") ", " \
	c("end_peak_bytes", "28") ", " c("start", "29") ", " \
	c("name", "30") ", " c("image", "33") ", " c("job", "34") ", " \
	c("dependencies", "35") ", " c("session", "36") ", " c("parent_id", "37") ", " \
	c("role", "38") ", " c("members", "39")
/* clang-format on */
#define SELECT_SANDBOX "SELECT " SANDBOX(OF_S) " FROM sandboxes s "
/* Those of a process, in the order of store_process.c. */
/* clang-format off */
#define PROCESS(c) \
	c("sandbox", "1") ", " c("number", "2") ", " c("pid", "3") ", " c("argv", "4") ", " \
	c("cwd", "5") ", " c("uid", "6") ", " c("flags", "7") ", " c("timeout_ms", "8") ", " \
	c("started_at", "9") ", " c("ended_at", "10") ", " c("exit_code", "11") ", " \
	c("duration_us", "12") ", " c("output_bytes", "13") ", " c("survivors", "14") ", " \
	c("end_reason", "15") ", " c("end_signal", "16") ", " c("end_detail", "17") ", " \
	c("end_cpu_us", "18") ", " c("end_peak_bytes", "19") ", " c("end_profile", "20") ", " \
	c("end_denied", "21") ", " c("start", "22") ", " c("restarts", "23") ", " \
	c("start_digest", "24")
/* clang-format on */
/* Those of an entry of the audit log, in the order of store_audit.c. */
/* clang-format off */
#define AUDIT(c) \
	c("sequence", "1") ", " c("at", "2") ", " c("organization", "3") ", " \
	c("\"user\"", "4") ", " c("token", "5") ", " c("action", "6") ", " \
	c("object", "7") ", " c("status", "8") ", " c("code", "9") ", " c("peer", "10") ", " \
	c("request", "11") ", " c("detail", "12") ", " c("hash", "13")
/* clang-format on */
/* Those of a job, in the order of store_job.c. */
/* clang-format off */
#define JOB(c) \
	c("id", "1") ", " c("kind", "2") ", " c("organization", "3") ", " c("\"user\"", "4") ", " \
	c("target", "5") ", " c("\"key\"", "6") ", " c("input", "7") ", " c("state", "8") ", " \
	c("cancelling", "9") ", " c("tries", "10") ", " c("progress", "11") ", " \
	c("done_bytes", "12") ", " c("total_bytes", "13") ", " c("result", "14") ", " \
	c("error_code", "15") ", " c("error_message", "16") ", " c("error_remedy", "17") ", " \
	c("created_at", "18") ", " c("started_at", "19") ", " c("ended_at", "20") ", " \
	c("error_kind", "21")
/* clang-format on */
/* Those of a launch, in the order of store_launch.c. */
/* clang-format off */
#define LAUNCH(c) \
	c("id", "1") ", " c("organization", "2") ", " c("\"user\"", "3") ", " \
	c("project", "4") ", " c("sandbox", "5") ", " c("status", "6") ", " \
	c("failed_stage", "7") ", " c("cause", "8") ", " c("document", "9") ", " \
	c("created_at", "10") ", " c("ended_at", "11")
/* clang-format on */
/* Those of an execution, in the order of store_execution.c. */
/* clang-format off */
#define EXECUTION(c) \
	c("id", "1") ", " c("organization", "2") ", " c("\"user\"", "3") ", " \
	c("sandbox", "4") ", " c("context", "5") ", " c("language", "6") ", " \
	c("handler", "7") ", " c("has_handler", "8") ", " c("status", "9") ", " \
	c("cancelling", "10") ", " c("process", "11") ", " c("first_byte", "12") ", " \
	c("timeout_ms", "13") ", " c("outcome_bytes", "14") ", " c("created_at", "15") ", " \
	c("ended_at", "16") ", " c("fresh", "17") ", " c("\"function\"", "18") ", " \
	c("version", "19") ", " c("duration_us", "20") ", " c("danger", "21")
/* clang-format on */
/* Those of a function, in the order of store_function.c. */
#define FUNCTION "organization, \"user\", name, version, created_at, spec"
/* Those of a context, in the order of store_context.c. */
/* clang-format off */
#define CONTEXT(c) \
	c("id", "1") ", " c("sandbox", "2") ", " c("language", "3") ", " c("cwd", "4") ", " \
	c("idle_timeout_s", "5") ", " c("process", "6") ", " c("starts", "7") ", " \
	c("lost", "8") ", " c("reason", "9") ", " c("created_at", "10") ", " \
	c("used_at", "11") ", " c("ended_at", "12") ", " c("env", "13")
/* clang-format on */
/* Those of a token, in the order of store_token.c. */
/* What a login may do is what its token may by now; of a token that is not ours, what it could at the beginning. */
#define LOGIN                                                                                      \
	"l.id, l.token, l.organization, l.\"user\", coalesce(t.scopes, l.scopes), l.created_at,"   \
	" l.expires_at, coalesce(t.expires_at, 0), l.last_used_at, l.address, l.agent"
#define LOGIN_IS_GOOD " AND (l.token = '' OR t.id IS NOT NULL)"
#define TOKEN	      "id, name, organization, \"user\", scopes, created_at, expires_at, last_used_at"
/* Those of a secret, in the order of store_secret.c. */
#define SECRET "name, organization, \"user\", url, header, prefix, trusted, changed_at, sealed"
/* Those of a template, in the order of store_template.c. */
#define TEMPLATE                                                                                   \
	"organization, \"user\", name, version, reference, digest, image, bytes, created_at, "     \
	"used_at, source, options, job"
/* The same, and how its job is. */
#define SELECT_TEMPLATE                                                                            \
	"SELECT " TEMPLATE ", (SELECT state FROM jobs WHERE jobs.id = templates.job), "            \
	"(SELECT error_message FROM jobs WHERE jobs.id = templates.job) FROM templates "
/* Those of a snapshot, in the order of store_snapshot.c. */
#define SNAPSHOT                                                                                   \
	"id, status, organization, \"user\", sandbox, name, checkpoint, bytes, created_at, "       \
	"settings"
/* Those of a project and of one of its files, in the order of store_project.c. */
#define PROJECT                                                                                    \
	"id, organization, \"user\", name, labels, defaults, created_at, updated_at, files, bytes"
#define PROJECT_FILE "id, path, bytes, sha256, type, executable, uploader, created_at, synced"
/* Of an owner, or the operator's. */
#define SEEN "(organization = '' AND \"user\" = '' OR " OWNED("") ")"
/* ?31 and ?32 are the owner; NULL stands for the daemon, who owns all. */
#define OWNED(t) "(?31 IS NULL OR (" t "organization = ?31 AND " t "\"user\" = ?32))"
#define AUDIT_LIST(and_organization)                                                               \
	"SELECT " AUDIT(NAME) " FROM audit WHERE sequence < ?1 AND (?2 IS NULL OR \"user\" = ?2)"  \
			      " AND (?3 IS NULL OR action = ?3) AND (?4 IS NULL OR object = ?4 OR" \
			      " (object > ?4 || '/' AND object < ?4 || '0'))" and_organization     \
			      " ORDER BY sequence DESC LIMIT ?5"

/* What SQLite, PostgreSQL and MariaDB take as it stands. */
/* A workspace that no sandbox has. */
#define REMOVED "NOT EXISTS (SELECT 1 FROM sandboxes s WHERE s.id = workspaces.id)"

static const char *const common[Q_ALL] = {
	[Q_GENERATION_GET] = "SELECT number FROM generation",
	[Q_GENERATION_RAISE] = "UPDATE generation SET number ="
			       " CASE WHEN number > ?1 THEN number ELSE ?1 END + 1",
	[Q_CLOCK_GET] = "SELECT boot_id, base, skew, last FROM clock",
	[Q_SANDBOX_INSERT] =
		"INSERT INTO sandboxes (" SANDBOX(NAME) ") VALUES (" SANDBOX(VALUE) ")",
	[Q_SANDBOX_UPDATE] = "UPDATE sandboxes SET " SANDBOX(SET) ", starting = 0 WHERE id = ?1",
	[Q_SANDBOX_GET] = SELECT_SANDBOX "WHERE s.id = ?1 AND " OWNED("s."),
	[Q_SANDBOX_FIND] = SELECT_SANDBOX
	"WHERE coalesce(s.project, '') = ?1 AND s.session = ?2 AND " OWNED("s."),
	[Q_SANDBOX_FIND_NAME] = SELECT_SANDBOX "WHERE s.name = ?1 AND " OWNED("s."),
	[Q_SANDBOX_DELETE] = "DELETE FROM sandboxes WHERE id = ?1",
	[Q_SANDBOX_DUE] = "SELECT id FROM sandboxes WHERE (expires_at > 0 AND expires_at <= ?1)"
			  " OR (status = 'running' AND idle_timeout_s >= 0"
			  " AND last_active_at + idle_timeout_s * 1000 <= ?1) LIMIT ?2",
	[Q_SANDBOX_UNMADE] = "SELECT id FROM sandboxes WHERE job <> '' AND status = 'creating'"
			     " AND (?1 IS NULL OR job = ?1) AND id > ?2 ORDER BY id LIMIT ?3",
	[Q_SANDBOX_TOUCH] = "UPDATE sandboxes SET last_active_at = ?2 WHERE id = ?1",
	[Q_SANDBOX_END_ALL] =
		"UPDATE sandboxes SET status = 'stopped', end_reason = ?1, end_signal = 0,"
		" end_detail = ?2, error_message = '' WHERE status IN ('running', 'paused')",
	[Q_SANDBOX_GIVE] = "UPDATE sandboxes SET organization = ?2, \"user\" = ?3 WHERE id = ?1",
	[Q_WORKSPACE_GIVE] = "UPDATE workspaces SET organization = ?2, \"user\" = ?3 WHERE id = ?1",
	[Q_SANDBOX_CLAIM] = "UPDATE sandboxes SET starting = 1 WHERE id = ?1",
	[Q_SANDBOX_FORGET_CLAIMS] = "UPDATE sandboxes SET starting = 0 WHERE starting <> 0",
	[Q_SANDBOX_NUMBERS] = "SELECT s.cpu_millis, s.memory_bytes, w.disk_bytes"
			      " FROM sandboxes s JOIN workspaces w ON w.id = s.id WHERE s.id = ?1",
	[Q_WORKSPACE_INSERT] =
		"INSERT INTO workspaces (id, organization, \"user\", created_at, disk_bytes,"
		" output_bytes) VALUES (?1, ?2, ?3, ?4, ?5, 0)",
	[Q_WORKSPACE_GET] = "SELECT id, organization, \"user\", created_at, disk_bytes,"
			    " output_bytes, removed_at, name"
			    " FROM workspaces WHERE id = ?1 AND " OWNED(""),
	[Q_WORKSPACE_GROW] =
		"UPDATE workspaces SET disk_bytes = ?2 WHERE id = ?1 AND disk_bytes < ?2",
	[Q_WORKSPACE_SET_DISK] = "UPDATE workspaces SET disk_bytes = ?2 WHERE id = ?1",
	[Q_WORKSPACE_MEASURED] =
		"UPDATE workspaces SET disk_bytes = ?2 WHERE id = ?1 AND disk_bytes < 0",
	[Q_WORKSPACE_SET_OUTPUT] = "UPDATE workspaces SET output_bytes = ?2 WHERE id = ?1",
	[Q_WORKSPACE_UNMEASURED] =
		"SELECT id FROM workspaces WHERE (disk_bytes < 0 OR output_bytes < 0)"
		" AND id > ?1 ORDER BY id LIMIT ?2",
	[Q_WORKSPACE_LEAVE] = "UPDATE workspaces SET removed_at = ?2, name ="
			      " coalesce((SELECT name FROM sandboxes WHERE id = ?1), name)"
			      " WHERE id = ?1",
	[Q_WORKSPACE_LIST] =
		"SELECT id, organization, \"user\", created_at, disk_bytes,"
		" output_bytes, removed_at, name FROM workspaces"
		" WHERE id > ?1 AND " REMOVED " AND " OWNED("") " ORDER BY id LIMIT ?2",
	[Q_WORKSPACE_NOTE_REMOVED] =
		"UPDATE workspaces SET removed_at = ?1 WHERE removed_at = 0 AND " REMOVED,
	[Q_WORKSPACE_DUE] =
		"SELECT id FROM workspaces WHERE removed_at <= ?1 AND " REMOVED " LIMIT ?2",
	/* From its sandbox: a WHERE without a FROM is not MariaDB's. */
	[Q_REACHED_ADD] = "INSERT INTO reached (sandbox, rule) SELECT id, ?2 FROM sandboxes"
			  " WHERE id = ?1"
			  " AND NOT EXISTS (SELECT 1 FROM reached WHERE sandbox = ?1 AND rule = ?2)"
			  " AND (SELECT count(*) FROM reached WHERE sandbox = ?1) < ?3",
	[Q_REACHED_LIST] = "SELECT rule FROM reached WHERE sandbox = ?1 AND rule > ?2"
			   " ORDER BY rule LIMIT ?3",
	[Q_WORKSPACE_DELETE] = "DELETE FROM workspaces WHERE id = ?1",
	[Q_PROCESS_INSERT] =
		"INSERT INTO processes (" PROCESS(NAME) ") VALUES (" PROCESS(VALUE) ")",
	[Q_PROCESS_UPDATE] =
		"UPDATE processes SET " PROCESS(SET) " WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_DELETE] = "DELETE FROM processes WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_GET] =
		"SELECT " PROCESS(NAME) " FROM processes WHERE sandbox = ?1 AND number = ?2",
	[Q_PROCESS_NEXT] =
		"SELECT " PROCESS(NAME) " FROM processes WHERE sandbox = ?1 AND number > ?2"
					" ORDER BY number LIMIT 1",
	[Q_PROCESS_LIST] = "SELECT " PROCESS(
		NAME) " FROM processes WHERE sandbox = ?1 AND (?2 = 0 OR ended_at = 0"
		      " OR survivors > 0) AND number > ?3 ORDER BY number LIMIT ?4",
	[Q_PROCESS_LAST] = "SELECT max(number) FROM processes WHERE sandbox = ?1",
	[Q_PROCESS_SURPLUS] =
		"SELECT number FROM processes WHERE sandbox = ?1 AND ended_at > 0 AND"
		" survivors = 0 ORDER BY ended_at DESC, number DESC LIMIT ?2 OFFSET ?3",
	/* One that had ended before keeps its end, but nobody of it is left. MariaDB assigns from left to right, so
	 * ended_at comes last. */
	[Q_PROCESS_END_ALL] =
		"UPDATE processes SET survivors = 0,"
		" exit_code = CASE WHEN ended_at = 0 THEN 137 ELSE exit_code END,"
		" end_reason = CASE WHEN ended_at = 0 THEN ?3 ELSE end_reason END,"
		" end_signal = CASE WHEN ended_at = 0 THEN 9 ELSE end_signal END,"
		" end_detail = CASE WHEN ended_at = 0 THEN ?4 ELSE end_detail END,"
		" duration_us = CASE WHEN ended_at = 0 THEN (?2 - started_at) * 1000 ELSE "
		"duration_us END,"
		" ended_at = CASE WHEN ended_at = 0 THEN ?2 ELSE ended_at END"
		" WHERE (?1 IS NULL OR sandbox = ?1) AND (ended_at = 0 OR survivors > 0)",
	[Q_PROCESS_DISOWN] = "UPDATE processes SET start_digest = 0"
			     " WHERE sandbox = ?1 AND start <> ''",
	[Q_PROCESS_FORGET] = "DELETE FROM processes WHERE sandbox = ?1",
	[Q_PREVIEW_LINK_GET] = "SELECT id, sandbox, port, created_at, expires_at, frame_origin"
			       " FROM preview_links WHERE hash = ?1 AND expires_at > ?2",
	[Q_PREVIEW_LINK_LIST] =
		"SELECT id, sandbox, port, created_at, expires_at, frame_origin"
		" FROM preview_links WHERE sandbox = ?1 AND port = ?2 AND expires_at > ?3"
		" ORDER BY created_at, id LIMIT ?4",
	[Q_PREVIEW_LINK_DELETE] =
		"DELETE FROM preview_links WHERE sandbox = ?1 AND port = ?2 AND id = ?3",
	[Q_PREVIEW_LINK_CLEAN] = "DELETE FROM preview_links WHERE expires_at <= ?1",
	[Q_TOKEN_FIND] = "SELECT " TOKEN
			 " FROM tokens WHERE hash = ?1 AND (expires_at = 0 OR expires_at > ?2)",
	[Q_TOKEN_GET] = "SELECT " TOKEN " FROM tokens WHERE id = ?1 AND " OWNED(""),
	[Q_TOKEN_HASH] = "SELECT hash FROM tokens WHERE id = ?1",
	[Q_TOKEN_LIST] =
		"SELECT " TOKEN " FROM tokens WHERE id > ?1 AND " OWNED("") " ORDER BY id LIMIT ?2",
	[Q_TOKEN_DELETE] = "DELETE FROM tokens WHERE id = ?1 AND " OWNED(""),
	[Q_TOKEN_TOUCH] = "UPDATE tokens SET last_used_at = ?2 WHERE id = ?1",
	[Q_SANDBOX_STATES] = "SELECT status, count(*) FROM sandboxes GROUP BY status",
	[Q_JOB_STATES] = "SELECT state, count(*) FROM jobs GROUP BY state",
	/* Of a token that is ours, its hash is kept with it. */
	[Q_LOGIN_ADD] = "INSERT INTO logins (id, token, organization, \"user\", scopes,"
			" created_at, expires_at, last_used_at, address, agent, hash, token_hash)"
			" SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6, ?8, ?9, ?10,"
			" (SELECT hash FROM tokens WHERE id = ?2)",
	[Q_LOGIN_FIND] = "SELECT " LOGIN " FROM logins l LEFT JOIN tokens t"
			 " ON t.id = l.token AND t.hash = l.token_hash"
			 " WHERE l.hash = ?1 AND l.expires_at > ?2" LOGIN_IS_GOOD,
	[Q_LOGIN_LIST] = "SELECT " LOGIN " FROM logins l LEFT JOIN tokens t"
			 " ON t.id = l.token AND t.hash = l.token_hash"
			 " WHERE l.id > ?1 AND l.expires_at > ?3" LOGIN_IS_GOOD
			 " AND " OWNED("l.") " ORDER BY l.id LIMIT ?2",
	[Q_LOGIN_DELETE] = "DELETE FROM logins WHERE id = ?1 AND " OWNED(""),
	[Q_LOGIN_TOUCH] = "UPDATE logins SET last_used_at = ?2 WHERE id = ?1",
	[Q_LOGIN_CLEAN] = "DELETE FROM logins WHERE expires_at <= ?1 OR (token <> '' AND NOT EXISTS"
			  " (SELECT 1 FROM tokens t WHERE t.id = logins.token"
			  " AND t.hash = logins.token_hash))",
	[Q_LOGIN_PRUNE] = "DELETE FROM logins WHERE " OWNED(
		"") " AND id <="
		    " (SELECT id FROM logins WHERE " OWNED("") " ORDER BY id DESC"
							       " LIMIT 1 OFFSET ?1)",
	[Q_LAUNCH_INSERT] = "INSERT INTO launches (" LAUNCH(NAME) ") VALUES (" LAUNCH(VALUE) ")",
	[Q_LAUNCH_UPDATE] = "UPDATE launches SET status = ?6, failed_stage = ?7, cause = ?8,"
			    " document = ?9, ended_at = ?11 WHERE id = ?1",
	[Q_LAUNCH_GET] = "SELECT " LAUNCH(NAME) " FROM launches WHERE id = ?1 AND " OWNED(""),
	[Q_LAUNCH_LIST] =
		"SELECT " LAUNCH(NAME) " FROM launches WHERE (?1 IS NULL OR id < ?1)"
				       " AND (?2 IS NULL OR status = ?2)"
				       " AND (?3 IS NULL OR project = ?3)"
				       " AND (?4 IS NULL OR failed_stage = ?4)"
				       " AND created_at >= ?5 AND (?9 IS NULL OR sandbox = ?9)"
				       " AND " OWNED("") " ORDER BY id DESC LIMIT ?6",
	[Q_LAUNCH_PRUNE] = "DELETE FROM launches WHERE id IN (SELECT id FROM (SELECT id,"
			   " row_number() OVER (ORDER BY id DESC) AS place FROM launches"
			   " WHERE ended_at > 0 AND " OWNED("") ") AS ended WHERE place > ?1)",
	[Q_EXECUTION_INSERT] = "INSERT INTO executions (" EXECUTION(
		NAME) ", outcome, request) VALUES (" EXECUTION(VALUE) ", ?22, ?23)",
	[Q_EXECUTION_UPDATE] =
		"UPDATE executions SET sandbox = ?4, status = ?9, cancelling = ?10,"
		" process = ?11, first_byte = ?12, outcome_bytes = ?14, ended_at = ?16,"
		" duration_us = ?20, outcome = ?22 WHERE id = ?1",
	[Q_EXECUTION_GET] = "SELECT " EXECUTION(
		NAME) ", outcome, request FROM executions WHERE id = ?1 AND " OWNED(""),
	[Q_EXECUTION_LIST] = "SELECT " EXECUTION(
		NAME) " FROM executions WHERE (?1 IS NULL OR id < ?1)"
		      " AND (?2 IS NULL OR status = ?2)"
		      " AND (?3 IS NULL OR language = ?3)"
		      " AND (?4 IS NULL OR sandbox = ?4)"
		      " AND (?7 IS NULL OR \"function\" = ?7)"
		      " AND (?8 = 0 OR created_at >= ?8) AND (?9 = 0 OR created_at < ?9)"
		      " AND (?5 = 0 OR ended_at = 0) AND " OWNED("") " ORDER BY id DESC LIMIT ?6",
	/* Of each group the number, how many did not succeed, and what half and 95 of 100 did not exceed: the least
	 * duration that so many have. */
	[Q_EXECUTION_STATS] =
		"SELECT sandbox, name, count(*), sum(failed),"
		" min(CASE WHEN place * 2 >= whole THEN duration_us END),"
		" min(CASE WHEN place * 20 >= whole * 19 THEN duration_us END) FROM ("
		"SELECT CASE WHEN fresh = 1 THEN '' ELSE sandbox END AS sandbox,"
		" \"function\" AS name, duration_us,"
		" CASE WHEN status = 'succeeded' THEN 0 ELSE 1 END AS failed,"
		" row_number() OVER (PARTITION BY CASE WHEN fresh = 1 THEN '' ELSE sandbox END,"
		" \"function\" ORDER BY duration_us) AS place,"
		" count(*) OVER (PARTITION BY CASE WHEN fresh = 1 THEN '' ELSE sandbox END,"
		" \"function\") AS whole"
		" FROM executions WHERE ended_at > 0 AND (?1 IS NULL OR sandbox = ?1)"
		" AND (?2 IS NULL OR \"function\" = ?2)"
		" AND (?3 = 0 OR created_at >= ?3) AND (?4 = 0 OR created_at < ?4) AND " OWNED(
			"") ") AS ended GROUP BY sandbox, name ORDER BY 3 DESC LIMIT ?5",
	/* The newest ?1 stay, if they are not older than ?2 and all newer ones have not more than ?3 bytes. */
	[Q_EXECUTION_EXCESS] =
		"SELECT id FROM (SELECT id, created_at,"
		" row_number() OVER (ORDER BY id DESC) AS place,"
		" sum(outcome_bytes) OVER (ORDER BY id DESC) AS bytes"
		" FROM executions WHERE ended_at > 0 AND " OWNED(
			"") ") AS ended WHERE place > ?1 OR created_at < ?2 OR bytes > ?3 LIMIT ?4",
	[Q_EXECUTION_OLD] = "SELECT id FROM executions WHERE ended_at > 0 AND created_at < ?1"
			    " LIMIT ?2",
	[Q_EXECUTION_DELETE] = "DELETE FROM executions WHERE id = ?1",
	[Q_ARTIFACT_STALE] = "SELECT execution, digest, (SELECT count(*) FROM artifacts o"
			     " WHERE o.digest = a.digest) FROM artifacts a WHERE NOT EXISTS"
			     " (SELECT 1 FROM executions e WHERE e.id = a.execution) LIMIT 1",
	[Q_ARTIFACT_DELETE] = "DELETE FROM artifacts WHERE execution = ?1 AND digest = ?2",
	[Q_FUNCTION_INSERT] =
		"INSERT INTO functions (" FUNCTION ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[Q_FUNCTION_COUNT] =
		"SELECT count(DISTINCT name) FROM functions WHERE name <> ?1 AND " OWNED(""),
	[Q_FUNCTION_LAST] = "SELECT max(version) FROM functions WHERE name = ?1 AND " OWNED(""),
	[Q_FUNCTION_GET] =
		"SELECT " FUNCTION " FROM functions WHERE name = ?1"
		" AND (?2 = 0 OR version = ?2) AND " OWNED("") " ORDER BY version DESC LIMIT 1",
	[Q_FUNCTION_LIST] = "SELECT " FUNCTION " FROM functions f WHERE name > ?1 AND " OWNED(
		"") " AND NOT EXISTS (SELECT 1 FROM functions o WHERE"
		    " o.organization = f.organization AND o.\"user\" = f.\"user\""
		    " AND o.name = f.name AND o.version > f.version)"
		    " ORDER BY name LIMIT ?2",
	[Q_FUNCTION_VERSIONS] = "SELECT " FUNCTION " FROM functions WHERE name = ?1 AND " OWNED(
		"") " ORDER BY version DESC LIMIT ?2",
	[Q_FUNCTION_TRIM] =
		"DELETE FROM functions WHERE name = ?1 AND version <= ?2 AND " OWNED(""),
	[Q_FUNCTION_DELETE] = "DELETE FROM functions WHERE name = ?1 AND " OWNED(""),
	[Q_CONTEXT_INSERT] = "INSERT INTO contexts (" CONTEXT(NAME) ") VALUES (" CONTEXT(VALUE) ")",
	[Q_CONTEXT_UPDATE] = "UPDATE contexts SET " CONTEXT(SET) " WHERE id = ?1",
	[Q_CONTEXT_GET] = "SELECT " CONTEXT(NAME) " FROM contexts WHERE sandbox = ?1 AND id = ?2",
	[Q_CONTEXT_LIST] = "SELECT " CONTEXT(
		NAME) " FROM contexts WHERE (sandbox = ?1 OR (?1 IS NULL AND ended_at = 0))"
		      " AND id > ?2 ORDER BY id LIMIT ?3",
	[Q_CONTEXT_DELETE] = "DELETE FROM contexts WHERE sandbox = ?1 AND id = ?2",
	[Q_JOB_INSERT] = "INSERT INTO jobs (" JOB(NAME) ") VALUES (" JOB(VALUE) ")",
	[Q_JOB_UPDATE] =
		"UPDATE jobs SET state = ?8, cancelling = ?9, tries = ?10, progress = ?11,"
		" done_bytes = ?12, total_bytes = ?13, result = ?14, error_code = ?15,"
		" error_message = ?16, error_remedy = ?17, started_at = ?19, ended_at = ?20,"
		" error_kind = ?21 WHERE id = ?1",
	[Q_JOB_GET] = "SELECT " JOB(NAME) " FROM jobs WHERE id = ?1 AND " OWNED(""),
	[Q_JOB_FIND] = "SELECT " JOB(NAME) " FROM jobs WHERE kind = ?1 AND \"key\" = ?2 AND "
					   "ended_at = 0 AND " OWNED(""),
	[Q_JOB_LIST] = "SELECT " JOB(NAME) " FROM jobs WHERE (?1 IS NULL OR id < ?1)"
					   " AND (?2 IS NULL OR state = ?2)"
					   " AND (?3 IS NULL OR kind = ?3)"
					   " AND (?4 IS NULL OR target = ?4)"
					   " AND (?5 = 0 OR ended_at = 0) AND " OWNED(
						   "") " ORDER BY id DESC LIMIT ?6",
	[Q_JOB_ACTIVE] = "SELECT count(*) FROM jobs WHERE ended_at = 0 AND " OWNED(""),
	[Q_JOB_EXCESS] = "SELECT id FROM jobs WHERE ended_at > 0 AND " OWNED(
		"") " AND NOT EXISTS (SELECT 1 FROM launches WHERE launches.id = jobs.id)"
		    " ORDER BY id DESC LIMIT ?2 OFFSET ?1",
	[Q_JOB_DELETE] = "DELETE FROM jobs WHERE id = ?1",
	[Q_AUDIT_APPEND] = "INSERT INTO audit (" AUDIT(NAME) ") VALUES (" AUDIT(VALUE) ")",
	[Q_AUDIT_ANCHOR] = "SELECT sequence, hash FROM audit_anchor",
	[Q_SECRET_LIST] =
		"SELECT " SECRET
		" FROM secrets WHERE (organization, \"user\", name) > (?1, ?2, ?3) AND " OWNED(
			"") " ORDER BY organization, \"user\", name LIMIT ?4",
	[Q_SECRET_DELETE] = "DELETE FROM secrets WHERE name = ?1 AND " OWNED(""),
	/* An owner's own goes before the operator's, whose organization is empty. */
	[Q_TEMPLATE_FIND] =
		SELECT_TEMPLATE "WHERE name = ?1 AND " SEEN " ORDER BY organization DESC LIMIT 1",
	[Q_TEMPLATE_LIST] = SELECT_TEMPLATE
	"WHERE name > ?1 AND " SEEN
	" AND (organization <> '' OR NOT EXISTS (SELECT 1 FROM templates o WHERE o.name ="
	" templates.name AND o.organization = ?31 AND o.\"user\" = ?32 AND ?31 <> ''))"
	" ORDER BY name LIMIT ?2",
	/* Who has one of that name itself does not use the one that is everybody's. */
	[Q_TEMPLATE_USER] = "SELECT id, name FROM sandboxes WHERE template = ?1 AND " OWNED(
		"") " AND (?31 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM templates o WHERE"
		    " o.name = ?1 AND o.organization = sandboxes.organization AND"
		    " o.\"user\" = sandboxes.\"user\"))"
		    " AND NOT EXISTS (SELECT 1 FROM pooled p WHERE p.id = sandboxes.id)"
		    " ORDER BY id LIMIT ?2",
	[Q_TEMPLATE_OWN] =
		SELECT_TEMPLATE "WHERE organization = ?1 AND \"user\" = ?2 AND name = ?3",
	[Q_TEMPLATE_DELETE] = "DELETE FROM templates WHERE name = ?1 AND " OWNED(""),
	[Q_TEMPLATE_TOUCH] = "UPDATE templates SET used_at = ?2 WHERE name = ?1 AND " OWNED(""),
	/* Those that nobody gave a name: the references of images that sandboxes were made of. */
	[Q_TEMPLATE_EXPIRE] =
		"DELETE FROM templates WHERE used_at < ?1 AND (name LIKE '%:%' OR name LIKE '%/%')"
		" AND NOT EXISTS (SELECT 1 FROM sandboxes s WHERE s.template = templates.name"
		" AND (templates.organization = '' OR (s.organization = templates.organization"
		" AND s.\"user\" = templates.\"user\")))",
	[Q_LAYER_HAS] = "UPDATE layers SET used_at = ?4 WHERE organization = ?1 AND \"user\" = ?2"
			" AND diff_id = ?3 AND EXISTS"
			" (SELECT 1 FROM layer_files f WHERE f.name = ?3 AND f.gone = 0)",
	[Q_LAYER_GET] = "SELECT gone, python, bytes FROM layer_files WHERE name = ?1",
	[Q_LAYER_SET_BYTES] = "UPDATE layer_files SET bytes = ?2, python = python | ?3"
			      " WHERE name = ?1",
	[Q_LAYER_UNMARK] = "UPDATE layer_files SET gone = 0, used_at = ?2 WHERE name = ?1",
	[Q_LAYER_MARKED] = "SELECT name, stack, bytes, used_at FROM layer_files WHERE gone <> 0"
			   " AND name > ?1 ORDER BY name LIMIT ?2",
	[Q_LAYER_UNMEASURED] = "SELECT name, stack, bytes, used_at FROM layer_files"
			       " WHERE bytes < 0 AND gone = 0 AND name > ?1 ORDER BY name LIMIT ?2",
	[Q_LAYER_DELETE] = "DELETE FROM layer_files WHERE name = ?1",
	[Q_LAYER_DELETE_NOTES] = "DELETE FROM layers WHERE diff_id = ?1",
	[Q_BUILD_CACHE_EXPIRE] = "DELETE FROM build_cache WHERE used_at < ?1",
	[Q_QUOTA_IMAGES] =
		"SELECT coalesce(sum(CASE WHEN f.bytes > 0 THEN f.bytes ELSE 0 END), 0)"
		" FROM (SELECT DISTINCT diff_id FROM layers WHERE organization = ?1"
		" AND (?2 = '' OR \"user\" = ?2)) AS l JOIN layer_files f ON f.name = l.diff_id",
	[Q_POOLED_ADD] = "INSERT INTO pooled (id, organization, \"user\", template, stamp, state,"
			 " created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	/* 0, 1 and 2 are enum pooled_state. */
	[Q_POOLED_READY] = "UPDATE pooled SET state = 1 WHERE id = ?1 AND state = 0",
	[Q_POOLED_DRAIN] = "UPDATE pooled SET state = 2 WHERE id = ?1",
	[Q_POOLED_TAKE] = "DELETE FROM pooled WHERE id = ?1 AND stamp = ?2 AND state = 1",
	[Q_POOLED_HAS] = "SELECT state FROM pooled WHERE id = ?1",
	[Q_POOLED_LIST] = "SELECT id, organization, \"user\", template, stamp, state, created_at"
			  " FROM pooled ORDER BY id LIMIT ?1",
	[Q_POOLED_DELETE] = "DELETE FROM pooled WHERE id = ?1",
	[Q_POOLED_SWEEP] = "DELETE FROM pooled WHERE NOT EXISTS"
			   " (SELECT 1 FROM sandboxes s WHERE s.id = pooled.id)",
	[Q_TEMPLATE_POOLS] = SELECT_TEMPLATE "WHERE options LIKE '%\"pool\"%'"
					     " ORDER BY organization, \"user\", name LIMIT ?1",
	[Q_POOLED_GIVE_WORKSPACE] = "UPDATE workspaces SET organization = ?2, \"user\" = ?3,"
				    " created_at = ?4, disk_bytes = ?5 WHERE id = ?1",
	[Q_REPLAY_MOVE] = "UPDATE replays SET object = ?4 WHERE"
			  " organization = ?1 AND \"user\" = ?2 AND \"key\" = ?3",
	[Q_BUILDER_ADD] = "INSERT INTO builders (id) VALUES (?1)",
	[Q_BUILDER_HAS] = "SELECT 1 FROM builders WHERE id = ?1",
	[Q_BUILDER_DELETE] = "DELETE FROM builders WHERE id = ?1",
	[Q_BUILDER_SWEEP] = "DELETE FROM builders WHERE NOT EXISTS"
			    " (SELECT 1 FROM sandboxes s WHERE s.id = builders.id)",
	[Q_BUILD_CACHE_GET] = "SELECT diff_id, bytes, note FROM build_cache WHERE organization = ?1"
			      " AND \"user\" = ?2 AND step = ?3",
	[Q_BUILD_CACHE_TOUCH] = "UPDATE build_cache SET used_at = ?4 WHERE organization = ?1"
				" AND \"user\" = ?2 AND step = ?3",
	[Q_BUILD_CACHE_DELETE] = "DELETE FROM build_cache WHERE organization = ?1"
				 " AND \"user\" = ?2 AND step = ?3",
	[Q_BUILD_CACHE_CLEAR] = "DELETE FROM build_cache WHERE " OWNED(""),
	[Q_DEPENDENCY_FILE_GET] = "SELECT content FROM dependency_files WHERE organization = ?1"
				  " AND \"user\" = ?2 AND sha256 = ?3",
	[Q_QUOTA_ANY] = "SELECT 1 FROM quotas LIMIT 1",
	[Q_QUOTA_GET] = "SELECT sandboxes, running, workspaces, cpu_millis, memory_bytes,"
			" disk_bytes, images_bytes, projects_bytes, creates_per_minute, danger"
			" FROM quotas"
			" WHERE organization = ?1 AND \"user\" = ?2",
	[Q_QUOTA_DELETE] = "DELETE FROM quotas WHERE organization = ?1 AND \"user\" = ?2",
	/* Who has something, or had, or may have; by name. */
	[Q_QUOTA_OWNERS] =
		"SELECT organization, \"user\" FROM (SELECT organization, \"user\" FROM workspaces"
		" UNION SELECT organization, \"user\" FROM tokens"
		" UNION SELECT organization, \"user\" FROM projects"
		" UNION SELECT organization, \"user\" FROM functions"
		" UNION SELECT organization, \"user\" FROM secrets"
		" UNION SELECT organization, \"user\" FROM templates"
		" UNION SELECT organization, \"user\" FROM quotas) o"
		" WHERE organization NOT IN ('', '.pool') AND \"user\" <> ''" /* owner_pool */
		" AND (organization > ?1 OR (organization = ?1 AND \"user\" > ?2))"
		" ORDER BY organization, \"user\" LIMIT ?3",
	[Q_QUOTA_USE] =
		/* A member is no sandbox more, but its processor and memory count. */
	"SELECT coalesce(sum(alone), 0), coalesce(sum(alone * live), 0),"
	" coalesce(sum(live * cpu_millis), 0), coalesce(sum(live * memory_bytes), 0)"
	" FROM (SELECT CASE WHEN status IN ('creating', 'running', 'paused')"
	" OR starting <> 0 THEN 1 ELSE 0 END AS live, cpu_millis, memory_bytes,"
	" CASE WHEN parent_id IS NULL THEN 1 ELSE 0 END AS alone"
	" FROM sandboxes WHERE organization = ?1 AND (?2 = '' OR \"user\" = ?2)) AS s",
	[Q_QUOTA_WORKSPACES] =
		"SELECT count(*) - (SELECT count(*) FROM sandboxes WHERE organization = ?1"
		" AND (?2 = '' OR \"user\" = ?2) AND parent_id IS NOT NULL),"
		" coalesce(sum(CASE WHEN disk_bytes > 0 THEN disk_bytes ELSE 0 END"
		" + CASE WHEN output_bytes > 0 THEN output_bytes ELSE 0 END), 0)"
		" + (SELECT coalesce(sum(bytes), 0) FROM snapshots WHERE organization = ?1"
		" AND (?2 = '' OR \"user\" = ?2))"
		" FROM workspaces WHERE organization = ?1 AND (?2 = '' OR \"user\" = ?2)",
	[Q_SNAPSHOT_FINISH] = "UPDATE snapshots SET status = ?2, bytes = ?3 WHERE id = ?1",
	[Q_SNAPSHOT_GET] = "SELECT " SNAPSHOT " FROM snapshots"
			   " WHERE id = ?1 AND status = ?2 AND " OWNED(""),
	[Q_SNAPSHOT_LIST] =
		"SELECT " SNAPSHOT " FROM snapshots WHERE id > ?1 AND status = ?2"
		" AND (?3 IS NULL OR sandbox = ?3) AND " OWNED("") " ORDER BY id LIMIT ?4",
	[Q_SNAPSHOT_HIDE] = "UPDATE snapshots SET status = ?2"
			    " WHERE id = ?1 AND status = ?3 AND " OWNED(""),
	[Q_SNAPSHOT_DELETE] = "DELETE FROM snapshots WHERE id = ?1",
	[Q_SNAPSHOT_IS_KNOWN] = "SELECT 1 FROM snapshots WHERE id = ?1",
	[Q_SNAPSHOT_UNFINISHED] =
		"SELECT id FROM snapshots WHERE id > ?1 AND status = ?2"
		" AND (?4 IS NULL OR (sandbox = ?4 AND checkpoint <> 0)) ORDER BY id LIMIT ?3",
	/* 0 is SNAPSHOT_UNFINISHED: it is removed next. */
	[Q_CHECKPOINTS_HIDE] =
		"UPDATE snapshots SET status = 0 WHERE sandbox = ?1 AND checkpoint <> 0",
	[Q_PROJECT_INSERT] =
		"INSERT INTO projects (" PROJECT ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0)",
	[Q_PROJECT_COUNT] = "SELECT count(*) FROM projects WHERE " OWNED(""),
	/* An id goes before a name. */
	[Q_PROJECT_GET] =
		"SELECT " PROJECT " FROM projects WHERE (id = ?1 OR name = ?1) AND " OWNED(
			"") " ORDER BY CASE WHEN id = ?1 THEN 0 ELSE 1 END LIMIT 1",
	[Q_PROJECT_IS_USED] =
		"SELECT 1 FROM sandboxes WHERE project = ?1 AND " OWNED("") " LIMIT 1",
	[Q_PROJECT_UPDATE] = "UPDATE projects SET name = ?2, labels = ?3, defaults = ?4,"
			     " updated_at = ?5 WHERE id = ?1",
	[Q_PROJECT_DELETE] = "DELETE FROM projects WHERE id = ?1",
	[Q_PROJECT_DELETE_FILES] = "DELETE FROM project_files WHERE project = ?1",
	[Q_PROJECT_LIST] = "SELECT " PROJECT
			   " FROM projects WHERE id > ?1 AND " OWNED("") " ORDER BY id LIMIT ?2",
	[Q_PROJECT_COUNT_CHANGE] = "UPDATE projects SET files = files + ?2, bytes = bytes + ?3,"
				   " updated_at = ?4 WHERE id = ?1",
	[Q_PROJECT_FILE_FIND] =
		"SELECT " PROJECT_FILE " FROM project_files WHERE project = ?1 AND path = ?2",
	/* Between the slash and the character after it. */
	[Q_PROJECT_FILE_HAS_BELOW] = "SELECT 1 FROM project_files WHERE project = ?1"
				     " AND path > ?2 || '/' AND path < ?2 || '0' LIMIT 1",
	[Q_PROJECT_FILE_INSERT] =
		"INSERT INTO project_files (id, project, path, bytes, sha256, type, executable,"
		" uploader, created_at, synced) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[Q_PROJECT_FILE_UPDATE] =
		"UPDATE project_files SET path = ?3, bytes = ?4, sha256 = ?5, type = ?6,"
		" executable = ?7, uploader = ?8, created_at = ?9, synced = ?10"
		" WHERE id = ?1 AND project = ?2",
	[Q_PROJECT_FILE_GET] = "SELECT " PROJECT_FILE
			       " FROM project_files WHERE project = ?1 AND (id = ?2 OR path = ?2)"
			       " ORDER BY CASE WHEN id = ?2 THEN 0 ELSE 1 END LIMIT 1",
	[Q_PROJECT_FILE_LIST] = "SELECT " PROJECT_FILE " FROM project_files WHERE project = ?1"
				" AND path > ?2 ORDER BY path LIMIT ?3",
	[Q_PROJECT_FILE_SYNCED] = "SELECT path, sha256, bytes, id FROM project_files"
				  " WHERE project = ?1 AND synced ORDER BY path",
	[Q_PROJECT_FILE_DELETE] = "DELETE FROM project_files WHERE id = ?1",
	[Q_PROJECT_USES] = "SELECT 1 FROM project_files WHERE project = ?1 AND sha256 = ?2 LIMIT 1",
	[Q_QUOTA_PROJECTS] = "SELECT coalesce(sum(bytes), 0) FROM projects WHERE organization = ?1"
			     " AND (?2 = '' OR \"user\" = ?2)",
	[Q_QUOTA_PACE_GET] =
		"SELECT until FROM quota_pace WHERE organization = ?1 AND \"user\" = ?2",
	[Q_REPLAY_GET] =
		"SELECT print, object, created_at, answer FROM replays WHERE"
		" organization = ?1 AND \"user\" = ?2 AND \"key\" = ?3 AND created_at >= ?4",
	[Q_REPLAY_PUT] =
		"INSERT INTO replays (organization, \"user\", \"key\", print, object, created_at)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[Q_REPLAY_ANSWER] = "UPDATE replays SET answer = ?4 WHERE"
			    " organization = ?1 AND \"user\" = ?2 AND \"key\" = ?3",
	[Q_REPLAY_DELETE] = "DELETE FROM replays WHERE"
			    " organization = ?1 AND \"user\" = ?2 AND \"key\" = ?3",
	[Q_REPLAY_EXPIRE] = "DELETE FROM replays WHERE created_at < ?1",
	[Q_AUDIT_PRUNE] = "DELETE FROM audit WHERE sequence <= (SELECT sequence FROM audit_anchor)",
	[Q_AUDIT_LIST] = AUDIT_LIST(""),
	[Q_AUDIT_LIST_OF] = AUDIT_LIST(" AND organization = ?6"),
	[Q_AUDIT_WALK] = "SELECT " AUDIT(NAME) " FROM audit ORDER BY sequence",
};

/*
 * Who needs which layers and stacks of layers, by owner and name. This is the one list: whatever is kept, removed or
 * counted follows from it, so a new kind of user is a SELECT more here. A sandbox is a user also when it is stopped,
 * and so is one in which a template is built. A workspace that a removed sandbox left is none: it has no system.
 */
#define LAYER_USERS                                                                                \
	"SELECT organization, \"user\", json_extract(image, '$.stack') AS used FROM templates"     \
	" UNION ALL SELECT organization, \"user\", substr(l.value, 8)"                             \
	" FROM templates, json_each(image, '$.layers') AS l"                                       \
	" UNION ALL SELECT organization, \"user\","                                                \
	" substr(json_extract(source, '$.dockerfile.files_digest'), 8) FROM templates"             \
	" UNION ALL SELECT organization, \"user\", json_extract(image, '$.stack') FROM sandboxes"  \
	" UNION ALL SELECT organization, \"user\", substr(l.value, 8)"                             \
	" FROM sandboxes, json_each(image, '$.layers') AS l"                                       \
	" UNION ALL SELECT organization, \"user\", json_extract(settings, '$.image.stack')"        \
	" FROM snapshots"                                                                          \
	" UNION ALL SELECT organization, \"user\", substr(l.value, 8)"                             \
	" FROM snapshots, json_each(settings, '$.image.layers') AS l"                              \
	" UNION ALL SELECT organization, \"user\", json_extract(m.value, '$.draft.image.stack')"   \
	" FROM snapshots, json_each(settings, '$.members') AS m"                                   \
	" UNION ALL SELECT organization, \"user\", substr(l.value, 8) FROM snapshots,"             \
	" json_each(settings, '$.members') AS m, json_each(m.value, '$.draft.image.layers') AS l"  \
	" UNION ALL SELECT organization, \"user\", json_extract(dependencies, '$.layer')"          \
	" FROM sandboxes"                                                                          \
	" UNION ALL SELECT organization, \"user\", json_extract(settings, '$.dependencies.layer')" \
	" FROM snapshots"                                                                          \
	" UNION ALL SELECT organization, \"user\", substr(diff_id, 8) FROM build_cache"
#define LAYERS_USED "(SELECT used FROM (" LAYER_USERS ") WHERE used IS NOT NULL)"

/*
 * What another database says in its own way. SQLite's: INSERT OR REPLACE; json_each(); a SELECT that has a WHERE
 * and no FROM; instr(); a column beside max() that is of the row with the highest value; sqlite_sequence, which remembers the
 * highest number of an AUTOINCREMENT; SET (a, b) = (SELECT ...), which PostgreSQL has too; LIMIT -1.
 */
static const char *const sqlite[Q_ALL] = {
	[Q_ARTIFACT_PUT] = "INSERT OR REPLACE INTO artifacts (execution, digest) VALUES (?1, ?2)",
	[Q_CLOCK_PUT] = "INSERT OR REPLACE INTO clock (id, boot_id, base, skew, last)"
			" VALUES (1, ?1, ?2, ?3, ?4)",
	[Q_SANDBOX_LIST] = SELECT_SANDBOX "WHERE s.id > ?1 AND " OWNED(
		"s.") " AND (?2 IS NULL OR s.status = ?2) AND (?3 IS NULL OR s.template = ?3)"
		      " AND (?4 IS NULL OR s.project = ?4 OR s.project ="
		      " (SELECT name FROM projects p WHERE p.id = ?4 AND"
		      " p.organization = s.organization AND p.\"user\" = s.\"user\"))"
		      " AND (?8 IS NULL OR s.session = ?8)"
		      " AND (s.parent_id IS NOT NULL) = ?9"
		      " AND (?5 IS NULL OR EXISTS (SELECT 1 FROM json_each(s.labels) AS l"
		      " WHERE l.key = ?5 AND l.value = ?6))"
		      /* Those in which templates are built are nobody's to see. */
		      " AND (?31 IS NULL OR NOT EXISTS"
		      " (SELECT 1 FROM builders b WHERE b.id = s.id))"
		      " ORDER BY s.id LIMIT ?7",
	[Q_PREVIEW_LINK_ADD] =
		"INSERT INTO preview_links (hash, id, sandbox, port, created_at, expires_at,"
		" frame_origin) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?8 WHERE ?7 >"
		" (SELECT count(*) FROM preview_links WHERE sandbox = ?3 AND port = ?4)",
	/* One that is put again keeps its age. */
	[Q_TOKEN_PUT] =
		"INSERT OR REPLACE INTO tokens (" TOKEN ", hash) VALUES (?1, ?2, ?3, ?4, ?5,"
		" coalesce((SELECT created_at FROM tokens WHERE id = ?1), ?6), ?7,"
		" coalesce((SELECT last_used_at FROM tokens WHERE id = ?1), 0), ?8)",
	[Q_AUDIT_HEAD] = "SELECT max(sequence), hash,"
			 " (SELECT seq FROM sqlite_sequence WHERE name = 'audit') FROM audit",
	[Q_AUDIT_MOVE_ANCHOR] = "UPDATE audit_anchor SET (sequence, hash) ="
				" (SELECT sequence, hash FROM audit WHERE sequence <= ?1 ORDER BY "
				"sequence DESC LIMIT 1)"
				" WHERE EXISTS (SELECT 1 FROM audit WHERE sequence <= ?1)",
	/* One that is put again is always let in. */
	[Q_SECRET_PUT] = "INSERT OR REPLACE INTO secrets (" SECRET
			 ") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9"
			 " WHERE ?10 > (SELECT count(*) FROM secrets WHERE organization = ?2 AND "
			 "\"user\" = ?3"
			 " AND name <> ?1)",
	/* One that is put again is always let in. */
	[Q_TEMPLATE_PUT] =
		"INSERT OR REPLACE INTO templates (" TEMPLATE ") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7,"
		" ?8, ?9, ?10, ?11, ?12, ?13"
		" WHERE ?14 > (SELECT count(*) FROM templates WHERE organization = ?1 AND"
		" \"user\" = ?2 AND name <> ?3)",
	[Q_SNAPSHOT_INSERT] =
		"INSERT INTO snapshots (" SNAPSHOT
		") SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10"
		" WHERE ?11 > (SELECT count(*) FROM snapshots WHERE organization = ?3 AND"
		" \"user\" = ?4)",
	[Q_LAYER_NOTE] = "INSERT OR REPLACE INTO layers (organization, \"user\", diff_id, used_at)"
			 " VALUES (?1, ?2, ?3, ?4)",
	[Q_LAYER_PUT] = "INSERT OR REPLACE INTO layer_files (name, stack, bytes, used_at, gone)"
			" VALUES (?1, ?2, ?3, ?4, 0)",
	[Q_LAYER_UNUSED] = "SELECT name, stack, bytes, used_at FROM layer_files WHERE gone = 0"
			   " AND used_at < ?1 AND stack = ?2 AND name > ?3"
			   " AND name NOT IN " LAYERS_USED " ORDER BY name LIMIT ?4",
	[Q_LAYER_MARK] = "UPDATE layer_files SET gone = 1 WHERE name = ?1 AND gone = 0"
			 " AND used_at < ?2 AND name NOT IN " LAYERS_USED,
	[Q_LAYER_TOUCH_USED] = "UPDATE layer_files SET used_at = ?1 WHERE gone = 0"
			       " AND name IN " LAYERS_USED,
	[Q_LAYER_TOUCH_NOTES] = "UPDATE layers SET used_at = ?1"
				" WHERE (organization, \"user\", diff_id) IN (" LAYER_USERS ")",
	[Q_LAYER_EXPIRE_NOTES] =
		"DELETE FROM layers WHERE used_at < ?1"
		" AND (organization, \"user\", diff_id) NOT IN (SELECT * FROM (" LAYER_USERS
		") WHERE used IS NOT NULL)",
	[Q_LAYER_TOTALS] = "SELECT count(*), coalesce(sum(CASE WHEN bytes > 0 THEN bytes ELSE 0"
			   " END), 0), coalesce(sum(used), 0), coalesce(sum(CASE WHEN used AND"
			   " bytes > 0 THEN bytes ELSE 0 END), 0) FROM"
			   " (SELECT bytes, name IN " LAYERS_USED " AS used FROM layer_files"
			   " WHERE stack = 0 AND gone = 0)",
	[Q_BUILD_CACHE_PUT] = "INSERT OR REPLACE INTO build_cache"
			      " (organization, \"user\", step, diff_id, bytes, used_at, note)"
			      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[Q_DEPENDENCY_FILE_PUT] =
		"INSERT OR REPLACE INTO dependency_files"
		" (organization, \"user\", sha256, content, bytes, used_at)"
		" SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ?7 >= ?5 +"
		" (SELECT coalesce(sum(bytes), 0) FROM dependency_files WHERE organization = ?1"
		" AND \"user\" = ?2 AND sha256 <> ?3)",
	/* What names a file names it by its hash, wherever in the document that stands. */
	[Q_DEPENDENCY_FILE_EXPIRE] =
		"DELETE FROM dependency_files AS f WHERE f.used_at < ?1"
		" AND NOT EXISTS (SELECT 1 FROM sandboxes s WHERE s.organization = f.organization"
		" AND s.\"user\" = f.\"user\" AND instr(s.dependencies, f.sha256) > 0)"
		" AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.organization = f.organization"
		" AND s.\"user\" = f.\"user\" AND instr(s.settings, f.sha256) > 0)",
	[Q_QUOTA_PUT] = "INSERT OR REPLACE INTO quotas (organization, \"user\", sandboxes, running,"
			" workspaces, cpu_millis, memory_bytes, disk_bytes, images_bytes,"
			" projects_bytes, creates_per_minute, danger)"
			" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
	[Q_QUOTA_PACE_PUT] = "INSERT OR REPLACE INTO quota_pace (organization, \"user\", until)"
			     " VALUES (?1, ?2, ?3)",
	[Q_REPLAY_PRUNE] =
		"DELETE FROM replays WHERE organization = ?1 AND \"user\" = ?2 AND \"key\" IN"
		" (SELECT \"key\" FROM replays WHERE organization = ?1 AND \"user\" = ?2"
		" ORDER BY created_at DESC LIMIT -1 OFFSET ?3)",
};

static const char *const *const dialects[DB_DIALECT_COUNT] = {[DB_SQLITE] = sqlite};

const char *sql_common(enum query query)
{
	return common[query];
}

const char *sql_text(enum db_dialect dialect, enum query query)
{
	return dialects[dialect][query] ? dialects[dialect][query] : common[query];
}
