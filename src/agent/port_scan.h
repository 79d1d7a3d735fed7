/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which TCP sockets listen in the sandbox, and who holds them: the kernel's list of sockets has their
 * inodes, and the descriptors of each process name the inodes that it holds.
 *
 * The second half takes a look at every descriptor there is, so it is left out when the first has not
 * changed since the daemon asked last. Everything is bounded: a sandbox that listens on everything gets a
 * list that says so.
 */
#pragma once

#include "agent/dialog.h"
#include "agent/job.h"

#include <stdbool.h>
#include <stdint.h>

struct scanned_port {
	uint8_t address[16]; /* of IPv4 as ::ffff:a.b.c.d */
	uint16_t number;
	uint64_t inode;
	pid_t pid; /* 0: nobody who holds it was found */
	uint32_t job;
	char name[AGENT_NAME_MAX + 1];
};

/* A line of /proc/net/tcp or tcp6; false if it is none, or of a socket that does not listen. */
bool port_scan_parse(const char *line, struct scanned_port *ret_port) must_check;

struct port_scan_query {
	const struct job_table *jobs;
	uint64_t known; /* digest of the list that the daemon has */
};

/* What a helper does for a struct port_scan_query: AGENT_PORTS of wire/agent.h. */
void port_scan_serve(struct dialog *dialog, const void *query);
