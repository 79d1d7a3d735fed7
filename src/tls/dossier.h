/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a client here, for whoever serves it and sees neither its socket nor its handshake. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dossier {
	atomic_uint refs;
	atomic_uint_fast64_t bytes; /* how many it has sent */
	/* That it asked for (SNI), once its handshake is done; NULL: none. */
	_Atomic(char *) server_name;
};

/* With two references: of who writes it and of who reads it. */
struct dossier *dossier_new(void);
void dossier_unref(struct dossier *dossier);

/* At most once, and before anything that the client sent is passed on. */
void dossier_set_server_name(struct dossier *dossier, const char *name);

/*
 * Whether a Host may follow: it names the server that the client asked for, in any case, with or without a port and the
 * dot at the end. Who asked for none, as one does who has only an address, or does not speak TLS (NULL), may name any.
 */
bool dossier_allows_host(const struct dossier *dossier, const char *host);
