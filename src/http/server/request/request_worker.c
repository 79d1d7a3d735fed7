/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication is done here and not on the connection's thread, since it asks the database. It
 * comes before anything that the body says: a body of more than a few kilobytes is not even read
 * before its sender is known (request_worker_admit).
 */
#include "http/server/request/request_worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "http/owner_memory.h"
#include "http/rate_limit.h"
#include "http/server/connection.h"
#include "http/server/request/body.h"
#include "http/server/request/request_answer.h"
#include "http/server/server_private.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

static void run_item(struct work_item *item)
{
	struct request *req = (struct request *)((char *)item - offsetof(struct request, item));

	log_set_request(req->id, req->trace);
	req->work(req);
	log_set_request(NULL, NULL);
	request_unref(req);
}

static int submit(struct request *req, void (*work)(struct request *req))
{
	int r;

	req->work = work;
	req->item.run = run_item;
	request_ref(req);
	r = workers_submit(req->server->workers, &req->item);
	if (r < 0)
		request_unref(req);
	return r;
}

/* A stranger who has tried too often is told to wait, and nothing else. */
static int refuse_stranger(struct request *req, struct err *err)
{
	unsigned wait_s = rate_limit_count(req->server->failures, req->source, clock_steady_ms());
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
int request_worker_identify(struct request *req, struct err *err)
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

/* Its connection counts as the sender's from now on. */
static int claim_connection(struct request *req, struct err *err)
{
	int r = connection_claim(req->server, req->client,
		server_owner_key(req->server, &req->principal), req->principal.is_operator);

	if (r == 0)
		return 0;
	request_answer_header(req, "Connection", "close");
	if (r == -EDQUOT)
		return err_explain(err, ERR_RATE, "too_many_connections",
			"close connections that you do not need, or use them again",
			"you have as many connections open as one owner may have");
	return err_explain(err, ERR_UNAVAILABLE, "too_many_connections", "try again later",
		"all connections are in use");
}

/* Who asks, and what a stranger would not be told about the rest of the headers. */
static int admit(struct request *req, struct err *err)
{
	if (!req->is_admitted && !(req->match.route->flags & ROUTE_OPEN)) {
		int r = request_worker_identify(req, err);

		if (r < 0)
			return r;
		r = claim_connection(req, err);
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
	int r = 0;

	if (req->body.len > 0 && !(req->match.route->flags & ROUTE_ANY_BODY))
		r = body_parse((const char *)req->body.data, req->body.len, &req->json, err);
	else
		req->json = json_object();
	if (r == 0 && !(req->match.route->flags & ROUTE_BODY) && json_object_size(req->json) > 0)
		return err_set(err, ERR_INVALID, "this route takes no fields");
	return r;
}

/* Lets the connection write the body to the descriptor that the handler named. */
static void receive_upload(struct request *req)
{
	pthread_mutex_lock(&req->lock);
	req->returned = false;
	if (req->connection) {
		req->phase = PHASE_PUMP;
		request_wake_locked(req);
		pthread_mutex_unlock(&req->lock);
		return;
	}
	pthread_mutex_unlock(&req->lock);
	request_worker_finish(req, false);
}

void request_worker_returned(struct request *req, int r, struct err *err)
{
	bool waits, is_gone, goes_on;

	share_give_back(take_ptr(&req->upload.reader));
	if (r < 0 && req->upload.was_refused)
		err_explain(err, ERR_RATE, "too_many_uploads",
			"wait for some of your uploads to end before you begin more",
			"too many uploads of this kind are under way");
	else if (r < 0 && req->upload.was_cut)
		err_set(err, ERR_INVALID, "the client left before the body was complete");
	if (r < 0)
		request_answer_error(req, err);
	pthread_mutex_lock(&req->lock);
	assert(r >= 0 || !req->held);
	req->returned = true;
	goes_on = req->again;
	waits = req->held && !req->released && !goes_on;
	is_gone = req->client_gone;
	pthread_mutex_unlock(&req->lock);
	/* It left before the request was held. */
	if (waits && is_gone)
		request_hang_up(req);
	if (goes_on)
		request_worker_again(req);
	else if (r >= 0 && req->upload.finish)
		receive_upload(req);
	else if (!waits)
		request_conclude(req);
}

/*
 * Which classes the request belongs to. A route without a token belongs to none. All owners together leave some threads
 * free: on those each request begins, the operator is served, and open routes are answered.
 */
static void choose_classes(struct request *req)
{
	unsigned flags = req->match.route->flags, workers = req->server->config.max_workers;
	unsigned reserve = share_limits_of(workers).reserve;
	struct fair_queue_entry *entry = &req->entry;
	uint64_t owner = server_owner_key(req->server, &req->principal);

	*entry = (struct fair_queue_entry){.item = &req->item};
	if (flags & ROUTE_OPEN)
		return;
	if (flags & ROUTE_WAITS)
		entry->claims[entry->count++] = (struct fair_queue_claim){
			server_hash(owner, req->match.params[0].value), (workers + 7) / 8};
	entry->claims[entry->count++] = (struct fair_queue_claim){
		server_hash(owner, flags & ROUTE_WAITS ? "/" : ""), (workers * 3 + 7) / 8};
	if (!req->principal.is_operator)
		entry->claims[entry->count++] =
			(struct fair_queue_claim){req->server->id_seed, workers - reserve};
}

/* Does the work when the request is admitted by its classes: now, or later on any worker. */
static int do_in_classes(struct request *req, void (*work)(struct request *req))
{
	int r;

	req->work = work;
	req->item.run = run_item;
	request_ref(req);
	r = fair_queue_enter(req->server->fair_queue, &req->entry);
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

	fair_queue_leave(req->server->fair_queue, &req->entry);
	request_worker_returned(req, r, &err);
}

/*
 * Whether there is memory for another answer of its owner. A request without a body that changes something has a short
 * one, and may be what sets matters right: it is always worked on.
 */
static int check_memory(const struct request *req, struct err *err)
{
	const struct route *route = req->match.route;
	bool is_short = route->action && !(route->flags & (ROUTE_BODY | ROUTE_RAW_BODY));

	if ((route->flags & ROUTE_OPEN) || is_short ||
		owner_memory_has_room(
			req->server->memory, server_owner_key(req->server, &req->principal)))
		return 0;
	return request_refuse_memory(err);
}

/* A large body is about to be read. */
static int hold_body(struct request *req, struct err *err)
{
	uint64_t size = req->announced.size;
	int r = check_memory(req, err);

	if (r < 0 || (req->match.route->flags & ROUTE_RAW_BODY))
		return r;
	if (size > req->body.max)
		size = req->body.max;
	return request_hold_memory(req, size) ? 0 : request_refuse_memory(err);
}

static void work_begin(struct request *req)
{
	struct err err = {0};
	int r = admit(req, &err);

	/* Of one with a large body that was asked before it. */
	if (r == 0 && req->memory_bytes == 0)
		r = check_memory(req, &err);
	if (r == 0)
		r = read_json(req, &err);
	if (r == 0) {
		choose_classes(req);
		if (do_in_classes(req, work_handle) >= 0)
			return;
		r = err_explain(&err, ERR_RATE, "too_many_waiting",
			"wait for the answers of some before you send more",
			"too many of your requests are waiting");
	}
	request_worker_returned(req, r, &err);
}

int request_worker_start(struct request *req)
{
	return submit(req, work_begin);
}

static void work_admit(struct request *req)
{
	struct err err = {0};
	int r = admit(req, &err);

	if (r == 0)
		r = hold_body(req, &err);
	if (r < 0) {
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

int request_worker_admit(struct request *req)
{
	return submit(req, work_admit);
}

static void work_finish(struct request *req)
{
	int (*finish)(struct request *, void *, bool, struct err *) = req->upload.finish;
	struct err err = {0};
	int r;

	req->upload.finish = NULL;
	r = finish(req, req->upload.arg, req->upload.complete, &err);
	fair_queue_leave(req->server->fair_queue, &req->entry);
	request_worker_returned(req, r, &err);
}

static void work_finish_in_classes(struct request *req)
{
	choose_classes(req);
	req->entry.must_run = true;
	(void)!do_in_classes(req, work_finish);
}

void request_worker_finish(struct request *req, bool complete)
{
	req->upload.complete = complete;
	req->work = work_finish_in_classes;
	req->item.run = run_item;
	workers_submit_always(req->server->workers, &request_ref(req)->item);
}

static void work_again(struct request *req)
{
	int (*again)(struct request *, void *, struct err *) = req->again;
	struct err err = {0};
	int r;

	pthread_mutex_lock(&req->lock);
	req->again = NULL;
	req->held = req->returned = false;
	req->gone = NULL;
	pthread_mutex_unlock(&req->lock);
	r = again(req, req->again_arg, &err);
	fair_queue_leave(req->server->fair_queue, &req->entry);
	request_worker_returned(req, r, &err);
}

static void work_again_in_classes(struct request *req)
{
	choose_classes(req);
	req->entry.must_run = true;
	(void)!do_in_classes(req, work_again);
}

void request_worker_again(struct request *req)
{
	req->work = work_again_in_classes;
	req->item.run = run_item;
	workers_submit_always(req->server->workers, &request_ref(req)->item);
}
