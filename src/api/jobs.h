/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a job as a stream of events, for whatever is done as a job. */
#pragma once

#include "api/api.h"

/* Answers with the log of an owner's job, from where the client asks to go on. */
int jobs_answer_log(struct request *req, struct api *api, const struct owner *owner, const char *id,
	struct err *err) must_check;

/*
 * Answers when a job is over, and holds no thread until then: `again` is called on a worker's with how it ended
 * (job_end()), and answers the request, or waits once more. The job does not depend on who waits. A handler returns
 * 0 after it.
 */
typedef int (*jobs_again_fn)(struct request *req, void *arg, int end, struct err *err);
void jobs_await(
	struct request *req, struct api *api, const char *id, jobs_again_fn again, void *arg);
