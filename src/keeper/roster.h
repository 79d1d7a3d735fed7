/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper holds of each sandbox that runs, or that ended and was not asked about yet. */
#pragma once

#include "base/err.h"
#include "keeper/cpus.h"
#include "keeper/kernel_log.h"
#include "keeper/netns.h"
#include "wire/keeper.h"

#include <sys/types.h>

struct held {
	char id[KEEPER_ID_LEN + 1];
	char group[KEEPER_ID_LEN + 1]; /* the name of its cgroups: its id when it was built */
	bool has_owner;		       /* false: built ahead (birth.h), and on nobody's list */
	pid_t pid; /* 0 once it was reaped; until then nobody else can have that number */
	int lifeline;
	struct network network;	  /* until it was reaped */
	int wait_status;	  /* once it was reaped */
	uint32_t slot;		  /* its uid range */
	struct keeper_stats last; /* what it had used, if it ended by itself */
	char oom_victim[KERNEL_LOG_VICTIM_MAX];
	struct cpus_share cpus; /* until it was reaped */
	struct walls walls;	/* that it was built with; so are these: */
	enum keeper_profile profile;
	struct keeper_limits limits;
	struct err err;	 /* what its build failed with, if it did */
	int kill_waiter; /* connection that asked to kill it and waits, or -1 */
	struct {
		bool is_pending; /* it freezes or thaws (pausing.h) */
		bool wants_frozen;
		uint64_t since_us;
		int waiter; /* connection that asked for it, or -1 */
	} pause;
};

struct roster {
	struct held **sorted; /* by id */
	size_t count;
	size_t cap;
};

struct held *roster_find(const struct roster *roster, const char *id);
struct held *roster_find_pid(const struct roster *roster, pid_t pid);
/* Who runs in a uid range and has an owner. */
struct held *roster_find_slot(const struct roster *roster, uint32_t slot);

/* Adds an entry, whose group has the same name; the id must be new. */
struct held *roster_add(struct roster *roster, const char *id);
/* Gives an entry another id, which must be new. */
void roster_rename(struct roster *roster, struct held *held, const char *id);
/* Lets go of its descriptors. */
void roster_release(struct held *held);
void roster_remove(struct roster *roster, struct held *held);

/* Ids of those with an owner from the one after `after` on; how many. */
uint32_t roster_list(const struct roster *roster, const char *after, char ids[][KEEPER_ID_LEN + 1],
	uint32_t max);
