/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project: a named set of files of an owner, which its sandboxes see read-only at
 * /workspace/project_files, and what they are unless they were asked for otherwise.
 */
#pragma once

#include "model/sandbox/sandbox_record.h"

#define PROJECT_PATH_MAX   1024 /* of a file, with NUL */
#define PROJECT_NAME_MAX   255	/* of each part of a path */
#define PROJECT_DEPTH_MAX  32	/* parts of a path */
#define PROJECT_TYPE_MAX   96	/* of a media type, with NUL */
#define PROJECT_SHA256_LEN 64

struct project_record {
	char id[ID_LEN + 1];
	struct owner owner;
	char name[MODEL_NAME_MAX];
	json_t *labels;	  /* owned, never NULL */
	json_t *defaults; /* of its sandboxes, as a request gave them; owned, never NULL */
	int64_t created_at_ms, updated_at_ms;
	uint64_t files, bytes; /* how many it has, and of what size together */
};

struct project_file {
	char id[ID_LEN + 1];
	char path[PROJECT_PATH_MAX];
	uint64_t bytes;
	char sha256[PROJECT_SHA256_LEN + 1];
	char type[PROJECT_TYPE_MAX]; /* "text/plain" */
	bool is_executable;
	char uploader[MODEL_NAME_MAX]; /* the user */
	bool is_synced; /* it came from a directory that the project follows, and goes with it */
	int64_t created_at_ms;
};

void project_record_init(struct project_record *record);
void project_record_fini(struct project_record *record);

/* Whether a project may have that name: as of a sandbox's project, and not the form of an id. */
bool project_name_is_valid(const char *name);

/*
 * What is wrong with the path of a file, in words that follow "a path"; NULL if it is safe: relative, in
 * its plain form, UTF-8, without control characters and backslashes.
 */
const char *project_path_problem(const char *path);

/* The path with a number before the ending: "dir/a (2).txt". False if it does not fit. */
bool project_path_number(const char *path, unsigned number, char ret_path[PROJECT_PATH_MAX]);

/* Sets ERR_NOT_FOUND. */
int project_not_found(const char *text, struct err *err);
int project_file_not_found(const char *text, struct err *err);
