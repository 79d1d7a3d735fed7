/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects: sets of files of an owner, and what sandboxes of them are like.
 *
 * The rows are the truth. Content is written and named first, then the rows, then the links that sandboxes see
 * (project_tree.h): after a crash at any point projects_settle() makes the disk what the rows say. A project's
 * directory that no row knows stays, since the database may be an older one.
 *
 * Each project has a lock, which whoever changes it holds; it comes before that of the store.
 */
#pragma once

#include "blob/blob_store.h"
#include "core/engine/event_bus.h"
#include "model/access/caller.h"
#include "model/work/project_record.h"
#include "store/store.h"

struct engine;
struct projects;
struct sandbox;
struct sandbox_spec;

struct projects_config {
	struct store *store;   /* borrowed */
	struct event_bus *bus; /* borrowed */
	int dir_fd;	       /* borrowed: a directory of the daemon's own */
	uint64_t disk_reserve; /* what its disk keeps free */
	uint64_t file_max;     /* bytes of a file */
	const char *types;     /* media types of files that are taken; borrowed */
};

struct projects *projects_new(const struct projects_config *config);
void projects_free(struct projects *projects);

/* When the daemon starts: finishes or undoes what was cut short. */
int projects_settle(struct projects *projects, struct err *err) must_check;

/* Makes one without files; labels and defaults are borrowed, or NULL. The caller ends the record. */
int projects_create(struct projects *projects, const struct owner *owner, const char *name,
	const json_t *labels, const json_t *defaults, struct project_record *ret_record,
	struct err *err) must_check;

/* That of a name or an id; made if it is a name that the owner does not have yet. */
int projects_take(struct projects *projects, const struct owner *owner, const char *text,
	struct project_record *ret_record, struct err *err) must_check;

/* What is to change; NULL: stays. */
struct project_change {
	const char *name;
	const json_t *labels, *defaults;
};
int projects_change(struct projects *projects, const struct owner *owner, const char *text,
	const struct project_change *change, struct project_record *ret_record, struct err *err)
	must_check;

/* Removes one with its files. ERR_CONFLICT while a sandbox has it. */
int projects_remove(struct projects *projects, const struct owner *owner, const char *text,
	struct err *err) must_check;

/* --- files (project_upload.h adds them) --- */

/* The content of a file, open for reading. */
int projects_open_file(struct projects *projects, const char *project,
	const struct project_file *file, int *ret_fd, struct err *err) must_check;

int projects_delete_file(struct projects *projects, const struct project_record *record,
	const struct project_file *file, struct err *err) must_check;

/* Gives a file another path. */
int projects_move_file(struct projects *projects, const struct project_record *record,
	const struct project_file *file, const char *path, struct project_file *ret_file,
	struct err *err) must_check;

/* --- sandboxes --- */

/* Shows a sandbox that just started the files of its project, if it has one. life is held. */
int projects_show(struct sandbox *sandbox, struct err *err) must_check;

/* What was found and repaired. */
struct projects_scrub {
	uint64_t projects, files;
	uint64_t blobs_removed; /* content that no file has */
	uint64_t links_made;	/* that sandboxes did not see */
	uint64_t links_removed; /* that sandboxes saw, and no row had */
	uint64_t
		damaged; /* contents that have not the size or hash that they should; their files are missing */
	uint64_t missing;      /* files whose content is gone; they stay, to be uploaded again */
	json_t *missing_files; /* the first of them: {"project", "path", "sha256"}; the caller's */
	uint64_t unknown;      /* directories that no row knows; they stay */
};

/* Compares rows and disk of all projects, and reads all contents, which takes its time. */
int projects_scrub(struct projects *projects, struct projects_scrub *ret_scrub, struct err *err)
	must_check;

/* --- for project_upload.c --- */

const struct projects_config *projects_config_of(const struct projects *projects);
struct file_types *projects_file_types(struct projects *projects);
void projects_lock(struct projects *projects, const char *id);
void projects_unlock(struct projects *projects, const char *id);

/* Removes content that no file of the project has any more. The lock is held. */
struct project_tree;
void projects_drop_content(
	struct projects *projects, const char *id, struct project_tree *tree, const char *sha256);

/* Tells followers that files came or went. */
void projects_publish(struct projects *projects, const struct project_record *record);
