/* SPDX-License-Identifier: Apache-2.0 */
/* A request as a span of its trace (server_config.traced). It names no owner, and of its path the route alone. */
#pragma once

#include "http/server/request/request.h"

void request_span_export(void *api, const struct request *req, uint64_t took_us);
