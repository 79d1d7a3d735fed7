/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication is done here and not on the connection's thread, since it asks the database. It
 * comes before anything that the body says: a body of more than a few kilobytes is not even read
 * before its sender is known (handling_admit).
 */
#include "http/handling.h"

#include "base/clock.h"
#include "http/body.h"
#include "http/rates.h"
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
	unsigned wait_s = rates_count(req->server->failures, req->source, clock_steady_ms());
	char text[16];

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
		if (r < 0 && err->kind == ERR_UNAUTHENTICATED)
			return refuse_stranger(req, err);
		pthread_mutex_lock(&req->lock);
		req->principal = principal;
		pthread_mutex_unlock(&req->lock);
		req->is_known = r == 0 || err->kind == ERR_DENIED;
		if (r < 0)
			return r;
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
		request_answer_error(req, err);
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
		request_conclude(req);
}

static uint64_t hash(uint64_t seed, const char *text)
{
	do
		seed = (seed ^ (unsigned char)*text) * UINT64_C(1099511628211);
	while (*text++);
	return seed;
}

/* Which lanes the request has to pass. What is told without a token waits for nobody. */
static void choose_lanes(struct request *req)
{
	unsigned flags = req->match.route->flags, workers = req->server->config.max_workers;
	struct lane_pass *pass = &req->pass;
	uint64_t owner =
		hash(hash(req->server->id_seed, req->principal.organization), req->principal.user);

	*pass = (struct lane_pass){.job = &req->job};
	if (flags & ROUTE_OPEN)
		return;
	if (flags & ROUTE_WAITS)
		pass->claims[pass->count++] = (struct lane_claim){
			hash(owner, req->match.params[0].value), (workers + 7) / 8};
	pass->claims[pass->count++] = (struct lane_claim){
		hash(owner, flags & ROUTE_WAITS ? "/" : ""), (workers * 3 + 7) / 8};
}

/* Does the work when the request is let into its lanes: now, or later on any worker. */
static int do_in_lanes(struct request *req, void (*work)(struct request *req))
{
	int r;

	req->work = work;
	req->job.run = run_job;
	request_ref(req);
	r = lanes_enter(req->server->lanes, &req->pass);
	if (r == 1)
		work(req);
	if (r != 0)
		request_unref(req);
	return r;
}

static void work_handle(struct request *req)
{
	struct err err = {0};
	int r = req->match.route->handle(req, req->server->config.context, &err);

	lanes_leave(req->server->lanes, &req->pass);
	handling_returned(req, r, &err);
}

static void work_begin(struct request *req)
{
	struct err err = {0};
	int r = admit(req, &err);

	if (r == 0)
		r = read_json(req, &err);
	if (r == 0) {
		choose_lanes(req);
		if (do_in_lanes(req, work_handle) >= 0)
			return;
		r = err_explain(&err, ERR_RATE, "too_many_waiting",
			"wait for the answers of some before you send more",
			"too many of your requests are waiting");
	}
	handling_returned(req, r, &err);
}

int handling_start(struct request *req)
{
	return submit(req, work_begin);
}

static void work_admit(struct request *req)
{
	struct err err = {0};

	if (admit(req, &err) < 0) {
		request_answer_error(req, &err);
		request_conclude(req);
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
	lanes_leave(req->server->lanes, &req->pass);
	handling_returned(req, r, &err);
}

static void work_finish_in_lanes(struct request *req)
{
	choose_lanes(req);
	req->pass.is_patient = true;
	(void)!do_in_lanes(req, work_finish);
}

void handling_finish(struct request *req, bool complete)
{
	req->upload.complete = complete;
	req->work = work_finish_in_lanes;
	req->job.run = run_job;
	workers_submit_always(req->server->workers, &request_ref(req)->job);
}
