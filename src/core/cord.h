/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is connected to a sandbox from outside, to be cut off when it ends. What listened inside is gone then, but
 * a client that does not close its own end would keep the socket, and with it the network namespace.
 */
#pragma once

#include "core/sandbox.h"

struct cord;

/* Before the connection is made, so that no end of the sandbox is missed. Keeps the sandbox. */
struct cord *cord_new(struct sandbox *sandbox);

/* Once it is not to be cut any more; accepts NULL. */
void cord_free(struct cord *cord);

/*
 * What cuts it: called when the sandbox ends, at once if it has ended since, under sandbox.state: it must not block
 * or call back.
 */
void cord_tie(struct cord *cord, void (*cut)(void *arg), void *arg);

/* The sandbox has ended. */
void cord_cut_all(struct sandbox *sandbox);
