/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control sockets of the agents of running sandboxes (wire/agent.h): over them the driver hands
 * descriptors to agents. The daemon never reads from one. Any thread.
 */
#pragma once

#include "base/mem.h"
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

/* Takes over the socket of a sandbox, in place of the one that it had; the number of its link. */
uint64_t agent_controls_set(struct agent_controls *controls, const char *id, int fd);
void agent_controls_drop(struct agent_controls *controls, const char *id);

/*
 * Sends a message with a descriptor, which stays the caller's; does not block. 0 or -errno: -ENOENT
 * if there is no such sandbox, -ESTALE if it has another link by now, -EPIPE if its agent is gone,
 * -EAGAIN if it has too many to read.
 */
int agent_controls_send(struct agent_controls *controls, const char *id, uint64_t link_number,
	const struct agent_control *message, int fd) must_check;
