/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as JSON, and what a client asks to be executed. */
#pragma once

#include "api/api.h"
#include "core/execution/execution.h"

/* The body of POST .../executions, and what its spec points to. */
struct execution_body {
	struct execution_spec spec;
	bool is_async;
	bool is_kept; /* it goes on when its client leaves */
	struct text_pair env[SPEC_ENV_MAX];
};

/* It borrows from the request's body. */
int execution_body_decode(
	const struct request *req, struct execution_body *ret_body, struct err *err) must_check;

/* With its outcome, if the record has one. */
json_t *execution_body_encode(const struct api *api, const struct execution_record *record);
