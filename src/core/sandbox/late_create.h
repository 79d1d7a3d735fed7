/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that were answered for before their image was there. The row says `creating` and names the job that
 * brings the image (sandbox_record.job); when that is over the sandbox is made, or ends as `error` with the
 * reason. The job stays in the row until the sandbox was made, so one that has a job has no files yet that count.
 *
 * Nothing of this is in memory: whoever sees that a job is over settles the rows that wait for it. These are
 * the job itself, the writer of a row whose job ended meanwhile, and the reaper when the daemon starts.
 */
#pragma once

#include "core/engine/sandbox_state.h"
#include "core/job/job.h"

/* Settles one if its job is over; whether it still waits then. */
bool late_create_settle(struct sandbox *sandbox);

/* The same with its life lock held. */
void late_create_settle_locked(struct sandbox *sandbox);

/* All that wait for a job, which is over (job_kind.ended); and all that a daemon before us has left. */
void late_create_settle_job(struct engine *engine, struct job *job);
void late_create_settle_left(struct engine *engine, bool (*is_closing)(struct engine *engine));

/*
 * Starts one that was never made: at once if its image is there now; else that is asked for again, and the
 * sandbox waits for it (ERR_UNAVAILABLE). It has its place and its share of a quota. life is held.
 */
int late_create_try_again(struct sandbox *sandbox, struct err *err) must_check;
