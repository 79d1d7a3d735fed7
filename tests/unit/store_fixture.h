/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a temporary directory, and rows to put into it. */
#pragma once

#include "store/store.h"

extern const struct owner alice, bob, other_alice;

struct fixture {
	char dir[64];
	char path[96];
	struct store *store;
};

int setup_empty(void **state); /* only the directory */
int setup(void **state);       /* opened */
int teardown(void **state);
void open_store(struct fixture *fixture);
void reopen(struct fixture *fixture);

/* An id with that number; eight of them live at a time. */
const char *id_of(unsigned n);
struct sandbox_record draft(const struct owner *owner, const char *id, const char *project);
int insert(struct store *store, const struct owner *owner, const char *id, const char *project,
	struct err *err);
void must_insert(
	struct store *store, const struct owner *owner, const char *id, const char *project);
bool exists(struct store *store, const struct owner *owner, const char *id);

/* SQL that takes the schema back to 33: projects were words, and sandboxes had no members. */
#define BACK_TO_SCHEMA_33                                                                          \
	"DROP TABLE dependency_files;"                                                             \
	"ALTER TABLE preview_links DROP COLUMN frame_origin;"                                      \
	"ALTER TABLE quotas DROP COLUMN danger; ALTER TABLE executions DROP COLUMN danger;"        \
	"DROP INDEX sandboxes_parent; ALTER TABLE sandboxes DROP COLUMN parent_id;"                \
	"ALTER TABLE sandboxes DROP COLUMN role; ALTER TABLE sandboxes DROP COLUMN members;"       \
	"DROP TABLE launches; DROP TABLE projects; DROP TABLE project_files; DROP INDEX "          \
	"sandboxes_tuple;"                                                                         \
	"ALTER TABLE sandboxes DROP COLUMN session;"                                               \
	"ALTER TABLE quotas DROP COLUMN projects_bytes;"                                           \
	"CREATE UNIQUE INDEX sandboxes_tuple ON sandboxes(organization, user, project)"            \
	" WHERE project IS NOT NULL;"                                                              \
	"PRAGMA user_version = 33;"

/* SQL that takes the schema back to 27: there were no executions, contexts, functions, logins and pools, and sandboxes
 * had no packages. */
#define BACK_TO_SCHEMA_27                                                                          \
	BACK_TO_SCHEMA_33                                                                          \
	"DROP TABLE pooled; DROP TABLE contexts; DROP TABLE functions; DROP TABLE artifacts;"      \
	"DROP TABLE logins; DROP TABLE executions;"                                                \
	"ALTER TABLE sandboxes DROP COLUMN dependencies;"                                          \
	"ALTER TABLE build_cache DROP COLUMN note;"                                                \
	"PRAGMA user_version = 27;"

/* SQL that takes the schema back to 25: jobs did not know the kind of their error, and no sandbox waited for one. */
#define BACK_TO_SCHEMA_25                                                                          \
	BACK_TO_SCHEMA_27                                                                          \
	"ALTER TABLE layer_files DROP COLUMN python;"                                              \
	"DROP INDEX sandboxes_job; ALTER TABLE sandboxes DROP COLUMN job;"                         \
	"ALTER TABLE jobs DROP COLUMN error_kind; PRAGMA user_version = 25;"

/* SQL that takes the schema back to 24: nothing was noted of layers but who has them. */
#define BACK_TO_SCHEMA_24                                                                          \
	BACK_TO_SCHEMA_25                                                                          \
	"DROP TABLE layer_files; ALTER TABLE layers DROP COLUMN used_at;"                          \
	"ALTER TABLE quotas DROP COLUMN images_bytes;"                                             \
	"PRAGMA user_version = 24;"

/* SQL that takes the schema back to 17: workspaces had uid ranges. */
#define BACK_TO_SCHEMA_17                                                                          \
	BACK_TO_SCHEMA_24                                                                          \
	"DROP TABLE snapshots;"                                                                    \
	"DROP TABLE builders; DROP TABLE build_cache; DROP TABLE templates; DROP TABLE layers; "   \
	"ALTER TABLE sandboxes DROP COLUMN image;"                                                 \
	"DROP TABLE jobs; DROP TABLE reached;"                                                     \
	"CREATE TABLE workspaces_17 (id TEXT PRIMARY KEY, organization TEXT NOT NULL,"             \
	" user TEXT NOT NULL, slot INTEGER NOT NULL UNIQUE, created_at INTEGER NOT NULL,"          \
	" disk_bytes INTEGER NOT NULL DEFAULT -1, output_bytes INTEGER NOT NULL DEFAULT -1,"       \
	" removed_at INTEGER NOT NULL DEFAULT 0, name TEXT NOT NULL DEFAULT '')"                   \
	" WITHOUT ROWID;"                                                                          \
	"INSERT INTO workspaces_17 SELECT id, organization, user,"                                 \
	" row_number() OVER (ORDER BY id), created_at, disk_bytes, output_bytes, removed_at, "     \
	"name FROM workspaces;"                                                                    \
	"DROP TABLE workspaces; ALTER TABLE workspaces_17 RENAME TO workspaces;"                   \
	"CREATE INDEX workspaces_owner ON workspaces(organization, user, disk_bytes, "             \
	"output_bytes);"                                                                           \
	"CREATE TRIGGER generation_workspace_comes AFTER INSERT ON workspaces"                     \
	" BEGIN UPDATE generation SET number = number + 1; END;"                                   \
	"CREATE TRIGGER generation_workspace_goes AFTER DELETE ON workspaces"                      \
	" BEGIN UPDATE generation SET number = number + 1; END;"                                   \
	"PRAGMA user_version = 17;"

/* SQL that takes the schema back to 11. */
#define BACK_TO_SCHEMA_11                                                                          \
	BACK_TO_SCHEMA_17                                                                          \
	"DROP TRIGGER generation_workspace_comes; DROP TRIGGER generation_workspace_goes;"         \
	"DROP TRIGGER generation_sandbox_comes; DROP TRIGGER generation_sandbox_goes;"             \
	"DROP TABLE generation; DROP TABLE clock; DROP INDEX workspaces_owner;"                    \
	"DROP INDEX sandboxes_name; ALTER TABLE sandboxes DROP COLUMN name;"                       \
	"ALTER TABLE workspaces DROP COLUMN removed_at;"                                           \
	"ALTER TABLE workspaces DROP COLUMN name;"                                                 \
	"ALTER TABLE workspaces DROP COLUMN disk_bytes;"                                           \
	"ALTER TABLE workspaces DROP COLUMN output_bytes;"                                         \
	"CREATE INDEX workspaces_owner ON workspaces(organization, user);"                         \
	"PRAGMA user_version = 11"

/* Runs SQL on the file itself. */
void execute(const char *path, const char *sql);
