/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a request, shared by the files that carry it through the server:
 *
 *   mhd_callbacks.c   the connection's side: what libmicrohttpd calls, on its threads
 *   request_worker.c   the handler's side: what runs on worker threads
 *   request.c    its life, and what src/api calls
 *   request_answer.c  the answers that src/api gives
 *   request_redirect.c  a request that goes on as another
 *   connection.c the client, seen beside the library
 *   loop.c       the thread that runs the library
 *   upload.c     a raw body on its way in
 *   answer.c     what is sent
 *   response.c   how it goes out
 *   websocket.c  what a request may be turned into
 *
 * Who owns it. A connection that waits is *suspended*: the library neither reads, writes nor closes
 * it, so `connection` and `sock` are good until somebody wakes it. One party at a time works on a
 * request: the connection's thread while it is not suspended, else the worker or holder. The one
 * exception is request_read(), where handler and connection run side by side and share what stands
 * under `lock`. Counted: the connection, a queued or running item, a hold, its watch and its timer.
 *
 * Lock order: accepting, clients, server, connection, stream, websocket, request, event loop, libmicrohttpd's own.
 */
#pragma once

#include "base/buf.h"
#include "event/timer.h"
#include "http/arena.h"
#include "http/fair_queue.h"
#include "http/principal.h"
#include "http/server/request/answer.h"
#include "http/server/route/guard.h"
#include "http/server/route/headers.h"
#include "http/server/route/router.h"
#include "http/server/route/target.h"
#include "http/workers.h"

#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

struct MHD_Connection;
struct connection;
struct event_filter;
struct loop;
struct server;
struct share;
struct upload_ring;

#define REQUEST_ID_MAX	 64
#define TRACE_MAX	 56	      /* a traceparent, with its NUL */
#define REQUEST_DROP_MAX (64u * 1024) /* what is read and dropped to keep a connection */

/* What the connection does when the library calls next. */
enum request_phase {
	PHASE_HEAD,   /* judge the headers */
	PHASE_GATHER, /* collect a JSON body (or none), then run the handler */
	PHASE_WORK,   /* suspended: a worker or a holder has it */
	PHASE_PUMP,   /* write the raw body to a descriptor */
	PHASE_FILL,   /* put the raw body where the running handler reads it */
	PHASE_ANSWER, /* the answer is there: queue it */
	PHASE_DROP,   /* drop the rest of the body, then queue the answer */
	PHASE_LINGER, /* the answer went out in the middle of the body; drop until the client leaves */
	PHASE_SENDING, /* the library sends the answer */
	PHASE_OVER,    /* the connection is done with it */
};

/* A raw body on its way in (upload.c). */
struct upload {
	int fd;
	int (*finish)(struct request *req, void *arg, bool complete,
		struct err *err); /* set: request_receive_to_fd() was called */
	void *arg;
	bool complete;
	/* The chunk that is being written: its length in front, and how much of both is out. */
	uint8_t prefix[4];
	uint32_t chunk;
	uint32_t written;
	struct upload_ring *ring; /* set: request_read() was called */
	struct share *reader;	  /* its place among the server's readers */
	bool was_refused;	  /* too many of them */
	bool was_cut;		  /* the handler was told that the client is gone */
};

struct kept {
	struct kept *next;
	void *object;
	void (*release)(void *object);
};

struct request {
	atomic_uint refs;
	struct server *server;
	struct loop *loop;	     /* until the request is over */
	struct connection *client;   /* a reference */
	struct request *prev, *next; /* in server->requests, under the server's lock */
	bool is_counted;	     /* as running; only the connection's thread */

	/* What was asked: written while the headers are judged, only read afterwards. */
	char id[REQUEST_ID_MAX + 1];
	char peer[INET6_ADDRSTRLEN];
	uint64_t source; /* http/address_key.h */
	const char *raw_target;
	const char *path;      /* of it */
	uint64_t begun_us;     /* when its head was there */
	char trace[TRACE_MAX]; /* its place in a trace that somebody follows; empty: nobody does */
	char trace_parent[17]; /* the span of its sender there; empty: none */
	enum method method;
	bool is_http_1_1;
	struct target target;
	struct headers headers;
	struct router_match match;
	struct guard_body announced;
	struct credential credential; /* empty on open routes */
	struct err *refusal;	      /* told only to those who have a valid token */

