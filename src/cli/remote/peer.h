/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon as a client sees it: where it is, how it is known, who we are to it; and the words for what goes
 * wrong with it. It knows libcurl's handles (CURL *, here void *), but sends nothing itself.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "cli/remote/credential.h"

#include <stdbool.h>
#include <stddef.h>

/* Where the daemon is: at an address, or in a data directory of this machine. */
struct peer_address {
	const char *url;
	const char *data_dir; /* in the place of url (cli/remote/local_daemon.h) */
	/* With the authorities that are believed if the address is https, as PEM; NULL: the system's. */
	const char *ca_file;
};

#define ID_TEXT_MAX   27
#define NAME_TEXT_MAX 41

struct peer {
	char *url;		 /* without a trailing slash */
	char *name;		 /* how messages call it: that, or the socket */
	char *data_dir, *socket; /* NULL: it is at the URL */
	char *ca_file;		 /* NULL: none */
	struct credential credential;
	bool is_loopback;
	bool has_tls;
	const char *member; /* NULL: none; see client_mean_member(). Borrowed */
	/* The sandbox that was named last, and how: what is refused is told with that name. Empty: by its id. */
	char sandbox_id[ID_TEXT_MAX], sandbox_name[NAME_TEXT_MAX];
};

int peer_init(struct peer *peer, const struct peer_address *address, const char *token,
	struct err *err) must_check;
void peer_copy(struct peer *peer, const struct peer *from);
void peer_fini(struct peer *peer);

/* That the daemon is there and may have a token, as far as can be told without asking it; before each connection. */
int peer_check(const struct peer *peer, struct err *err) must_check;

/* The path of a request as it is sent: one below a sandbox names the member that is meant. The caller frees it. */
char *peer_path(const struct peer *peer, const char *path);

/* Gives a handle the address with this path, and the proxy rules, trust and timeouts that go with it. */
void peer_set_address(const struct peer *peer, void *easy, const char *path);

/* A new handle with that, the caller's, for a connection that is not made of requests. */
void *peer_handle(const struct peer *peer);

/* The header line with our token, "" without one. */
void peer_authorization(const struct peer *peer, char *line, size_t size);

/* The errors for what came instead of an answer that is of use: a CURLcode, or another status with its
 * document. */
int peer_failure(const struct peer *peer, int curl_code, const char *detail, struct err *err);
int peer_refusal(
	const struct peer *peer, long status, const char *text, size_t len, struct err *err);
