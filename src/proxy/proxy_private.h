/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of a proxy share. */
#pragma once

#include "proxy/proxy_config.h"

#define PROXY_LOOPS_MAX 16

struct proxy_loop;
struct rate_limit;
struct share_pool;
struct wake_queue;
struct workers;

struct proxy {
	struct proxy_config config;
	struct proxy_loop *loops[PROXY_LOOPS_MAX];
	unsigned loop_count;
	struct workers *workers;
	atomic_uint connections, excess; /* the second: of those that are to be told */
	struct share_pool *per_address_limit, *keys, *owners;
	struct rate_limit *rate_limit; /* NULL: no limit */
	struct wake_queue *wake_queue;
};
