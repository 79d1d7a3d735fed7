/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/sandbox_run.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "core/dependency/dependencies.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_network.h"
#include "core/engine/sandbox_row.h"
#include "core/project/project_defaults.h"
#include "core/sandbox/sandbox_link.h"
#include "model/sandbox/member_spec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A start failed: ends what there is of it. The driver may know why; its words are the better ones. */
static int explain_failure(struct sandbox *sandbox, int r, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_end how = {0};
	struct err unstopped;
	int stopped;

	agent_link_unref(sandbox_link_expect_end(sandbox, END_AGENT_LOST));
	stopped = driver->ops->stop(driver, sandbox->id, &how, &unstopped);
	if (stopped < 0)
		log_error("sandbox %s: %s", sandbox->id, unstopped.message);
	sandbox_link_close(sandbox, &(struct termination){.reason = END_AGENT_LOST});
	/* It did not fail by itself: it ended with the driver, or cannot even be ended now. */
	if (stopped < 0) {
		*err = unstopped;
		return stopped;
	}
	if (how.cause.kind != ERR_NONE) {
		*err = how.cause;
		return -err_class((enum err_kind)err->kind)->errnum;
	}
	if (r == -EEXIST)
		return err_set(err, ERR_INTERNAL, "sandbox %s ended while starting", sandbox->id);
	return r;
}

static bool wants_check(const struct driver *driver, const struct err *err)
{
	return driver->ops->check_disk && strcmp(err->code, DRIVER_UNCHECKED) == 0;
}

/* 0: the disk is in order now. A check writes, and what finds no room says the same as what cannot be mended. */
static int check_disk(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err full;
	int r = disk_reserve_check(sandbox->engine, err);

	if (r < 0)
		return r;
	log_warning("sandbox %s: %s", sandbox->id, err->message);
	r = driver->ops->check_disk(driver, sandbox->id, err);
	if (r == 0)
		log_info("the disk of sandbox %s was checked and is in order", sandbox->id);
	else if (disk_reserve_check(sandbox->engine, &full) < 0)
		*err = full;
	return r < 0 ? -err_class((enum err_kind)err->kind)->errnum : 0;
}

/* Tells subscribers how far a start is that takes long. */
static void publish_progress(void *arg, const char *step, int permille)
{
	struct sandbox *sandbox = arg;
	json_auto_t *event = json_pack("{s:s, s:s, s:o}", "sandbox", sandbox->id, "step", step,
		"done", permille < 0 ? json_null() : json_real(permille / 1000.0));
	auto_free char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	if (text)
		sandbox_tell(sandbox, "sandbox.progress", text);
}

/* A text of what it took of its template; "" if there is none. */
static const char *image_text(const struct sandbox *sandbox, const char *name)
{
	const char *text = json_string_value(json_object_get(sandbox->record.image, name));

	return text ? text : "";
}

/* Its own packages, and those that its project names now. */
static void show_packages(struct sandbox *sandbox)
{
	json_auto_t *of_project =
		project_defaults_packages(sandbox->engine->config.projects, &sandbox->record);

	dependencies_require(sandbox, of_project);
	dependencies_show(sandbox);
}

static int begin(struct sandbox *sandbox, struct err *err)
{
	const struct driver_progress progress = {publish_progress, sandbox};
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_spec spec = {.id = sandbox->id,
		.hostname = sandbox->record.name[0] ? sandbox->record.name : "sandbox",
		.template_name = sandbox->record.template_name,
		.stack = image_text(sandbox, "stack"),
		.profile = template_profile_of(&sandbox->record),
		.image = {.reference = image_text(sandbox, "reference"),
			.digest = image_text(sandbox, "digest")},
		.owner = &sandbox->record.owner,
		.project = sandbox->record.project,
		.session = sandbox->record.session,
		.labels = sandbox->record.labels,
		.env = sandbox->record.env,
		.network = network_leads_out(sandbox->record.network) ? DRIVER_NETWORK_JUDGED
								      : DRIVER_NETWORK_NONE,
		.resources = sandbox->record.resources};
	struct driver_link link;
	struct walls walls;
	int r;

	if (sandbox->record.parent[0]) {
		spec.joins = sandbox->record.parent;
		spec.hostname = sandbox->record.role;
		spec.member = member_role_parse(sandbox->record.role);
	}
	spec.has_volumes = json_array_size(json_object_get(sandbox->record.image, "volumes")) > 0;
	if (!spec.stack[0] && !template_find(spec.template_name))
		return err_explain(err, ERR_UNAVAILABLE, "template_not_found", NULL,
			"the template %s does not exist any more", sandbox->record.template_name);
	r = capability_check_record(driver, &sandbox->record, err);
	if (r < 0)
		return r;
	spec.has_files = sandbox->record.status != SANDBOX_CREATING || sandbox->record.is_on_kept;
	r = driver->ops->start(driver, &spec, &progress, &link, &walls, err);
	/* One runs that nobody knows of: whoever asked for it did not wait for the answer. */
	if (r == -EEXIST && driver->ops->stop(driver, sandbox->id, NULL, err) == 0)
		r = driver->ops->start(driver, &spec, &progress, &link, &walls, err);
	if (r < 0)
		return r;
	fail_point("run.driver_started");
	r = sandbox_link_meet(sandbox, &link, &walls, err);
	fail_point("run.agent_met");
	if (r < 0)
		return explain_failure(sandbox, r, err);
	r = projects_show(sandbox, err);
	if (r < 0)
		return explain_failure(sandbox, r, err);
	show_packages(sandbox);
	return 0;
}

