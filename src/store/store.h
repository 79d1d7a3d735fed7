/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the system: what is written here has happened, and what was acknowledged is written.
 *
 * SQLite in WAL mode, one connection, one mutex: a statement takes some ten microseconds, and a single
 * writer needs no retries. A committed change survives the death of any process at any point; a
 * failure of power may take the last moments, but never leaves half a change.
 *
 * Every reader names the owner, and the owner is part of the SQL: an object of somebody else is not
 * found. An owner of NULL is the daemon itself.
 */
#pragma once

#include "base/err.h"
#include "model/access/scope.h"
#include "model/process/process_record.h"
#include "model/sandbox/sandbox_record.h"

struct store;

#define TOKEN_ID_MAX 32

/* Where backups go, and how many are kept. */
struct store_backup_rule {
	const char *dir; /* NULL: nowhere */
	unsigned keep;
	uint64_t reserve_bytes; /* what a backup leaves free on its disk */
};

struct store_options {
	int stamp_fd;	     /* borrowed: the stamp of the workspaces (generation.h); -1: none */
	bool has_workspaces; /* there are files of sandboxes */
	bool is_accepted;    /* an operator wants it though it is empty, or older than those */
	struct store_backup_rule backup; /* before a migration */
};

/*
 * Opens the database, or makes it. One that is damaged, or is not that of the workspaces, is refused and
 * left as it is: ERR_INTERNAL "database_damaged"; ERR_CONFLICT "database_empty", "database_older".
 */
int store_open_checked(const char *path, const struct store_options *options,
	struct store **ret_store, struct err *err) must_check;

/* The same for one that has no workspaces beside it. */
int store_open(const char *path, struct store **ret_store, struct err *err) must_check;
void store_close(struct store *store);

/* Grows with each sandbox and workspace that comes or goes, and with each start. */
uint64_t store_generation(struct store *store);

/* Lets the stamp say that all that was committed until now is on the disk. Syncs: it may take long. */
void store_stamp_durably(struct store *store);

/*
 * Copies the database into a file of its own below rule->dir, synced, and removes the oldest beyond
 * rule->keep. Holds up nobody. What cannot be written is taken away again. ERR_NO_SPACE if there is too
 * little room.
 */
int store_backup(struct store *store, const struct store_backup_rule *rule, struct err *err)
	must_check;

#define STORE_BACKUP_NAME_MAX 64

/* The backups there are, in order, the oldest first; those after `after`, at most max: how many. */
int store_backup_list(const char *dir, const char *after, char names[][STORE_BACKUP_NAME_MAX],
	unsigned max, struct err *err) must_check;

/* The name of the newest; false if there is none. */
bool store_backup_newest(const char *dir, char name[STORE_BACKUP_NAME_MAX]);

/*
 * Adds a sandbox, and its workspace unless the owner still has one of that id from before.
 * ERR_CONFLICT if the id, or the full tuple of owner, project and session, is taken; ERR_RATE if
 * a quota is used up.
 */
int store_sandbox_insert(struct store *store, struct sandbox_record *record, struct err *err)
	must_check;

/* (One that is to wait in a pool counts when it is given away: store_pool.h.) */

/* The same for a row that only keeps others from its id; no quota counts. */
int store_sandbox_hold(struct store *store, struct sandbox_record *record, struct err *err)
	must_check;

/* It is about to be started: from now on, until the next update of its row, it counts as running.
 * ERR_RATE if a quota is used up. */
int store_sandbox_claim(struct store *store, const struct sandbox_record *record, struct err *err)
	must_check;

/* It has another owner from now on, whose quotas must have room for it: ERR_RATE if not. One of empty names is nobody,
 * who has no quota. */
int store_sandbox_give(struct store *store, const struct sandbox_record *record,
	const struct owner *owner, struct err *err) must_check;

/* Writes the whole row. ERR_NOT_FOUND if it is gone; ERR_RATE if a number grew for which there is no quota;
 * ERR_CONFLICT if another has its name. */
int store_sandbox_update(struct store *store, const struct sandbox_record *record, struct err *err)
	must_check;

int store_sandbox_get(struct store *store, const struct owner *owner, const char *id,
	struct sandbox_record *ret_record, struct err *err) must_check;

/* The sandbox of owner, project (by name) and session, of which one may be ""; ERR_NOT_FOUND if there is none. */
int store_sandbox_find(struct store *store, const struct owner *owner, const char *project,
	const char *session, struct sandbox_record *ret_record, struct err *err) must_check;

