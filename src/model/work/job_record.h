/* SPDX-License-Identifier: Apache-2.0 */
/* A job: something that outlasts the request which asked for it. This is its row in the database. */
#pragma once

#include "base/err.h"
#include "model/id.h"
#include "model/sandbox/sandbox_record.h"

#include <jansson.h>

#define JOB_KIND_MAX	 32 /* with NUL, as the next ones */
#define JOB_TARGET_MAX	 256
#define JOB_KEY_MAX	 128
#define JOB_PROGRESS_MAX 160

enum job_state {
	JOB_QUEUED,
	JOB_RUNNING,
	JOB_SUCCEEDED,
	JOB_FAILED,
	JOB_CANCELLED,
	JOB_LOST, /* the daemon ended while it ran, and its kind cannot go on */
	JOB_STATE_COUNT,
};

/* The JSON members are owned and never NULL. */
struct job_record {
	char id[ID_LEN + 1];
	char kind[JOB_KIND_MAX];
	struct owner owner;
	char target[JOB_TARGET_MAX]; /* what it is about: a name or id; may be empty */
	char key[JOB_KEY_MAX];	     /* what joins the same request; empty: nothing does */
	json_t *input;		     /* object: what its kind needs to run it again */
	enum job_state state;
	bool is_cancelling; /* somebody asked for its end */
	unsigned tries;	    /* how often it was begun */
	char progress[JOB_PROGRESS_MAX];
	uint64_t done_bytes, total_bytes; /* 0: not known */
	json_t *result;			  /* object: what came of it */
	enum err_kind
		error_kind; /* ERR_NONE: it did not fail, or a version before this one wrote it */
	char error_code[40], error_message[320], error_remedy[196];
	int64_t created_at_ms, started_at_ms, ended_at_ms; /* 0: not yet */
};

void job_record_init(struct job_record *record);
void job_record_fini(struct job_record *record);

/* A copy that shares nothing with the original. */
void job_record_copy(struct job_record *to, const struct job_record *from);

const char *job_state_name(enum job_state state);
int job_state_parse(const char *name, enum job_state *ret_state) must_check;

static inline bool job_state_is_active(enum job_state state)
{
	return state == JOB_QUEUED || state == JOB_RUNNING;
}

/* Nobody's, or somebody else's. Returns -ENOENT. */
int job_not_found(const char *id, struct err *err);