int sandbox_run_begin(struct sandbox *sandbox, struct err *err)
{
	int r = run_place_take(sandbox, err);

	if (r < 0)
		return r;
	r = begin(sandbox, err);
	if (r < 0 && wants_check(sandbox->engine->config.driver, err)) {
		r = check_disk(sandbox, err);
		if (r == 0)
			r = begin(sandbox, err);
	}
	if (r < 0)
		run_place_give_back(sandbox);
	return r;
}

int sandbox_run_clean(struct sandbox *sandbox, unsigned parts, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = driver->ops->clean(driver, sandbox->id, parts, err);

	if (r < 0 && wants_check(driver, err)) {
		r = check_disk(sandbox, err);
		if (r == 0)
			r = driver->ops->clean(driver, sandbox->id, parts, err);
	}
	return r;
}

int sandbox_run_take_snapshot(struct sandbox *sandbox, const char *snapshot, enum driver_copy copy,
	uint64_t *ret_bytes, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r = driver->ops->take_snapshot(driver, sandbox->id, snapshot, copy, ret_bytes, err);

	if (r < 0 && wants_check(driver, err)) {
		r = check_disk(sandbox, err);
		if (r == 0)
			r = driver->ops->take_snapshot(
				driver, sandbox->id, snapshot, copy, ret_bytes, err);
	}
	return r;
}

void sandbox_run_read_usage(struct sandbox *sandbox, struct termination *how)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_stats stats;
	struct err ignored;

	if (driver->ops->stats(driver, sandbox->id, &stats, &ignored) < 0)
		return;
	how->cpu_us = stats.cpu_us;
	how->peak_memory_bytes = stats.memory_peak_bytes;
}

int sandbox_run_end(
	struct sandbox *sandbox, bool gently, const struct termination *how, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	bool paused = sandbox->record.status == SANDBOX_PAUSED;
	int r;

	if (gently && !paused)
		sandbox_link_ask_to_end(sandbox, how->reason);
	fail_point("end.agent_asked");
	agent_link_unref(sandbox_link_expect_end(sandbox, how->reason));
	r = driver->ops->stop(driver, sandbox->id, NULL, err);
	fail_point("end.driver_stopped");
	if (r == 0)
		sandbox_link_close(sandbox, how);
	else
		sandbox_link_expect_life(sandbox);
	fail_point("end.link_closed");
	return r;
}

/* It ended by itself. Who killed its first process, if the kernel did not for want of memory? */
static void describe_end(const struct driver_end *how, struct termination *end)
{
	const struct driver_stats *last = &how->last;
	int status = how->wait_status;

	*end = (struct termination){.reason = END_AGENT_LOST,
		.cpu_us = last->cpu_us,
		.peak_memory_bytes = last->memory_peak_bytes};
	if (!how->ended) {
		snprintf(end->detail, sizeof(end->detail), "the sandbox ended by itself");
	} else if (!WIFSIGNALED(status)) {
		snprintf(end->detail, sizeof(end->detail),
			"its first process exited with status %d", WEXITSTATUS(status));
	} else {
		end->signal = WTERMSIG(status);
		if (end->signal == SIGKILL && last->oom_kills > 0)
			end->reason = END_OOM;
		snprintf(end->detail, sizeof(end->detail),
			"its first process was killed by signal %d%s%s", end->signal,
			last->oom_victim[0] ? "; the kernel last ended for want of memory: " : "",
			last->oom_victim);
	}
}

void sandbox_run_settle(struct sandbox *sandbox)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_end how = {0};
	struct termination end;
	struct err err;
	bool lost;

	pthread_mutex_lock(&sandbox->state);
	lost = sandbox_seems_up(sandbox) && !sandbox->link && !sandbox->gone;
	pthread_mutex_unlock(&sandbox->state);
	if (!lost)
		return;
	/* Also if what follows fails: with its link it may have lost the last who holds this handle. */
	sandbox_network_close(sandbox);
	if (driver->ops->stop(driver, sandbox->id, &how, &err) < 0) {
		log_error("sandbox %s lost its agent and cannot be ended: %s", sandbox->id,
			err.message);
		return;
	}
	describe_end(&how, &end);
	log_warning("sandbox %s ended unexpectedly: %s", sandbox->id, end.detail);
	sandbox_link_close(sandbox, &end);
	fail_point("settle.link_closed");
	if (sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &end, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

void sandbox_settle(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->life);
	sandbox_run_settle(sandbox);
	pthread_mutex_unlock(&sandbox->life);
}
