/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places for sandboxes that run. Each needs descriptors of the daemon for its links, its network and its DNS, and of
 * these there is a bounded number (daemon/descriptors.h), of which an owner has a share. life is held by all callers.
 */
#pragma once

#include "core/engine/sandbox_state.h"

/* Takes a place for one that is to start, if it has none. ERR_RATE: its owner has its share; ERR_UNAVAILABLE: all are taken. */
int run_place_take(struct sandbox *sandbox, struct err *err) must_check;

/* Takes a place for an owner to whom one that runs is given; it is the caller's. As above. */
int run_place_take_for(struct engine *engine, const struct owner *owner, struct share **ret_place,
	struct err *err) must_check;

/* One that runs already goes on, also without a place. */
void run_place_adopt(struct sandbox *sandbox);

/* It does not run any more. */
void run_place_give_back(struct sandbox *sandbox);
