/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs (core/job/job.h): lists, logs, cancelling; and what is done as a job. */
#include "api/jobs.h"

#include "api/handlers.h"
#include "api/list_page.h"
#include "api/log_events.h"
#include "api/sse.h"
#include "core/job/backup_job.h"
#include "core/job/job.h"
#include "http/stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

static json_t *text_to_json(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *error_to_json(const struct job_record *record)
{
	if (!record->error_code[0])
		return json_null();
	return json_pack("{s:s, s:s, s:b, s:o}", "code", record->error_code, "message",
		record->error_message, "retryable", err_class(record->error_kind)->retryable,
		"remediation", text_to_json(record->error_remedy));
}

static json_t *job_to_json(const struct api *api, const struct job_record *record)
{
	json_t *total =
		record->total_bytes ? json_integer((json_int_t)record->total_bytes) : json_null();

	return json_pack("{s:s, s:s, s:o, s:s, s:b, s:i, s:o, s:I, s:o, s:O, s:o, s:o, s:o, s:o}",
		"id", record->id, "kind", record->kind, "target", text_to_json(record->target),
		"state", job_state_name(record->state), "cancelling",
		record->is_cancelling && job_state_is_active(record->state), "tries",
		(int)record->tries, "progress", text_to_json(record->progress), "done_bytes",
		(json_int_t)record->done_bytes, "total_bytes", total, "result", record->result,
		"error", error_to_json(record), "created_at",
		api_stored_time_to_json(api, record->created_at_ms), "started_at",
		api_stored_time_to_json(api, record->started_at_ms), "ended_at",
		api_stored_time_to_json(api, record->ended_at_ms));
}

/* Ends the record. */
static void answer_job(
	struct request *req, const struct api *api, int status, struct job_record *record)
{
	request_set_object(req, record->id);
	request_answer_json(req, status, job_to_json(api, record));
	job_record_fini(record);
}

/* --- lists --- */

struct listing {
	const struct api *api;
	struct list_page page;
	char last[ID_LEN + 1];
};

static bool list_one(const struct job_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, job_to_json(listing->api, record)))
		return false;
	memcpy(listing->last, record->id, sizeof(listing->last));
	return true;
}

HANDLER(jobs_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct listing listing = {.api = api};
	struct job_filter filter = {.state = request_query(req, "state"),
		.kind = request_query(req, "kind"),
		.target = request_query(req, "target"),
		.before = request_query(req, "cursor")};
	uint64_t limit;
	int r = api_query_number(req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err);

	if (r < 0)
		return r;
	filter.limit = (unsigned)limit + 1; /* one more tells whether there is a next page */
	list_page_init(&listing.page, limit);
	r = job_list(api->jobs, &owner, &filter, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "jobs", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(jobs_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct job_record record;
	int r = job_get(api->jobs, &owner, request_param(req, "id"), &record, err);

	if (r == 0)
		answer_job(req, api, 200, &record);
	return r;
}

HANDLER(jobs_cancel)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct job_record record;
	int r = job_cancel(api->jobs, &owner, request_param(req, "id"), &record, err);

	if (r == 0)
		answer_job(req, api, 200, &record);
	return r;
}

/* --- what is done as a job --- */

HANDLER(jobs_back_up)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct job_request request = {.kind = BACKUP_JOB_KIND, .key = BACKUP_JOB_KIND};
	struct job_record record;
	char path[64];
	bool is_joined;
	int r = job_submit(api->jobs, &owner, &request, &record, &is_joined, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/v1/jobs/%s", record.id);
	request_answer_header(req, "Location", path);
	answer_job(req, api, 202, &record);
	return 0;
}

/* --- the log --- */

/* A client that follows. Made for a request, and ended with its stream. */
struct log_feed {
	const struct api *api;
	struct stream *stream;
	struct job_follower *follower;
	struct log_events events; /* the connection's thread only, as the next */
	bool follows, is_done;
};

static void changed(void *arg)
{
	struct log_feed *feed = arg;

	stream_poke(feed->stream);
}

static void put_end(struct log_feed *feed, const struct job_record *record)
{
	json_t *data = job_to_json(feed->api, record);

	log_events_put_rest(&feed->events);
	sse_put_event(&feed->events.out, feed->events.at + 1, "end", data);
	json_decref(data);
}

/* Puts what comes next; whether there was anything. */
static bool produce(void *arg)
{
	struct log_feed *feed = arg;
	struct job_record record;
	bool is_over;

	if (feed->is_done)
		return false;
	/* Looked at first: all that was written before the end is in the log by then. */
	job_follower_read(feed->follower, &record);
	is_over = !job_state_is_active(record.state);
	if (log_events_put_next(&feed->events)) {
		job_record_fini(&record);
		return true;
	}
	if (is_over)
		put_end(feed, &record);
	job_record_fini(&record);
	feed->is_done = is_over || !feed->follows;
	return feed->is_done;
}

static ssize_t pull(void *arg, char *data, size_t size)
{
	struct log_feed *feed = arg;
	size_t n = log_events_take(&feed->events, data, size, produce, feed);

	return n == 0 && feed->is_done ? -ENODATA : (ssize_t)n;
}

static void gone(void *arg)
{
	struct log_feed *feed = arg;

	job_unfollow(feed->follower);
	log_events_fini(&feed->events);
	stream_unref(feed->stream);
	free(feed);
}

static const struct stream_events stream_events = {.pull = pull, .gone = gone};

/* Whether there is anything to come back for: 1 if not. */
static int check_from(struct job_follower *follower, uint64_t from, struct err *err)
{
	uint64_t end = output_log_end(job_follower_log(follower));
	struct job_record record;

	job_follower_read(follower, &record);
	job_record_fini(&record);
	if (from <= end)
		return 0;
	if (from == end + 1 && !job_state_is_active(record.state))
		return 1;
	return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
		"from or Last-Event-ID is beyond the log: %llu of %llu", (unsigned long long)from,
		(unsigned long long)end);
}

