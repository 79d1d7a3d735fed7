/* SPDX-License-Identifier: Apache-2.0 */
#include "api/request_span.h"

#include "api/handlers.h"
#include "base/clock.h"
#include "trace/trace_export.h"

#include <stdio.h>

/* What asks all the time how we are would hide the rest. */
static const char *const unasked[] = {"/healthz", "/readyz", "/metrics", "/"};

static bool is_unasked(const char *route)
{
	for (size_t i = 0; i < array_len(unasked); i++) {
		if (strcmp(unasked[i], route) == 0)
			return true;
	}
	return false;
}

void request_span_export(void *context, const struct request *req, uint64_t took_us)
{
	struct api *api = context;
	const char *trace = request_trace(req), *route = request_route(req);
	int status = request_status(req);
	struct trace_span span;

	if (!api->traces || !trace[0] || !trace_is_sampled(trace) || is_unasked(route))
		return;
	/* Its own span is named in the traceparent that it has answered with. */
	trace_span_init(&span, trace);
	memcpy(span.id, span.parent, sizeof(span.id));
	snprintf(span.parent, sizeof(span.parent), "%s", request_trace_parent(req));
	span.kind = TRACE_SERVER;
	span.ended_us = clock_wall_ms() * 1000;
	span.begun_us = span.ended_us - (int64_t)took_us;
	trace_span_name(&span, "%s %s", request_method(req), route);
	trace_span_set(&span, "http.request.method", request_method(req));
	trace_span_set(&span, "http.route", route);
	trace_span_set_number(&span, "http.response.status_code", status);
	trace_span_set(&span, "sandlot.request_id", request_id(req));
	trace_span_set(&span, "error.type", status >= 400 ? request_error_code(req) : "");
	span.is_failed = status >= 500;
	if (span.is_failed)
		snprintf(span.message, sizeof(span.message), "%s", request_error_code(req));
	trace_export_add(api->traces, &span);
}
