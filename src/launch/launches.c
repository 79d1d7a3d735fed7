/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launches.h"

#include "base/log.h"
#include "launch/app/project_set.h"
#include "launch/launch_trace.h"
#include "launch/pipeline_run.h"
#include "store/store_clock.h"
#include "store/work/store_launch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS	    200
#define LEFT_MAX    10000
#define RUNNING_MAX 1000

struct launches {
	struct launches_config config;
	struct jobs *jobs;
	struct projects *projects;
	struct engine *_Atomic engine; /* NULL until launches can run */
	pthread_mutex_t
		lock; /* held while a job and its row come together; comes before those of the jobs */
};

struct launches *launches_new(const struct launches_config *config)
{
	struct launches *launches = mem_new(sizeof(*launches));

	launches->config = *config;
	pthread_mutex_init(&launches->lock, NULL);
	return launches;
}

void launches_free(struct launches *launches)
{
	if (!launches)
		return;
	pthread_mutex_destroy(&launches->lock);
	free(launches);
}

bool launches_are_attached(void *launches)
{
	return atomic_load(&((struct launches *)launches)->engine) != NULL;
}

/* --- rows --- */

static json_t *pending_stages(void)
{
	json_t *stages = json_array();

	for (size_t i = 0; i < pipeline_stage_count; i++)
		json_array_append_new(
			stages, json_pack("{s:s, s:s, s:n, s:n}", "stage", pipeline_stages[i].name,
					"status", "pending", "duration_ms", "error"));
	return stages;
}

static void end_row(struct launches *launches, struct launch_record *record)
{
	struct err ignored;

	record->ended_at_ms = store_clock_ms(launches->config.store);
	pipeline_note(launches->config.store, record);
	(void)!store_launch_prune(
		launches->config.store, &record->owner, launches->config.history, &ignored);
}

/* A job that is over without its launch having said so: it was cancelled, or its daemon died at that moment. */
static void settle_row(
	struct launches *launches, const struct job_record *job, struct launch_record *record)
{
	if (record->status != LAUNCH_RUNNING || job_state_is_active(job->state))
		return;
	record->status = job->state == JOB_SUCCEEDED   ? LAUNCH_SUCCEEDED
			 : job->state == JOB_CANCELLED ? LAUNCH_CANCELLED
						       : LAUNCH_FAILED;
	if (record->status == LAUNCH_FAILED && !record->cause[0]) {
		snprintf(record->cause, sizeof(record->cause), "%s",
			job->error_code[0] ? job->error_code : "lost");
		json_object_set_new(record->document, "error",
			json_pack("{s:n, s:s, s:s, s:s?, s:n}", "stage", "code", record->cause,
				"message",
				job->error_message[0] ? job->error_message
						      : "the daemon ended while it ran",
				"remediation",
				job->error_message[0] ? NULL : "launch again, or retry it",
				"lines"));
	}
	end_row(launches, record);
}

/* Its job is over: the row is read once more, as the launch may have written its end since it was read. */
static int read_settled(struct launches *launches, const struct owner *owner,
	const struct job_record *job, struct launch_record *record, struct err *err)
{
	struct launch_record again;
	int r = store_launch_get(launches->config.store, owner, record->id, &again, err);

	launch_record_fini(record);
	if (r < 0)
		return r;
	*record = again;
	settle_row(launches, job, record);
	return 0;
}

int launches_get(struct launches *launches, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err)
{
	const struct job_record lost = {.state = JOB_LOST};
	struct job_record job;
	struct err ignored;
	int r = store_launch_get(launches->config.store, owner, id, ret_record, err);

	if (r < 0 || ret_record->status != LAUNCH_RUNNING || !launches->jobs)
		return r;
	if (job_get(launches->jobs, owner, id, &job, &ignored) == 0) {
		if (!job_state_is_active(job.state))
			r = read_settled(launches, owner, &job, ret_record, err);
		job_record_fini(&job);
	} else if (ignored.kind == ERR_NOT_FOUND) {
		r = read_settled(launches, owner, &lost, ret_record, err);
	}
	return r;
}

static bool settle_left(const struct launch_record *record, void *arg)
{
	struct launches *launches = arg;
	struct launch_record settled;
	struct err ignored;

	if (launches_get(launches, &record->owner, record->id, &settled, &ignored) == 0)
		launch_record_fini(&settled);
	return true;
}

