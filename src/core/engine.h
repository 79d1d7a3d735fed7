/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is alive in the daemon: the sandboxes it works with, the store, the driver, the
 * reactor and the reaper. One of it exists; it is passed around, not global.
 *
 * Lock order, everywhere: sandbox.life, then engine.births, then engine.lock, then sandbox.state, then
 * the locks of link, store and stream, which call nobody back while held.
 */
#pragma once

#include "base/err.h"
#include "core/reactor.h"
#include "driver/driver.h"
#include "egress/egress.h"
#include "model/sandbox_record.h"
#include "store/store.h"

struct engine;
struct sandbox;

struct engine_config {
	struct store *store;	  /* borrowed */
	struct driver *driver;	  /* borrowed */
	unsigned stop_grace_ms;	  /* what processes get between SIGTERM and SIGKILL */
	int logs_fd;		  /* borrowed: a directory for the output of processes */
	uint64_t output_max;	  /* bytes kept of the output of one process */
	unsigned process_history; /* ended processes remembered in each sandbox */
	uint64_t memory_reserve;  /* idle sandboxes are stopped when the host has less left */
	uint64_t disk_reserve;	  /* none is created when the disk of logs_fd has less left */
	struct vault *vault;	  /* borrowed: secrets of the way out; NULL: none */
	const char *resolver;	  /* name servers (egress/resolver.h); NULL: the host's */
	struct sluice_limits network_limits; /* of a sandbox that asks for none */
};

/* Makes rows and reality equal (reconcile.c), then starts the reaper. */
int engine_open(const struct engine_config *config, struct engine **ret_engine, struct err *err)
	must_check;

/* Lets go of all sandboxes without stopping them. */
void engine_close(struct engine *engine);

struct store *engine_store(struct engine *engine);
struct driver *engine_driver(struct engine *engine);

/* A sandbox in memory is being used, by something that has no handle of it. Blocks for nothing. */
void engine_note_use(struct engine *engine, const char *id);

/* Rings once, ms from now; see alarm.h. */
struct alarm;
int engine_alarm(struct engine *engine, uint64_t ms, void (*ring)(void *arg),
	void (*release)(void *arg), void *arg, struct alarm **ret_alarm, struct err *err)
	must_check;

/*
 * An event of a sandbox: its type ("sandbox.running") and a JSON object as text. Without a type, both NULL:
 * nothing more follows.
 */
typedef void (*engine_event_fn)(void *arg, uint64_t sequence, const char *type, const char *json);

/*
 * Calls event for what happens to a sandbox from now on, and for each port of it that is open, on any thread,
 * which must not block. While somebody is subscribed, its ports are looked at (port_watch.h). It outlives the
 * sandbox and goes on with another of the same id and owner; with one of another owner it is over.
 */
struct subscription *engine_subscribe(struct sandbox *sandbox, engine_event_fn event, void *arg);

/* After it returned, event is not called again. */
void engine_unsubscribe(struct engine *engine, struct subscription *subscription);
