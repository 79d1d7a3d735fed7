/* SPDX-License-Identifier: Apache-2.0 */
/* A launch as a trace: a span of the whole, below that of the request for it, and one below it for each stage that ran. */
#pragma once

#include "launch/stage/pipeline.h"

/* The launch begins. What this thread logs from now on is about it. The traceparent of the request: empty or NULL: none. */
void launch_trace_begin(struct pipeline *pipeline, const char *traceparent);

/* Now, since 1970; it never goes back during a launch. */
int64_t launch_trace_now_us(const struct pipeline *pipeline);

/* It is over, or ends here to be begun anew by the next daemon; empty error: it went well. NULL traces: nobody collects. */
void launch_trace_end(struct pipeline *pipeline, struct trace_export *traces, const char *error);