void launches_attach(struct launches *launches, struct engine *engine, struct jobs *jobs,
	struct projects *projects)
{
	struct store_launch_filter running = {
		.status = launch_status_name(LAUNCH_RUNNING), .limit = LEFT_MAX};
	struct err err;

	launches->projects = projects;
	launches->jobs = jobs;
	/* A daemon may have died between the end of a job and that of its launch. */
	if (store_launch_list(launches->config.store, &running, settle_left, launches, &err) < 0)
		log_warning("launches that the daemon before has left: %s", err.message);
	atomic_store(&launches->engine, engine);
}

/* --- beginning --- */

/* With the lock held. */
static int add_row(struct launches *launches, const struct job_record *job,
	const struct launch_request *request, struct launch_record *ret_record, struct err *err)
{
	struct launch_record record = {.owner = job->owner,
		.created_at_ms = store_clock_ms(launches->config.store),
		.document = json_pack("{s:o, s:n, s:[], s:n, s:O}", "stages", pending_stages(),
			"detection", "findings", "error", "input", request->input)};
	int r;

	memcpy(record.id, job->id, sizeof(record.id));
	snprintf(record.project, sizeof(record.project), "%s",
		request->project ? request->project : "");
	snprintf(record.sandbox_id, sizeof(record.sandbox_id), "%s", sandbox_id(request->sandbox));
	r = store_launch_insert(launches->config.store, &record, err);
	if (r < 0)
		launch_record_fini(&record);
	else
		*ret_record = record;
	return r;
}

int launches_start(struct launches *launches, const struct caller *caller,
	const struct launch_request *request, struct launch_record *ret_record, struct err *err)
{
	json_auto_t *input = json_pack("{s:i, s:s?, s:O, s:s}", "scopes", (int)caller->scopes,
		"project", request->project, "input", request->input, "trace",
		request->trace ? request->trace : "");
	char key[JOB_KEY_MAX];
	struct job_record job;
	bool is_joined;
	int r;

	if (!launches->jobs)
		return err_set(err, ERR_UNAVAILABLE, "sandboxes cannot be served yet");
	if (!scope_allows(caller->scopes, SCOPE_RUN))
		return err_explain(err, ERR_DENIED, "missing_scope", "use a token that has it",
			"the token has not the scope run, which a launch needs");
	snprintf(key, sizeof(key), "%s", sandbox_id(request->sandbox));
	pthread_mutex_lock(&launches->lock);
	r = job_submit(launches->jobs, &caller->owner,
		&(struct job_request){.kind = LAUNCH_JOB_KIND,
			.target = sandbox_id(request->sandbox),
			.key = key,
			.input = input},
		&job, &is_joined, err);
	if (r == 0 && is_joined)
		r = store_launch_get(
			launches->config.store, &caller->owner, job.id, ret_record, err);
	else if (r == 0)
		r = add_row(launches, &job, request, ret_record, err);
	pthread_mutex_unlock(&launches->lock);
	if (r == 0)
		job_record_fini(&job);
	return r;
}

int launches_retry(struct launches *launches, const struct caller *caller, const char *id,
	const struct launch_retry *retry, struct launch_record *ret_record, struct err *err)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct launch_record before;
	json_auto_t *input = NULL;
	int r = launches_get(launches, &caller->owner, id, &before, err);

	if (r < 0)
		return r;
	input = json_deep_copy(json_object_get(before.document, "input"));
	if (retry->from)
		json_object_set_new(input, "from", json_string(retry->from));
	else
		json_object_del(input, "from");
	if (before.status == LAUNCH_RUNNING)
		r = err_explain(err, ERR_CONFLICT, "launch_running", "cancel it first",
			"launch %s is not over", id);
	if (r == 0)
		r = sandbox_get(launches->engine, &caller->owner, before.sandbox_id, &sandbox, err);
	if (r == 0)
		r = launches_start(launches, caller,
			&(struct launch_request){.sandbox = sandbox,
				.project = before.project[0] ? before.project : NULL,
				.input = input,
				.trace = retry->trace},
			ret_record, err);
	launch_record_fini(&before);
	return r;
}

