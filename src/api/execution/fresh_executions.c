/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions without a sandbox: one is made for each, and removed when the execution is over. What it needs first (its
 * image, its packages) is waited for without a thread.
 */
#include "api/execution/fresh_executions.h"

#include "api/execution/execution_answer.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/sandbox/sandbox_request.h"

/* One that is to be run; kept by its request. */
struct asked {
	struct api *api;
	struct execution_body body;
	struct sandbox_body sandbox;
	json_t *request; /* what body and sandbox borrow from */
	struct sandbox *made;
};

static void free_asked(void *arg)
{
	struct asked *asked = arg;

	sandbox_unref(asked->made);
	json_decref(asked->request);
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

/* 1: it waits for its image. */
static int make_sandbox(struct request *req, struct asked *asked, struct err *err)
{
	struct sandbox_request_result result = {0};
	struct caller caller = api_caller(req);
	int r = sandbox_request_create_passing(
		asked->api->engine, &caller, &asked->sandbox.spec, &result, err);

	if (r == 0)
		asked->made = result.sandbox;
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
	if (r == 0)
		execution_answer(req, asked->api, &asked->body, execution);
	else
		give_up(asked);
	return r;
}

static int go_on(struct request *req, void *arg, int end, struct err *err)
{
	if (end < 0) {
		give_up(arg);
		return end;
	}
	return run(req, arg, err);
}

int fresh_executions_start(
	struct request *req, struct api *api, json_t *object, bool is_async, struct err *err)
{
	struct asked *asked = mem_new(sizeof(*asked));
	int r;

	request_keep(req, asked, free_asked);
	asked->api = api;
	asked->request = json_incref(object);
	if ((r = api_check_ready(api, err)) < 0 ||
		(r = execution_body_decode(object, true, &asked->body, err)) < 0 ||
		(r = execution_body_decode_sandbox(object, &asked->sandbox, err)) < 0)
		return r;
	asked->body.is_async |= is_async;
	asked->body.spec.asked_us = clock_steady_us();
	return run(req, asked, err);
}

HANDLER(fresh_executions_run)
{
	return fresh_executions_start(req, context, (json_t *)request_body(req), false, err);
}
