/* SPDX-License-Identifier: Apache-2.0 */
/* A launch that runs, as its stages see it (pipeline_run.h), and what they do alike. */
#pragma once

#include "blob/digest.h"
#include "core/engine/engine.h"
#include "core/job/job.h"
#include "launch/app/detection.h"
#include "launch/check/validation.h"
#include "launch/stage/failure_cause.h"
#include "launch/stage/launch_config.h"
#include "launch/stage/sandbox_command.h"
#include "model/access/caller.h"
#include "model/template/dependency_set.h"
#include "model/work/launch_record.h"
#include "trace/trace_export.h"

#define PIPELINE_APP	    "/workspace/app"
#define PIPELINE_SKIPPED    1	   /* there is nothing to do */
#define PIPELINE_FAILED	    (-200) /* pipeline.cause says why */
#define PIPELINE_ENV_MAX    12
#define PIPELINE_BASE_MAX   128
#define PIPELINE_STAGES_MAX 8

/* What is known of the files of a part (part_state.h). Empty texts: it is not known. */
struct part_state {
	bool is_read;
	char all[DIGEST_LEN + 1]; /* of its files */
	char loaded[DIGEST_LEN +
		    1]; /* of those that a process which runs does not take up by itself */
	char checked[DIGEST_LEN + 1]; /* `all` as it was when the last check was passed */
	char started[DIGEST_LEN + 1 +
		     12]; /* likewise `loaded`, and the number of the process that was started then */
};

/* The .env of a part (env_file.h): owned, NULL where there is none. */
struct pipeline_env_file {
	char *project, *copy, *made;
	char *own; /* what its owner says; there from GenerateEnvVars on */
};

struct pipeline {
	const struct launches_config *config; /* borrowed, as the next ones */
	struct projects *projects;
	struct jobs *jobs;
	struct engine *engine;
	struct job *job;
	struct sandbox *sandbox;
	struct caller caller;
	struct launch_record record; /* what is written of it */
	const json_t *input;	     /* what was asked for; borrowed */
	struct file_set files;
	struct detection detection;
	struct validation validation;
	struct failure_cause cause;
	json_t *lines;		       /* the last of the stage that failed; owned, or NULL */
	bool is_installed[ROLE_COUNT]; /* anew, and others may want a layer of it */
	bool is_forced; /* stages run even where nothing has changed: somebody named the first one */
	struct part_state states[ROLE_COUNT];
	struct pipeline_env_file env_files[ROLE_COUNT];
	json_t *env[ROLE_COUNT];      /* variables of the parts; owned */
	char base[PIPELINE_BASE_MAX]; /* the path that the preview is at */
	const char *stage;	      /* the one that runs */
	bool is_traced;
	bool has_versions;	 /* the sandbox was asked for them */
	uint64_t begun_us;	 /* by the steady clock, as that of the trace by the other */
	struct trace_span trace; /* of all of it; its stages are below (launch_trace.h) */
	struct {
		int64_t begun_us, ended_us; /* since 1970; 0: not begun */
	} times[PIPELINE_STAGES_MAX];
};

void pipeline_fini(struct pipeline *pipeline);

/* Puts a line into the log; takes over the event. */
void pipeline_tell(struct pipeline *pipeline, json_t *event);

void pipeline_log(struct pipeline *pipeline, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The stage fails for a reason that is known. */
int pipeline_fail(struct pipeline *pipeline, const char *code, const char *remedy,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The stage fails, and the last output of a program says why. */
int pipeline_fail_by_output(struct pipeline *pipeline, const char *output);

/* The same of one that has ended: a limit that it met goes before what it said. */
int pipeline_fail_by_end(
	struct pipeline *pipeline, const struct termination *how, const char *output);

/* Its last lines, for people. */
void pipeline_keep_lines(struct pipeline *pipeline, const char *output);

/* Runs a command in a directory of the app; its output is told. The end may be bad. */
int pipeline_command(struct pipeline *pipeline, const char *dir, const char *line,
	uint64_t timeout_ms, struct sandbox_command_end *ret_end, struct err *err) must_check;
/* The same with something on its standard input (NULL: nothing) and with variables of its own. */
int pipeline_command_fed(struct pipeline *pipeline, const char *dir, const char *line,
	const char *input, struct text_map env, uint64_t timeout_ms,
	struct sandbox_command_end *ret_end, struct err *err) must_check;

/* Writes a file of the app. */
int pipeline_write(struct pipeline *pipeline, const char *path, const char *text, struct err *err)
	must_check;

/* The last output of a process of a sandbox; 0: there is none. */
void pipeline_read_output(
	struct sandbox *sandbox, unsigned process, char tail[SANDBOX_COMMAND_TAIL + 1]);

/* Makes the services that were detected members of the sandbox, as far as they are not (stage_services.c). */
int services_make(struct pipeline *pipeline, struct err *err) must_check;
/* Adds the addresses of those that are members. */
void services_add_env(struct pipeline *pipeline, json_t *env);
/* Waits until they are healthy. 0, PIPELINE_FAILED or -ECANCELED. */
int services_await(struct pipeline *pipeline) must_check;

/* As the request's "timeouts" say, else as it is set. */
uint64_t pipeline_timeout_ms(const struct pipeline *pipeline, enum launch_wait wait);

int stage_detect(struct pipeline *pipeline, struct err *err) must_check;
int stage_materialize(struct pipeline *pipeline, struct err *err) must_check;
int stage_generate_env(struct pipeline *pipeline, struct err *err) must_check;
int stage_install(struct pipeline *pipeline, struct err *err) must_check;
int stage_check_install(struct pipeline *pipeline, struct err *err) must_check;
int stage_check_syntax(struct pipeline *pipeline, struct err *err) must_check;
int stage_launch_backend(struct pipeline *pipeline, struct err *err) must_check;
int stage_launch_frontend(struct pipeline *pipeline, struct err *err) must_check;
