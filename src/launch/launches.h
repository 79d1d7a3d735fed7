/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: from the files of a project, or of a sandbox, to an app that runs (pipeline.h). Each is a job of the kind
 * "launch" with the same id, and a row that stays when the job is forgotten, so that runs can be compared.
 *
 * A sandbox has one launch at a time: who asks for another joins it. After a restart of the daemon one that ran begins
 * anew; what it had done is there already.
 */
#pragma once

#include "core/job/job.h"
#include "core/sandbox/sandbox.h"
#include "launch/stage/launch_config.h"
#include "model/access/caller.h"
#include "model/work/launch_record.h"
#include "store/store.h"

#define LAUNCH_JOB_KIND	   "launch"
#define LAUNCHES_RUNNING   4 /* at a time; others are queued, so that what they wait for can run */
#define LAUNCHES_LOG_BYTES (1u << 20) /* kept of what the stages of one say */

struct projects;

struct launches *launches_new(const struct launches_config *config);
void launches_free(struct launches *launches);

/* From now on launches can run. Each launch ends before the engine does. */
void launches_attach(struct launches *launches, struct engine *engine, struct jobs *jobs,
	struct projects *projects);
bool launches_are_attached(void *launches);

/* The row of its kind; `context` is the struct launches. */
#define LAUNCH_JOB(launches_)                                                                      \
	{                                                                                          \
		.name = LAUNCH_JOB_KIND, .on_restart = JOB_RESTART_RETRY,                          \
		.max_running = LAUNCHES_RUNNING, .log_bytes = LAUNCHES_LOG_BYTES,                  \
		.is_ready = launches_are_attached, .run = launches_run, .ended = launches_ended,   \
		.context = (launches_)                                                             \
	}

int launches_run(struct job *job, void *launches, struct err *err) must_check;
void launches_ended(struct job *job, void *launches);

/*
 * What is asked for: the sandbox's own files, or those of its project. The input is an object with what detection.h
 * can be told, and "env", "timeouts", "preview" and "from", the first stage to run. The caller ends the record.
 */
struct launch_request {
	struct sandbox *sandbox;
	const char *project; /* NULL: none */
	const json_t *input;
	const char *trace; /* the traceparent of who asks; NULL or empty: none */
};
int launches_start(struct launches *launches, const struct caller *caller,
	const struct launch_request *request, struct launch_record *ret_record, struct err *err)
	must_check;

/* One that ended is begun anew; a new launch. */
struct launch_retry {
	const char *from;  /* the first stage; NULL: all */
	const char *trace; /* as above */
};
int launches_retry(struct launches *launches, const struct caller *caller, const char *id,
	const struct launch_retry *retry, struct launch_record *ret_record, struct err *err)
	must_check;

int launches_get(struct launches *launches, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err) must_check;
int launches_cancel(struct launches *launches, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err) must_check;

/*
 * {"launches", "succeeded", "failed", "cancelled", "running", "success_rate", "stages", "causes"}, the most frequent
 * cause first; a new reference.
 */
int launches_stats(struct launches *launches, const struct owner *owner, const char *project,
	int64_t since_ms, json_t **ret_stats, struct err *err) must_check;
