/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads on their way through. The app behind sees a request for localhost:<port>, which is what it believes to
 * serve; the browser sees the preview's own origin. Neither sees what is only for the hop before it, the
 * credentials that are ours, or a claim about who is asking that is not ours.
 */
#pragma once

#include "http/message.h"

/*
 * The cookies of a link are ours: they never reach an app, and none may set them. Browsers let no neighbouring name set
 * one that begins with __Host-, but that needs https and the path "/".
 */
#define REWRITE_COOKIE	    "sandlot_preview"
#define REWRITE_HOST_COOKIE "__Host-" REWRITE_COOKIE
#define REWRITE_SESSION	    "sandlot_session"

/* In a query: the secret of a link, good or not any more. It is for nobody but us. */
#define REWRITE_LINK "sandlot_link="

struct rewrite {
	const char *scheme;	 /* of the preview: "http" or "https" */
	const char *host;	 /* of the preview, as the client named it, with its port */
	const char *client;	 /* address */
	uint16_t port;		 /* of the app */
	struct slice prefix;	 /* cut off in front of the target; redirects get it back */
	const char *put_prefix;	 /* put in front of the target; "": nothing */
	struct slice put_fields; /* lines that are added to a request */
	bool is_confined;	 /* it shares its origin with others: by path, not by name */
	bool is_for_all;	 /* public: any client may see it, in a frame too */
	/*
	 * Origin whose pages frame it under this name, which is for that alone and opens it; or NULL. What the app says
	 * against frames is left out then, its cookies are those of that frame, and no other site is told the name.
	 */
	const char *frame_ancestor;
	bool hides_authorization, hides_api_key; /* of the request: ours */
};

/* Appends the request's head as the app gets it: its target without the prefix and without links. */
void rewrite_request(const struct message *request, const struct rewrite *rewrite, bool is_upgrade,
	struct buf *out);

/*
 * Appends the head of the answer as the client gets it: with its body in chunks, with a length, or (close) until
 * the connection ends.
 */
void rewrite_response(const struct message *response, const struct rewrite *rewrite, bool in_chunks,
	bool close, struct buf *out);

/*
 * Appends what keeps pages of other origins from showing an answer in a frame, an object or the like, but for
 * those of one origin (or NULL). Browsers heed every policy that is sent, so what the app says holds as well.
 */
void rewrite_put_frame_policy(struct buf *out, const char *ancestor);

/* Takes off a Cookie header until after the next one of that name, and gives its value; false if there is none. */
bool rewrite_cookie(struct slice *rest, const char *name, struct slice *ret_value);

/* Appends an address, or the part of one that begins with its path, without the secrets of links in its query. */
void rewrite_put_without_links(struct buf *out, struct slice address);