/* The sandbox of that name; ERR_NOT_FOUND if its owner has none. */
int store_sandbox_find_name(struct store *store, const struct owner *owner, const char *name,
	struct sandbox_record *ret_record, struct err *err) must_check;

/* What a sandbox reached, as rules (store_reached.c): at most STORE_REACHED_MAX, no rule twice. It goes with its
 * sandbox. */
#define STORE_REACHED_MAX 256
int store_reached_add(struct store *store, const char *id, const char *rule, struct err *err)
	must_check;

/* In order. Calls each without a lock. */
int store_reached_list(struct store *store, const char *id,
	void (*each)(const char *rule, void *arg), void *arg, struct err *err) must_check;

/* Removes the row; the workspace's row stays. */
int store_sandbox_delete(struct store *store, const char *id, struct err *err) must_check;

struct store_filter {
	const struct owner *owner; /* NULL: all */
	const char *status;
	const char *template_name;
	const char *project; /* by name or id */
	const char *session;
	const char *label_key; /* both or none */
	const char *label_value;
	const char *after; /* id of the last one of the page before, or "" */
	unsigned limit;
	bool of_members; /* members alone, which no other list has */
};

/*
 * Lists, here and below, call `each` without any lock, so it may use the store. They read a page of rows at a time:
 * a row that comes or goes meanwhile may be listed or not; none is listed twice.
 *
 * Calls each for up to limit rows in order of id, until it says false; the record is borrowed.
 */
int store_sandbox_list(struct store *store, const struct store_filter *filter,
	bool (*each)(const struct sandbox_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* Ids of sandboxes whose row says that they are idle for too long, or past their end; how many. */
int store_sandbox_due(struct store *store, int64_t now_ms, char ids[][ID_LEN + 1], unsigned max,
	struct err *err) must_check;

/*
 * Ids of sandboxes that are `creating` and wait for a job (NULL: for any), in order from the one after `after`
 * on; how many, at most max.
 */
int store_sandbox_unmade(struct store *store, const char *job, const char *after,
	char ids[][ID_LEN + 1], unsigned max, struct err *err) must_check;

/* Writes when a running sandbox was last used; not a change of state, so errors are not fatal. */
int store_sandbox_touch(
	struct store *store, const char *id, int64_t last_active_at_ms, struct err *err) must_check;

/* Notes that every sandbox that ran was ended, all at once. */
int store_sandbox_end_all(struct store *store, enum end_reason reason, const char *detail,
	struct err *err) must_check;

struct workspace_record {
	char id[ID_LEN + 1];
	struct owner owner;
	int64_t created_at_ms;	     /* with the first sandbox of its id */
	int64_t disk_bytes;	     /* what it counts of the quota; -1: to be measured */
	int64_t output_bytes;	     /* what is kept of its processes' output, likewise */
	int64_t removed_at_ms;	     /* when its last sandbox was; 0: not known, or never */
	char name[SANDBOX_NAME_MAX]; /* of that sandbox; may be empty */
};

int store_workspace_get(struct store *store, const struct owner *owner, const char *id,
	struct workspace_record *ret_record, struct err *err) must_check;

/* Calls each for up to limit workspaces that no sandbox has, in order of id, those after `after`, until it says
 * false. */
int store_workspace_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct workspace_record *record, void *arg), void *arg,
	struct err *err) must_check;

/* Ids of workspaces whose sandbox was removed until then; how many. One that was removed nobody knows when counts
 * as removed at now_ms. */
int store_workspace_due(struct store *store, int64_t now_ms, int64_t until_ms,
	char ids[][ID_LEN + 1], unsigned max, struct err *err) must_check;

/*
 * What its disk counts from now on. Only for somebody who has measured what is on it, and keeps sandboxes of its
 * id from growing meanwhile.
 */
int store_workspace_set_disk(
	struct store *store, const char *id, uint64_t disk_bytes, struct err *err) must_check;

/* The same for one that was kept before disks were counted, unless a sandbox took it up meanwhile. */
int store_workspace_note_measured(
	struct store *store, const char *id, uint64_t disk_bytes, struct err *err) must_check;

/* What is kept of the output of its processes. */
int store_workspace_set_output(
	struct store *store, const char *id, uint64_t output_bytes, struct err *err) must_check;

/* Ids after `after` of workspaces that were not measured yet, in order, at most max; how many. */
int store_workspace_unmeasured(struct store *store, const char *after, char ids[][ID_LEN + 1],
	unsigned max, struct err *err) must_check;

/* Removes a workspace and its sandbox, if any. */
int store_workspace_delete(struct store *store, const char *id, struct err *err) must_check;

