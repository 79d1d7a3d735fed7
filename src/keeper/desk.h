/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests of the daemon are served: one function for each kind, in a table that says what of the
 * request is checked before.
 */
#pragma once

#include "keeper/office.h"

/* A request, or the end, of a connection. */
void desk_serve(struct keeper *keeper, int conn);

/* Ends all sandboxes, and then the keeper; conn, if it is not -1, is told. */
void desk_shut_down(struct keeper *keeper, int conn);
