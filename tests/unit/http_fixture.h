/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with a small table of routes, one for each thing a handler can do, and the means to make
 * its handlers wait and to see what became of them.
 */
#pragma once

#include "http/server/server.h"
#include "http/stream.h"
#include "http_client.h"

#include <pthread.h>
#include <stdatomic.h>

#define TOKEN	    "slt_test"
#define OTHER_TOKEN "slt_other"
/* Of "owner-<name>" for any name; and of the operator. */
#define OWNER_TOKEN    "slt_owner-"
#define OPERATOR_TOKEN "slt_operator"
#define WITH_TOKEN     "X-API-Key: " TOKEN "\r\n"
#define WITH_JSON      WITH_TOKEN "Content-Type: application/json\r\n"

struct fixture {
	struct server *server;
	uint16_t port;

	atomic_llong expires_at_ms; /* what admit() tells of either token; 0: never */

	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* Under the lock; a test waits for them with fixture_wait(). */
	unsigned admitted;     /* calls of admit() */
	unsigned entered;      /* handlers of /block, /hold and uploads that began */
	unsigned may_leave;    /* how many of /block may return */
	unsigned gone;	       /* calls of gone() */
	unsigned released;     /* objects of request_keep() */
	unsigned finished;     /* calls of finish() */
	bool complete;	       /* what finish() was told */
	uint64_t uploaded;     /* bytes that arrived */
	uint64_t offered;      /* bytes the stream's producer got rid of */
	unsigned accounts;     /* requests that were accounted for */
	unsigned refusals;     /* and those of strangers */
	char account[160];     /* of the last: action, user, status, code, peer */
	int read_result;       /* what the last request_read() of /read gave */
	struct request *held;  /* by /hold */
	struct stream *stream; /* of /stream; a reference */
	int helper_fd;	       /* the far end of /upload or /download */
};

/* 0 for the defaults. */
void fixture_open(struct fixture *fixture, unsigned max_workers, unsigned max_connections);
void fixture_open_asking(
	struct fixture *fixture, bool (*takes_query)(const struct route *route, const char *name));
void fixture_close(struct fixture *fixture);

/* Waits until *counter, a member, is at least count; fails the test after ten seconds. */
void fixture_wait(struct fixture *fixture, const unsigned *counter, unsigned count);

/* One more of the handlers of /block may return. */
void fixture_let_go(struct fixture *fixture, unsigned count);

/* For cmocka: a fixture for each test, with the default number of workers. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Waits until a counter that a lock guards has reached `want`. */
void fixture_wait_for(
	pthread_mutex_t *lock, pthread_cond_t *cond, const unsigned *counter, unsigned want);

/* The status of the answer to a request; or to one of the caller's own making, in which "%u" becomes the port. */
int fixture_call(struct fixture *fixture, const char *line, const char *extra, const char *body);
int fixture_status_of(struct fixture *fixture, const char *fmt);

/* A connection that has been served, and waits for the next request. */
int fixture_connect_idle(const struct fixture *fixture);
