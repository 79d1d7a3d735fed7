/* SPDX-License-Identifier: Apache-2.0 */
#include "api/execution/execution_answer.h"

#include "api/execution/execution_events.h"
#include "http/server/request/request.h"

#include <stdatomic.h>
#include <stdio.h>

/* --- waiting --- */

/* A held request; referenced by it, by its watch of the execution, and by its alarm. */
struct execution_wait {
	atomic_int refs;
	const struct api *api;
	struct request *_Atomic req; /* whoever takes it answers */
	struct execution *execution;
	struct timer *_Atomic alarm;
	bool cancels; /* the execution ends with the client */
	execution_finish_fn finish;
};

static void wait_unref(void *arg)
{
	struct execution_wait *wait = arg;

	if (atomic_fetch_sub(&wait->refs, 1) > 1)
		return;
	execution_unref(wait->execution);
	free(wait);
}

/* Answers with what it is now. */
static void wait_finish(struct execution_wait *wait, const struct execution_record *record)
{
	struct request *req = atomic_exchange(&wait->req, NULL);

	if (!req)
		return;
	timer_close(atomic_exchange(&wait->alarm, NULL));
	if (wait->finish)
		wait->finish(req, wait->api, record);
	else
		request_answer_exact_json(req, 200, execution_body_encode(wait->api, record));
	request_release(req);
}

static void wait_over(void *arg, const struct execution_record *record)
{
	wait_finish(arg, record);
}

static void wait_expired(void *arg)
{
	struct execution_wait *wait = arg;
	struct execution_record record;

	execution_unwatch(wait->execution, wait);
	execution_read(wait->execution, &record);
	wait_finish(wait, &record);
	execution_record_fini(&record);
}

/* The client went away, or the daemon does: then the next one goes on with the execution. */
static void wait_gone(void *arg)
{
	struct execution_wait *wait = arg;
	struct execution_record record;
	struct request *req;
	struct err err;

	if (wait->cancels && !atomic_load(&wait->api->is_leaving)) {
		execution_cancel(wait->execution); /* its end is the answer */
		return;
	}
	execution_unwatch(wait->execution, wait);
	req = atomic_exchange(&wait->req, NULL);
	if (!req)
		return;
	timer_close(atomic_exchange(&wait->alarm, NULL));
	execution_read(wait->execution, &record);
	err_explain(&err, ERR_UNAVAILABLE, "daemon_leaving",
		"look at it with GET /v1/executions/{id} when the daemon serves again",
		"the daemon ends; execution %s goes on", record.id);
	execution_record_fini(&record);
	request_release_error(req, &err);
}

static const struct execution_events wait_events = {.over = wait_over, .release = wait_unref};

static void hold(struct request *req, struct api *api, struct execution *execution,
	uint64_t timeout_ms, bool cancels, execution_finish_fn finish)
{
	struct execution_wait *wait = mem_new(sizeof(*wait));
	struct timer *alarm;

	wait->refs = 3; /* this function's, the request's, the watch's */
	wait->api = api;
	wait->req = req;
	wait->execution = execution;
	wait->cancels = cancels;
	wait->finish = finish;
	request_keep(req, wait, wait_unref);
	if (timeout_ms > 0) {
		request_hold_until_close(req, wait_expired, wait);
		atomic_fetch_add(&wait->refs, 1);
		alarm = engine_open_timer(api->engine, wait_expired, wait_unref, wait);
		timer_set(alarm, timeout_ms);
		atomic_store(&wait->alarm, alarm);
	} else {
		request_hold_until_close(req, wait_gone, wait);
	}
	if (!execution_watch(execution, &wait_events, wait)) {
		wait_unref(wait);
		wait_expired(wait);
	}
	if (!atomic_load(&wait->req)) { /* it was over before all of this was there */
		execution_unwatch(execution, wait);
		timer_close(atomic_exchange(&wait->alarm, NULL));
	}
	wait_unref(wait);
}

void execution_answer_later(struct request *req, struct api *api, struct execution *execution,
	uint64_t timeout_ms, bool cancels)
{
	hold(req, api, execution, timeout_ms, cancels, NULL);
}

/* --- as asked for --- */

static bool wants_stream(const struct request *req)
{
	const char *accept = request_header(req, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

static void answer_location(struct request *req, const struct execution_record *record)
{
	char path[64];

	snprintf(path, sizeof(path), "/v1/executions/%s", record->id);
	request_answer_header(req, "Location", path);
	request_answer_json(req, 202, execution_body_encode(request_context(req), record));
}

bool execution_answer_is_early(const struct request *req, const struct execution_body *body)
{
	return body->is_async || wants_stream(req);
}

void execution_answer(struct request *req, struct api *api, const struct execution_body *body,
	struct execution *execution, execution_finish_fn finish)
{
	struct execution_events_spec stream = {
		.api = api, .execution = execution, .cancels = !body->is_kept};
	struct execution_record record;

	execution_read(execution, &record);
	request_set_detail(req, record.id);
	if (body->is_async)
		answer_location(req, &record);
	else if (wants_stream(req))
		execution_events_answer(req, &stream);
	else
		hold(req, api, execution_ref(execution), 0, !body->is_kept, finish);
	execution_record_fini(&record);
	execution_unref(execution);
}
