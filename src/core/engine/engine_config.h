/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine (engine.h) is opened with. */
#pragma once

#include "base/err.h"
#include "core/engine/event_bus.h"
#include "driver/driver.h"
#include "egress/egress.h"
#include "model/sandbox/network_default.h"
#include "model/sandbox/sandbox_record.h"
#include "store/store.h"

#include <stdatomic.h>

struct engine;
struct jobs;
struct projects;
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
	int baselines_fd;	/* borrowed: one for lists of files (baseline.h) */
	uint64_t output_max;	/* bytes kept of the output of one process */
	uint64_t
		output_sandbox_max; /* the same of all of a sandbox; its disk limit, if that is less */
	const char *pool; /* of templates that need no image: "host=4"; NULL: none. Borrowed */
	/* what the driver was opened with; pools are made anew when it is otherwise. Borrowed, or NULL */
	const char *allow_missing;
	bool limits_disk;
	unsigned pool_max;	  /* sandboxes that wait in pools, of all owners together */
	uint64_t pool_reserve;	  /* memory left beside memory_reserve while pools are filled */
	unsigned ready_timeout_s; /* how long a sandbox is asked whether it is ready */
	unsigned max_processes;	  /* kept ones that run, of all owners together; 0: any number */
	unsigned max_running;	  /* sandboxes, likewise */
	unsigned process_history; /* ended processes remembered in each sandbox */
	uint64_t memory_reserve;  /* sandboxes are stopped when the host has less left */
	uint64_t disk_reserve;	  /* kept free on the disk of logs_fd: disk_reserve.h */
	int64_t workspace_retention_s; /* workspaces of removed sandboxes go after so long; 0: never */
	struct secret_cache *secret_cache; /* borrowed: secrets for egress; NULL: none */
	const char *resolver; /* name servers (egress/dns/resolver.h); NULL: the host's */
	struct sandbox_egress_limits sandbox_network_limits; /* of a sandbox that asks for none */
	unsigned egress_connections, egress_pipes, egress_lookups; /* as of egress_config */
	struct sandbox_defaults defaults;
	struct jobs *jobs;	     /* borrowed */
	struct projects *projects;   /* borrowed; NULL: there are none */
	struct templates *templates; /* borrowed: those made of images; NULL: there are none */
	/* borrowed: grows when somebody may no longer see a preview; NULL: nobody looks */
	atomic_uint_fast64_t *preview_generation;
};
