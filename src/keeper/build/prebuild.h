/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts sandboxes: when a request asks for one, or ahead.
 *
 * A build takes milliseconds. So the daemon may order one before a client asks for it: the keeper
 * builds it without an owner and holds it, at most one for each uid range. A build that fits takes
 * it over, however far it is: its agent waits for a link in any case. Then only the name of its
 * disk and of its entry change; its cgroups keep their first name. What is built ahead, and for how
 * long it is held, is up to the daemon (driver/native/prebuild.h).
 *
 * Until it has an owner only the agent runs in it, it has no egress, and its name is one that no
 * request can have. Only sandboxes with disks are built ahead: directories are not made ahead.
 */
#pragma once

#include "base/err.h"
#include "keeper/build/build.h"
#include "keeper/cgroup/cgroup_removals.h"
#include "keeper/cgroup/cpus.h"
#include "keeper/namespace/range_cache.h"
#include "keeper/sandbox/sandbox_table.h"

struct prebuilds {
	struct build_context *context;
	struct cpus *cpus;
	struct sandbox_table *table;
	struct cgroup_removals *removals;
	unsigned ahead_count;	 /* how many were begun, ever */
	struct range_cache idle; /* ranges in which no sandbox runs */
};

/*
 * Begins the sandbox of a request, or takes over the one that is held in its uid range. Then it is
 * in the sandbox table.
 */
int prebuild_give(struct prebuilds *prebuilds, const struct keeper_request *request,
	struct sandbox_entry **ret_entry, struct err *err) must_check;

/*
 * Begins a sandbox without an owner, unless a sandbox runs in the uid range already; one that is
 * held there and is unlike the request ends.
 */
int prebuild_order(struct prebuilds *prebuilds, const struct keeper_request *request,
	struct err *err) must_check;

/* Ends the sandbox that is held in a uid range, if there is one. */
void prebuild_drop(struct prebuilds *prebuilds, uint32_t slot);

/* Ends those that were built from a stack of layers. */
void prebuild_drop_stack(struct prebuilds *prebuilds, const char *stack);

/*
 * Called when the first process of a sandbox in this uid range was reaped: the range may be idle
 * now.
 */
void prebuild_release_range(struct prebuilds *prebuilds, uint32_t slot);

/* Forgets a sandbox without an owner that has ended and in whose cgroups no process is. */
void prebuild_forget(struct prebuilds *prebuilds, struct sandbox_entry *entry);
