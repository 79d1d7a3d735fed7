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
 * All that it calls (loop_callbacks) runs on this thread. From others come only new connections, and
 * resumed ones with a loop_wake() behind them.
 */
#pragma once

#include "base/err.h"

#include <microhttpd.h>

struct arrival;
struct loop;
struct server;

/* What the library calls; their argument is the loop. */
struct loop_callbacks {
	/* The request line is there. */
	void *(*open)(void *arg, const char *target, struct MHD_Connection *connection);
	/* The headers are there, then pieces of the body, then its end; again after every resume. */
	enum MHD_Result (*step)(void *arg, struct MHD_Connection *connection, const char *url,
		const char *method, const char *version, const char *data, size_t *size,
		void **context);
	/* It is about to refuse a request by itself. */
	void (*refuse)(const struct loop *loop);
	/* It is over, for whatever reason. */
	void (*end)(void *arg, struct MHD_Connection *connection, void **context,
		enum MHD_RequestTerminationCode code);
};

int loop_open(struct server *server, const struct loop_callbacks *callbacks, struct loop **ret_loop,
	struct err *err) must_check;

/* Closes its connections; none may be suspended that has not been resumed. */
void loop_close(struct loop *loop);

/* Takes over what the arrival holds. */
void loop_take(struct loop *loop, const struct arrival *arrival);

/* After MHD_resume_connection() or MHD_upgrade_action(). */
void loop_wake(struct loop *loop);

struct server *loop_server(const struct loop *loop);
unsigned loop_connections(const struct loop *loop);
