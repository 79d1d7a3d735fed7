/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox_run.h"

#include "base/log.h"
#include "core/network.h"
#include "core/sandbox_link.h"
#include "core/sandbox_row.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* A start failed: ends what there is of it. The driver may know why; its words are the better ones. */
static int explain_failure(struct sandbox *sandbox, int r, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_end how = {0};
	struct err ignored;

	link_unref(sandbox_link_expect_end(sandbox, END_AGENT_LOST));
	if (driver->ops->stop(driver, sandbox->id, &how, &ignored) < 0)
		log_error("sandbox %s: %s", sandbox->id, ignored.message);
	sandbox_link_close(sandbox, &(struct termination){.reason = END_AGENT_LOST});
	if (how.cause.kind != ERR_NONE) {
		*err = how.cause;
		return -err_class((enum err_kind)err->kind)->errnum;
	}
	if (r == -EEXIST)
		return err_set(err, ERR_INTERNAL, "sandbox %s ended while starting", sandbox->id);
	return r;
}

int sandbox_run_begin(struct sandbox *sandbox, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct driver_spec spec = {.id = sandbox->id,
		.hostname = "sandbox",
		.slot = sandbox->record.slot,
		.next_slot = store_workspace_next_slot(sandbox->engine->config.store),
		.resources = sandbox->record.resources};
	const struct template *template = template_find(sandbox->record.template_name);
	struct walls walls;
	int link_fd = -1, r;

	if (!template)
		return err_explain(err, ERR_UNAVAILABLE, "template_not_found", NULL,
			"the template %s does not exist any more", sandbox->record.template_name);
	spec.profile = template->profile;
	spec.leads_out = network_leads_out(sandbox->record.network);
	r = driver->ops->start(driver, &spec, &link_fd, &walls, err);
	if (r < 0)
		return r;
	r = sandbox_link_meet(sandbox, link_fd, &walls, err);
	return r < 0 ? explain_failure(sandbox, r, err) : 0;
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
	link_unref(sandbox_link_expect_end(sandbox, how->reason));
	r = driver->ops->stop(driver, sandbox->id, NULL, err);
	if (r == 0)
		sandbox_link_close(sandbox, how);
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
	network_close(sandbox);
	if (driver->ops->stop(driver, sandbox->id, &how, &err) < 0) {
		log_error("sandbox %s lost its agent and cannot be ended: %s", sandbox->id,
			err.message);
		return;
	}
	describe_end(&how, &end);
	log_warning("sandbox %s ended unexpectedly: %s", sandbox->id, end.detail);
	sandbox_link_close(sandbox, &end);
	if (sandbox_row_write_status(sandbox, SANDBOX_STOPPED, &end, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
}

void sandbox_settle(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->life);
	sandbox_run_settle(sandbox);
	pthread_mutex_unlock(&sandbox->life);
}
