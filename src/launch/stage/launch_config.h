/* SPDX-License-Identifier: Apache-2.0 */
/* What launches are set up with (launches.h), for their stages too. */
#pragma once

#include "store/store.h"

#include <stdint.h>

#define LAUNCHES_ORIGIN_MAX 256

struct trace_export;

/* What a launch waits for, and how long if the request does not say. */
enum launch_wait { LAUNCH_WAIT_INSTALL, LAUNCH_WAIT_BACKEND, LAUNCH_WAIT_FRONTEND };
#define LAUNCH_WAITS 3

struct launches_config {
	struct store *store; /* borrowed, as all of these */
	unsigned waits_s[LAUNCH_WAITS];
	unsigned history; /* ended ones that are kept of an owner, with their logs */
	/* The origin that the preview of a port has. */
	void (*origin)(
		void *arg, const char *sandbox_id, uint16_t port, char origin[LAUNCHES_ORIGIN_MAX]);
	void *arg;
	struct trace_export *traces; /* NULL: nobody collects them */
};
