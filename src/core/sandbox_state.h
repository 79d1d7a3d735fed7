/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a sandbox and of the engine; for the files of src/core only. */
#pragma once

#include "core/engine.h"
#include "core/link.h"
#include "core/process.h"
#include "core/sandbox.h"

#include <pthread.h>
#include <stdatomic.h>

struct sandbox {
	atomic_int refs;
	struct engine *engine;
	char id[ID_LEN + 1];
	pthread_mutex_t life;	     /* held through a whole verb; serialises them */
	atomic_llong last_active_ms; /* newer than the record's; the reaper writes it down */
	atomic_int visitors;	     /* sandbox_enter() */
	atomic_uint stirs;	     /* grows with each report of its agent about processes */
	atomic_int waits;	     /* threads of previews that wait for what is inside */

	pthread_mutex_t state; /* what follows; never held while anything blocks */
	pthread_cond_t changed;
	struct sandbox_record record;
	struct link *link;  /* while it runs */
	struct walls walls; /* likewise */
	bool greeted;	    /* the agent said hello on this link */
	bool ending;	    /* a verb is ending it, so the loss of the link is no surprise */
	enum end_reason end_reason; /* why, while it is ending */
	bool gone;		    /* deleted */
	struct process *processes;
	struct starter *starters; /* of its start commands, while it runs */
	struct sluice *sluice;	  /* the way out, while it runs and has one */
	bool is_transparent;	  /* all TCP leads there by itself */
	struct cord *cords;	  /* connections from outside that end with it */
	uint32_t next_process;	  /* the last number that was given out */
	bool is_numbered;	  /* the database was asked for it */
};

struct engine {
	struct engine_config config;
	struct reactor *reactor;
	struct scribe *scribe;
	struct governor *governor;
	struct egress *egress;

	pthread_mutex_t births; /* held while a row and its handle come or go together */

	pthread_mutex_t lock; /* what follows */
	pthread_cond_t work;
	void *sandboxes;       /* a tsearch tree by id */
	struct sandbox **lost; /* sandboxes whose agent vanished: the reaper settles them */
	size_t lost_count, lost_cap;
	bool closing;
	struct subscription *subscriptions;
	struct port_watch *port_watches; /* one for each sandbox that somebody follows */
	uint64_t event_sequence;

	pthread_t reaper;
	bool reaper_runs;
};

/* Whether its record says that it runs, or is paused. */
static inline bool sandbox_seems_up(const struct sandbox *sandbox)
{
	return sandbox->record.status == SANDBOX_RUNNING ||
	       sandbox->record.status == SANDBOX_PAUSED;
}

/* The handle of a record that is in the database; takes over the record. */
struct sandbox *sandbox_attach(struct engine *engine, struct sandbox_record *record);

/* Takes up the link of one that a previous daemon started. life must be held. */
int sandbox_adopt(struct sandbox *sandbox, int link_fd, const struct walls *walls, struct err *err)
	must_check;

/* Whether somebody uses it at this moment, so that it cannot be idle. */
bool sandbox_is_occupied(struct sandbox *sandbox);

/* If its agent vanished: ends what is left of it and writes down how it ended. */
void sandbox_settle(struct sandbox *sandbox);

/* Opens the directory for the output of its processes, which is made if need be. */
int sandbox_open_logs(struct sandbox *sandbox, int *ret_fd, struct err *err) must_check;

/* Tells the subscribers of a sandbox of an event; the same where engine.lock is held. */
void engine_publish(
	struct engine *engine, const char *sandbox_id, const char *type, const char *json);
void engine_tell(struct engine *engine, const char *sandbox_id, const char *type, const char *json);

/* A sandbox is born: who followed one of its id that was another owner's hears nothing of it. engine.lock is
 * held. */
void engine_dismiss_strangers(struct engine *engine, const struct sandbox_record *record);

/* Tells subscribers what it is now. */
void sandbox_announce(struct sandbox *sandbox);

/* The running sandbox that has not been used for longest, and is not being used; NULL if there is none. */
struct sandbox *engine_find_idlest(struct engine *engine);

/* Removes the kept output of all processes of a sandbox. */
void engine_remove_logs(struct engine *engine, const char *sandbox_id);

int reconcile(struct engine *engine, struct err *err) must_check;

/* The reaper's thread: settles the lost, stops the idle, ends what outlived its time. */
void *reaper_run(void *engine);
