/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/late_create.h"

#include "base/fail_point.h"
#include "base/log.h"
#include "core/engine/run_place.h"
#include "core/engine/sandbox_handle.h"
#include "core/engine/sandbox_row.h"
#include "core/sandbox/sandbox_make.h"
#include "core/sandbox/sandbox_run.h"
#include "core/sandbox/unfinished.h"
#include "core/template/template_options.h"
#include "core/template/templates.h"
#include "core/template/templates_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE 64

/* All of these with the life lock held. */

static bool waits(const struct sandbox *sandbox)
{
	return sandbox->record.status == SANDBOX_CREATING && sandbox->record.job[0] &&
	       !sandbox->gone;
}

/* It has no image and will get none by itself. */
static void fail(struct sandbox *sandbox, const struct err *why)
{
	struct sandbox_record changed;
	struct err err;

	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_ERROR;
	snprintf(changed.error_message, sizeof(changed.error_message), "%s", why->message);
	if (sandbox_row_write(sandbox, &changed, &err) < 0)
		log_error("sandbox %s: %s", sandbox->id, err.message);
	sandbox_record_fini(&changed);
	run_place_give_back(sandbox);
	sandbox_announce(sandbox);
}

/* Whether its workspace is older than it; the row does not say so. */
static int look_for_workspace(struct sandbox *sandbox, struct err *err)
{
	struct workspace_record workspace;
	int r = store_workspace_get(
		sandbox->engine->config.store, NULL, sandbox->id, &workspace, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&sandbox->state);
	sandbox->record.is_on_kept = workspace.created_at_ms < sandbox->record.created_at_ms;
	pthread_mutex_unlock(&sandbox->state);
	return 0;
}

/* Writes what it takes of its template. Files are made only after that: if it was written before, some may be left. */
static int take_image(struct sandbox *sandbox, const json_t *image, struct err *err)
{
	bool was_begun = json_object_size(sandbox->record.image) > 0;
	struct sandbox_record changed;
	int r = look_for_workspace(sandbox, err);

	if (r == 0 && was_begun)
		r = sandbox_make_undo(sandbox, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &changed);
	json_decref(changed.image);
	changed.image = json_deep_copy(image);
	changed.status = SANDBOX_CREATING;
	template_options_fill_ports(image, &changed);
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	fail_point("late_create.image_taken");
	return r;
}

static int make(struct sandbox *sandbox, const json_t *image, struct err *err)
{
	struct err ignored;
	int r = take_image(sandbox, image, err);

	if (r == 0) {
		r = sandbox_make(sandbox, err);
		/* What cannot be removed now goes before the next try. */
		if (r < 0 && sandbox_make_undo(sandbox, &ignored) < 0)
			log_error("sandbox %s: %s", sandbox->id, ignored.message);
		unfinished_clear(sandbox->engine, sandbox->id);
	}
	if (r < 0)
		fail(sandbox, err);
	return r;
}

void late_create_settle_locked(struct sandbox *sandbox)
{
	struct engine *engine = sandbox->engine;
	struct sandbox_record *record = &sandbox->record;
	json_t *image;
	struct err err, ignored;
	/* It may be the operator's, who makes a template for all. */
	int end = waits(sandbox) ? job_end(engine->config.jobs, NULL, record->job, &err) : 1;

	/* A daemon that leaves has the next one settle it. */
	if (end == 1 || (end < 0 && strcmp(err.code, "daemon_ending") == 0))
		return;
	templates_begin_use(engine);
	if (templates_look(engine, &record->owner, record->template_name, &image, &ignored) == 0) {
		if (make(sandbox, image, &err) < 0)
			log_error("sandbox %s cannot be made: %s", sandbox->id, err.message);
		json_decref(image);
		templates_end_use(engine);
		return;
	}
	templates_end_use(engine);
	if (end == 0)
		err_set(&err, ERR_NOT_FOUND, "the template %.120s was removed",
			record->template_name);
	fail(sandbox, &err);
}

bool late_create_settle(struct sandbox *sandbox)
{
	bool still;

	pthread_mutex_lock(&sandbox->life);
	late_create_settle_locked(sandbox);
	still = waits(sandbox);
	pthread_mutex_unlock(&sandbox->life);
	return still;
}

/* --- many --- */

static void settle_id(struct engine *engine, const char *id)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct err ignored;

	if (sandbox_get(engine, NULL, id, &sandbox, &ignored) == 0)
		(void)late_create_settle(sandbox);
}

/* The next ones that wait, by id; how many. */
static int next_page(
	struct engine *engine, const char *job, char after[ID_LEN + 1], char ids[PAGE][ID_LEN + 1])
{
	struct err err;
	int count = store_sandbox_unmade(engine->config.store, job, after, ids, PAGE, &err);

	if (count < 0)
		log_error("sandboxes that wait for their image: %s", err.message);
	if (count > 0)
		memcpy(after, ids[count - 1], ID_LEN + 1);
	return count;
}

void late_create_settle_job(struct engine *engine, struct job *job)
{
	char ids[PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	int count;

	while ((count = next_page(engine, job_record(job)->id, after, ids)) > 0) {
		for (int i = 0; i < count; i++)
			settle_id(engine, ids[i]);
	}
}

void late_create_settle_left(struct engine *engine, bool (*is_closing)(struct engine *engine))
{
	char ids[PAGE][ID_LEN + 1], after[ID_LEN + 1] = "";
	int count;

	while ((count = next_page(engine, NULL, after, ids)) > 0) {
		for (int i = 0; i < count && !is_closing(engine); i++)
			settle_id(engine, ids[i]);
	}
}

/* --- again --- */

static int wait_again(struct sandbox *sandbox, const char *job, struct err *err)
{
	struct sandbox_record changed;
	int r;

	run_place_give_back(sandbox);
	sandbox_read(sandbox, &changed);
	changed.status = SANDBOX_CREATING;
	changed.error_message[0] = '\0';
	snprintf(changed.job, sizeof(changed.job), "%s", job);
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r < 0)
		return r;
	sandbox_announce(sandbox);
	/* The job may have ended before the row said that we wait for it. */
	late_create_settle_locked(sandbox);
	return sandbox->record.status == SANDBOX_RUNNING
		       ? 0
		       : err_explain(err, ERR_UNAVAILABLE, "sandbox_creating",
				 "try again later, or follow the job: GET /v1/jobs/{id}",
				 "the image of sandbox %s is being fetched by the job %s",
				 sandbox->id, job);
}

int late_create_try_again(struct sandbox *sandbox, struct err *err)
{
	struct sandbox_record *record = &sandbox->record;
	char job[ID_LEN + 1];
	json_t *image = NULL;
	int r;

	templates_begin_use(sandbox->engine);
	r = templates_resolve(
		sandbox->engine, &record->owner, record->template_name, &image, job, err);
	if (r < 0)
		fail(sandbox, err);
	else
		r = r == 0 ? make(sandbox, image, err) : wait_again(sandbox, job, err);
	json_decref(image);
	templates_end_use(sandbox->engine);
	return r;
}
