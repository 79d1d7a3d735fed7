/* SPDX-License-Identifier: Apache-2.0 */
/* An execution: code that was run for its result. This is its row in the database. */
#pragma once

#include "base/err.h"
#include "model/id.h"
#include "model/process/danger.h"
#include "model/sandbox/sandbox_record.h"

#include <jansson.h>

#define EXECUTION_LANGUAGE_MAX 16 /* with NUL, as the next ones */
#define EXECUTION_HANDLER_MAX  128

enum execution_status {
	EXECUTION_RUNNING,
	EXECUTION_QUEUED, /* its client knows of it, and what it needs is still to come: its image, its packages */
	EXECUTION_SUCCEEDED,
	EXECUTION_FAILED,
	EXECUTION_TIMEOUT,
	EXECUTION_CANCELLED,
	EXECUTION_LOST, /* it was ended by something that was not its own doing, or nobody knows how */
	EXECUTION_STATUS_COUNT,
};

struct execution_record {
	char id[ID_LEN + 1];
	struct owner owner;
	char sandbox_id[ID_LEN + 1]; /* empty while it is queued */
	bool is_fresh; /* that sandbox was made for it alone, and is removed with its end */
	char function[MODEL_NAME_MAX]; /* that it is a call of, or empty */
	uint32_t version;	       /* of that function */
	char context_id[ID_LEN + 1];   /* the context that it runs in, or empty */
	char language[EXECUTION_LANGUAGE_MAX];
	char handler[EXECUTION_HANDLER_MAX]; /* as it was asked for, or empty */
	bool has_handler;		     /* it was asked for as a call of a handler */
	enum execution_status status;
	bool is_cancelling; /* somebody asked for its end */
	uint32_t process;   /* number of its process in the sandbox */
	uint64_t from;	    /* of a context: where in the process's output it begins */
	uint64_t timeout_ms;
	danger_set danger; /* what its code was flagged for */
	json_t *request;   /* object: what was asked for; NULL: too large to be kept, or not read */
	json_t *outcome;   /* object: what came of it; NULL: not over, or not read */
	uint64_t outcome_bytes; /* of both as text */
	uint64_t duration_us;	/* from the request to its end */
	int64_t created_at_ms;
	int64_t ended_at_ms; /* 0: it runs */
};

void execution_record_fini(struct execution_record *record);

/* A copy; request and outcome, which nobody changes once they are there, are shared. */
void execution_record_copy(struct execution_record *to, const struct execution_record *from);

const char *execution_status_name(enum execution_status status);
int execution_status_parse(const char *name, enum execution_status *ret_status) must_check;

/* Nobody's, or somebody else's. Returns -ENOENT. */
int execution_not_found(const char *id, struct err *err);
