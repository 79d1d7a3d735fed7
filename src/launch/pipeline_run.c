/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/pipeline_run.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/engine/sandbox_network.h"
#include "launch/launch_trace.h"
#include "launch/stage/package_layer.h"
#include "launch/stage/part_versions.h"
#include "store/work/store_launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct pipeline_stage pipeline_stages[] = {
	{"DetectEntryPoint", stage_detect, true},
	{"MaterializeFiles", stage_materialize, true},
	{"GenerateEnvVars", stage_generate_env, true},
	{"InstallDependencies", stage_install, false},
	{"PostInstallChecks", stage_check_install, false},
	{"SyntaxCheck", stage_check_syntax, false},
	{"LaunchBackend", stage_launch_backend, false},
	{"LaunchFrontend", stage_launch_frontend, false},
};
const size_t pipeline_stage_count = array_len(pipeline_stages);
_Static_assert(array_len(pipeline_stages) <= PIPELINE_STAGES_MAX, "each has its times");

bool pipeline_has_stage(const char *name)
{
	for (size_t i = 0; i < pipeline_stage_count; i++) {
		if (strcmp(pipeline_stages[i].name, name) == 0)
			return true;
	}
	return false;
}

void pipeline_note(struct store *store, const struct launch_record *record)
{
	struct err err;

	if (store_launch_update(store, record, &err) < 0)
		log_warning("launch %s: %s", record->id, err.message);
}

static json_t *stage_entry(struct pipeline *pipeline, size_t i)
{
	return json_array_get(json_object_get(pipeline->record.document, "stages"), i);
}

static json_t *cause_to_json(const struct pipeline *pipeline)
{
	const struct failure_cause *cause = &pipeline->cause;

	return json_pack("{s:s, s:s, s:s, s:s?, s:O?}", "stage", pipeline->stage, "code",
		cause->code, "message", cause->message, "remediation",
		cause->remedy[0] ? cause->remedy : NULL, "lines", pipeline->lines);
}

static void set_stage(struct pipeline *pipeline, size_t i, const char *status, uint64_t began_ms)
{
	json_t *entry = stage_entry(pipeline, i);
	bool is_over = strcmp(status, "running") != 0;
	bool is_failed = strcmp(status, "failed") == 0;
	json_int_t duration_ms = (json_int_t)(clock_steady_ms() - began_ms);

	json_object_set_new(entry, "status", json_string(status));
	if (is_over)
		json_object_set_new(entry, "duration_ms", json_integer(duration_ms));
	if (is_failed)
		json_object_set_new(entry, "error", json_string(pipeline->cause.message));
	pipeline_tell(
		pipeline, json_pack("{s:s, s:s, s:o*, s:o*}", "stage", pipeline->stage, "status",
				  status, "duration_ms", is_over ? json_integer(duration_ms) : NULL,
				  "error", is_failed ? cause_to_json(pipeline) : NULL));
	pipeline_note(pipeline->config->store, &pipeline->record);
}

/* Whether a text stands in one of the last lines. */
static bool is_said(const struct pipeline *pipeline, const char *text)
{
	json_t *line;
	size_t i;

	json_array_foreach(pipeline->lines, i, line)
	{
		if (strstr(json_string_value(line), text))
			return true;
	}
	return false;
}

/* Whether the last lines name what was refused. */
static bool is_named(const struct pipeline *pipeline, const char *target)
{
	auto_free char *host = mem_printf("%.*s", (int)strcspn(target, ":"), target);

	return host[0] && is_said(pipeline, host);
}

/* Whether the last lines say that a connection was missed; pip and others do not say to where. */
static bool has_missed_connection(const struct pipeline *pipeline)
{
	static const char *const words[] = {"ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN",
		"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "onnection refused", "onnection reset",
		"onnection aborted", "onnection broken", "ould not resolve", "name resolution",
		"is unreachable", "socket hang up", "fetch failed"};

	for (size_t i = 0; i < array_len(words); i++) {
		if (is_said(pipeline, words[i]))
			return true;
	}
	return false;
}

static bool has_cause(const struct pipeline *pipeline, const char *const *codes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(pipeline->cause.code, codes[i]) == 0)
			return true;
	}
	return false;
}

/* The whole command, and what comes after it. */
static char *make_remedy(const struct pipeline *pipeline, const struct egress_denial *denial)
{
	const char *id = sandbox_id(pipeline->sandbox);
	auto_free char *whole =
		mem_printf("sandlot egress %s --allow %s, then launch again", id, denial->rule);

	/* Half a command must not be there to be followed. */
	return denial->rule[0] && strlen(whole) < sizeof(pipeline->cause.remedy)
		       ? take_ptr(&whole)
		       : mem_printf("sandlot egress %s shows and changes its network", id);
}

/*
 * A connection that the policy refused is the cause only if the program that failed says so itself: it names the host,
 * or, where packages are installed, it says that it missed a connection. Programs ask for more than they need: whether
 * there is a newer release of them, where to report their use. Such a refusal is told beside a cause that says little.
 */
