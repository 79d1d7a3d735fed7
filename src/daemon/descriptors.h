/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections, look-ups and the like there may be, so that all of them together never need more descriptors
 * than this process may have (RLIMIT_NOFILE). With enough, the limits are those that the settings name; with fewer they
 * shrink together; and below a minimum the daemon does not start, since it would fail at a time that nobody chooses.
 */
#pragma once

#include "daemon/settings.h"

struct descriptor_plan {
	unsigned api_connections;
	unsigned preview_connections;
	unsigned egress_connections, egress_pipes, egress_lookups;
	unsigned archive_downloads;
	unsigned
		tls_crowd; /* of each thread of TLS: handshakes, and connections whose server is done */
	unsigned processes; /* that are kept, of all sandboxes */
	unsigned running;   /* sandboxes */
	unsigned needed;    /* descriptors for the limits as they are set */
};

/* Divides `limit` descriptors. ERR_UNAVAILABLE if they are too few, with the number that is needed. */
int descriptors_plan(const struct settings *settings, uint64_t limit, unsigned cores,
	struct descriptor_plan *ret_plan, struct err *err) must_check;

/* Raises the limit of this process as far as it may, divides it, and logs what came of it. */
int descriptors_open(const struct settings *settings, struct descriptor_plan *ret_plan,
	struct err *err) must_check;