	/* Of whoever works on it. */
	struct arena arena;
	struct work_item item;
	struct fair_queue_entry entry;
	void (*work)(struct request *req); /* what the item does */
	struct principal principal; /* written once, under the lock: others look for whom to cut */
	bool is_known;		    /* it was made out who asks */
	bool is_admitted;	    /* and they may */
	struct buf body;
	json_t *json;
	struct kept *kept;
	struct answer answer;
	uint64_t memory_key, memory_bytes; /* what it holds of its owner's (http/owner_memory.h) */
	char error_code[sizeof(((struct err *)NULL)->code)]; /* "" for a success */
	const char *action;				     /* NULL: that of the route */
	const char *object, *detail;			     /* for the account; may be NULL */
	struct upload upload;
	/* Set: it goes on as another request (request_redirect.h). */
	int (*redirect_handle)(struct request *req, void *context, struct err *err);
	json_t *(*translate)(void *arg, int *status, json_t *body);
	void *translate_arg;
	void (*retell)(struct request *req, void *arg, int status, json_t *body);
	void (*retell_event)(void *arg, const char *event, const json_t *data, struct buf *out);
	const char *stream_type;
	bool passes_content;
	struct event_filter *event_filter; /* of the answer's stream, whose events it retells */

	pthread_mutex_t lock;
	/* Under the lock from here on. */
	enum request_phase phase;
	struct MHD_Connection *connection; /* NULL once it is over */
	int sock;
	bool suspended;
	bool at_head;	   /* no byte of the body has been asked for */
	bool body_done;	   /* all of it was received */
	bool client_gone;  /* it hung up */
	bool is_broken;	   /* nothing can be sent or waited for any more */
	uint64_t received; /* bytes of the body taken from the library */
	uint64_t lingered; /* of them, dropped after the answer */
	bool held, released, returned;
	bool yields; /* held until the server closes */
	int (*again)(struct request *req, void *arg, struct err *err); /* request_continue() */
	void *again_arg;
	void (*gone)(void *arg);
	void *gone_arg;
	struct stream *sending;	  /* the answer's stream, while the connection takes from it */
	struct watch *pump_watch; /* the descriptor of an upload or download; NULL: none */
	struct timer *heartbeat;  /* of a stream, while it is bound */
};

struct request *request_new(
	struct loop *loop, struct MHD_Connection *connection, int sock, const char *raw_target);
struct request *request_ref(struct request *req);
void request_unref(struct request *req);

/*
 * Suspends the connection: on its own thread, from within a callback of the library. False when that
 * must not be any more, because the server is closing or there is no one to wait for.
 */
bool request_suspend(struct request *req) must_check;
bool request_suspend_locked(struct request *req) must_check;

/* Resumes it if it is suspended; from any thread. */
void request_wake(struct request *req);
void request_wake_locked(struct request *req);

/* Its client is gone: ends what is being sent, and tells who holds it. */
void request_hang_up(struct request *req);

/* Whether somebody holds it until the server closes; tells them that it does. */
bool request_yields(struct request *req);
void request_yield(struct request *req);

/* What the listener that it came by demands. */
const struct guard *request_guard(const struct request *req);

/* Wakes the request when fd is ready; only while it is suspended. */
void request_wake_when(struct request *req, int fd, uint32_t events);

/* Before its stream is bound, which sets it. */
void request_open_heartbeat(struct request *req);

/* Whether sending on makes no sense. */
bool request_is_cut(struct request *req);

/* Counts bytes that lie in memory for its client until it is over. False if its owner has too many. */
bool request_hold_memory(struct request *req, uint64_t bytes) must_check;

/* The error that says so. */
int request_refuse_memory(struct err *err);

/* The handler's part is over: accounts for what it did, if that is needed, and delivers. */
void request_conclude(struct request *req);

/* Puts the answer of a redirected request into the words of its door. */
void request_redirect_translate(struct request *req);

/* The answer is complete: hands it to the connection, in whatever state that is. */
void request_deliver(struct request *req);

/* The same while the body is still to come, or coming. The lock is held. */
void request_deliver_early_locked(struct request *req);

/* The connection is over; *req stays until its last reference goes. */
void request_end(struct request *req);
