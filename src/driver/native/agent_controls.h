/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper gave the driver of each running sandbox: the control socket of its agent (wire/agent.h), over which
 * the driver hands descriptors to that and never reads, and its egress sockets, until the daemon asks for them. Any
 * thread.
 */
#pragma once

#include "driver/driver.h"
#include "wire/agent.h"

#include <pthread.h>

struct agent_controls {
	pthread_mutex_t lock;
	void *tree;    /* a tsearch tree by id */
	uint64_t last; /* the number that was given out last */
};

#define AGENT_CONTROLS_ANY 0 /* whatever link the sandbox has */

void agent_controls_init(struct agent_controls *controls);
void agent_controls_fini(struct agent_controls *controls);

/*
 * Takes over the control socket of a sandbox, in place of the one that it had, and its egress sockets, if there are any;
 * the number of its link.
 */
uint64_t agent_controls_set(struct agent_controls *controls, const char *id, int fd,
	const struct driver_egress_sockets *egress);

/* Gives the egress sockets away, once. */
bool agent_controls_take_egress(
	struct agent_controls *controls, const char *id, struct driver_egress_sockets *ret_egress);
void agent_controls_drop(struct agent_controls *controls, const char *id);

/*
 * Sends a message with a descriptor, which stays the caller's; does not block. 0 or -errno: -ENOENT
 * if there is no such sandbox, -ESTALE if it has another link by now, -EPIPE if its agent is gone,
 * -EAGAIN if it has too many to read.
 */
int agent_controls_send(struct agent_controls *controls, const char *id, uint64_t link_number,
	const struct agent_control *message, int fd) must_check;
