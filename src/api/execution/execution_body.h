/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as JSON, and what a client asks to be executed. */
#pragma once

#include "api/api.h"
#include "api/sandbox/sandbox_body.h"
#include "core/execution/execution.h"

/* The body of POST .../executions, and what its spec points to. */
struct execution_body {
	struct execution_spec spec;
	const char *context; /* the id of one, or NULL */
	const char *confirm; /* borrowed; NULL: none */
	bool is_async;
	bool is_kept; /* it goes on when its client leaves */
	struct text_pair env[SPEC_ENV_MAX];
};

/* It borrows from the object. Of a fresh one the object also says what sandbox is wanted, which is large: on the heap,
 * of zeros. */
int execution_body_decode(const json_t *object, bool is_fresh, struct execution_body *ret_body,
	struct err *err) must_check;
int execution_body_decode_sandbox(
	const json_t *object, struct sandbox_body *ret_body, struct err *err) must_check;

/* For fields that name a handler. */
const char *execution_body_check_handler(const json_t *handler);

/* With its outcome, if the record has one. */
json_t *execution_body_encode(const struct api *api, const struct execution_record *record);