int launches_cancel(struct launches *launches, const struct owner *owner, const char *id,
	struct launch_record *ret_record, struct err *err)
{
	struct job_record job;
	struct err ignored;
	int r = launches_get(launches, owner, id, ret_record, err);

	if (r < 0 || ret_record->status != LAUNCH_RUNNING)
		return r;
	if (job_cancel(launches->jobs, owner, id, &job, &ignored) == 0)
		job_record_fini(&job);
	launch_record_fini(ret_record);
	return launches_get(launches, owner, id, ret_record, err);
}

/* --- running --- */

/* One whose image is being brought is not there yet. */
static int wait_for_sandbox(struct pipeline *pipeline, struct err *err)
{
	for (;;) {
		struct sandbox_record record;
		enum sandbox_status status;
		char message[sizeof(record.error_message)];

		sandbox_read(pipeline->sandbox, &record);
		status = record.status;
		memcpy(message, record.error_message, sizeof(message));
		sandbox_record_fini(&record);
		if (status == SANDBOX_ERROR)
			return err_set(
				err, ERR_UNAVAILABLE, "the sandbox cannot be started: %s", message);
		if (status != SANDBOX_CREATING)
			return 0;
		if (job_must_stop(pipeline->job))
			return -ECANCELED;
		poll(NULL, 0, LOOK_MS);
	}
}

static void begin_anew(struct launch_record *record)
{
	record->status = LAUNCH_RUNNING;
	record->failed_stage[0] = record->cause[0] = '\0';
	json_object_set_new(record->document, "stages", pending_stages());
	json_object_set_new(record->document, "error", json_null());
	json_object_del(record->document, "preview_path");
}

static int run_pipeline(struct pipeline *pipeline, struct err *err)
{
	int r = wait_for_sandbox(pipeline, err);

	if (r < 0)
		return r;
	sandbox_enter(pipeline->sandbox); /* it is not idle meanwhile */
	r = pipeline_run(pipeline, err);
	sandbox_leave(pipeline->sandbox);
	return r;
}

int launches_run(struct job *job, void *context, struct err *err)
{
	struct launches *launches = context;
	const struct job_record *asked = job_record(job);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	auto_free struct pipeline *pipeline = mem_new(sizeof(*pipeline));
	int r;

	*pipeline = (struct pipeline){.config = &launches->config,
		.projects = launches->projects,
		.jobs = launches->jobs,
		.engine = atomic_load(&launches->engine),
		.job = job,
		.input = json_object_get(asked->input, "input"),
		.caller = {.owner = asked->owner,
			.scopes = (unsigned)json_integer_value(
				json_object_get(asked->input, "scopes"))}};
	pthread_mutex_lock(&launches->lock);
	r = store_launch_get(
		launches->config.store, &asked->owner, asked->id, &pipeline->record, err);
	pthread_mutex_unlock(&launches->lock);
	if (r < 0)
		return r;
	begin_anew(&pipeline->record);
	launch_trace_begin(pipeline, json_string_value(json_object_get(asked->input, "trace")));
	r = sandbox_get(
		pipeline->engine, &asked->owner, pipeline->record.sandbox_id, &sandbox, err);
	pipeline->sandbox = sandbox;
	if (r == 0)
		r = run_pipeline(pipeline, err);
	if (pipeline->record.status != LAUNCH_RUNNING)
		end_row(launches, &pipeline->record);
	launch_trace_end(pipeline, launches->config.traces,
		r == -ECANCELED ? "cancelled"
		: r < 0		? err->message
				: "");
	pipeline_fini(pipeline);
	return r;
}

void launches_ended(struct job *job, void *context)
{
	struct launches *launches = context;
	const struct job_record *asked = job_record(job);
	struct launch_record record;
	struct err ignored;

	/* Looking settles it. */
	if (launches_get(launches, &asked->owner, asked->id, &record, &ignored) == 0)
		launch_record_fini(&record);
}

/* --- statistics --- */

struct stats {
	unsigned counts[LAUNCH_STATUS_COUNT];
	json_int_t *durations[16]; /* of each stage that was completed */
	size_t duration_counts[16];
	unsigned failures[16];
	json_t *causes;
};

