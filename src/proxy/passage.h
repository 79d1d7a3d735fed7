/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection, and the one to the app that it talks to. All of it happens on one thread, but for
 * `find`, which has it to itself meanwhile.
 */
#pragma once

#include "http/message.h"
#include "http/workers.h"
#include "proxy/demand.h"
#include "proxy/proxy.h"
#include "proxy/side.h"

#define PASSAGE_HEAD_MS 10000 /* for the head of a request, once it has begun */

struct dossier;
struct proxy_loop;

enum passage_state {
	PASSAGE_HEAD,	 /* the client's next request is to come */
	PASSAGE_FINDING, /* the request has a head, and its way is being found */
	PASSAGE_LATER,	 /* ... to be asked for again */
	PASSAGE_RELAY,	 /* request and answer go their ways */
	PASSAGE_TUNNEL,	 /* bytes go both ways until one side ends */
	PASSAGE_LAST,	 /* what waits for the client is sent, then it ends */
	PASSAGE_OVER,
};

struct passage {
	struct passage *prev, *next; /* in its loop */
	struct proxy_loop *loop;
	const struct proxy_config *config;
	enum passage_state state;
	struct side client, app;
	char address[64];
	struct dossier *dossier;  /* NULL: it does not speak TLS */
	uint64_t source;	  /* http/sources.h */
	bool is_local, is_excess; /* of this machine; one too many of its source */
	uint64_t claim;		  /* what it is counted for, by proxy_claim(); 0: nothing */

	struct message request, response;
	struct proxy_way way;
	char host[DEMAND_HOST_MAX],
		credentials[DEMAND_DIGEST_LEN]; /* of the way: and what was shown for it */
	bool is_upgrade, is_reused, has_answer_begun, wants_close, has_said_end;
	unsigned hints; /* answers of the kind 1xx that came */

	struct job job;
	struct passage *next_waiting;
	uint64_t asked_ms, due_ms, moved_ms, used_ms;
};

struct passage *passage_open(
	struct proxy_loop *loop, const struct proxy_config *config, int fd, const char *address);
void passage_free(struct passage *passage);

/* Something happened to a side: epoll's events. */
void passage_ready(struct side *side, uint32_t events);

/* Its way was found (state FINDING). */
void passage_found(struct passage *passage);

/* Its time has come: to ask again, or to end. */
void passage_tick(struct passage *passage, uint64_t now_ms);

/* Whether it is between two requests, or before the first. */
bool passage_is_idle(const struct passage *passage);

/* Ends it, and has its loop drop it. */
void passage_cut(struct passage *passage);

/* For its parts: it is over, and dropped when what moves it returns. */
void passage_end(struct passage *passage);

/* For its parts: whether nobody waits for the answer any more: who closes after a request has left. */
bool passage_is_deserted(struct passage *passage);
