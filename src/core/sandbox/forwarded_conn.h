/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections from outside into a sandbox, which are cut when it ends. Otherwise a client that does
 * not close its own end would keep the socket, and with it the network namespace.
 */
#pragma once

#include "core/engine/sandbox_handle.h"

struct forwarded_conn;

/* Before the connection is made, so that no end of the sandbox is missed. Keeps the sandbox. */
struct forwarded_conn *forwarded_conn_new(struct sandbox *sandbox);

/* Once it is not to be cut any more; accepts NULL. */
void forwarded_conn_free(struct forwarded_conn *conn);

/*
 * What cuts it: called when the sandbox ends, at once if it has ended since, under sandbox.state: it must not block
 * or call back.
 */
void forwarded_conn_tie(struct forwarded_conn *conn, void (*cut)(void *arg), void *arg);

/* The sandbox has ended. */
void forwarded_conn_cut_all(struct sandbox *sandbox);
