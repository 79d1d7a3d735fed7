/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents of a driver whose sandboxes are containers of somebody else's engine, reached over
 * streams of bytes: what native does with descriptors (driver/native/agent_controls.h). The driver
 * starts containers with the agent as their first process (AGENT_LISTEN of wire/agent.h) and a new
 * secret (proof_secret_new) in the environment, where its engine keeps it for the next daemon; it
 * says how to connect, and has these functions do its link, open_channel and dial. Any thread.
 */
#pragma once

#include "driver/driver.h"
#include "wire/proof.h"

#include <pthread.h>

/* Makes a connected, non-blocking stream to the port of an agent. 0 or -errno. */
typedef int remote_agents_connect(void *arg, const char *id, uint64_t deadline_ms, int *ret_sock);

struct remote_agents {
	pthread_mutex_t lock;
	void *tree;    /* a tsearch tree by id */
	uint64_t last; /* the number of the link that was made last */
	remote_agents_connect *connect;
	void *arg;
};

void remote_agents_init(struct remote_agents *agents, remote_agents_connect *connect, void *arg);
void remote_agents_fini(struct remote_agents *agents);

/*
 * Makes a link to the agent of a sandbox that was started or is adopted; the agent drops the one
 * that it had. Tries again until wait_ms are over, while nothing listens yet. ERR_TIMEOUT, or
 * ERR_DENIED if what listens is not its agent.
 */
int remote_agents_meet(struct remote_agents *agents, const char *id,
	const struct proof_secret *secret, int wait_ms, struct driver_link *ret_link,
	struct err *err) must_check;

/* Forgets the agent of a sandbox that was stopped. */
void remote_agents_drop(struct remote_agents *agents, const char *id);

/* As driver_ops has them. */
int remote_agents_open_channel(struct remote_agents *agents, const char *id, uint64_t link_number,
	const void *first, size_t len, int *ret_fd, struct err *err) must_check;
int remote_agents_dial(struct remote_agents *agents, const char *id, uint16_t port, int timeout_ms,
	int *ret_fd, struct err *err) must_check;
