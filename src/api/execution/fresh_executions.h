/* SPDX-License-Identifier: Apache-2.0 */
/* Executions without a sandbox: one is made for each, and removed when the execution is over. */
#pragma once

#include "api/api.h"

/* Runs what the object, a body of POST /v1/executions, asks for, and answers; with is_async at once in any case. */
int fresh_executions_start(struct request *req, struct api *api, json_t *object, bool is_async,
	struct err *err) must_check;
