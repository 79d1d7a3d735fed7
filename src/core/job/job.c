/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that is not over has a handle in jobs->first, in the order in which they came. jobs->lock
 * guards that list and the state of every handle; what the database is told is written with the
 * lock held, so that rows and handles agree.
 *
 * Watchers have a lock of their own, which is held while they are called and comes before jobs->lock: they
 * call nothing here but job_follower_is_over().
 */
#include "core/job/job.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "core/output/output_segment.h"
#include "model/access/owner.h"
#include "store/store_clock.h"
#include "store/work/store_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_NUMBER   1	 /* of the log in a job's own directory */
#define TELL_MS	     500 /* between two reports of progress */
#define EXCESS_ONCE  16
#define LINE_MAX_LEN 4096

struct job_follower {
	struct job_follower *next;
	struct job *job;
	void (*changed)(void *arg);
	void *arg;
};

struct job {
	atomic_int refs;
	struct job *next; /* in jobs->first */
	struct jobs *jobs;
	const struct job_kind *kind; /* NULL: of one that is over */
	struct output_log *log;
	atomic_bool must_stop;
	uint64_t told_ms;	    /* this and the next are its own thread's */
	unsigned left_out;	    /* lines, because the disk had no room for them */
	struct log_subject subject; /* of who asked for it; empty after a restart of the daemon */

	struct job_record record; /* under jobs->lock */

	pthread_mutex_t followers_lock; /* what follows; before jobs->lock and what watchers take */
	struct job_follower *followers;
};

struct jobs {
	struct jobs_config config;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t idle;
	struct job *first;
	unsigned running;
	bool is_closing;
	int64_t last_id_ms; /* of the last id: those of a daemon grow, so that they are in order */
};

/* --- handles --- */

static void unref(struct job *job)
{
	if (!job || atomic_fetch_sub(&job->refs, 1) > 1)
		return;
	output_log_unref(job->log);
	job_record_fini(&job->record);
	pthread_mutex_destroy(&job->followers_lock);
	free(job);
}

static const struct job_kind *find_kind(const struct jobs *jobs, const char *name)
{
	for (size_t i = 0; i < jobs->config.kind_count; i++) {
		if (strcmp(jobs->config.kinds[i].name, name) == 0)
			return &jobs->config.kinds[i];
	}
	return NULL;
}

/* Opens the log in the job's own directory, which is made if need be. */
static int open_log(const struct jobs *jobs, const struct job_kind *kind, const char *id,
	struct output_log **ret_log, struct err *err)
{
	uint64_t max = jobs->config.log_bytes;
	auto_fd int fd = -1;

