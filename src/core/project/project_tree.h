/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project on disk, in a directory of the daemon's own that has the project's id as its name:
 *
 *   blobs/   the content of its files, by SHA-256, each once (blob/blob_store.h)
 *   files/   a tree of links to them under the names that the files have, which sandboxes see read-only
 *
 * Both follow from the rows of the database. Sandboxes see blobs by links, so no two projects share them: else the
 * number of links would tell an owner what others have.
 *
 * The caller holds the lock of the project (projects.h).
 */
#pragma once

#include "blob/blob_store.h"
#include "model/work/project_record.h"

struct project_tree {
	int dir_fd;
	int files_fd;
	struct blob_store *blobs;
};

/* Opens that of a project, and makes what is missing of it. */
int project_tree_open(int projects_fd, const char *id, uint64_t disk_reserve,
	struct project_tree *ret_tree, struct err *err) must_check;
void project_tree_close(struct project_tree *tree);

/* Links the content of a file, which is there, to its path, in the place of what is there. */
int project_tree_put(struct project_tree *tree, const struct project_file *file, struct err *err)
	must_check;

/* Whether the path of a file leads to its content. */
bool project_tree_has(struct project_tree *tree, const struct project_file *file);

/* Removes the link at a path, and the directories that are empty then. */
void project_tree_drop(struct project_tree *tree, const char *path);

/*
 * Removes each link for whose path `keeps` says 0, and empty directories: how many links; or what `keeps` said below 0.
 */
int project_tree_prune(
	struct project_tree *tree, int (*keeps)(void *arg, const char *path), void *arg);

/* Removes a directory with all that is in it. */
int project_tree_remove(int projects_fd, const char *name, struct err *err) must_check;

/* The digest of a row's hash. */
struct digest project_tree_digest(const char *sha256);
