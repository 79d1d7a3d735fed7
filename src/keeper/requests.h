/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the requests of the daemon: one function for each kind, in a table that says what of a
 * request is checked before its function runs.
 */
#pragma once

#include "keeper/keeper.h"

/* Reads one request from a connection and serves it, or closes a connection that has ended. */
void requests_serve(struct keeper *keeper, int conn);

/* Ends all sandboxes, and then the keeper. If conn is not -1, it gets an answer at the end. */
void requests_shut_down(struct keeper *keeper, int conn);
