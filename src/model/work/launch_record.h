/* SPDX-License-Identifier: Apache-2.0 */
/* A launch: one run of the pipeline that makes an app of files. This is its row in the database. */
#pragma once

#include "base/err.h"
#include "model/id.h"
#include "model/sandbox/sandbox_record.h"

#include <jansson.h>

#define LAUNCH_WORD_MAX 40 /* with NUL: of a stage, of a cause */

enum launch_status {
	LAUNCH_RUNNING, /* or waits for its turn */
	LAUNCH_SUCCEEDED,
	LAUNCH_FAILED,
	LAUNCH_CANCELLED,
	LAUNCH_STATUS_COUNT,
};

struct launch_record {
	char id[ID_LEN + 1]; /* that of its job too */
	struct owner owner;
	char project[MODEL_NAME_MAX]; /* empty: none */
	char sandbox_id[ID_LEN + 1];
	enum launch_status status;
	char failed_stage[LAUNCH_WORD_MAX], cause[LAUNCH_WORD_MAX]; /* empty: none */
	/* object: {"stages", "detection", "findings", "error", "port", "backend_port", "input"}; owned, not NULL */
	json_t *document;
	int64_t created_at_ms, ended_at_ms; /* by the clock of the database; 0: not yet */
};

void launch_record_fini(struct launch_record *record);

const char *launch_status_name(enum launch_status status);
int launch_status_parse(const char *name, enum launch_status *ret_status) must_check;

/* Nobody's, or somebody else's. Returns -ENOENT. */
int launch_not_found(const char *id, struct err *err);
