/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of traces on their way to a collector, by OTLP over HTTP in its JSON form. Whoever has a span copies it into a
 * queue of fixed size and goes on; one thread sends what is there, a batch at a time. Spans that find the queue full, or
 * that the collector does not take, are dropped and counted: a collector that hangs costs nothing but its spans.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define TRACE_EXPORT_QUEUE   1024
#define TRACE_ID_LEN	     32
#define TRACE_SPAN_LEN	     16
#define TRACE_PARENT_LEN     55 /* "00-<trace>-<span>-<flags>": W3C Trace Context */
#define TRACE_NAME_MAX	     96 /* with NUL, as the next ones */
#define TRACE_TEXT_MAX	     160
#define TRACE_ATTRIBUTES_MAX 8

enum trace_kind { TRACE_INTERNAL = 1, TRACE_SERVER = 2 }; /* as the protocol numbers them */

struct trace_attribute {
	const char *name; /* lasts as long as the program */
	char text[TRACE_TEXT_MAX];
	int64_t number; /* if the text is empty */
};

struct trace_span {
	char trace[TRACE_ID_LEN + 1];
	char id[TRACE_SPAN_LEN + 1],
		parent[TRACE_SPAN_LEN + 1]; /* no parent: the root of its trace */
	char name[TRACE_NAME_MAX];
	enum trace_kind kind;
	int64_t begun_us, ended_us; /* since 1970 */
	bool is_failed;
	char message[TRACE_TEXT_MAX]; /* why */
	struct trace_attribute attributes[TRACE_ATTRIBUTES_MAX];
	unsigned attribute_count;
};

struct trace_export;

/* Sends to <endpoint>/v1/traces, an address with http:// or https://. ERR_INVALID if it is none. */
int trace_export_open(const char *endpoint, struct trace_export **ret_export, struct err *err)
	must_check;
/* Sends what is left, for some seconds at most. */
void trace_export_close(struct trace_export *export);

/* Takes a copy; never blocks. Nothing happens for NULL. Any thread. */
void trace_export_add(struct trace_export *export, const struct trace_span *span);

struct trace_export_stats {
	uint64_t sent, dropped;
};
void trace_export_read(struct trace_export *export, struct trace_export_stats *ret_stats);

/* --- spans --- */

/* A new span with an id of its own in the trace of a traceparent, below its span; of a new trace if that is empty. */
void trace_span_init(struct trace_span *span, const char *traceparent);

/* Whether the sender of a traceparent wants its spans to be kept. */
bool trace_is_sampled(const char *traceparent);

/* The traceparent of whatever happens below a span. */
void trace_span_format(const struct trace_span *span, char traceparent[TRACE_PARENT_LEN + 1]);

void trace_span_name(struct trace_span *span, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* More than there may be are left out. An empty text is none. */
void trace_span_set(struct trace_span *span, const char *name, const char *text);
void trace_span_set_number(struct trace_span *span, const char *name, int64_t number);
