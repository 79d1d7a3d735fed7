/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sandboxes come to be: built when they are asked for, or before.
 *
 * A build takes milliseconds, and most requests want what the one before them wanted. So after each that
 * did one more is begun that nobody owns yet, with the same limits and the uid range that is said to be
 * next. A request that fits takes it over, however far it is: its agent waits for a link in any case. Then
 * only names change, of its disk and here; its cgroups keep the one they were born with.
 *
 * Until then nothing runs in it but the agent, it has no way out, and its name is one that no request can
 * have. There is only ever one, and only where sandboxes have disks: directories are not made ahead.
 */
#pragma once

#include "base/err.h"
#include "keeper/build.h"
#include "keeper/cpus.h"
#include "keeper/roster.h"

struct births {
	struct build_context *context;
	struct cpus *cpus;
	struct roster *roster;
	struct held *ahead;	    /* without an owner yet; NULL if there is none */
	unsigned ahead_count;	    /* how many were begun, ever */
	struct keeper_request plan; /* what that is built for */
	struct keeper_request last; /* what was built last */
	unsigned passed_over;	    /* builds since the last was begun that it did not fit */
};

/* Begins a sandbox, or takes over the one that was begun. What is held is in the roster then. */
int birth_give(struct births *births, const struct keeper_request *request, struct held **ret_held,
	struct err *err) must_check;

/* Begins the next one, probably like the last; and makes what that would need if it is another. */
void birth_prepare(struct births *births, const struct keeper_request *last);

/* One without an owner has ended, and its groups are removed: forgets it. */
void birth_forget(struct births *births, struct held *held);
