/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the terminator knows of a client, for a server that sees neither its socket nor its
 * handshake. Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tls_peer {
	atomic_uint refs;
	atomic_uint_fast64_t bytes; /* bytes that the client has sent */
	/* The name that the client asked for (SNI), once the handshake is done; NULL: none. */
	_Atomic(char *) server_name;
};

/* Has two references: the relay's and the server's. */
struct tls_peer *tls_peer_new(void);
void tls_peer_unref(struct tls_peer *peer);

/* Called at most once, before the first byte of the client is passed on. */
void tls_peer_set_server_name(struct tls_peer *peer, const char *name);

/*
 * Whether the client may send this Host: it names the server in the SNI, in any case, with or
 * without a port and a final dot. A client without SNI or without TLS (NULL) may send any.
 */
bool tls_peer_allows_host(const struct tls_peer *peer, const char *host);
