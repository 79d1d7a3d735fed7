/* SPDX-License-Identifier: Apache-2.0 */
/* The handler's side of a request: what runs on worker threads. Each takes a suspended request. */
#pragma once

#include "http/server/request/request_private.h"

/* Authenticates, reads the body as JSON, runs the handler. -EAGAIN when the queue is full. */
int request_worker_start(struct request *req) must_check;

/* Only authenticates, before a larger body is read. */
int request_worker_admit(struct request *req) must_check;

/* Asks the gate who shows the request's credential; counts a wrong one. */
int request_worker_identify(struct request *req, struct err *err) must_check;

/* Runs the finish function of request_receive_to_fd(); also on a request that is over. */
void request_worker_finish(struct request *req, bool complete);

/* Runs what request_continue() was given; also on a request that is over. */
void request_worker_again(struct request *req);

/* The handler, the finish function or what was continued has returned r. */
void request_worker_returned(struct request *req, int r, struct err *err);
