/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as JSON: what is put, and what is answered; and a call of one as the body of an execution. */
#pragma once

#include "api/api.h"
#include "model/work/function_record.h"

/* Checks the body of PUT /v1/functions/{function}; *ret_spec, a new reference, is what is kept of it. */
int function_body_decode(const json_t *object, json_t **ret_spec, struct err *err) must_check;

/* With its code or without. */
json_t *function_body_encode(
	const struct api *api, const struct function_record *record, bool has_code);

/* The body of POST /v1/executions that calls it with an event, which is taken over. */
json_t *function_body_call(const struct function_record *record, json_t *event);

/* How many calls of it there may be at once; 0: any number. */
unsigned function_body_concurrency(const struct function_record *record);
