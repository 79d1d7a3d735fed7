/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the daemon: its sandboxes, the store, the driver, the event loop, the reaper and the watches of the host.
 * There is one engine; it is passed around, not global.
 *
 * Lock order, everywhere: sandbox.life, then engine.rows_lock, then engine.lock, then sandbox.state, then
 * the locks of link, store and stream, which call nobody back while held.
 */
#pragma once

#include "base/err.h"
#include "core/engine/event_bus.h"
#include "driver/driver.h"
#include "egress/egress.h"
#include "event/timer.h"
#include "model/network_default.h"
#include "model/sandbox_record.h"
#include "store/store.h"

#include <stdatomic.h>

struct engine;
struct jobs;
struct sandbox;
struct templates;

/* What a sandbox is that was not asked for otherwise; the texts are borrowed. */
struct sandbox_defaults {
	struct resources resources;
	struct network_default network;
	int64_t idle_timeout_s;
	const char *templates; /* those that the operator offers, separated by commas */
};

struct engine_config {
	struct store *store;	/* borrowed */
	struct driver *driver;	/* borrowed */
	struct event_bus *bus;	/* borrowed */
	unsigned stop_grace_ms; /* what processes get between SIGTERM and SIGKILL */
	int logs_fd;		/* borrowed: a directory for the output of processes */
	int unfinished_fd;	/* borrowed: a directory for marks (unfinished.h) */
	uint64_t output_max;	/* bytes kept of the output of one process */
	uint64_t
		output_sandbox_max; /* the same of all of a sandbox; its disk limit, if that is less */
	unsigned max_processes;	    /* kept ones that run, of all owners together; 0: any number */
	unsigned max_running;	    /* sandboxes, likewise */
	unsigned process_history;      /* ended processes remembered in each sandbox */
	uint64_t memory_reserve;       /* sandboxes are stopped when the host has less left */
	uint64_t disk_reserve;	       /* kept free on the disk of logs_fd: disk_reserve.h */
	int64_t workspace_retention_s; /* workspaces of removed sandboxes go after so long; 0: never */
	struct secret_cache *secret_cache; /* borrowed: secrets for egress; NULL: none */
	const char *resolver;		   /* name servers (egress/resolver.h); NULL: the host's */
	struct sandbox_egress_limits sandbox_network_limits; /* of a sandbox that asks for none */
	unsigned egress_connections, egress_pipes, egress_lookups; /* as of egress_config */
	struct sandbox_defaults defaults;
	struct jobs *jobs;	     /* borrowed */
	struct templates *templates; /* borrowed: those made of images; NULL: there are none */
	/* borrowed: grows when somebody may no longer see a preview; NULL: nobody looks */
	atomic_uint_fast64_t *preview_generation;
};

/* Makes rows and reality equal (reconcile.c), then starts the reaper and the watches of the host. */
int engine_open(const struct engine_config *config, struct engine **ret_engine, struct err *err)
	must_check;

/* Releases all sandboxes without stopping them. */
void engine_close(struct engine *engine);

struct store *engine_store(struct engine *engine);
struct driver *engine_driver(struct engine *engine);

/* Notes a use of a sandbox in memory, for callers without a handle. Does not block. */
void engine_note_use(struct engine *engine, const char *id);

/* A timer of the engine's event loop; see timer.h. */
struct timer *engine_open_timer(
	struct engine *engine, void (*expired)(void *arg), void (*release)(void *arg), void *arg);

/*
 * Calls event for what happens to a sandbox from now on, and for each port of it that is open
 * (event_bus.h). While there is a subscription, the ports are watched (port_watch.h). A subscription
 * outlives the sandbox and goes on with another of the same id and owner; when another owner has the
 * id it ends, and `over` is called.
 */
struct subscription *engine_subscribe(
	struct sandbox *sandbox, event_fn event, void (*over)(void *arg), void *arg);

/* After it returned, neither is called again. */
void engine_unsubscribe(struct engine *engine, struct subscription *subscription);
