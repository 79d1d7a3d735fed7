/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket: made before anything else, so that a taken port is a clear message. What it accepts are plain
 * bytes in any case: where clients speak TLS, that ends before (tls/terminator.h).
 */
#pragma once

#include "base/err.h"
#include "tls/terminator.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTENER_HOST_MAX 64

struct listener {
	int fd;
	char host[LISTENER_HOST_MAX]; /* as in a URL: "127.0.0.1", "[::1]" */
	uint16_t port;
	bool is_loopback;	       /* only this machine reaches it */
	struct terminator *terminator; /* borrowed; NULL: clients speak plain HTTP */
};

/* A connection that came, as those who serve it see it. */
struct arrival {
	int fd;				 /* plain bytes, non-blocking */
	struct sockaddr_storage address; /* the client's */
	socklen_t address_len;
	uint64_t since_us;	   /* of the steady clock */
	bool is_local;		   /* it comes from this machine's loopback */
	struct tls_peer *tls_peer; /* NULL: it does not speak TLS */
};

/* `address` is "127.0.0.1:9090" or "[::1]:9090"; port 0 picks one. The descriptor is the caller's. */
int listener_open(const char *address, struct listener *ret_listener, struct err *err) must_check;

/*
 * The same at a path, in the place of what a daemon before us left there, for the owner and the group. Its clients need no
 * TLS to know who serves it: only whoever may write the directory can. They call it "localhost".
 */
int listener_open_unix(const char *path, uid_t owner, gid_t group, struct listener *ret_listener,
	struct err *err) must_check;

/* Whether a client came by such a path. */
bool listener_is_unix(const struct sockaddr_storage *address);

/* 0, or -errno of accept(). What it holds is the caller's; listener_drop() lets go of what is left of that. */
int listener_accept(const struct listener *listener, struct arrival *ret_arrival) must_check;
void listener_drop(struct arrival *arrival);

/* "https" or "http"; and whether its port is the one of that, which browsers leave out. */
const char *listener_scheme(const struct listener *listener);
bool listener_has_default_port(const struct listener *listener);

/* An address as people write it, without a port; "unix" of a client that came by a path. */
void listener_format(const struct sockaddr_storage *address, char *text, size_t size);
