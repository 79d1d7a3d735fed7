/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What listens in a sandbox, as its agent tells it (AGENT_PORTS in wire/agent.h). The agent is hostile input:
 * a list is bounded, in order, and has no text but printable ASCII; what it says of a sandbox concerns nobody
 * but those who look at that sandbox.
 */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "wire/agent.h"

#include <jansson.h>
#include <netinet/in.h>

struct port {
	struct in6_addr address; /* of IPv4 as ::ffff:a.b.c.d */
	uint16_t number;
	uint32_t pid;			  /* inside; 0: nobody who holds it was found */
	uint32_t process;		  /* number of the process it belongs to; 0: to none */
	char command[AGENT_NAME_MAX + 1]; /* name of the program; "?" for what is not printable */
};

struct port_list {
	struct port *ports; /* by number, then by address; no two the same */
	size_t count;
	bool is_cut; /* there are more */
	uint64_t digest;
};

void port_list_fini(struct port_list *list);

/*
 * What listens now. Wakes nobody: nothing listens in a sandbox that does not run. ERR_CONFLICT for one that is
 * paused, whose agent cannot be asked; ERR_TIMEOUT if the whole answer has not come in time.
 */
int port_list_read(struct sandbox *sandbox, uint64_t timeout_ms, struct port_list *ret_list,
	struct err *err) must_check;

/* Asks an agent; the answer comes over the channel, and ends with it. -errno. */
int port_list_ask(struct engine *engine, const char *sandbox_id, const struct agent_link *link,
	uint64_t known_digest, int *ret_fd) must_check;

/* A whole answer: 1 and a list, 0 if it is the known one, -EPROTO. */
int port_list_parse(const uint8_t *data, size_t len, struct port_list *ret_list) must_check;

/* The most that an answer has. */
#define PORT_LIST_ANSWER_MAX (14u + AGENT_PORTS_MAX * (16 + 4 * 4 + AGENT_NAME_MAX))

/* By number, then by address. */
int port_compare(const struct port *a, const struct port *b);

/* Whether a connection from outside of the sandbox gets there: preview_connect() knows two addresses. */
bool port_is_reachable(const struct port *port);

/* {address, port, pid, command, process, reachable} */
json_t *port_to_json(const struct port *port);
