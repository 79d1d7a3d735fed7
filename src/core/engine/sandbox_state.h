/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of a sandbox and of the engine, for the files of src/core only. */
#pragma once

#include "core/engine/agent_link.h"
#include "core/engine/engine_config.h"
#include "core/engine/stats_history.h"
#include "event/timer.h"
#include "store/store_clock.h"
#include "wire/wall.h"

#include <pthread.h>
#include <stdatomic.h>

#define OUTPUT_NOT_NOTED UINT64_MAX
#define ENGINE_THREADS	 7

enum member_health_state {
	MEMBER_HEALTH_NONE, /* nobody asks */
	MEMBER_HEALTH_STARTING,
	MEMBER_HEALTH_GOOD,
	MEMBER_HEALTH_BAD,
};

enum disk_growth { GROWTH_UNKNOWN, GROWTH_FREE, GROWTH_HELD };

/* Counters as they were when it was last sampled. */
struct sandbox_sample {
	uint64_t at_us; /* 0: never */
	uint64_t cpu_us, rx_bytes, tx_bytes, disk_bytes;
	uint64_t disk_us; /* when disk_bytes was asked for */
};

struct sandbox {
	atomic_int refs;
	struct engine *engine;
	char id[ID_LEN + 1];
	pthread_mutex_t life; /* held through a whole verb; serialises them */
	struct share *place;  /* among those that run (run_place.h), or NULL; life guards it */
	struct quota_claim *_Atomic
		claim; /* what it uses of quotas while its row is nobody's; NULL: nothing */
	enum disk_growth growth; /* whether its disk may grow (disk_reserve.h); life guards it */
	atomic_llong last_active_ms; /* store_clock_ms(); newer than the record's */
	atomic_int visitors;	     /* sandbox_enter() */
	atomic_uint agent_reports;   /* grows with each report of its agent about processes */
	atomic_int ready_state;	     /* ready_check.h */
	atomic_int waits;	     /* threads of previews that wait for what is inside */
	atomic_bool is_undo_due; /* its create failed and could not be undone; holds a reference */
	atomic_bool is_unowned;	 /* it waits to be given to somebody, whose use of it begins then */

	pthread_mutex_t
		logs;	  /* held while their directory is made, and nothing else is taken then */
	bool has_no_logs; /* they are being removed, or were: under `logs` */

	pthread_mutex_t output_lock;  /* a leaf but for what is kept of output: what follows */
	struct output_budget *output; /* NULL until first used */
	atomic_ullong output_noted;   /* what the database says that it takes */

	pthread_mutex_t state; /* what follows; never held while anything blocks */
	pthread_cond_t changed;
	struct sandbox_record record;
	struct agent_link *link; /* while it runs */
	struct walls walls;	 /* likewise */
	bool greeted;		 /* the agent said hello on this link */
	bool ending;		 /* a verb is ending it, so the loss of the link is no surprise */
	enum end_reason end_reason; /* why, while it is ending */
	bool gone;		    /* deleted */
	struct {
		bool is_held; /* its start commands wait for what it depends on */
		enum member_health_state health;
		unsigned run;	   /* grows with each start */
		unsigned failures; /* of checks, since one was good */
		uint32_t deaths;   /* since it was last well */
		bool is_checking;  /* a check is under way */
		uint64_t up_since_ms, next_check_ms, next_start_ms; /* clock_steady_ms() */
		uint64_t hurry_until_ms; /* it is checked more often, because something ended */
	} member;			 /* of one that is, or has, members (member_watch.h) */
	struct process *processes;
	struct start_command *start_commands; /* of its start commands, while it runs */
	struct sandbox_egress *egress;	      /* its egress, while it runs and has one */
	bool is_transparent;		      /* egress takes all TCP */
	size_t saved_contacts;		      /* of the egress: how many are in the database */
	uint64_t saved_connections;	      /* likewise: how many there were then */
	struct forwarded_conn *conns;	      /* connections from outside that end with it */
	uint32_t next_process;		      /* the last number that was given out */
	bool is_numbered;		      /* the database was asked for it */
	struct stats_history *history;	      /* NULL: none yet */

	struct sandbox_sample sample; /* of the sampler's thread alone */
};

struct caller;
struct job;
struct sandbox_builder_spec;
struct sandbox_spec;

