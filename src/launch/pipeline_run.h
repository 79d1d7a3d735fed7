/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline of a launch: from files to an app that answers. Its stages are a table (pipeline_run.c), run in order on the
 * thread of the launch's job. Each says what it does into the job's log, a line of JSON at a time:
 *
 *   {"stage": "InstallDependencies", "status": "running", "log": "npm install"}
 *   {"stage": "InstallDependencies", "status": "complete", "duration_ms": 8234}
 *
 * All of it can be done again: what is there already is left as it is.
 */
#pragma once

#include "launch/stage/pipeline.h"

struct pipeline_stage {
	const char *name;
	/* 0, PIPELINE_SKIPPED, PIPELINE_FAILED, -ECANCELED, or -errno with err. */
	int (*run)(struct pipeline *pipeline, struct err *err);
	bool is_always; /* later ones need what it finds out: a retry from a later stage runs it too */
};

extern const struct pipeline_stage pipeline_stages[];
extern const size_t pipeline_stage_count;

/* Whether a stage has that name. */
bool pipeline_has_stage(const char *name);

/* Runs all stages; what came of it is in the record. -ECANCELED, or -errno with err. */
int pipeline_run(struct pipeline *pipeline, struct err *err) must_check;

/* Writes the row of a launch. */
void pipeline_note(struct store *store, const struct launch_record *record);
