/* SPDX-License-Identifier: Apache-2.0 */
/* One entry for each sandbox that runs, or that ended and that the daemon did not ask about yet. */
#pragma once

#include "base/err.h"
#include "keeper/cgroup/cpus.h"
#include "keeper/net/netns.h"
#include "keeper/stats/kernel_log.h"
#include "wire/keeper.h"

#include <sys/types.h>

struct sandbox_entry {
	char id[KEEPER_ID_LEN + 1];
	char group[KEEPER_ID_LEN + 1]; /* the name of its cgroups: its id when it was built */
	/* of a member: the sandbox that it belongs to, whose uid range and network are its own; else "" */
	char primary[KEEPER_ID_LEN + 1];
	/* false: it was built ahead (prebuild.h), and no list names it */
	bool has_owner;
	bool is_dropped; /* it has no owner and will get none: it was killed */
	/* 0 once it was reaped; until then the kernel gives this number to no other process */
	pid_t pid;
	int lifeline;
	struct network network;	  /* until it was reaped */
	int wait_status;	  /* once it was reaped */
	uint32_t slot;		  /* its uid range */
	struct keeper_stats last; /* what it had used, if it ended by itself */
	char oom_victim[KERNEL_LOG_VICTIM_MAX];
	struct cpus_share cpus; /* until it was reaped */
	struct walls walls;	/* that it was built with; so are these: */
	enum keeper_profile profile;
	char hostname[KEEPER_HOSTNAME_MAX];
	char stack[KEEPER_DIGEST_LEN + 1]; /* what it started from; "": the host */
	struct keeper_limits limits;
	bool is_background; /* it has a small weight (cgroup_set_weight) */
	bool leads_out;
	bool has_volumes;
	struct err err;	 /* what its build failed with, if it did */
	int kill_waiter; /* connection that asked to kill it and waits, or -1 */
	struct {
		bool is_pending; /* it freezes or thaws (freeze.h) */
		bool wants_frozen;
		uint64_t since_us;
		int waiter; /* connection that asked for it, or -1 */
	} freeze;
};

struct sandbox_table {
	struct sandbox_entry **sorted; /* by id */
	size_t count;
	size_t cap;
};

struct sandbox_entry *sandbox_table_find(const struct sandbox_table *table, const char *id);
struct sandbox_entry *sandbox_table_find_pid(const struct sandbox_table *table, pid_t pid);
/* Whether a sandbox runs in a uid range, with an owner or without. */
bool sandbox_table_runs_in(const struct sandbox_table *table, uint32_t slot);
/* Finds the sandbox with an owner that runs in a uid range. */
struct sandbox_entry *sandbox_table_find_slot(const struct sandbox_table *table, uint32_t slot);
/* Finds the sandbox without an owner that is held in a uid range, or with KEEPER_SLOT_COUNT in any. */
struct sandbox_entry *sandbox_table_find_ahead(const struct sandbox_table *table, uint32_t slot);

/* Calls a function for each member of a sandbox that runs; returns how many there are. */
size_t sandbox_table_visit_members(const struct sandbox_table *table, const char *primary,
	void (*visit)(const struct sandbox_entry *entry));

/* Adds an entry, whose group has the same name; the id must be new. */
struct sandbox_entry *sandbox_table_add(struct sandbox_table *table, const char *id);
/* Gives an entry another id, which must be new. */
void sandbox_table_rename(struct sandbox_table *table, struct sandbox_entry *entry, const char *id);
/* Closes the entry's descriptors. */
void sandbox_table_release(struct sandbox_entry *entry);
void sandbox_table_remove(struct sandbox_table *table, struct sandbox_entry *entry);

/* Lists the ids that come after `after`, of sandboxes with an owner; returns how many. */
uint32_t sandbox_table_list(const struct sandbox_table *table, const char *after,
	char ids[][KEEPER_ID_LEN + 1], uint32_t max);