int jobs_answer_log(struct request *req, struct api *api, const struct owner *owner, const char *id,
	struct err *err)
{
	bool follows = true, given;
	struct log_feed *feed;
	uint64_t from;
	int r = api_query_from(req, &from, &given, err);

	if (r == 0 && request_query(req, "follow"))
		r = api_query_boolean(req, "follow", &follows, err);
	if (r < 0)
		return r;
	feed = mem_new(sizeof(*feed));
	feed->api = api;
	feed->follows = follows;
	feed->stream = stream_new_pulled(&stream_events, feed);
	stream_set_heartbeat(feed->stream, API_HEARTBEAT_MS);
	r = job_follow(api->jobs, owner, id, changed, feed, &feed->follower, err);
	if (r < 0) {
		stream_unref(feed->stream);
		free(feed);
		return r;
	}
	r = check_from(feed->follower, from, err);
	if (r != 0) {
		gone(feed);
		if (r == 1)
			request_answer_empty(req, 204);
		return r < 0 ? r : 0;
	}
	log_events_init(&feed->events, job_follower_log(feed->follower), from);
	request_answer_stream(req, 200, "text/event-stream", feed->stream);
	return 0;
}

HANDLER(jobs_log)
{
	struct api *api = context;
	struct owner owner = api_owner(req);

	return jobs_answer_log(req, api, &owner, request_param(req, "id"), err);
}

/* --- waiting --- */

/* A request that waits for the end of a job; kept by the request. */
struct awaited {
	struct request *req;
	struct api *api;
	char id[ID_LEN + 1];
	struct job_follower *_Atomic follower; /* NULL: not yet, or no longer */
	atomic_bool is_over;		       /* the request goes on */
	jobs_again_fn again;
	void *arg;
};

static void stop_following(struct awaited *awaited)
{
	struct job_follower *follower = atomic_exchange(&awaited->follower, NULL);

	if (follower)
		job_unfollow(follower);
}

static int go_on(struct request *req, void *arg, struct err *err)
{
	struct awaited *awaited = arg;

	stop_following(awaited);
	return awaited->again(
		req, awaited->arg, job_end(awaited->api->jobs, NULL, awaited->id, err), err);
}

static void go_on_once(struct awaited *awaited)
{
	if (!atomic_exchange(&awaited->is_over, true))
		request_continue(awaited->req, go_on, awaited);
}

static void look(void *arg)
{
	struct awaited *awaited = arg;
	struct job_follower *follower = atomic_load(&awaited->follower);

	if (follower && job_follower_is_over(follower))
		go_on_once(awaited);
}

static void end_awaited(void *arg)
{
	stop_following(arg);
	free(arg);
}

void jobs_await(
	struct request *req, struct api *api, const char *id, jobs_again_fn again, void *arg)
{
	struct awaited *awaited = mem_new(sizeof(*awaited));
	struct job_follower *follower;
	struct err ignored;

	*awaited = (struct awaited){.req = req, .api = api, .again = again, .arg = arg};
	snprintf(awaited->id, sizeof(awaited->id), "%s", id);
	request_keep(req, awaited, end_awaited);
	/* Before it is followed: it may end at once. */
	request_hold(req, NULL, NULL);
	if (job_follow(api->jobs, NULL, id, look, awaited, &follower, &ignored) < 0) {
		go_on_once(awaited);
		return;
	}
	atomic_store(&awaited->follower, follower);
	look(awaited);
}
