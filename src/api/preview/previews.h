/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Previews: which sandbox and port a request means, whether whoever asks may see it, and how it gets there. The
 * proxy (proxy/proxy.h) does the rest.
 */
#pragma once

#include "api/api.h"
#include "http/listener.h"

struct previews;
struct server;

struct previews_config {
	struct api *api;
	struct server *server;		 /* of the API */
	const struct listener *listener; /* borrowed */
	unsigned threads, max_workers, max_connections;
	unsigned max_per_source, max_per_sandbox, requests_per_second; /* as of proxy_config */
	uint64_t answer_ms;
};

int previews_open(const struct previews_config *config, struct previews **ret_previews,
	struct err *err) must_check;
void previews_close(struct previews *previews);
