/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from an image registry (the OCI distribution protocol) with libcurl. Anonymous access, basic
 * authentication and bearer tokens are understood; a token is asked for once when the registry
 * demands one and again when it has expired, never in a loop.
 *
 * A registry is foreign: answers are bounded in size, redirects in number, credentials go to the
 * registry and the token server that it names and to no redirect, and each address is judged before
 * it is dialled. Nothing waits for ever: a transfer that is slower than REGISTRY_SPEED_MIN for stall_s ends. A
 * transfer that takes long but goes on is never cut.
 *
 * The functions block. Any number of threads may use a session at a time.
 */
#pragma once

#include "base/buf.h"
#include "blob/blob_store.h"
#include "image/image_manifest.h"
#include "image/image_reference.h"

#include <sys/socket.h>

#define REGISTRY_SPEED_MIN 1024 /* bytes a second, or it counts as stalled */

struct registry;

struct registry_settings {
	const char *host;    /* with its port, if it has one */
	bool is_plain;	     /* HTTP without TLS */
	const char *ca_file; /* whose certificates are trusted; NULL: the system's */
	const char *user;    /* NULL: anonymous */
	const char *password;
	unsigned stall_s;
	unsigned connect_s; /* how long a connection may take to come about; 0: the usual */
	/* Whether an address may be dialled for a host (with its port, if the URL has one): the
	 * registry, where it redirects to, its token server. NULL: any. */
	bool (*may_dial)(void *arg, const char *host, const struct sockaddr *address);
	/* Whether the caller has given up; asked about once a second. NULL: never. */
	bool (*is_cancelled)(void *arg);
	void *arg;
};

/* The settings' texts are copied. */
int registry_open(const struct registry_settings *settings, struct registry **ret_registry,
	struct err *err) must_check;
void registry_close(struct registry *registry);
void registry_closep(struct registry **registry);

/*
 * Fetches an index or a manifest by tag or digest. What came is hashed: *ret_digest is true whatever
 * the registry says, and one that was asked for by digest has it.
 */
int registry_fetch_manifest(struct registry *registry, const char *repository, const char *version,
	struct buf *document, struct digest *ret_digest, struct err *err) must_check;

/* Called with how many bytes of a blob are there. */
struct registry_progress {
	void (*moved)(void *arg, uint64_t bytes);
	void *arg;
};

/* Fetches a blob into the store, also if it is there; goes on where an earlier try ended. */
int registry_fetch_blob(struct registry *registry, const char *repository,
	const struct image_blob *blob, struct blob_store *store,
	const struct registry_progress *progress, struct err *err) must_check;
