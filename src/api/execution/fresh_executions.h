/* SPDX-License-Identifier: Apache-2.0 */
/* Executions without a sandbox: one is made for each, and removed when the execution is over. */
#pragma once

#include "api/execution/execution_answer.h"

struct function_place;

/* What is to be run. */
struct fresh_execution {
	json_t *object; /* a body of POST /v1/executions; taken over */
	bool is_again;	/* it was run before: what was confirmed then is not asked for again */
	bool is_async;	/* it is answered at once, whatever the object says */
	const char *function; /* that it is a call of, borrowed; NULL: none */
	uint32_t version;
	const json_t *
		imports; /* modules that an interpreter may have loaded for it, borrowed; NULL: none */
	struct function_place *place; /* taken over, also on failure */
	execution_finish_fn finish; /* how it is answered when it is over; NULL: as an execution */
};

/* Runs it, and answers. */
int fresh_executions_start(struct request *req, struct api *api,
	const struct fresh_execution *execution, struct err *err) must_check;

/* Executions like this one, a body of POST /v1/executions, may come: an interpreter is to wait with these imports. */
void fresh_executions_expect(
	struct api *api, const struct owner *owner, const json_t *request, const json_t *imports);
