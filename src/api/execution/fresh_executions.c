/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions without a sandbox: one is made for each, and removed when the execution is over. What it needs first (its
 * image, its packages) is waited for without a thread.
 */
#include "api/execution/fresh_executions.h"

#include "api/handlers.h"
#include "api/jobs.h"
#include "api/process/danger_answer.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/execution/function_places.h"
#include "core/execution/runtime_pool.h"
#include "core/sandbox/sandbox_request.h"

#include <stdio.h>

/* One that is to be run; kept by its request. */
struct asked {
	struct api *api;
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

	function_place_give_back(asked->place);
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
static int make_sandbox(struct request *req, struct asked *asked, struct err *err)
{
	struct sandbox_request_result result = {0};
	struct caller caller = api_caller(req);
	int r = claim(asked, &caller.owner, err);

	if (r <= 0)
		return r;
	r = sandbox_request_create_passing(
		asked->api->engine, &caller, &asked->sandbox.spec, &result, err);

	if (r == 0) {
		asked->made = result.sandbox;
		fresh_executions_expect(asked->api, &caller.owner, asked->request, asked->imports);
	}
	if (r == 1)
		jobs_await(req, asked->api, result.job, go_on, asked);
	return r;
}

/* 1: it waits for its packages. */
static int await_packages(struct request *req, struct asked *asked, struct err *err)
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
		jobs_await(req, asked->api, job, go_on, asked);
		r = 1;
	}
	sandbox_record_fini(&record);
	return r;
}

static int run(struct request *req, struct asked *asked, struct err *err)
{
	struct execution *execution;
	int r = asked->made ? 0 : make_sandbox(req, asked, err);

	if (r == 0)
		r = await_packages(req, asked, err);
	if (r == 1)
		return 0;
	if (r == 0)
		r = execution_start(
			asked->api->executions, asked->made, &asked->body.spec, &execution, err);
	if (r < 0) {
		give_up(asked);
		return r;
	}
	asked->place = NULL; /* it has it */
	execution_answer(req, asked->api, &asked->body, execution, asked->finish);
	return 0;
}

static int go_on(struct request *req, void *arg, int end, struct err *err)
{
	if (end < 0) {
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

	request_keep(req, asked, free_asked);
	asked->api = api;
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