	if (mkdirat(jobs->config.dir_fd, id, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make the directory of the job %s", id);
	fd = openat(jobs->config.dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open the directory of the job %s", id);
	if (kind && kind->log_bytes && kind->log_bytes < max)
		max = kind->log_bytes;
	return output_log_open(fd, LOG_NUMBER, max, ret_log, err);
}

static void remove_log(const struct jobs *jobs, const char *id)
{
	auto_fd int fd =
		openat(jobs->config.dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	output_segment_remove_all(fd, LOG_NUMBER);
	if (unlinkat(jobs->config.dir_fd, id, AT_REMOVEDIR) < 0)
		log_error("the log of the job %s stays: %s", id, strerror(errno));
}

/* A handle with one reference; takes over the record. */
static int make_job(
	struct jobs *jobs, struct job_record *record, struct job **ret_job, struct err *err)
{
	struct job *job = mem_new(sizeof(*job));
	int r;

	job->refs = 1;
	job->jobs = jobs;
	job->kind = find_kind(jobs, record->kind);
	job->record = *record;
	job->subject = log_subject();
	atomic_init(&job->must_stop, record->is_cancelling);
	pthread_mutex_init(&job->followers_lock, NULL);
	r = open_log(jobs, job->kind, job->record.id, &job->log, err);
	if (r < 0) {
		unref(job);
		return r;
	}
	*ret_job = job;
	return 0;
}

/* The lock is held, here and below where it is not said otherwise. */
static struct job *find(struct jobs *jobs, const struct owner *owner, const char *id)
{
	struct job *job = jobs->first;

	while (job && strcmp(job->record.id, id) != 0)
		job = job->next;
	return job && (!owner || owner_equals(owner, &job->record.owner)) ? job : NULL;
}

static void enlist(struct jobs *jobs, struct job *job)
{
	struct job **at = &jobs->first;

	while (*at)
		at = &(*at)->next;
	*at = job;
}

static void unlist(struct jobs *jobs, struct job *job)
{
	struct job **at = &jobs->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	unref(job);
}

/* --- telling --- */

/* Those who follow take no lock of ours then. */
static void poke_followers(struct job *job)
{
	pthread_mutex_lock(&job->followers_lock);
	for (struct job_follower *f = job->followers; f; f = f->next)
		f->changed(f->arg);
	pthread_mutex_unlock(&job->followers_lock);
}

static void publish(struct job *job, const char *type)
{
	const struct job_record *record = &job->record;
	char now[CLOCK_TEXT_LEN];
	auto_free char *text = NULL;
	json_t *event;

	clock_format(clock_wall_ms(), now);
	event = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s}", "job", record->id, "kind",
		record->kind, "target", record->target, "state", job_state_name(record->state),
		"progress", record->progress, "done_bytes", (json_int_t)record->done_bytes,
		"total_bytes", (json_int_t)record->total_bytes, "at", now);
	if (json_object_size(record->result) > 0)
		json_object_set(event, "result", record->result);
	if (record->error_message[0])
		json_object_set_new(event, "error", json_string(record->error_message));
	text = json_dumps(event, JSON_COMPACT);
	json_decref(event);
	if (text)
		event_bus_publish(job->jobs->config.bus, &record->owner, record->id, type, text);
}

static void write_row(struct job *job)
{
	struct err err;

	if (store_job_update(job->jobs->config.store, &job->record, &err) < 0)
		log_error("the job %s is not written down: %s", job->record.id, err.message);
}

static void set_state(struct job *job, enum job_state state)
{
	char type[32];
	int64_t now = store_clock_ms(job->jobs->config.store);

	job->record.state = state;
	if (state == JOB_RUNNING) {
		job->record.started_at_ms = now;
		job->record.tries++;
	} else if (!job_state_is_active(state)) {
		job->record.ended_at_ms = now;
	}
	write_row(job);
	snprintf(type, sizeof(type), "job.%s", job_state_name(state));
	publish(job, type);
}

/* As with every failure of our own: the log of the daemon has the whole of it, with paths. */
static const char *message_of(const struct err *err)
{
	return err->kind == ERR_INTERNAL ? "the server failed; see its log" : err->message;
}

static void set_error(struct job_record *record, const struct err *err)
{
	record->error_kind = (enum err_kind)err->kind;
	snprintf(record->error_code, sizeof(record->error_code), "%s",
		err->code[0] ? err->code : err_class((enum err_kind)err->kind)->code);
	snprintf(record->error_message, sizeof(record->error_message), "%s", message_of(err));
	snprintf(record->error_remedy, sizeof(record->error_remedy), "%s", err->remedy);
}

/* --- running --- */

static void start_ready(struct jobs *jobs);

/* No lock is held. */
static void tell_end(struct job *job)
{
	poke_followers(job);
	if (job->kind && job->kind->ended)
		job->kind->ended(job, job->kind->context);
}

/* How it ended, by what run() returned. The daemon leaves: that is no end. */
static void conclude(struct job *job, int r, const struct err *err)
{
	struct jobs *jobs = job->jobs;
	bool stays;

	pthread_mutex_lock(&jobs->lock);
	stays = r == -ECANCELED && !job->record.is_cancelling && jobs->is_closing;
	if (r == 0) {
		set_state(job, JOB_SUCCEEDED);
	} else if (r == -ECANCELED && job->record.is_cancelling) {
		set_state(job, JOB_CANCELLED);
	} else if (!stays) {
		set_error(&job->record, err);
		set_state(job, JOB_FAILED);
	}
	pthread_mutex_unlock(&jobs->lock);
	if (stays)
		poke_followers(job);
	else
		tell_end(job);
}

static void *run(void *arg)
{
	struct job *job = arg;
	struct jobs *jobs = job->jobs;
	struct err err = {0};
	int r;

	pthread_setname_np(pthread_self(), "job");
	log_set_subject(&job->subject);
	r = job->kind->run(job, job->kind->context, &err);
	if (r < 0 && r != -ECANCELED) {
		log_error("the job %s (%s) failed: %s", job->record.id, job->record.kind,
			err.message);
		job_log(job, "failed: %s", message_of(&err));
	}
	conclude(job, r, &err);
	pthread_mutex_lock(&jobs->lock);
	unlist(jobs, job);
	jobs->running--;
	start_ready(jobs);
	pthread_cond_broadcast(&jobs->idle);
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* Whether one more of its kind and of its owner may run. */
static bool has_room(const struct jobs *jobs, const struct job *wanted)
{
	unsigned of_kind = 0, of_owner = 0, owner_max = (jobs->config.max_running + 1) / 2;

	if (jobs->running >= jobs->config.max_running)
		return false;
	for (const struct job *job = jobs->first; job; job = job->next) {
		if (job->record.state != JOB_RUNNING)
			continue;
		of_kind += job->kind == wanted->kind;
		of_owner += owner_equals(&job->record.owner, &wanted->record.owner);
	}
	if (wanted->kind->is_ready && !wanted->kind->is_ready(wanted->kind->context))
		return false;
	return of_owner < owner_max &&
	       (wanted->kind->max_running == 0 || of_kind < wanted->kind->max_running);
}

static void start(struct jobs *jobs, struct job *job)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	jobs->running++;
	set_state(job, JOB_RUNNING);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run, job);
	pthread_attr_destroy(&attr);
	if (r == 0)
		return;
	/* It is tried again with the next change. */
	log_error("the job %s is not begun: %s", job->record.id, strerror(r));
	jobs->running--;
	job->record.tries--;
	set_state(job, JOB_QUEUED);
}

/* Begins all that may run now, the oldest first. */
static void start_ready(struct jobs *jobs)
{
	for (struct job *job = jobs->first; job && !jobs->is_closing; job = job->next) {
		if (job->record.state == JOB_QUEUED && has_room(jobs, job))
			start(jobs, job);
	}
}

/* --- for kinds --- */

const struct job_record *job_record(const struct job *job)
{
	return &job->record;
}

bool job_must_stop(const struct job *job)
{
	return atomic_load(&job->must_stop);
}

/* Whether the disk has room for a line; the first one after some that had none says how many these were. */
static bool may_log(struct job *job)
{
	const struct jobs_config *config = &job->jobs->config;
	char line[80];

	if (fd_free_bytes(config->dir_fd) < config->disk_reserve) {
		job->left_out++;
		return false;
	}
	if (job->left_out > 0) {
		size_t len = format_append(line, sizeof(line), 0,
			"%u lines are missing here: the disk was full\n", job->left_out);

		job->left_out = 0;
		output_log_append(job->log, 1, clock_wall_ms(), line, len);
	}
	return true;
}

void job_log(struct job *job, const char *format, ...)
{
	char line[LINE_MAX_LEN];
	va_list args;

	if (!may_log(job))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	output_log_append(job->log, 1, clock_wall_ms(), line, strlen(line));
	poke_followers(job);
}

/* What does not fit ends between two characters: half of one is in no JSON. */
static void __attribute__((format(printf, 3, 0)))
set_text(char *text, size_t size, const char *format, va_list args)
{
	size_t len;

	vsnprintf(text, size, format, args);
	len = strlen(text);
	if (len + 1 == size)
		text[len - format_unfinished(text, len)] = '\0';
}

void job_progress(
	struct job *job, uint64_t done_bytes, uint64_t total_bytes, const char *format, ...)
{
	struct jobs *jobs = job->jobs;
	uint64_t now_ms = clock_steady_ms();
	bool is_due = job->told_ms == 0 || now_ms - job->told_ms >= TELL_MS;
	va_list args;

