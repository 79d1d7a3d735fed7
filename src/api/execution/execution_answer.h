/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the one who asked for an execution is answered. As with a command, no thread waits for it: the request is
 * held until its end is told. A client that goes away takes it along, unless it asked otherwise.
 */
#pragma once

#include "api/execution/execution_body.h"

/* At once, as events, or when it is over, as the body says. Takes over the execution. */
void execution_answer(struct request *req, struct api *api, const struct execution_body *body,
	struct execution *execution);

/* When it is over, or the time is (0: never): with what it is then. Takes over the execution. */
void execution_answer_later(struct request *req, struct api *api, struct execution *execution,
	uint64_t timeout_ms, bool cancels);
