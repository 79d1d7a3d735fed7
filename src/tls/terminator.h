/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where TLS ends: between the sockets of a listener's clients and all that serves them. What has been accepted is given
 * here, and a socket with the plain bytes of that client is got back, so that nobody behind knows of ciphers. A few
 * threads pass the bytes on.
 *
 * A client has a while for its handshake, and a connection may be over for its server while its client still has to
 * read (relay.h). Both are bounded in number and time: where there are too many, the longest of them gives way, and of
 * handshakes one source has no more than half. All others are bounded by those who accept them.
 *
 * Not TLS within the kernel, which would need no passing on: its module must have been loaded by root, and OpenSSL
 * before 3.2 cannot receive TLS 1.3 with it.
 */
#pragma once

#include "base/err.h"
#include "tls/certificate.h"
#include "tls/tls_peer.h"

struct terminator;

/* The certificate is borrowed. max_of_class: handshakes of a thread, and connections that end there, each. */
int terminator_open(struct certificate *certificate, unsigned threads, unsigned max_of_class,
	struct terminator **ret_terminator, struct err *err) must_check;

/* Call it when clients are not served any more. They have a moment to read what waits for them. */
void terminator_close(struct terminator *terminator);

/*
 * Takes over an accepted, non-blocking socket, also on failure (-errno), of a client that counts with all others of its
 * `source`, which is not 0. Gives the plain side, non-blocking too, and
 * what is known of the client; both are the caller's. Any thread.
 */
int terminator_wrap(struct terminator *terminator, int sock, uint64_t source, int *ret_plain,
	struct tls_peer **ret_peer) must_check;
