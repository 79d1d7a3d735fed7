/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: all that outlasts the request which asked for it (a backup; pulls, builds and snapshots). A job
 * is a row in the database (model/work/job_record.h), a log that can be followed and resumed
 * (core/output/output_log.h), and a thread while it runs. Nothing depends on who follows it.
 *
 * Each kind of job is a row of a table: what runs it, and what a restart of the daemon makes of one that
 * was running. Jobs that are queued stay queued over a restart. The same request twice (the same owner,
 * kind and key) joins the job that is not over.
 *
 * How many run at a time is bounded, of which an owner has half at most; so is how many an owner has
 * that are not over (store/work/store_job.h), and how many are remembered.
 */
#pragma once

#include "core/engine/event_bus.h"
#include "core/output/output_log.h"
#include "model/access/caller.h"
#include "model/work/job_record.h"
#include "store/store.h"

struct job;
struct jobs;

/* What a new daemon makes of a job that was running when the one before ended. */
enum job_restart {
	JOB_RESTART_LOSE,     /* it is lost, and its error says so */
	JOB_RESTART_RETRY,    /* it begins anew */
	JOB_RESTART_CONTINUE, /* it goes on: run() looks at what is there already */
};

struct job_kind {
	const char *name;
	enum job_restart on_restart;
	unsigned max_running; /* 0: as many as there may be jobs */
	uint64_t
		log_bytes; /* kept of the log of one, if that is less than is configured; 0: that */
	/* Whether they can run yet; they are queued until then. NULL: they always can. */
	bool (*is_ready)(void *context);
	/*
	 * Does it, on a thread of its own. Returns 0, or -errno with err set. When job_must_stop() says
	 * so it undoes what is half done and returns -ECANCELED.
	 */
	int (*run)(struct job *job, void *context, struct err *err);
	/*
	 * Called when one is over and that is written down, with no lock held; NULL: nobody cares. It may block:
	 * it is on the job's own thread, or on that of whoever cancelled one that was queued.
	 */
	void (*ended)(struct job *job, void *context);
	void *context;
};

struct jobs_config {
	struct store *store;   /* borrowed, as all of these */
	struct event_bus *bus; /* "job.<state>" and "job.progress" are published there */
	int dir_fd;	       /* a directory for their logs */
	const struct job_kind *kinds;
	size_t kind_count;
	unsigned max_running;
	/* Ended ones that are remembered of an owner, beside those whose launches are (store_launch.h). */
	unsigned history;
	uint64_t disk_reserve; /* of the disk; below it logs do not grow */
	uint64_t log_bytes;    /* kept of the log of one */
};

/* Takes up what the daemon before has left, and begins to run jobs. */
int jobs_open(const struct jobs_config *config, struct jobs **ret_jobs, struct err *err) must_check;

/* Has those that run stop, without an end: the next daemon takes them up by the rule of their kind. */
void jobs_close(struct jobs *jobs);

/* Looks again which jobs may run, after a kind has become ready. */
void jobs_look(struct jobs *jobs);

/* Has those that run stop, and nobody wait for any longer: the daemon is about to end. */
void jobs_stop(struct jobs *jobs);

/* --- for callers --- */

struct job_request {
	const char *kind;
	const char *target;  /* what it is about, or NULL */
	const char *key;     /* joins the same request; NULL: nothing does */
	const json_t *input; /* an object for its kind, or NULL; copied */
};

/* Adds a job, or joins the one that is not over (then *ret_is_joined). The caller ends the record. */
int job_submit(struct jobs *jobs, const struct owner *owner, const struct job_request *request,
	struct job_record *ret_record, bool *ret_is_joined, struct err *err) must_check;

/* The caller ends the record. ERR_NOT_FOUND for a job of somebody else. */
int job_get(struct jobs *jobs, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err) must_check;

struct job_filter {
	const char *state, *kind, *target; /* NULL: any */
	const char *before;		   /* the id of the last one of the page before, or NULL */
	unsigned limit;
};

/* Calls each, the newest first, until it says false; the record is borrowed. */
int job_list(struct jobs *jobs, const struct owner *owner, const struct job_filter *filter,
	bool (*each)(const struct job_record *record, void *arg), void *arg, struct err *err)
	must_check;

/*
 * Asks for the end of a job. One that is queued is cancelled at once, one that runs when it next looks;
 * one that is over stays as it is. The record is as it is then, and the caller ends it.
 */
int job_cancel(struct jobs *jobs, const struct owner *owner, const char *id,
	struct job_record *ret_record, struct err *err) must_check;

/* How a job ended, of an owner or of anybody (NULL): 0 if it succeeded, else its error; 1 while it is not over, but
 * ERR_UNAVAILABLE if the daemon ends. */
int job_end(struct jobs *jobs, const struct owner *owner, const char *id, struct err *err)
	must_check;

/* Follows a job: calls changed, which must not block, when its log has more or it has ended. */
struct job_follower;
int job_follow(struct jobs *jobs, const struct owner *owner, const char *id,
	void (*changed)(void *arg), void *arg, struct job_follower **ret_follower, struct err *err)
	must_check;
/* After it returned, changed is not called again. */
void job_unfollow(struct job_follower *follower);

/* Its log, borrowed, and a copy of what it is now; the caller ends the record. */
struct output_log *job_follower_log(struct job_follower *follower);
void job_follower_read(struct job_follower *follower, struct job_record *ret_record);

/* Whether there is nothing to wait for: it is over, or the daemon ends. May be asked by `changed`. */
bool job_follower_is_over(struct job_follower *follower);

/* --- for kinds, on the job's own thread --- */

const struct job_record *job_record(const struct job *job); /* what it was asked; borrowed */
bool job_must_stop(const struct job *job);

/* A line of its log; left out while the disk has less than its reserve. */
void job_log(struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How far it is; of bytes 0 is not known. May be called often: it is told and written now and then. */
void job_progress(struct job *job, uint64_t done_bytes, uint64_t total_bytes, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* What comes of it; takes over the value. */
void job_set_result(struct job *job, const char *name, json_t *value);
