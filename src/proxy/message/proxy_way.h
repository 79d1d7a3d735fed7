/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for, where that leads, and how it is refused. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message;

/* What a client asks for. The strings live as long as the call. */
struct proxy_visit {
	const char *method;
	const char *host;   /* as it was sent, checked for its characters only */
	const char *target; /* path and query */
	const char *client; /* address */
	const char *cookie, *authorization, *api_key, *origin, *referer; /* or NULL */
	bool is_page; /* a browser that opens a page */
	bool is_foreign; /* a browser, for a page of another origin, which does not say so with Origin */
	bool is_framed; /* a browser, which shows it inside a page of another origin */
	bool is_window; /* a browser, which shows it in a window, and no page of its own origin asked for that */
	bool is_websocket;
	bool is_misdirected; /* its TLS connection was opened to another server than `host` */
	uint64_t waited_ms;  /* since it was asked first */
	const struct message *request; /* its head, for what else it may say */
};

enum proxy_way_kind {
	PROXY_GO,     /* fd is connected to the app */
	PROXY_ANSWER, /* status, type and body; no app is asked */
	PROXY_WAKE,   /* wake what `key` names, once for all who want that, and then ask again */
	PROXY_LATER,  /* ask again soon */
};

#define PROXY_ORIGIN_MAX 200 /* with NUL */

struct proxy_way {
	enum proxy_way_kind kind;
	char key[64];	     /* of what it leads to */
	uint64_t wake_class; /* of all that may take only a share of the wakes together */
	uint64_t owner;	   /* the owner of the target, whose share of connections counts; 0: none */
	bool is_operators; /* that is the operator */

	int fd;
	uint16_t port;
	size_t prefix_len;     /* of the target's path, that the app does not see */
	char put_prefix[64];   /* put in front of the target instead */
	struct buf put_fields; /* more lines of the request's head */
	bool is_confined;      /* it shares its origin with others */
	bool is_for_all;       /* public: any client may see it, in a frame too */
	char frame_ancestor
		[PROXY_ORIGIN_MAX]; /* origin whose pages may frame it, beside its own; or "" */
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

/* Why the proxy itself refuses a request. */
struct proxy_refusal {
	unsigned status;
	const char *code;	 /* stable, for programs */
	const char *title;	 /* for people */
	const char *message;	 /* what, and why */
	const char *remediation; /* what to do, or NULL */
	unsigned wait_s;	 /* when to try again; 0: unknown */
};

/* Closes and frees what it holds; it leads nowhere then. */
void proxy_way_fini(struct proxy_way *way);
