/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on their way into a project: any number come one after the other, and become part of it together, or not at
 * all. Memory is bounded: content goes to disk, paths of files have a maximum.
 */
#pragma once

#include "core/project/projects.h"

#define PROJECT_UPLOAD_FILES 10000

struct project_upload;

/*
 * Begins an upload by a caller, who may change the project. numbers: a path that is taken gets a number, as
 * "a (1).txt"; else the file that has it is replaced. The record is borrowed.
 */
int project_upload_open(struct projects *projects, const struct project_record *record,
	const struct caller *caller, bool numbers, struct project_upload **ret_upload,
	struct err *err) must_check;

/*
 * The files come from a directory that the project follows: they are marked so. If it is `whole`, files with that mark
 * that do not come in this upload are removed by the commit; an upload without files is refused then.
 */
void project_upload_sync(struct project_upload *upload, bool whole);

/* A file begins, of which the bytes follow, and then its end. ERR_INVALID for a path that is not safe. */
int project_upload_begin(struct project_upload *upload, const char *path, bool is_executable,
	struct err *err) must_check;
/* ERR_TOO_LARGE, ERR_NO_SPACE, ERR_RATE (its owner's quota). */
int project_upload_write(
	struct project_upload *upload, const void *data, size_t len, struct err *err) must_check;
/* ERR_MEDIA_TYPE: files of its type are not taken. */
int project_upload_end(struct project_upload *upload, struct err *err) must_check;

/* Adds a file with the content of an earlier one of this upload; ERR_INVALID if there is none. */
int project_upload_copy(struct project_upload *upload, const char *path, const char *from,
	struct err *err) must_check;

/* All files become part of the project, on disk and in the database. */
int project_upload_commit(struct project_upload *upload, struct err *err) must_check;

/* Those that came so far; after the commit with the paths that they got. */
size_t project_upload_count(const struct project_upload *upload);
const struct project_file *project_upload_file(const struct project_upload *upload, size_t i);

/* The paths of those that the commit removed, as keys; NULL: it removes none. Borrowed. */
const json_t *project_upload_removed(const struct project_upload *upload);

/* Ends one. What was not committed goes. */
void project_upload_close(struct project_upload *upload);
void project_upload_closep(struct project_upload **upload);