	pthread_mutex_lock(&jobs->lock);
	job->record.done_bytes = done_bytes;
	job->record.total_bytes = total_bytes;
	va_start(args, format);
	set_text(job->record.progress, sizeof(job->record.progress), format, args);
	va_end(args);
	if (is_due) {
		write_row(job);
		publish(job, "job.progress");
	}
	pthread_mutex_unlock(&jobs->lock);
	if (!is_due)
		return;
	job->told_ms = now_ms;
	poke_followers(job);
}

void job_set_result(struct job *job, const char *name, json_t *value)
{
	pthread_mutex_lock(&job->jobs->lock);
	json_object_set_new(job->record.result, name, value);
	pthread_mutex_unlock(&job->jobs->lock);
}

/* --- for callers --- */

/* Forgets the oldest of an owner's that are over. */
static void prune(struct jobs *jobs, const struct owner *owner)
{
	char ids[EXCESS_ONCE][ID_LEN + 1];
	struct err err;
	int count = store_job_excess(
		jobs->config.store, owner, jobs->config.history, ids, EXCESS_ONCE, &err);

	for (int i = 0; i < count; i++) {
		if (store_job_delete(jobs->config.store, ids[i], &err) == 0)
			remove_log(jobs, ids[i]);
	}
}

static int check_request(
	const struct jobs *jobs, const struct job_request *request, struct err *err)
{
	if (!find_kind(jobs, request->kind))
		return err_set(
			err, ERR_INTERNAL, "there are no jobs of the kind %s", request->kind);
	if ((request->target && strlen(request->target) >= JOB_TARGET_MAX) ||
		(request->key && strlen(request->key) >= JOB_KEY_MAX))
		return err_set(err, ERR_INVALID, "the name of what the job is about is too long");
	return 0;
}

static void fill_record(struct jobs *jobs, const struct owner *owner,
	const struct job_request *request, struct job_record *record)
{
	int64_t now_ms = clock_wall_ms();

	jobs->last_id_ms = now_ms > jobs->last_id_ms ? now_ms : jobs->last_id_ms + 1;
	job_record_init(record);
	id_new(jobs->last_id_ms, record->id);
	record->owner = *owner;
	snprintf(record->kind, sizeof(record->kind), "%s", request->kind);
	snprintf(record->target, sizeof(record->target), "%s",
		request->target ? request->target : "");
	snprintf(record->key, sizeof(record->key), "%s", request->key ? request->key : "");
	if (request->input)
		json_object_update(record->input, (json_t *)request->input);
	record->created_at_ms = store_clock_ms(jobs->config.store);
}

/* The one that the same request joins, or NULL. */
static struct job *find_same(
	struct jobs *jobs, const struct owner *owner, const struct job_request *request)
{
	for (struct job *job = jobs->first; job && request->key; job = job->next) {
		if (strcmp(job->record.key, request->key) == 0 &&
			strcmp(job->record.kind, request->kind) == 0 &&
			job_state_is_active(job->record.state) && !job->record.is_cancelling &&
			owner_equals(&job->record.owner, owner))
			return job;
	}
	return NULL;
}

static int add(struct jobs *jobs, const struct owner *owner, const struct job_request *request,
	struct job_record *ret_record, struct err *err)
{
	struct job_record record;
	struct job *job;
	int r;

