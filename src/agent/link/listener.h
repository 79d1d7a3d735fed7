/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How daemons reach an agent that no keeper started: it listens on a TCP port or a unix socket. Each
 * connection begins as wire/proof.h says, and is then given to the loop as what the daemon wants
 * of it.
 *
 * Anybody may connect, the sandbox's own processes too. Until it has proven itself a connection
 * costs a row of a small table, has a few seconds, and gets nothing but a greeting; if the table is
 * full, the one that waits longest gives way.
 */
#pragma once

#include "wire/frame.h"
#include "wire/proof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENER_WAITING_MAX 32
#define LISTENER_PATIENCE_MS 10000

/* What becomes of a connection; each takes the descriptor, which is non-blocking. */
struct listener_takers {
	void (*link)(void *context, int fd);
	void (*channel)(void *context, int fd, const struct frame *first);
	void (*dial)(void *context, int fd, const struct proof_claim *claim);
};

struct listener_conn {
	int fd; /* -1: the row is free */
	uint32_t id;
	uint64_t due_ms;
	bool is_proven;
	uint8_t greeting[PROOF_GREETING_LEN];
	struct buf in; /* the claim; then the first frame of a channel */
};

struct listener {
	int epoll_fd;
	int fd; /* -1: it does not listen */
	struct proof_secret secret;
	uint64_t patience_ms;
	uint64_t rest_until_ms; /* no connection is accepted before; 0: they are */
	uint32_t last_id;
	struct listener_conn *conns; /* LISTENER_WAITING_MAX; NULL before the first comes */
	const struct listener_takers *takers;
	void *context;
};

/* Listens on a port of all addresses ("7000") or on a unix socket ("/run/agent.sock"). */
int listener_open(const char *where, int *ret_fd) must_check;

/* What an agent that listens is given. */
struct listener_config {
	int fd; /* -1: it does not listen */
	struct proof_secret secret;
	uint64_t patience_ms; /* for a connection to prove itself */
};

/* 0 or -errno. */
int listener_init(struct listener *listener, int epoll_fd, const struct listener_config *config,
	const struct listener_takers *takers, void *context) must_check;

/* Accepts what waits. */
void listener_ready(struct listener *listener);

/* Takes over a connection, non-blocking, and greets it. */
void listener_greet(struct listener *listener, int fd);

/* Receives from the connection with this id. */
void listener_receive(struct listener *listener, uint32_t id);

/* How long until a connection has taken too long; -1: there is none. */
int listener_patience_ms(const struct listener *listener);
void listener_tick(struct listener *listener);

/* The TCP port that it listens on; 0 if none. */
uint16_t listener_port(const struct listener *listener);