static void count_stages(struct stats *stats, const struct launch_record *record)
{
	json_t *stages = json_object_get(record->document, "stages"), *stage;
	size_t i;

	json_array_foreach(stages, i, stage)
	{
		const char *status = json_string_value(json_object_get(stage, "status"));

		if (i >= pipeline_stage_count || !status)
			break;
		if (strcmp(status, "failed") == 0)
			stats->failures[i]++;
		else if (strcmp(status, "complete") == 0)
			stats->durations[i][stats->duration_counts[i]++] =
				json_integer_value(json_object_get(stage, "duration_ms"));
	}
}

static bool count_launch(const struct launch_record *record, void *arg)
{
	struct stats *stats = arg;

	stats->counts[record->status]++;
	count_stages(stats, record);
	if (record->cause[0])
		json_object_set_new(stats->causes, record->cause,
			json_integer(1 + json_integer_value(
						 json_object_get(stats->causes, record->cause))));
	return true;
}

static int compare_numbers(const void *a, const void *b)
{
	json_int_t x = *(const json_int_t *)a, y = *(const json_int_t *)b;

	return (x > y) - (x < y);
}

static json_t *percentile(const json_int_t *sorted, size_t count, unsigned percent)
{
	return count ? json_integer(sorted[(count - 1) * percent / 100]) : json_null();
}

static json_t *stages_to_json(struct stats *stats)
{
	json_t *list = json_array();

	for (size_t i = 0; i < pipeline_stage_count; i++) {
		json_int_t *durations = stats->durations[i];
		size_t count = stats->duration_counts[i];

		qsort(durations, count, sizeof(*durations), compare_numbers);
		json_array_append_new(list,
			json_pack("{s:s, s:i, s:i, s:o, s:o}", "stage", pipeline_stages[i].name,
				"completed", (int)count, "failed", (int)stats->failures[i],
				"p50_ms", percentile(durations, count, 50), "p95_ms",
				percentile(durations, count, 95)));
	}
	return list;
}

static int compare_causes(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_iter_value(*(void *const *)a));
	json_int_t y = json_integer_value(json_object_iter_value(*(void *const *)b));

	return (x < y) - (x > y);
}

/* The most frequent first. */
static json_t *causes_to_json(json_t *causes)
{
	size_t count = json_object_size(causes), i = 0;
	auto_free void **iters = mem_new((count + 1) * sizeof(*iters));
	json_t *sorted = json_object();

	for (void *at = json_object_iter(causes); at; at = json_object_iter_next(causes, at))
		iters[i++] = at;
	qsort(iters, count, sizeof(*iters), compare_causes);
	for (i = 0; i < count; i++)
		json_object_set(
			sorted, json_object_iter_key(iters[i]), json_object_iter_value(iters[i]));
	return sorted;
}

static json_t *stats_to_json(struct stats *stats)
{
	const unsigned *counts = stats->counts;
	unsigned judged = counts[LAUNCH_SUCCEEDED] + counts[LAUNCH_FAILED];

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "launches",
		(int)(judged + counts[LAUNCH_CANCELLED] + counts[LAUNCH_RUNNING]), "succeeded",
		(int)counts[LAUNCH_SUCCEEDED], "failed", (int)counts[LAUNCH_FAILED], "cancelled",
		(int)counts[LAUNCH_CANCELLED], "running", (int)counts[LAUNCH_RUNNING],
		"success_rate",
		judged ? json_real((double)counts[LAUNCH_SUCCEEDED] / judged) : json_null(),
		"stages", stages_to_json(stats), "causes", causes_to_json(stats->causes));
}

int launches_stats(struct launches *launches, const struct owner *owner, const char *project,
	int64_t since_ms, json_t **ret_stats, struct err *err)
{
	/* Beside those that are kept some may run. */
	const unsigned max = launches->config.history + RUNNING_MAX;
	struct store_launch_filter filter = {
		.owner = owner, .project = project, .since_ms = since_ms, .limit = max};
	struct stats stats = {.causes = json_object()};
	int r;

	for (size_t i = 0; i < pipeline_stage_count; i++)
		stats.durations[i] = mem_new(max * sizeof(json_int_t));
	r = store_launch_list(launches->config.store, &filter, count_launch, &stats, err);
	if (r == 0)
		*ret_stats = stats_to_json(&stats);
	for (size_t i = 0; i < pipeline_stage_count; i++)
		free(stats.durations[i]);
	json_decref(stats.causes);
	return r;
}