	if (jobs->is_closing)
		return err_set(err, ERR_UNAVAILABLE, "the daemon is about to end");
	prune(jobs, owner);
	fill_record(jobs, owner, request, &record);
	r = store_job_insert(jobs->config.store, &record, err);
	if (r < 0) {
		job_record_fini(&record);
		return r;
	}
	r = make_job(jobs, &record, &job, err);
	if (r < 0) {
		(void)!store_job_delete(jobs->config.store, record.id, &(struct err){0});
		return r;
	}
	enlist(jobs, job);
	publish(job, "job.queued");
	start_ready(jobs);
	job_record_copy(ret_record, &job->record);
	return 0;
}

int job_submit(struct jobs *jobs, const struct owner *owner, const struct job_request *request,
	struct job_record *ret_record, bool *ret_is_joined, struct err *err)
{
	int r = check_request(jobs, request, err);
	struct job *same;

	if (r < 0)
		return r;
	pthread_mutex_lock(&jobs->lock);
	same = find_same(jobs, owner, request);
	if (same)
		job_record_copy(ret_record, &same->record);
	else
		r = add(jobs, owner, request, ret_record, err);
	pthread_mutex_unlock(&jobs->lock);
	*ret_is_joined = same;
	return r;
}

int job_get(struct jobs *jobs, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err)
{
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = find(jobs, owner, id);
	if (job)
		job_record_copy(ret_record, &job->record);
	pthread_mutex_unlock(&jobs->lock);
	return job ? 0 : store_job_get(jobs->config.store, owner, id, ret_record, err);
}

int job_list(struct jobs *jobs, const struct owner *owner, const struct job_filter *filter,
	bool (*each)(const struct job_record *record, void *arg), void *arg, struct err *err)
{
	struct store_job_filter rows = {.owner = owner,
		.state = filter->state,
		.kind = filter->kind,
		.target = filter->target,
		.before = filter->before,
		.limit = filter->limit};
	enum job_state state;

	if (filter->state && job_state_parse(filter->state, &state) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter state must be queued, running, succeeded, failed, cancelled or "
			"lost");
	if (filter->before && !id_is_valid(filter->before))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cursor must be the next_cursor of the page before");
	return store_job_list(jobs->config.store, &rows, each, arg, err);
}

/* Asks one for its end. A queued one has nothing to undo. */
static void ask_to_end(struct jobs *jobs, struct job *job)
{
	bool is_queued = job->record.state == JOB_QUEUED;

	job->record.is_cancelling = true;
	atomic_store(&job->must_stop, true);
	if (is_queued)
		set_state(job, JOB_CANCELLED);
	else
		write_row(job);
	if (is_queued)
		unlist(jobs, job);
}

int job_cancel(struct jobs *jobs, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err)
{
	bool is_over = false;
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = find(jobs, owner, id);
	if (job) {
		atomic_fetch_add(&job->refs, 1);
		if (!job->record.is_cancelling && job_state_is_active(job->record.state)) {
			ask_to_end(jobs, job);
			is_over = !job_state_is_active(job->record.state);
		}
		job_record_copy(ret_record, &job->record);
	}
	pthread_mutex_unlock(&jobs->lock);
	if (!job)
		return store_job_get(jobs->config.store, owner, id, ret_record, err);
	if (is_over)
		tell_end(job);
	else
		poke_followers(job);
	unref(job);
	return 0;
}

/* --- following --- */

/* A reference to the handle of one that is not over, or to one of its own for one that is. Not with the lock held. */
static int open_job(struct jobs *jobs, const struct owner *owner, const char *id,
	struct job **ret_job, struct err *err)
{
	struct job_record record;
	struct job *job;
	int r;

