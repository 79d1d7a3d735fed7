/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication is done here and not on the connection's thread, since it asks the database. It
 * comes before anything that the body says: a body of more than a few kilobytes is not even read
 * before its sender is known (handling_admit).
 */
#include "http/handling.h"

#include "base/clock.h"
#include "http/body.h"
#include "http/failures.h"
#include "http/server_private.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

static void run_job(struct job *job)
{
	struct request *req = (struct request *)((char *)job - offsetof(struct request, job));

	req->work(req);
	request_unref(req);
}

static int submit(struct request *req, void (*work)(struct request *req))
{
	int r;

	req->work = work;
	req->job.run = run_job;
	request_ref(req);
	r = workers_submit(req->server->workers, &req->job);
	if (r < 0)
		request_unref(req);
	return r;
}

/* A stranger who has tried too often is told to wait, and nothing else. */
static int refuse_stranger(struct request *req, struct err *err)
{
	struct sockaddr_storage source = {0};
	socklen_t len = sizeof(source);
	unsigned wait_s = 0;
	char text[16];

	pthread_mutex_lock(&req->lock);
	if (req->sock >= 0 && getpeername(req->sock, (struct sockaddr *)&source, &len) == 0)
		wait_s = failures_count(req->server->failures, &source, clock_steady_ms());
	pthread_mutex_unlock(&req->lock);
	if (wait_s == 0)
		return -err_class(ERR_UNAUTHENTICATED)->errnum;
	snprintf(text, sizeof(text), "%u", wait_s);
	request_answer_header(req, "Retry-After", text);
	return err_explain(err, ERR_RATE, "too_many_wrong_tokens", "check the token you send",
		"too many wrong tokens came from this address");
}

/*
 * A token may be revoked between being found valid and being written where request_evict() looks for
 * it. Then the count has changed, and it is asked for again. (A ticket is used up by then, and refused:
 * its client fetches another.)
 */
static int identify(struct request *req, struct err *err)
{
	const struct server_config *config = &req->server->config;
	struct principal principal;
	unsigned evictions;
	int r;

	do {
		evictions = atomic_load(&req->server->evictions);
		principal = (struct principal){0};
		r = config->admit(
			config->context, &req->credential, req->match.route, &principal, err);
		if (r < 0)
			return err->kind == ERR_UNAUTHENTICATED ? refuse_stranger(req, err) : r;
		pthread_mutex_lock(&req->lock);
		req->principal = principal;
		pthread_mutex_unlock(&req->lock);
	} while (atomic_load(&req->server->evictions) != evictions);
	return 0;
}

/* Who asks, and what a stranger would not be told about the rest of the headers. */
static int admit(struct request *req, struct err *err)
{
	if (!req->is_admitted && !(req->match.route->flags & ROUTE_OPEN)) {
		int r = identify(req, err);

		if (r < 0)
			return r;
	}
	req->is_admitted = true;
	if (req->refusal) {
		*err = *req->refusal;
		return -err_class((enum err_kind)err->kind)->errnum;
	}
	return 0;
}

static int read_json(struct request *req, struct err *err)
{
	if (req->body.len > 0)
		return body_parse((const char *)req->body.data, req->body.len, &req->json, err);
	req->json = json_object();
	return 0;
}

void handling_returned(struct request *req, int r, struct err *err)
{
	bool waits, is_gone;

	upload_end_reading(req);
	if (r < 0 && req->upload.was_refused)
		err_set(err, ERR_RATE, "too many uploads of this kind at once");
	else if (r < 0 && req->upload.was_cut)
		err_set(err, ERR_INVALID, "the client left before the body was complete");
	if (r < 0)
		request_fail(req, err);
	pthread_mutex_lock(&req->lock);
	assert(r >= 0 || !req->held);
	req->returned = true;
	waits = req->held && !req->released;
	is_gone = req->client_gone;
	pthread_mutex_unlock(&req->lock);
	/* It left before the request was held. */
	if (waits && is_gone)
		request_hang_up(req);
	if (r >= 0 && req->upload.finish)
		upload_start(req);
	else if (!waits)
		request_deliver(req);
}

static void work_handle(struct request *req)
{
	const struct route *route = req->match.route;
	struct err err = {0};
	int r = admit(req, &err);

	if (r == 0)
		r = read_json(req, &err);
	if (r == 0)
		r = route->handle(req, req->server->config.context, &err);
	handling_returned(req, r, &err);
}

int handling_start(struct request *req)
{
	return submit(req, work_handle);
}

static void work_admit(struct request *req)
{
	struct err err = {0};

	if (admit(req, &err) < 0) {
		request_fail(req, &err);
		request_deliver(req);
		return;
	}
	pthread_mutex_lock(&req->lock);
	if (req->connection) {
		req->phase = PHASE_GATHER;
		request_wake_locked(req);
	}
	pthread_mutex_unlock(&req->lock);
}

int handling_admit(struct request *req)
{
	return submit(req, work_admit);
}

static void work_finish(struct request *req)
{
	request_finish_fn finish = req->upload.finish;
	struct err err = {0};
	int r;

	req->upload.finish = NULL;
	r = finish(req, req->upload.arg, req->upload.complete, &err);
	handling_returned(req, r, &err);
}

void handling_finish(struct request *req, bool complete)
{
	req->upload.complete = complete;
	req->work = work_finish;
	req->job.run = run_job;
	workers_submit_always(req->server->workers, &request_ref(req)->job);
}
