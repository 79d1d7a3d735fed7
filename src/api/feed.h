/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a process as an event stream: what is kept, and then what comes, until its end.
 *
 * A feed reads the process's log, at the pace of its client and on the thread of its connection; the
 * process only says that there is more. So clients at different places, slow and fast, do not disturb
 * each other, and one that comes back goes on where it was. Counted.
 */
#pragma once

#include "api/api.h"
#include "core/process.h"
#include "http/request.h"

struct feed;

struct feed_spec {
	struct sandbox *sandbox;
	struct process *process;	     /* NULL: nothing of it runs any more */
	const struct process_record *record; /* as it was found */
	struct output_log *log;		     /* its output; NULL: none is kept */
	uint64_t from;
	bool has_start;	       /* the stream begins with the event `start` */
	bool follows;	       /* waits for what comes, instead of ending with what is there */
	bool is_pacing;	       /* the command waits for this client, */
	bool cancels;	       /* and ends with it, */
	const struct api *api; /* unless the daemon is what leaves */
};

struct feed *feed_new(const struct feed_spec *spec);
void feed_unref(struct feed *feed);

/* Begins to watch the process. */
void feed_watch(struct feed *feed);

/* It runs: its number and pid are known now. */
void feed_started(struct feed *feed, uint32_t number, uint32_t pid);

/* Sends it as the answer; once. */
void feed_answer(struct feed *feed, struct request *req);
