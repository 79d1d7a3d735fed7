/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions without a sandbox: one is made for each, and removed when the execution is over. What it needs first (its
 * image, its packages) is waited for without a thread.
 */
#include "api/execution/fresh_executions.h"

#include "api/execution/late_executions.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "api/process/danger_answer.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/execution/function_places.h"
#include "core/execution/runtime_pool.h"
#include "core/job/job.h"
#include "core/sandbox/sandbox_request.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* One that is to be run; kept by its request, and by who goes on without it. */
struct asked {
	atomic_int refs;
	struct api *api;
	struct caller caller;
	char job[ID_LEN + 1];	  /* that it waits for */
	struct execution *queued; /* its client was told of it; NULL: not yet */
	struct execution_body body;
	struct sandbox_body sandbox;
	json_t *request; /* what body and sandbox borrow from */
	struct sandbox *made;
	struct process *warm; /* an interpreter that waits in it; NULL: none */
	struct function_place *place;
	json_t *imports;
	char function[MODEL_NAME_MAX];
	execution_finish_fn finish;
};

static void free_asked(void *arg)
{
	struct asked *asked = arg;

	if (atomic_fetch_sub(&asked->refs, 1) > 1)
		return;
	function_place_give_back(asked->place);
	execution_unref(asked->queued);
	process_unref(asked->warm);
	sandbox_unref(asked->made);
	json_decref(asked->request);
	json_decref(asked->imports);
	free(asked);
}

/* The sandbox of one that did not come to run. */
static void give_up(struct asked *asked)
{
	struct err err;

	if (asked->made && sandbox_request_purge_builder(
				   asked->api->engine, sandbox_id(asked->made), &err) < 0)
		log_error("a sandbox for an execution: %s", err.message);
	sandbox_unref(take_ptr(&asked->made));
}

static int go_on(struct request *req, void *arg, int end, struct err *err);

/* Whether a sandbox does of which nothing was asked but its template. */
static bool is_ordinary(const json_t *request)
{
	return !json_object_get(request, "resources") && !json_object_get(request, "network") &&
	       !json_object_get(request, "dependencies") && !json_object_get(request, "cwd");
}

static struct runtime_kind kind_of(
	const struct owner *owner, const json_t *request, const json_t *imports)
{
	return (struct runtime_kind){.owner = owner,
		.language = json_string_value(json_object_get(request, "language")),
		.template_name = json_string_value(json_object_get(request, "template")),
		.imports = imports};
}

void fresh_executions_expect(
	struct api *api, const struct owner *owner, const json_t *request, const json_t *imports)
{
	struct runtime_kind kind = kind_of(owner, request, imports);

	if (is_ordinary(request))
		runtime_pool_want(api->runtime_pool, &kind);
}

/* 1: no interpreter waits for it. */
static int claim(struct asked *asked, const struct owner *owner, struct err *err)
{
	struct runtime_kind kind = kind_of(owner, asked->request, asked->imports);
	struct runtime runtime;
	int r = is_ordinary(asked->request)
			? runtime_pool_claim(asked->api->runtime_pool, &kind, &runtime, err)
			: 1;

	if (r == 0) {
		asked->made = runtime.sandbox;
		asked->body.spec.warm = asked->warm = runtime.process;
	}
	return r;
}

/* 1: it waits for its image. */
static int make_sandbox(struct asked *asked, struct err *err)
{
	struct sandbox_request_result result = {0};
	int r = claim(asked, &asked->caller.owner, err);

	if (r <= 0)
		return r;
	r = sandbox_request_create_passing(
		asked->api->engine, &asked->caller, &asked->sandbox.spec, &result, err);

	if (r == 0) {
		asked->made = result.sandbox;
		fresh_executions_expect(
			asked->api, &asked->caller.owner, asked->request, asked->imports);
	}
	if (r == 1)
		memcpy(asked->job, result.job, sizeof(asked->job));
	return r;
}

/* What it waited for has failed: its packages, if its sandbox is there. */
static int explain_end(const struct asked *asked, int end, struct err *err)
{
	const struct err why = *err;

	if (!asked->made || strcmp(why.code, "daemon_ending") == 0)
		return end;
	return err_explain(err, ERR_UNPROCESSABLE, "dependencies_failed",
		"look at the names and versions in `dependencies`",
		"its packages could not be installed: %s", why.message);
}

/* 1: it waits for its packages. */
static int look_at_packages(struct asked *asked, struct err *err)
{
	struct sandbox_record record;
	const char *job, *failure;
	int r = 0;

	sandbox_read(asked->made, &record);
	job = json_string_value(json_object_get(record.dependencies, "job"));
	failure = json_string_value(json_object_get(record.dependencies, "error"));
	if (failure && failure[0]) {
		r = err_explain(err, ERR_UNPROCESSABLE, "dependencies_failed", NULL,
			"its packages could not be installed: %s", failure);
	} else if (job && job[0]) {
		/* The record names it also when it is over. */
		snprintf(asked->job, sizeof(asked->job), "%s", job);
		r = job_end(asked->api->jobs, NULL, job, err);
		if (r < 0)
			r = explain_end(asked, r, err);
	}
	sandbox_record_fini(&record);
	return r;
}

