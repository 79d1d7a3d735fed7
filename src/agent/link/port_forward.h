/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of a daemon to ports on the agent's loopback, where it cannot make sockets in the
 * sandbox's network itself: PROOF_DIAL of wire/proof.h. The agent connects, says how that went, and
 * relays both ways, each end of file on its own. What one side does not take at once is kept, at
 * most PORT_FORWARD_CHUNK, and the other is not read meanwhile.
 */
#pragma once

#include "base/buf.h"
#include "wire/proof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_FORWARD_MAX   256
#define PORT_FORWARD_CHUNK (32u * 1024)

struct port_forward;

struct port_forwards {
	int epoll_fd;
	uint32_t last_id;
	size_t count;
	struct port_forward *first;
};

void port_forwards_init(struct port_forwards *forwards, int epoll_fd);

/* Takes over a daemon's connection. */
void port_forward_open(
	struct port_forwards *forwards, int daemon_fd, const struct proof_claim *claim);

/* Handles an event of one side. */
void port_forward_ready(struct port_forwards *forwards, uint32_t id, bool is_daemon);

/* How long until a port has taken too long; -1: none is waited for. */
int port_forward_patience_ms(const struct port_forwards *forwards);
void port_forward_tick(struct port_forwards *forwards);