	pthread_mutex_lock(&jobs->lock);
	job = find(jobs, owner, id);
	if (job)
		atomic_fetch_add(&job->refs, 1);
	pthread_mutex_unlock(&jobs->lock);
	if (job) {
		*ret_job = job;
		return 0;
	}
	r = store_job_get(jobs->config.store, owner, id, &record, err);
	return r < 0 ? r : make_job(jobs, &record, ret_job, err);
}

int job_follow(struct jobs *jobs, const struct owner *owner, const char *id,
	void (*changed)(void *arg), void *arg, struct job_follower **ret_follower, struct err *err)
{
	struct job_follower *follower;
	struct job *job;
	int r = open_job(jobs, owner, id, &job, err);

	if (r < 0)
		return r;
	follower = mem_new(sizeof(*follower));
	*follower = (struct job_follower){.job = job, .changed = changed, .arg = arg};
	pthread_mutex_lock(&job->followers_lock);
	follower->next = job->followers;
	job->followers = follower;
	pthread_mutex_unlock(&job->followers_lock);
	*ret_follower = follower;
	return 0;
}

void job_unfollow(struct job_follower *follower)
{
	struct job *job = follower->job;
	struct job_follower **at = &job->followers;

	pthread_mutex_lock(&job->followers_lock);
	while (*at != follower)
		at = &(*at)->next;
	*at = follower->next;
	pthread_mutex_unlock(&job->followers_lock);
	unref(job);
	free(follower);
}

struct output_log *job_follower_log(struct job_follower *follower)
{
	return follower->job->log;
}

void job_follower_read(struct job_follower *follower, struct job_record *ret_record)
{
	pthread_mutex_lock(&follower->job->jobs->lock);
	job_record_copy(ret_record, &follower->job->record);
	pthread_mutex_unlock(&follower->job->jobs->lock);
}

bool job_follower_is_over(struct job_follower *follower)
{
	struct jobs *jobs = follower->job->jobs;
	bool is_over;

	pthread_mutex_lock(&jobs->lock);
	is_over = jobs->is_closing || !job_state_is_active(follower->job->record.state);
	pthread_mutex_unlock(&jobs->lock);
	return is_over;
}

/* --- how it ended --- */

/* Why a job that is over did not succeed. Rows of earlier versions do not know the kind of the error. */
static int explain_end(const struct job_record *record, struct err *err)
{
	const char *remedy = record->error_remedy[0] ? record->error_remedy : NULL;

	if (record->state == JOB_SUCCEEDED)
		return 0;
	if (record->error_kind != ERR_NONE)
		return err_explain(err, record->error_kind, record->error_code, remedy, "%s",
			record->error_message);
	return err_explain(err, ERR_CONFLICT, record->error_code[0] ? record->error_code : NULL,
		remedy, "the job %s %s%s%s", record->id,
		record->state == JOB_CANCELLED ? "was cancelled" : "did not succeed",
		record->error_message[0] ? ": " : "", record->error_message);
}

static bool is_closing(struct jobs *jobs)
{
	bool is_closing;

	pthread_mutex_lock(&jobs->lock);
	is_closing = jobs->is_closing;
	pthread_mutex_unlock(&jobs->lock);
	return is_closing;
}

int job_end(struct jobs *jobs, const struct owner *owner, const char *id, struct err *err)
{
	struct job_record record;
	int r = job_get(jobs, owner, id, &record, err);

	if (r < 0)
		return r;
	if (!job_state_is_active(record.state))
		r = explain_end(&record, err);
	else if (is_closing(jobs))
		r = err_explain(err, ERR_UNAVAILABLE, "daemon_ending",
			"the job goes on when the daemon is there again",
			"the daemon ends while the job %s runs", id);
	else
		r = 1;
	job_record_fini(&record);
	return r;
}

/* --- life --- */

/* The rows that are not over, newest first, in front of each other: so the oldest ends up first. */
static bool take_up(const struct job_record *row, void *arg)
{
	struct jobs *jobs = arg;
	struct job_record record;
	struct job *job;
	struct err err;

	job_record_copy(&record, row);
	if (make_job(jobs, &record, &job, &err) < 0) {
		log_error("the job %s cannot be taken up: %s", row->id, err.message);
		return true;
	}
	job->next = jobs->first;
	jobs->first = job;
	return true;
}

static void lose(struct job *job, const char *message)
{
	struct err err = {0};

	err_explain(&err, ERR_UNAVAILABLE, "job_lost", "ask for it again", "%s", message);
	job_log(job, "lost: %s", message);
	set_error(&job->record, &err);
	set_state(job, JOB_LOST);
}

/* What the end of the daemon before means for one; whether it goes on. */
static bool settle(struct job *job)
{
	bool ran = job->record.state == JOB_RUNNING;

	if (job->record.is_cancelling) {
		set_state(job, JOB_CANCELLED);
	} else if (!job->kind) {
		lose(job, "this version of the daemon has no such jobs");
	} else if (ran && job->kind->on_restart == JOB_RESTART_LOSE) {
		lose(job, "the daemon ended while it ran");
	} else if (ran) {
		job_log(job, "the daemon was restarted: the job %s",
			job->kind->on_restart == JOB_RESTART_RETRY ? "begins anew" : "goes on");
		set_state(job, JOB_QUEUED);
	}
	return job_state_is_active(job->record.state);
}

static void settle_all(struct jobs *jobs)
{
	struct job *next;

	for (struct job *job = jobs->first; job; job = next) {
		next = job->next;
		if (!settle(job))
			unlist(jobs, job);
	}
}

int jobs_open(const struct jobs_config *config, struct jobs **ret_jobs, struct err *err)
{
	struct jobs *jobs = mem_new(sizeof(*jobs));
	struct store_job_filter rows = {.is_active = true, .limit = UINT32_MAX};
	int r;

	jobs->config = *config;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->idle, NULL);
	r = store_job_list(config->store, &rows, take_up, jobs, err);
	if (r < 0) {
		jobs_close(jobs);
		return r;
	}
	settle_all(jobs);
	pthread_mutex_lock(&jobs->lock);
	start_ready(jobs);
	pthread_mutex_unlock(&jobs->lock);
	*ret_jobs = jobs;
	return 0;
}