static void blame_denial(struct pipeline *pipeline, const struct egress_denial *denial)
{
	static const char *const vague[] = {"failed", "exited", "not_ready", "install_failed",
		"install_timeout", "connection_refused"};
	static const char *const of_registry[] = {"failed", "install_failed", "install_timeout",
		"package_not_found", "connection_refused"};
	auto_free char *said = NULL, *remedy = NULL;

	if (is_named(pipeline, denial->target) ||
		(strcmp(pipeline->stage, "InstallDependencies") == 0 &&
			has_cause(pipeline, of_registry, array_len(of_registry)) &&
			has_missed_connection(pipeline))) {
		remedy = make_remedy(pipeline, denial);
		pipeline_fail(pipeline, "network_refused", remedy,
			"the sandbox's network policy refused %s%s%s", denial->target,
			denial->rule[0] ? "; the rule that would allow it: " : "", denial->rule);
	} else if (has_cause(pipeline, vague, array_len(vague))) {
		said = mem_printf("%s; meanwhile the network policy refused %s%s%s",
			pipeline->cause.message, denial->target,
			denial->rule[0] ? ", which the rule would allow: " : "", denial->rule);
		snprintf(pipeline->cause.message, sizeof(pipeline->cause.message), "%s", said);
	}
}

/* Of all that was refused since then, what is named counts before the rest. */
static void blame_network(struct pipeline *pipeline, int64_t since_ms)
{
	struct sandbox_network_report report;
	const struct egress_denial *denial = NULL;

	sandbox_network_read(pipeline->sandbox, &report);
	for (size_t i = 0; i < report.denial_count && report.denials[i].at_ms >= since_ms; i++) {
		if (!egress_denial_is_refusal(report.denials[i].reason))
			continue;
		if (!denial || (!is_named(pipeline, denial->target) &&
				       is_named(pipeline, report.denials[i].target)))
			denial = &report.denials[i];
	}
	if (denial)
		blame_denial(pipeline, denial);
	sandbox_network_report_fini(&report);
}

static int run_stage(struct pipeline *pipeline, size_t i, struct err *err)
{
	uint64_t began_ms = clock_steady_ms();
	int64_t wall_ms = clock_wall_ms();
	int r;

	pipeline->stage = pipeline_stages[i].name;
	pipeline->times[i].begun_us = launch_trace_now_us(pipeline);
	set_stage(pipeline, i, "running", began_ms);
	r = job_must_stop(pipeline->job) ? -ECANCELED : pipeline_stages[i].run(pipeline, err);
	pipeline->times[i].ended_us = launch_trace_now_us(pipeline);
	if (r == -ECANCELED) {
		set_stage(pipeline, i, "skipped", began_ms);
		return r;
	}
	if (r < 0 && r != PIPELINE_FAILED)
		pipeline_fail(pipeline, err->code, err->remedy, "%s", err->message);
	if (r < 0)
		blame_network(pipeline, wall_ms);
	set_stage(pipeline, i,
		r < 0			? "failed"
		: r == PIPELINE_SKIPPED ? "skipped"
					: "complete",
		began_ms);
	return r < 0 ? PIPELINE_FAILED : 0;
}

/* The first stage that a retry runs. */
static size_t first_stage(const struct pipeline *pipeline)
{
	const char *from = json_string_value(json_object_get(pipeline->input, "from"));

	for (size_t i = 0; from && i < pipeline_stage_count; i++) {
		if (strcmp(pipeline_stages[i].name, from) == 0)
			return i;
	}
	return 0;
}

int pipeline_run(struct pipeline *pipeline, struct err *err)
{
	size_t first = first_stage(pipeline);
	int r = 0;

	pipeline->is_forced = json_is_string(json_object_get(pipeline->input, "from"));
	part_versions_begin(pipeline);
	for (size_t i = 0; i < pipeline_stage_count && r == 0; i++) {
		if (i >= first || pipeline_stages[i].is_always) {
			r = run_stage(pipeline, i, err);
			continue;
		}
		pipeline->stage = pipeline_stages[i].name;
		set_stage(pipeline, i, "skipped", clock_steady_ms());
	}
	if (r == 0 || r == PIPELINE_FAILED)
		package_layer_share(pipeline);
	if (r == 0) {
		part_versions_note(
			pipeline); /* a retry may have begun behind the stage that does */
		pipeline->record.status = LAUNCH_SUCCEEDED;
		return 0;
	}
	if (r != PIPELINE_FAILED)
		return r;
	pipeline->record.status = LAUNCH_FAILED;
	snprintf(pipeline->record.failed_stage, sizeof(pipeline->record.failed_stage), "%s",
		pipeline->stage);
	snprintf(
		pipeline->record.cause, sizeof(pipeline->record.cause), "%s", pipeline->cause.code);
	json_object_set_new(pipeline->record.document, "error", cause_to_json(pipeline));
	return err_explain(err, ERR_UNPROCESSABLE, pipeline->cause.code,
		pipeline->cause.remedy[0] ? pipeline->cause.remedy : NULL, "%s: %s",
		pipeline->stage, pipeline->cause.message);
}
