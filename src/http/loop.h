/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that drives libmicrohttpd: one daemon of it, with the connections that it serves.
 *
 * The library's own threads are not used. They wait a second time when epoll has just given them as
 * many events as fit their array (128), with those in hand, so that a busy server stands still for
 * up to a minute (measured with 256 connections, also in later versions); stopping them while a
 * malformed request is answered crashes (transmit_error_response_len); and leaving a listening socket
 * alone (MHD_quiesce_daemon) races with them. Here the library only ever polls, and never waits.
 *
 * All that it calls (exchange.c) runs on this thread. From others come only new connections, and
 * resumed ones with a loop_wake() behind them.
 */
#pragma once

#include "base/err.h"

struct arrival;
struct loop;
struct server;

int loop_open(struct server *server, struct loop **ret_loop, struct err *err) must_check;

/* Closes its connections; none may be suspended that has not been resumed. */
void loop_close(struct loop *loop);

/* Takes over what the arrival holds. */
void loop_take(struct loop *loop, const struct arrival *arrival);

/* After MHD_resume_connection() or MHD_upgrade_action(). */
void loop_wake(struct loop *loop);

struct server *loop_server(const struct loop *loop);
unsigned loop_connections(const struct loop *loop);