/* 1: it waits for a job. What was made of one that fails is removed. */
static int start(struct asked *asked, struct execution **ret_execution, struct err *err)
{
	int r = asked->made ? 0 : make_sandbox(asked, err);

	if (r == 0)
		r = look_at_packages(asked, err);
	if (r == 0)
		r = execution_start(
			asked->api->executions, asked->made, &asked->body.spec, ret_execution, err);
	if (r == 0)
		asked->place = NULL; /* it has it */
	if (r < 0)
		give_up(asked);
	return r;
}

/* Goes on without a request, when its job is over (1: it waits for another); end is that of the job. */
static int go_on_late(void *arg, int end, char ret_job[ID_LEN + 1], struct err *err)
{
	struct asked *asked = arg;
	struct execution *execution = NULL;
	int r = end < 0 ? explain_end(asked, end, err) : 0;

	if (r < 0 || execution_is_over(asked->queued))
		give_up(asked);
	else
		r = start(asked, &execution, err);
	if (r < 0)
		execution_refuse(asked->queued, err);
	execution_unref(execution);
	memcpy(ret_job, asked->job, sizeof(asked->job));
	return r;
}

/* Its client, who does not want to wait, is told of it now. */
static int answer_queued(struct request *req, struct asked *asked, struct err *err)
{
	int r = execution_queue(asked->api->executions, &asked->caller.owner, &asked->body.spec,
		&asked->queued, err);

	if (r < 0) {
		give_up(asked);
		return r;
	}
	asked->body.spec.queued = asked->queued;
	atomic_fetch_add(&asked->refs, 1);
	r = late_executions_await(asked->api->late_executions,
		&(struct late_execution){.job = asked->job,
			.go_on = go_on_late,
			.release = free_asked,
			.arg = asked},
		err);
	if (r < 0) {
		atomic_fetch_sub(&asked->refs, 1);
		give_up(asked);
		execution_refuse(asked->queued, err);
		return r;
	}
	execution_answer(
		req, asked->api, &asked->body, execution_ref(asked->queued), asked->finish);
	return 0;
}

static int run(struct request *req, struct asked *asked, struct err *err)
{
	struct execution *execution;
	int r = start(asked, &execution, err);

	if (r < 0)
		return r;
	if (r == 0)
		execution_answer(req, asked->api, &asked->body, execution, asked->finish);
	else if (asked->body.is_async)
		return answer_queued(req, asked, err);
	else
		jobs_await(req, asked->api, asked->job, go_on, asked);
	return 0;
}

static int go_on(struct request *req, void *arg, int end, struct err *err)
{
	if (end < 0) {
		end = explain_end(arg, end, err);
		give_up(arg);
		return end;
	}
	return run(req, arg, err);
}

int fresh_executions_start(struct request *req, struct api *api,
	const struct fresh_execution *execution, struct err *err)
{
	struct asked *asked = mem_new(sizeof(*asked));
	json_t *object = execution->object;
	struct execution_spec *spec = &asked->body.spec;
	struct owner owner = api_owner(req);
	int r;

	atomic_store(&asked->refs, 1);
	request_keep(req, asked, free_asked);
	asked->api = api;
	asked->caller = api_caller(req);
	asked->request = object;
	asked->place = execution->place;
	asked->imports = json_incref((json_t *)execution->imports);
	asked->finish = execution->finish;
	if ((r = api_check_ready(api, err)) < 0 ||
		(r = execution_body_decode(object, true, &asked->body, err)) < 0 ||
		(r = execution_body_decode_sandbox(object, &asked->sandbox, err)) < 0)
		return r;
	asked->body.is_async |= execution->is_async;
	spec->is_told = execution_answer_is_early(req, &asked->body);
	spec->asked_us = clock_steady_us();
	if (execution->function) {
		snprintf(asked->function, sizeof(asked->function), "%s", execution->function);
		spec->function = asked->function;
		spec->version = execution->version;
		spec->place = asked->place;
	}
	r = danger_answer_ask(req, api,
		&(struct danger_question){.language = spec->language,
			.code = spec->code,
			.confirm = asked->body.confirm,
			.is_confirmed =
				execution->function || (execution->is_again && asked->body.confirm),
			.owner = &owner},
		&spec->danger, err);
	return r < 0 ? r : run(req, asked, err);
}

HANDLER(fresh_executions_run)
{
	struct fresh_execution execution = {.object = json_incref((json_t *)request_body(req))};

	return fresh_executions_start(req, context, &execution, err);
}
