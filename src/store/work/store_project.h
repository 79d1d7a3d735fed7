/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects and their files in the database. The rows are the truth; what core/project has on disk follows
 * from them.
 */
#pragma once

#include "model/work/project_record.h"
#include "store/store.h"

#define STORE_PROJECTS_MAX	1000  /* of an owner */
#define STORE_PROJECT_FILES_MAX 50000 /* of a project */

/* Adds one without files. ERR_CONFLICT: the owner has one of that name; ERR_RATE: too many. */
int store_project_insert(struct store *store, const struct project_record *record, struct err *err)
	must_check;

/* That of an id or a name; ERR_NOT_FOUND. The caller ends the record. */
int store_project_get(struct store *store, const struct owner *owner, const char *id_or_name,
	struct project_record *ret_record, struct err *err) must_check;

/*
 * Writes name, labels and defaults. ERR_CONFLICT: the name is another one's, or changes while sandboxes have
 * the project. ERR_NOT_FOUND: it is gone.
 */
int store_project_update(struct store *store, const struct project_record *record, struct err *err)
	must_check;

/* Deletes one with the rows of its files. ERR_CONFLICT while a sandbox has it; ERR_NOT_FOUND. */
int store_project_delete(
	struct store *store, const struct owner *owner, const char *id, struct err *err) must_check;

/* Calls each in order of ids, after an id, until it says false; at most limit. The callback may use the store. */
int store_project_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct project_record *record, void *arg), void *arg,
	struct err *err) must_check;

/* --- files --- */

/* Files that come together: all or none. */
struct store_project_upload {
	const char *project; /* id */
	const struct owner *owner;
	struct project_file *const *files;
	size_t count;
	bool numbers; /* a path that is taken gets a number; else its file is replaced */
	/* NULL, or an object: files that are synced and not among these go, and are put there by their paths, with
	 * their hashes. */
	json_t *removed;
};

/*
 * Adds files; paths may get numbers. Calls gone for the hash of each that was replaced. ERR_RATE: the quota, or too many files;
 * ERR_CONFLICT: a path that leads through a file, or is a directory; ERR_NOT_FOUND: the project is gone.
 */
int store_project_add(struct store *store, const struct store_project_upload *upload,
	void (*gone)(void *arg, const char *sha256), void *arg, struct err *err) must_check;

/* By id, or by its path; ERR_NOT_FOUND. */
int store_project_file_get(struct store *store, const char *project, const char *id_or_path,
	struct project_file *ret_file, struct err *err) must_check;

/* In order of paths, after a path. */
int store_project_file_list(struct store *store, const char *project, const char *after,
	unsigned limit, bool (*each)(const struct project_file *file, void *arg), void *arg,
	struct err *err) must_check;

int store_project_file_delete(
	struct store *store, const char *project, const char *id, struct err *err) must_check;
int store_project_file_move(struct store *store, const char *project, const char *id,
	const char *path, struct err *err) must_check;

/* Whether a file of the project has this content: 1 or 0. */
int store_project_uses(
	struct store *store, const char *project, const char *sha256, struct err *err) must_check;
