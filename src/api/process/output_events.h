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
#include "core/process/process.h"
#include "http/server/request/request.h"

struct output_events;

struct output_events_spec {
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

struct output_events *output_events_new(const struct output_events_spec *spec);
void output_events_unref(struct output_events *feed);

/* Begins to watch the process. */
void output_events_watch(struct output_events *feed);

/* It runs: its number and pid are known now. */
void output_events_started(struct output_events *feed, uint32_t number, uint32_t pid);

/* Sends it as the answer; once. */
void output_events_answer(struct output_events *feed, struct request *req);
