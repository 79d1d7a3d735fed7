/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which TCP sockets listen in the sandbox, and which processes hold them: the kernel's list of
 * sockets has their inodes, and the descriptors of each process name the inodes that it holds.
 *
 * The second half looks at every descriptor there is, so it is left out when the list of sockets
 * has not changed since the daemon asked last. All work is bounded: for a sandbox that listens on
 * too many ports the list says that it is cut.
 */
#pragma once

#include "agent/files/helper_io.h"
#include "agent/process/process.h"

#include <stdbool.h>
#include <stdint.h>

struct scanned_port {
	uint8_t address[16]; /* of IPv4 as ::ffff:a.b.c.d */
	uint16_t number;
	uint64_t inode;
	pid_t pid; /* 0: no process was found */
	uint32_t process;
	char name[AGENT_NAME_MAX + 1];
};

/*
 * Parses a line of /proc/net/tcp or tcp6; false if it is malformed, or of a socket that does not
 * listen.
 */
bool port_scan_parse(const char *line, struct scanned_port *ret_port) must_check;

struct port_scan_query {
	const struct process_table *processes;
	uint64_t known;	   /* digest of the list that the daemon has */
	uint16_t own_port; /* that the agent itself listens on; 0: none */
};

/* The work of a helper for a struct port_scan_query: AGENT_PORTS of wire/agent.h. */
void port_scan_serve(struct helper_io *helper_io, const void *query);
