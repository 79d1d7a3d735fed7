/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch_trace.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

void launch_trace_begin(struct pipeline *pipeline, const char *traceparent)
{
	struct trace_span *span = &pipeline->trace;
	char own[TRACE_PARENT_LEN + 1];

	trace_span_init(span, traceparent ? traceparent : "");
	span->begun_us = clock_wall_ms() * 1000;
	pipeline->begun_us = clock_steady_us();
	pipeline->is_traced = trace_is_sampled(traceparent ? traceparent : "");
	trace_span_format(span, own);
	log_set_request(pipeline->record.id, own);
}

int64_t launch_trace_now_us(const struct pipeline *pipeline)
{
	return pipeline->trace.begun_us + (int64_t)(clock_steady_us() - pipeline->begun_us);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void export_stage(
	const struct pipeline *pipeline, size_t i, const char *parent, struct trace_export *traces)
{
	const json_t *entry =
		json_array_get(json_object_get(pipeline->record.document, "stages"), i);
	struct trace_span span;

	if (!pipeline->times[i].begun_us)
		return;
	trace_span_init(&span, parent);
	span.begun_us = pipeline->times[i].begun_us;
	span.ended_us = pipeline->times[i].ended_us;
	trace_span_name(&span, "%s", text_of(entry, "stage"));
	trace_span_set(&span, "sandlot.stage.status", text_of(entry, "status"));
	span.is_failed = strcmp(text_of(entry, "status"), "failed") == 0;
	if (span.is_failed) {
		trace_span_set(&span, "error.type", pipeline->cause.code);
		snprintf(span.message, sizeof(span.message), "%s", text_of(entry, "error"));
	}
	trace_export_add(traces, &span);
}

static void describe_parts(const struct pipeline *pipeline, struct trace_span *span)
{
	static const char *const names[ROLE_COUNT] = {
		[ROLE_BACKEND] = "sandlot.backend", [ROLE_FRONTEND] = "sandlot.frontend"};

	for (int role = 0; role < ROLE_COUNT; role++) {
		if (pipeline->detection.has_part[role])
			trace_span_set(
				span, names[role], pipeline->detection.parts[role].framework->name);
	}
}

void launch_trace_end(struct pipeline *pipeline, struct trace_export *traces, const char *error)
{
	struct trace_span *span = &pipeline->trace;
	const struct launch_record *record = &pipeline->record;
	char parent[TRACE_PARENT_LEN + 1];

	log_set_request(NULL, NULL);
	if (!traces || !pipeline->is_traced)
		return;
	trace_span_format(span, parent);
	for (size_t i = 0; i < PIPELINE_STAGES_MAX; i++)
		export_stage(pipeline, i, parent, traces);
	span->ended_us = launch_trace_now_us(pipeline);
	trace_span_name(span, "launch");
	trace_span_set(span, "sandlot.launch.id", record->id);
	trace_span_set(span, "sandlot.sandbox.id", record->sandbox_id);
	trace_span_set(span, "sandlot.project", record->project);
	describe_parts(pipeline, span);
	trace_span_set(span, "sandlot.failed_stage", record->failed_stage);
	trace_span_set(span, "error.type", record->cause);
	span->is_failed = error[0];
	snprintf(span->message, sizeof(span->message), "%s", error);
	trace_export_add(traces, span);
}
