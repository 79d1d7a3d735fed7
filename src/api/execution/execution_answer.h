/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the one who asked for an execution is answered. As with a command, no thread waits for it: the request is
 * held until its end is told. A client that goes away takes it along, unless it asked otherwise.
 */
#pragma once

#include "api/execution/execution_body.h"

/* Answers with what an execution that is over has become. */
typedef void (*execution_finish_fn)(
	struct request *req, const struct api *api, const struct execution_record *record);

/* Whether the client is told of it before it is over. */
bool execution_answer_is_early(const struct request *req, const struct execution_body *body);

/* At once, as events, or when it is over, as the body says; then by `finish`, or as an execution for NULL. Takes over the
 * execution. */
void execution_answer(struct request *req, struct api *api, const struct execution_body *body,
	struct execution *execution, execution_finish_fn finish);

/* When it is over, or the time is (0: never): with what it is then. Takes over the execution. */
void execution_answer_later(struct request *req, struct api *api, struct execution *execution,
	uint64_t timeout_ms, bool cancels);