/*
 * Processes, by sandbox and number (store_process.c). Their owner is the sandbox's: whoever asks has
 * looked that up before. A row goes with its workspace.
 */
int store_process_insert(struct store *store, const struct process_record *record, struct err *err)
	must_check;
int store_process_update(struct store *store, const struct process_record *record, struct err *err)
	must_check;
int store_process_delete(
	struct store *store, const char *sandbox_id, uint32_t number, struct err *err) must_check;
int store_process_get(struct store *store, const char *sandbox_id, uint32_t number,
	struct process_record *ret_record, struct err *err) must_check;

/* The first with a number above `after`: 1, or 0 if there is none. */
int store_process_next(struct store *store, const char *sandbox_id, uint32_t after,
	struct process_record *ret_record, struct err *err) must_check;

/* Calls each for all of a sandbox in order, or only for those of whom something runs; borrowed. */
int store_process_list(struct store *store, const char *sandbox_id, bool running_only,
	void (*each)(const struct process_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* The highest number that was given out in a sandbox; 0 if none is known. */
int store_process_last(struct store *store, const char *sandbox_id, uint32_t *ret_number,
	struct err *err) must_check;

/* Ended ones beyond the last `keep`, at most max of them; how many. */
int store_process_surplus(struct store *store, const char *sandbox_id, unsigned keep,
	uint32_t numbers[], unsigned max, struct err *err) must_check;

/* Notes that all that ran in a sandbox (NULL: in any) were ended with it. */
int store_process_end_all(struct store *store, const char *sandbox_id,
	const struct termination *how, struct err *err) must_check;

/* Links that open previews (store_preview.c). One is known by the SHA-256 of its secret. */
#define PREVIEW_ORIGIN_MAX 200 /* of a page that frames a preview, with NUL */

struct preview_link {
	char id[ID_LEN + 1];
	char sandbox_id[ID_LEN + 1];
	uint16_t port;
	int64_t created_at_ms, expires_at_ms;
	char frame_origin[PREVIEW_ORIGIN_MAX]; /* "": it is opened in a window, not in a frame */
};

#define STORE_PREVIEW_LINKS_MAX 100 /* of a port */

/* Also forgets those that have expired. ERR_RATE if the port has its share. */
int store_preview_link_add(struct store *store, const struct preview_link *link,
	const unsigned char hash[32], struct err *err) must_check;
/* ERR_UNAUTHENTICATED if there is none, or none any more. */
int store_preview_link_get(struct store *store, const unsigned char hash[32],
	struct preview_link *ret_link, struct err *err) must_check;
/* Those of a port that have not expired, the oldest first; how many. */
int store_preview_link_list(struct store *store, const char *sandbox_id, uint16_t port,
	struct preview_link *links, size_t max, struct err *err) must_check;
int store_preview_link_delete(struct store *store, const char *sandbox_id, uint16_t port,
	const char *id, struct err *err) must_check;

/* A token (store_token.c), without its secret: that is known by nothing but its SHA-256. */
struct token_record {
	char id[TOKEN_ID_MAX];
	char name[MODEL_NAME_MAX]; /* may be empty */
	struct owner owner;
	unsigned scopes; /* of enum scope */
	int64_t created_at_ms;
	int64_t expires_at_ms;	 /* 0: never */
	int64_t last_used_at_ms; /* 0: never; as precise as its caller touches it */
};

/* Adds one, or gives the one of that id another secret. */
int store_token_put(struct store *store, const struct token_record *token,
	const unsigned char hash[32], struct err *err) must_check;

/* Whose secret it is; ERR_UNAUTHENTICATED if nobody's, or no longer at now_ms. */
int store_token_find(struct store *store, const unsigned char hash[32], int64_t now_ms,
	struct token_record *ret_token, struct err *err) must_check;

/* What it is found by, of a token by its id; ERR_NOT_FOUND. */
int store_token_hash(struct store *store, const char *id, unsigned char ret_hash[32],
	struct err *err) must_check;
int store_token_get(struct store *store, const struct owner *owner, const char *id,
	struct token_record *ret_token, struct err *err) must_check;

/* Calls each for up to limit tokens in order of id, those after `after`. */
int store_token_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, void (*each)(const struct token_record *token, void *arg), void *arg,
	struct err *err) must_check;

/* ERR_NOT_FOUND if the owner has none of that id. */
int store_token_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err) must_check;

/* Notes that it was used. */
int store_token_touch(struct store *store, const char *id, int64_t now_ms, struct err *err)
	must_check;
