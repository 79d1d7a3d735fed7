/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution as an event stream: `start`, its output as it comes, `result` for what it shows and for its value,
 * `error`, and `end`. It is read from the log of its process at the pace of its client, who can come back with the id of
 * the last event that it saw.
 */
#pragma once

#include "api/api.h"
#include "core/execution/execution.h"
#include "http/server/request/request.h"

struct execution_events_spec {
	const struct api *api;
	struct execution *execution;
	uint64_t from; /* 0: from the beginning, with `start` */
	bool cancels;  /* it ends with its client */
};

/* Sends it as the answer. */
void execution_events_answer(struct request *req, const struct execution_events_spec *spec);
