/* SPDX-License-Identifier: Apache-2.0 */
/* A context: an interpreter in a sandbox that keeps its state between executions. This is its row in the database. */
#pragma once

#include "base/err.h"
#include "model/work/execution_record.h"

#define CONTEXT_CWD_MAX	   4096 /* with NUL, as the next */
#define CONTEXT_REASON_MAX 192

struct context_record {
	char id[ID_LEN + 1];
	char sandbox_id[ID_LEN + 1];
	char language[EXECUTION_LANGUAGE_MAX];
	char cwd[CONTEXT_CWD_MAX]; /* where it began; empty: as of commands */
	json_t *env;		   /* object; owned */
	int64_t idle_timeout_s;	   /* it ends when nothing ran in it for so long; 0: never */
	uint32_t process;	   /* number of its process in the sandbox; 0: none */
	uint32_t starts;	   /* interpreters that it has had */
	bool is_lost; /* the state of the last one is lost, and the next is not there yet */
	char reason[CONTEXT_REASON_MAX]; /* why it ended, or lost its state; else empty */
	int64_t created_at_ms;
	int64_t used_at_ms;
	int64_t ended_at_ms; /* 0: it takes executions */
};

void context_record_fini(struct context_record *record);
void context_record_copy(struct context_record *to, const struct context_record *from);

/* There is none of that id in this sandbox. Returns -ENOENT. */
int context_not_found(const char *id, struct err *err);
