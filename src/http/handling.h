/* SPDX-License-Identifier: Apache-2.0 */
/* The handler's side of a request: what runs on worker threads. Each takes a suspended request. */
#pragma once

#include "http/request_private.h"

/* Authenticates, reads the body as JSON, runs the handler. -EAGAIN when the queue is full. */
int handling_start(struct request *req) must_check;

/* Only authenticates, before a larger body is read. */
int handling_admit(struct request *req) must_check;

/* Runs the finish function of request_receive_to_fd(); also on a request that is over. */
void handling_finish(struct request *req, bool complete);

/* The handler or the finish function has returned r. */
void handling_returned(struct request *req, int r, struct err *err);