/* What is asked of the directories above by those below: see upkeep/engine_open.c. */
struct engine_verbs {
	/* sandbox_use() */
	int (*use)(struct sandbox *sandbox, struct agent_link **ret_link, struct err *err);
	/* sandbox_run_settle(), sandbox_change(), sandbox_stop() */
	void (*settle)(struct sandbox *sandbox);
	int (*change)(struct sandbox *sandbox,
		void (*apply)(struct sandbox_record *record, void *arg), void *arg,
		struct err *err);
	int (*stop)(struct sandbox *sandbox, enum end_reason reason, struct err *err);
	/* start_command_needs_row() */
	bool (*needs_row)(struct sandbox *sandbox, uint32_t process);
	/* pool_claim() */
	int (*claim)(struct engine *engine, const struct sandbox_record *draft,
		struct sandbox **ret_sandbox, struct err *err);
	/* A sandbox in which a template is built comes, and goes. */
	int (*create_builder)(struct engine *engine, const struct owner *owner,
		const struct sandbox_builder_spec *spec, struct sandbox **ret_sandbox,
		struct err *err);
	int (*purge_builder)(struct engine *engine, const char *id, struct err *err);
	/* Whether the caller may give sandboxes what a template has for them. */
	int (*check_template)(const struct engine *engine, const struct caller *caller,
		const struct sandbox_spec *spec, bool runs_more, struct err *err);
	/* A job that makes a template has ended: sandboxes may wait for it. */
	void (*template_ended)(struct engine *engine, struct job *job);
	/* A new sandbox has the id of an earlier one. engine.lock is held. */
	void (*id_taken)(struct engine *engine, const struct sandbox_record *record);
};

struct engine {
	struct engine_config config;
	const struct engine_verbs *verbs;
	struct event_loop *loop;
	struct db_writer *db_writer;
	struct output_rate *output_rate;
	struct share_pool *processes; /* places for kept ones that run, by owner */
	struct share_pool *running;   /* places for sandboxes that run, likewise */
	struct egress *egress;
	struct ready_checks *ready_checks;
	struct pools *pools;
	uint8_t confirm_key[32]; /* of this daemon: codes that confirm commands are made with it */
	int64_t next_expiry_ms;	 /* the reaper's: when it looks for workspaces to purge again */

	pthread_mutex_t prepared_lock; /* a leaf; of what follows */
	json_t *prepared; /* images in which nothing has to be prepared (sandbox_prepare.h) */

	pthread_mutex_t rows_lock; /* held while a row and its handle come or go together */

	pthread_mutex_t lock;  /* what follows */
	pthread_cond_t work;   /* broadcast: one is lost, or the engine is to end */
	void *sandboxes;       /* a tsearch tree by id */
	struct sandbox **lost; /* sandboxes whose agent vanished: the reaper settles them */
	size_t lost_count, lost_cap;
	bool closing;
	atomic_bool has_members; /* some that run may have members */
	struct subscription *subscriptions;
	struct port_watch *port_watches; /* one for each sandbox with a subscription */
	struct orphan_entry *orphans;	 /* in order of id */
	size_t orphan_count, orphan_cap;

	/* the reaper, those of host_watch.h, the sampler, ready_check.h, pool.h */
	pthread_t threads[ENGINE_THREADS];
	unsigned thread_count;
	bool is_short; /* the host's disk, in the last round; of the watch of the disk alone, as the next */
	uint64_t sampled_ms;	      /* when processes were last asked what they use */
	atomic_uint_fast64_t denials; /* connections that egress refused */
	atomic_uint histories;	      /* sandboxes that have one */
	atomic_llong used_ms; /* when one that is somebody's was used last; store_clock_ms() */
	bool has_held;	      /* disks of some sandboxes may be kept from growing */
};

/* Whether its record says that it runs, or is paused. */
static inline bool sandbox_seems_up(const struct sandbox *sandbox)
{
	return sandbox->record.status == SANDBOX_RUNNING ||
	       sandbox->record.status == SANDBOX_PAUSED;
}

/* It is being used now. */
static inline void sandbox_note_use(struct sandbox *sandbox)
{
	int64_t now_ms = store_clock_ms(sandbox->engine->config.store);

	atomic_store(&sandbox->last_active_ms, now_ms);
	if (!atomic_load(&sandbox->is_unowned))
		atomic_store(&sandbox->engine->used_ms, now_ms);
}