void jobs_look(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	start_ready(jobs);
	pthread_mutex_unlock(&jobs->lock);
}

void jobs_stop(struct jobs *jobs)
{
	struct job **all;
	size_t count = 0;

	pthread_mutex_lock(&jobs->lock);
	jobs->is_closing = true;
	for (struct job *job = jobs->first; job; job = job->next)
		count++;
	all = mem_new((count + 1) * sizeof(struct job *));
	count = 0;
	for (struct job *job = jobs->first; job; job = job->next) {
		atomic_store(&job->must_stop, true);
		atomic_fetch_add(&job->refs, 1);
		all[count++] = job;
	}
	pthread_mutex_unlock(&jobs->lock);
	for (size_t i = 0; i < count; i++) {
		poke_followers(all[i]);
		unref(all[i]);
	}
	free(all);
}

void jobs_close(struct jobs *jobs)
{
	if (!jobs)
		return;
	jobs_stop(jobs);
	pthread_mutex_lock(&jobs->lock);
	while (jobs->running > 0)
		pthread_cond_wait(&jobs->idle, &jobs->lock);
	while (jobs->first)
		unlist(jobs, jobs->first);
	pthread_mutex_unlock(&jobs->lock);
	pthread_mutex_destroy(&jobs->lock);
	pthread_cond_destroy(&jobs->idle);
	free(jobs);
}
