/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: the row in the database. It outlives its sandbox, so it keeps all that a new sandbox of
 * its files needs.
 */
#pragma once

#include "model/sandbox/sandbox_record.h"

#define SNAPSHOT_NAME_MAX 64 /* with NUL */

enum snapshot_status {
	SNAPSHOT_UNFINISHED, /* it is being made, or removed: nobody sees it */
	SNAPSHOT_READY,
};

struct snapshot_record {
	char id[ID_LEN + 1];
	enum snapshot_status status;
	struct owner owner;
	char sandbox_id[ID_LEN + 1];  /* whose files it has; that sandbox may be gone */
	char name[SNAPSHOT_NAME_MAX]; /* for people; empty: none */
	bool is_checkpoint;	      /* made before a command, for an undo */
	uint64_t bytes;		      /* of the host's disk */
	int64_t created_at_ms;
	/* What the sandbox was (snapshot_record_describe). Owned, never NULL. */
	json_t *settings;
};

void snapshot_record_fini(struct snapshot_record *record);

/* 1 to 63 characters that can be printed. */
bool snapshot_name_is_valid(const char *name);

/* What a sandbox is, but for its id, name and project, which only one sandbox can have; new. */
json_t *snapshot_record_describe(const struct sandbox_record *record);

/* Gives a record what snapshot_record_describe() noted. */
void snapshot_record_apply(const json_t *settings, struct sandbox_record *record);

/* The record of a new sandbox with the files and settings of a snapshot; the caller may change it. */
void snapshot_record_draft(const struct snapshot_record *snapshot, const char *driver,
	struct sandbox_record *ret_draft);

/* Nobody's, or somebody else's: the two are told apart by nothing. Returns -ENOENT. */
int snapshot_not_found(const char *id, struct err *err);
