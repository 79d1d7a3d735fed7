/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client: one libcurl handle and one kept connection for everything a command asks.
 *
 * Answers are pulled (client_open, client_read, client_close), so that output, downloads and
 * archives are plain loops with bounded memory: while nobody reads, the transfer is paused and TCP
 * holds the server back. One request at a time. Redirects are never followed: the token goes to the
 * address that the user named and to no other.
 *
 * An answer with an error status becomes a struct err: kind from the status, message and remedy
 * from the server's error document.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct interrupt;
struct peer;
struct peer_address;

/* A body that is not JSON: read returns the number of bytes, 0 at the end, or -errno with err set.
 */
struct client_source {
	ssize_t (*read)(void *arg, void *data, size_t size, struct err *err);
	void *arg;
	int64_t size; /* -1: not known, sent in chunks */
	const char *type;
};

struct client_call {
	const char *method;
	const char *path;		    /* with its query, from "/" on */
	const json_t *body;		    /* or */
	const struct client_source *source; /* or neither */
	const char *accept;		    /* "application/json" if NULL */
	int64_t timeout_ms;		    /* for the whole exchange; 0: as long as it takes */
	bool is_create;			    /* carries a fresh Idempotency-Key */
};

int client_new(const struct peer_address *address, const char *token, struct client **ret,
	struct err *err) must_check;
void client_free(struct client *client);

static inline void client_freep(struct client **clientp)
{
	client_free(*clientp);
}

/* A second client with the address and token of another, for a request while that one's is open. */
int client_clone(const struct client *from, struct client **ret, struct err *err) must_check;

/* The address without a trailing slash, or the socket, for messages. */
const char *client_url(const struct client *client);

/* For a connection beside ours. */
const struct peer *client_peer(const struct client *client);

/* Sends the request and waits for the head of a successful answer. */
int client_open(struct client *client, const struct client_call *call, struct err *err) must_check;

/* The status of the answer that is open. */
long client_status(const struct client *client);

/* Commands that look dangerous are confirmed without a question, which a person at a terminal is asked otherwise. */
void client_mean_all(struct client *client);

/* The sandbox that requests are about from now on, as a person calls it; name: empty if by its id. */
void client_mean_sandbox(struct client *client, const char *id, const char *name);

/* Requests below a sandbox mean its member of that role from now on, which is borrowed; NULL: the sandbox itself. */
void client_mean_member(struct client *client, const char *role);

/* The size that the answer promised, or -1. */
int64_t client_size(const struct client *client);

/* Waits for bytes of the answer: their number, or 0 when it is whole. */
ssize_t client_read(struct client *client, void *data, size_t size, struct err *err) must_check;

/*
 * Lets client_read give up with CLIENT_WOKEN (err stays unset) while there are no bytes: when `fd`
 * can be read, or after wait_ms. -1 for either: that does not end it. Forgotten with the request.
 */
#define CLIENT_WOKEN (-ERESTART) /* the errno of no failure */
void client_wake(struct client *client, int fd, int wait_ms);

/*
 * Waits a moment for the end of an answer whose content is known already, so that the connection
 * can serve the next request instead of being cut.
 */
void client_drain(struct client *client);

/* Ends the request; in the middle of an answer that cuts the connection. Harmless if none is open.
 */
void client_close(struct client *client);

/* The whole exchange. *ret is a new reference, NULL for an empty answer; ret may be NULL. */
int client_json(struct client *client, const struct client_call *call, json_t **ret,
	struct err *err) must_check;

/* What ends a request under way, if it is told to watch. */
struct interrupt *client_interrupt(struct client *client);
