/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions: code that is run for its result (core/execution/execution.h).
 *
 * As with a command, no thread waits for one: the request is held until its end is told. A client that goes away
 * takes it along, unless it asked otherwise.
 */
#include "api/execution/execution_body.h"
#include "api/execution/execution_events.h"
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/sse.h"
#include "store/store_execution.h"

#include <stdatomic.h>
#include <stdio.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define END_EVENT_MAX	   (64u << 20)
#define WAIT_MAX_MS	   (24ll * 3600 * 1000)

/* Waiting */

/* A held request; referenced by it, by its watch of the execution, and by its alarm. */
struct execution_wait {
	atomic_int refs;
	const struct api *api;
	struct request *_Atomic req; /* whoever takes it answers */
	struct execution *execution;
	struct timer *_Atomic alarm;
	bool cancels; /* the execution ends with the client */
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
	request_answer_json(req, 200, execution_body_encode(wait->api, record));
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

/* Holds the request until the execution is over, or the time is (0: never). Takes over the execution. */
static void hold(struct request *req, struct api *api, struct execution *execution,
	uint64_t timeout_ms, bool cancels)
{
	struct execution_wait *wait = mem_new(sizeof(*wait));
	struct timer *alarm;

	wait->refs = 3; /* this function's, the request's, the watch's */
	wait->api = api;
	wait->req = req;
	wait->execution = execution;
	wait->cancels = cancels;
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

/* Running */

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

static int answer_running(struct request *req, struct api *api, const struct execution_body *body,
	struct execution *execution)
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
		hold(req, api, execution_ref(execution), 0, !body->is_kept);
	execution_record_fini(&record);
	execution_unref(execution);
	return 0;
}

HANDLER(executions_run)
{
	struct api *api = context;
	struct execution_body body not_cleared;
	struct execution *execution;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		r = execution_body_decode(req, &body, err);
	if (r == 0)
		r = execution_start(api->executions, sandbox, &body.spec, &execution, err);
	return r < 0 ? r : answer_running(req, api, &body, execution);
}

/* Looking */

HANDLER(executions_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_record record;
	struct execution *execution;
	uint64_t wait_ms;
	int r = api_query_number(req, "wait_ms", 1, WAIT_MAX_MS, 0, &wait_ms, err);

	if (r == 0)
		r = execution_get(api->executions, &owner, request_param(req, "execution"),
			&execution, &record, err);
	if (r < 0)
		return r;
	if (execution && record.ended_at_ms == 0 && wait_ms > 0) {
		hold(req, api, execution, wait_ms, false);
	} else {
		request_answer_json(req, 200, execution_body_encode(api, &record));
		execution_unref(execution);
	}
	execution_record_fini(&record);
	return 0;
}

/* Of one that is over only the end is told: all of its output is in that. */
static void answer_end(struct request *req, const struct execution_record *record)
{
	struct buf out = BUF_INIT(END_EVENT_MAX);
	json_t *data = execution_body_encode(request_context(req), record);
	auto_free char *text = NULL;

	sse_put_event(&out, 0, "end", data);
	json_decref(data);
	text = buf_take_str(&out);
	request_answer_text(req, 200, "text/event-stream", text);
}

HANDLER(executions_events)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_events_spec stream = {.api = api};
	struct execution_record record;
	bool given;
	int r = api_query_from(req, &stream.from, &given, err);

	if (r == 0)
		r = execution_get(api->executions, &owner, request_param(req, "execution"),
			&stream.execution, &record, err);
	if (r < 0)
		return r;
	if (stream.execution)
		execution_events_answer(req, &stream);
	else
		answer_end(req, &record);
	execution_unref(stream.execution);
	execution_record_fini(&record);
	return 0;
}

HANDLER(executions_cancel)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct execution_record record;
	struct execution *execution;
	int r = execution_get(
		api->executions, &owner, request_param(req, "execution"), &execution, &record, err);

	if (r < 0)
		return r;
	if (execution) {
		execution_cancel(execution);
		hold(req, api, execution, 0, false);
	} else {
		request_answer_json(req, 200, execution_body_encode(api, &record));
	}
	execution_record_fini(&record);
	return 0;
}

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct execution_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, execution_body_encode(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

static int check_filter(const struct store_execution_filter *filter, struct err *err)
{
	enum execution_status ignored;

	if (filter->status && execution_status_parse(filter->status, &ignored) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be running, succeeded, failed, timeout, cancelled "
			"or lost");
	return 0;
}

HANDLER(executions_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {.api = api};
	struct store_execution_filter filter = {.owner = &owner,
		.status = request_query(req, "status"),
		.language = request_query(req, "language"),
		.sandbox = request_query(req, "sandbox"),
		.before = request_query(req, "cursor")};
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r == 0)
		r = check_filter(&filter, err);
	if (r < 0)
		return r;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	list_page_init(&listing.page, limit);
	r = store_execution_list(engine_store(api->engine), &filter, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "executions", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}
