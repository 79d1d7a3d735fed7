/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reverse proxy for HTTP/1.1 and WebSockets. It knows no sandbox: whoever opens it says for each request whether
 * and where it may go.
 *
 * A few threads wait for many connections. A client's connection belongs to one thread for its whole life, and
 * has its own connection to the app behind, which it shares with nobody: what one client or app does wrong ends
 * with that pair. What may block (looking up, connecting, waking) runs on worker threads.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

/* What somebody asks for. The strings live as long as the call. */
struct proxy_visit {
	const char *method;
	const char *host;   /* as it was sent, checked for its characters only */
	const char *target; /* path and query */
	const char *client; /* address */
	const char *cookie, *authorization, *api_key, *origin, *referer; /* or NULL */
	bool is_page; /* a browser that opens a page */
	bool is_foreign; /* a browser, for a page of another origin, which does not say so with Origin */
	bool is_websocket;
	bool is_misdirected; /* its TLS connection was opened to another server than `host` */
	uint64_t waited_ms;  /* since it was asked first */
};

enum proxy_way_kind {
	PROXY_GO,     /* fd is connected to the app */
	PROXY_ANSWER, /* status, type and body; nobody is asked */
	PROXY_WAKE,   /* wake what `key` names, once for all who want that, and then ask again */
	PROXY_LATER,  /* ask again soon */
};

struct proxy_way {
	enum proxy_way_kind kind;
	char key[64];	    /* of what it leads to */
	uint64_t wake_lane; /* of all that may take only a share of the wakes together */

	int fd;
	uint16_t port;
	size_t prefix_len; /* of the target's path, that the app does not see */
	bool is_confined;  /* it shares its origin with others */
	bool is_for_all;   /* whoever asks may see it */
	bool hides_authorization, hides_api_key; /* these headers are ours, not the app's */
	/* Good for more requests of the same name and credentials until then, while this is the generation. */
	uint64_t good_until_ms, generation;
	uint64_t ends_ms;    /* when it is cut, whatever passes */
	unsigned grant_kind; /* what opened it, for is_granted() */
	unsigned char grant[32];

	unsigned status;
	const char *type;
	struct buf body;
	struct buf fields; /* more lines of the answer's head */
	bool also_wakes;   /* what `key` names, meanwhile */
};

/* Why the proxy itself turns somebody away. */
struct proxy_refusal {
	unsigned status;
	const char *code;	 /* stable, for programs */
	const char *title;	 /* for people */
	const char *message;	 /* what, and why */
	const char *remediation; /* what to do, or NULL */
	unsigned wait_s;	 /* when to come again; 0: nobody knows */
};

/* Closes and frees what it holds; it leads nowhere then. */
void proxy_way_fini(struct proxy_way *way);

struct listener;
struct proxy;

struct proxy_config {
	struct proxy *proxy;		 /* set by proxy_open() */
	const struct listener *listener; /* borrowed */
	/* Where there are as many connections as may be, those without a request give way to others. */
	unsigned threads, max_workers, max_connections;
	unsigned max_per_source, max_per_key; /* connections of an address; that lead to a key */
	/* Of an address that is not this machine's; ten times that at once. 0: any number. */
	unsigned requests_per_second;
	/*
	 * How long nothing may move: until an answer begins; where a side does not take what is for it; and where
	 * nobody has anything to say, in an answer that has begun or a WebSocket.
	 */
	uint64_t answer_ms, stall_ms, quiet_ms;
	void *context;
	const atomic_uint_fast64_t *generation; /* changes when a way may have ceased to be */

	/* On a worker: finds the way. Must not wait for anything that takes long. */
	void (*find)(void *context, const struct proxy_visit *visit, struct proxy_way *ret_way);
	/* Makes an answer of a refusal: a page, or something for programs. On any thread, must not block. */
	void (*refuse)(
		const struct proxy_refusal *refusal, bool is_page, struct proxy_way *ret_way);
	/* On a worker: returns when it is awake, or cannot be woken (find will say why). */
	void (*wake)(void *context, const char *key);
	/* Whether a way in use is still open, asked after a change of generation; on a loop's thread: a look-up. */
	bool (*is_granted)(void *context, const struct proxy_way *way);
	/* What leads to `key` was used, told now and then; on a loop's thread, must not block. */
	void (*used)(void *context, const char *key);
};

int proxy_open(const struct proxy_config *config, struct proxy **ret_proxy, struct err *err)
	must_check;

/* Ends all connections. */
void proxy_close(struct proxy *proxy);
