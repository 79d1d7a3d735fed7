/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dependency/dependencies.h"

#include "base/log.h"
#include "core/dependency/dependency_files.h"
#include "core/dependency/dependency_layer.h"
#include "core/engine/capability.h"
#include "core/engine/sandbox_row.h"
#include "core/engine/sandbox_state.h"
#include "core/template/templates.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TRIES 8 /* of a job, if others change the same sandbox meanwhile */

/* --- the record --- */

static const json_t *member(const struct sandbox_record *record, const char *name)
{
	return json_object_get(record->dependencies, name);
}

static const char *text_of(const struct sandbox_record *record, const char *name)
{
	const char *text = json_string_value(member(record, name));

	return text ? text : "";
}

/* Whether it has its packages, made for the files that it has now. */
static bool is_whole(const struct sandbox_record *record)
{
	char base[DEPENDENCY_KEY_LEN + 1];

	dependency_layer_base(record, base);
	return text_of(record, "layer")[0] && !text_of(record, "error")[0] &&
	       strcmp(text_of(record, "base"), base) == 0;
}

/* It has these packages now. */
static void set_layer(
	struct sandbox_record *record, const json_t *set, const struct build_cache_entry *layer)
{
	char base[DEPENDENCY_KEY_LEN + 1];

	dependency_layer_base(record, base);
	json_object_set_new(record->dependencies, "shown", json_deep_copy(set));
	json_object_set_new(
		record->dependencies, "layer", json_string(dependency_layer_name(layer)));
	json_object_set_new(record->dependencies, "base", json_string(base));
	json_object_set_new(record->dependencies, "installed", json_deep_copy(layer->note));
	json_object_del(record->dependencies, "error");
}

/* The last job that was asked to install something, if it is remembered. The caller ends the record. */
static bool find_job(
	struct engine *engine, const struct sandbox_record *record, struct job_record *ret_job)
{
	struct err ignored;

	return engine->config.jobs && text_of(record, "job")[0] &&
	       job_get(engine->config.jobs, &record->owner, text_of(record, "job"), ret_job,
		       &ignored) == 0;
}

/* What a request adds to: what is being installed, or what there is. */
static const json_t *set_before(struct engine *engine, const struct sandbox_record *record)
{
	struct job_record job;
	bool is_active = false;

	if (find_job(engine, record, &job)) {
		is_active = job_state_is_active(job.state);
		job_record_fini(&job);
	}
	return member(record, is_active ? "requested" : "shown");
}

/* --- giving --- */

struct gift {
	const struct sandbox_record *was; /* the record that it was made by */
	const json_t *set;
	const struct build_cache_entry *layer;
	const char *job; /* that made it; NULL: it was there */
};

/* life is held. */
static int give(struct sandbox *sandbox, const struct gift *gift, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct sandbox_record changed;
	int r = 0;

	if (sandbox_seems_up(sandbox))
		r = driver->ops->show_layer(
			driver, sandbox->id, dependency_layer_name(gift->layer), err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &changed);
	set_layer(&changed, gift->set, gift->layer);
	if (!gift->job)
		json_object_del(changed.dependencies, "job");
	if (!gift->job || strcmp(text_of(&changed, "job"), gift->job) == 0)
		json_object_set_new(changed.dependencies, "requested", json_deep_copy(gift->set));
	r = sandbox_row_write(sandbox, &changed, err);
	sandbox_record_fini(&changed);
	if (r == 0)
		sandbox_publish(sandbox, "sandbox.dependencies");
	return r;
}

/* Shows a layer, if the sandbox runs, and writes it down. -EAGAIN: the sandbox has other packages or files by now. */
static int take_and_give(struct sandbox *sandbox, const struct gift *gift, struct err *err)
{
	const struct sandbox_record *record = &sandbox->record, *was = gift->was;
	int r;

	pthread_mutex_lock(&sandbox->life);
	sandbox->engine->verbs->settle(sandbox);
	if (sandbox->gone || record->created_at_ms != was->created_at_ms)
		r = sandbox_not_found(sandbox->id, err);
	else if (!json_equal(record->image, was->image) ||
		 !dependency_set_equals(member(record, "shown"), member(was, "shown")))
		r = -EAGAIN;
	else
		r = give(sandbox, gift, err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

/* Gives it what was installed before, if it was. */
static int give_cached(struct sandbox *sandbox, const struct sandbox_record *record,
	const json_t *set, const char *job, struct err *err)
{
	struct build_cache_entry layer;
	struct gift gift = {record, set, &layer, job};
	int r = dependency_layer_find(sandbox->engine, record, set, &layer, err);

	if (r < 0)
		return r;
	r = take_and_give(sandbox, &gift, err);
	json_decref(layer.note);
	/* The layer may be gone, or the sandbox has ended; then the packages are installed anew at worst. */
	if (r < 0 && r != -EAGAIN)
		dependency_layer_forget(sandbox->engine, record, set);
	return r;
}

/* --- asking --- */

static int submit_input(struct engine *engine, const struct sandbox_record *record,
	const json_t *input, const char *key, char ret_job[ID_LEN + 1], struct err *err)
{
	struct job_request request = {
		.kind = DEPENDENCIES_JOB_KIND, .target = record->id, .key = key, .input = input};
	struct job_record job;
	bool is_joined;
	int r = job_submit(engine->config.jobs, &record->owner, &request, &job, &is_joined, err);

	if (r < 0)
		return r;
	memcpy(ret_job, job.id, ID_LEN + 1);
	job_record_fini(&job);
	return 0;
}

static int submit(struct engine *engine, const struct sandbox_record *record, const json_t *more,
	bool no_cache, char ret_job[ID_LEN + 1], struct err *err)
{
	json_auto_t *input = json_pack("{s:O, s:b, s:I}", "packages", more, "no_cache", no_cache,
		"created_at", (json_int_t)record->created_at_ms);
	auto_free char *text = json_dumps(input, JSON_SORT_KEYS | JSON_COMPACT);
	struct digest digest;
	char key[JOB_KEY_MAX];

	digest_of(text, strlen(text), &digest);
	snprintf(key, sizeof(key), "%s %s", record->id, digest_hex(&digest));
	return submit_input(engine, record, input, key, ret_job, err);
}

struct note {
	const json_t *requested;
	const char *job, *error; /* NULL: none */
};

static void apply_note(struct sandbox_record *record, void *arg)
{
	const struct note *note = arg;

	json_object_set_new(record->dependencies, "requested", json_deep_copy(note->requested));
	json_object_del(record->dependencies, "error");
	json_object_del(record->dependencies, "job");
	if (note->job)
		json_object_set_new(record->dependencies, "job", json_string(note->job));
	if (note->error)
		json_object_set_new(record->dependencies, "error", json_string(note->error));
}

/* Has a job install them. */
static int begin_job(struct sandbox *sandbox, const struct sandbox_record *record,
	const json_t *wanted, const json_t *more, bool no_cache, struct err *err)
{
	struct note note = {.requested = wanted};
	char job[ID_LEN + 1];
	int r = submit(sandbox->engine, record, more, no_cache, job, err);

	if (r < 0)
		return r;
	note.job = job;
	return sandbox->engine->verbs->change(sandbox, apply_note, &note, err);
}

static int ask(struct sandbox *sandbox, const struct sandbox_record *record, const json_t *more,
	bool no_cache, struct err *err)
{
	json_auto_t *wanted = dependency_set_join(set_before(sandbox->engine, record), more);
	struct err ignored;
	int r = dependency_set_check_size(wanted, err);

	if (r < 0)
		return r;
	if (!no_cache &&
		((is_whole(record) && dependency_set_equals(wanted, member(record, "shown"))) ||
			give_cached(sandbox, record, wanted, NULL, &ignored) == 0))
		return 0;
	return begin_job(sandbox, record, wanted, more, no_cache, err);
}

int dependencies_ask(struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err)
{
	json_auto_t *more = NULL;
	struct sandbox_record record;
	int r = dependency_set_check(spec, err);

	if (r == 0)
		r = capability_need(sandbox->engine->config.driver, DRIVER_LAYERS, err);
	if (r < 0)
		return r;
	more = dependency_files_new_set(spec);
	if (dependency_set_is_empty(more))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field python or node must name a package, or a file must");
	sandbox_read(sandbox, &record);
	if (record.status == SANDBOX_CREATING)
		r = err_explain(err, ERR_CONFLICT, "sandbox_creating",
			"wait until it runs, or name packages in the create",
			"sandbox %s is being created", sandbox->id);
	if (r == 0)
		r = dependency_files_keep(sandbox->engine, &record.owner, spec, err);
	if (r == 0)
		r = ask(sandbox, &record, more, spec->no_cache, err);
	sandbox_record_fini(&record);
	return r;
}

int dependencies_fill_draft(struct engine *engine, const struct dependency_spec *spec,
	struct sandbox_record *draft, struct err *err)
{
	json_auto_t *more = dependency_files_new_set(spec);
	json_auto_t *wanted = dependency_set_join(member(draft, "shown"), more);
	struct build_cache_entry layer;
	struct err ignored;
	int r = dependency_files_keep(engine, &draft->owner, spec, err);

	if (r < 0)
		return r;
	/* What the sandbox of a snapshot was waiting for is not this one's. */
	json_object_del(draft->dependencies, "job");
	if (dependency_set_is_empty(wanted))
		return 0;
	json_object_set(draft->dependencies, "requested", wanted);
	/* Before its image is there nothing is known of what they would be made for. */
	if (spec->no_cache || draft->job[0] ||
		dependency_layer_find(engine, draft, wanted, &layer, &ignored) < 0)
		return 0;
	set_layer(draft, wanted, &layer);
	json_decref(layer.note);
	return 0;
}

void dependencies_complete(struct sandbox *sandbox, const struct dependency_spec *spec)
{
	json_auto_t *wanted = dependency_files_new_set(spec);
	struct note note = {.requested = wanted};
	struct err err, ignored;

	if (dependency_set_is_empty(wanted) || dependencies_ask(sandbox, spec, &err) == 0)
		return;
	note.error = err.message;
	if (sandbox->engine->verbs->change(sandbox, apply_note, &note, &ignored) < 0)
		log_warning("sandbox %s: %s", sandbox->id, err.message);
}

/* --- lending --- */

/* Shows a layer to a sandbox that has none. */
static int lend(struct sandbox *sandbox, const struct build_cache_entry *layer, struct err *err)
{
	struct driver *driver = sandbox->engine->config.driver;
	int r;

	pthread_mutex_lock(&sandbox->life);
	sandbox->engine->verbs->settle(sandbox);
	if (!dependency_set_is_empty(member(&sandbox->record, "requested")))
		r = err_set(err, ERR_CONFLICT, "the sandbox has packages of its own");
	else if (!sandbox_seems_up(sandbox))
		r = err_set(err, ERR_CONFLICT, "the sandbox does not run");
	else
		r = driver->ops->show_layer(driver, sandbox->id, dependency_layer_name(layer), err);
	pthread_mutex_unlock(&sandbox->life);
	return r;
}

int dependencies_lend(struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err)
{
	json_auto_t *set = dependency_files_new_set(spec);
	struct build_cache_entry layer;
	struct sandbox_record record;
	int r = capability_need(sandbox->engine->config.driver, DRIVER_LAYERS, err);

	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	r = dependency_layer_find(sandbox->engine, &record, set, &layer, err);
	if (r == 0) {
		r = lend(sandbox, &layer, err);
		json_decref(layer.note);
		/* The layer may be gone; then another is made for the next who asks. */
		if (r < 0 && err->kind != ERR_CONFLICT)
			dependency_layer_forget(sandbox->engine, &record, set);
	}
	sandbox_record_fini(&record);
	return r;
}

static int submit_for_others(struct engine *engine, const struct sandbox_record *record,
	const json_t *set, struct err *err)
{
	json_auto_t *input = json_pack("{s:O, s:b, s:I}", "packages", set, "is_for_others", true,
		"created_at", (json_int_t)record->created_at_ms);
	char key[DEPENDENCY_KEY_LEN + 1], job[ID_LEN + 1];

	/* Sandboxes that want the same layer wait for one job. */
	dependency_layer_key(engine, record, set, key);
	return submit_input(engine, record, input, key, job, err);
}

int dependencies_prepare(
	struct sandbox *sandbox, const struct dependency_spec *spec, struct err *err)
{
	json_auto_t *set = dependency_files_new_set(spec);
	struct build_cache_entry layer;
	struct sandbox_record record;
	int r = dependency_set_check(spec, err);

	if (r == 0)
		r = capability_need(sandbox->engine->config.driver, DRIVER_LAYERS, err);
	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	r = dependency_layer_find(sandbox->engine, &record, set, &layer, err);
	if (r == 0) {
		json_decref(layer.note);
	} else {
		r = dependency_files_keep(sandbox->engine, &record.owner, spec, err);
		if (r == 0)
			r = submit_for_others(sandbox->engine, &record, set, err);
	}
	sandbox_record_fini(&record);
	return r;
}

/* --- how it stands --- */

static json_t *set_to_json(const json_t *set)
{
	return dependency_set_join(NULL, set);
}

static json_t *installed_to_json(const struct sandbox_record *record)
{
	const json_t *installed = member(record, "installed");

	return installed ? json_deep_copy(installed) : json_pack("{s:{}, s:{}}", "python", "node");
}

/* Without a job that is remembered: what the record says. */
static const char *status_of(const struct sandbox_record *record)
{
	if (text_of(record, "error")[0])
		return "failed";
	if (dependency_set_is_empty(member(record, "requested")))
		return "none";
	return dependency_set_equals(member(record, "requested"), member(record, "shown"))
		       ? "succeeded"
		       : "lost";
}

static bool read_again(struct engine *engine, const char *id, struct sandbox_record *ret_record)
{
	auto_(sandbox_unrefp) struct sandbox *sandbox = sandbox_handle_find(engine, id);

	if (sandbox)
		sandbox_read(sandbox, ret_record);
	return sandbox;
}

json_t *dependencies_describe(struct engine *engine, const struct sandbox_record *record)
{
	const char *status, *error;
	struct sandbox_record later;
	struct job_record job;
	bool has_job = find_job(engine, record, &job);
	/* The job may have ended since the record was read: what it installed stands there before that. */
	bool is_later =
		has_job && job.state == JOB_SUCCEEDED && read_again(engine, record->id, &later);
	json_t *answer;

	if (is_later)
		record = &later;
	status = status_of(record);
	error = text_of(record, "error");
	if (has_job && (job.state != JOB_SUCCEEDED || !error[0])) {
		status = job_state_name(job.state);
		error = job.error_message;
	}
	answer = json_pack("{s:o, s:o, s:s, s:o, s:o}", "requested",
		set_to_json(member(record, "requested")), "installed", installed_to_json(record),
		"status", status, "error", error[0] ? json_string(error) : json_null(), "job",
		has_job ? json_string(job.id) : json_null());
	if (has_job)
		job_record_fini(&job);
	if (is_later)
		sandbox_record_fini(&later);
	return answer;
}

/* --- verbs --- */

/* They are missing, or made for other files than those that it starts with now: has them made. */
static void renew(struct sandbox *sandbox)
{
	json_auto_t *wanted = dependency_set_join(NULL, member(&sandbox->record, "requested"));
	char job[ID_LEN + 1];
	struct err err;

	if (submit(sandbox->engine, &sandbox->record, wanted, false, job, &err) < 0) {
		log_warning("the packages of sandbox %s: %s", sandbox->id, err.message);
		return;
	}
	pthread_mutex_lock(&sandbox->state);
	json_object_set_new(sandbox->record.dependencies, "job", json_string(job));
	pthread_mutex_unlock(&sandbox->state);
}

/* Shows the layer that it has; what goes wrong is in its record. */
static void show(struct sandbox *sandbox, const char *layer)
{
	struct driver *driver = sandbox->engine->config.driver;
	struct err err;
	int r = driver->ops->show_layer(driver, sandbox->id, layer, &err);

	if (r < 0)
		log_warning("the packages of sandbox %s: %s", sandbox->id, err.message);
	pthread_mutex_lock(&sandbox->state);
	if (r < 0)
		json_object_set_new(
			sandbox->record.dependencies, "error", json_string(err.message));
	else
		json_object_del(sandbox->record.dependencies, "error");
	pthread_mutex_unlock(&sandbox->state);
}

void dependencies_show(struct sandbox *sandbox)
{
	const struct sandbox_record *record = &sandbox->record;
	const char *layer = text_of(record, "layer");

	if (dependency_set_is_empty(member(record, "requested")) ||
		!driver_can(sandbox->engine->config.driver, DRIVER_LAYERS))
		return;
	if (layer[0])
		show(sandbox, layer);
	/* What a job was asked for and has not installed is not tried at each start. */
	if ((layer[0] && !is_whole(record)) ||
		(!text_of(record, "job")[0] && !dependency_set_equals(member(record, "requested"),
						       member(record, "shown"))))
		renew(sandbox);
}

void dependencies_require(struct sandbox *sandbox, const json_t *set)
{
	const json_t *before = member(&sandbox->record, "requested");
	json_t *wanted = dependency_set_join(before, set);
	struct err ignored;

	if (dependency_set_equals(wanted, before) ||
		dependency_set_check_size(wanted, &ignored) < 0) {
		json_decref(wanted);
		return;
	}
	pthread_mutex_lock(&sandbox->state);
	json_object_set_new(sandbox->record.dependencies, "requested", wanted);
	json_object_del(sandbox->record.dependencies, "job");
	pthread_mutex_unlock(&sandbox->state);
}

void dependencies_cancel(struct sandbox *sandbox)
{
	struct jobs *jobs = sandbox->engine->config.jobs;
	const char *id = text_of(&sandbox->record, "job");
	struct job_record job;
	struct err ignored;

	if (jobs && id[0] && job_cancel(jobs, &sandbox->record.owner, id, &job, &ignored) == 0)
		job_record_fini(&job);
}

/* --- the job --- */

struct work {
	struct job *job;
	struct sandbox *sandbox;
	const json_t *more;
	bool no_cache;
	bool is_for_others;
};

/* A layer that this sandbox is not shown. */
static int make_for_others(struct work *work, const struct sandbox_record *record, struct err *err)
{
	struct engine *engine = work->sandbox->engine;
	struct build_cache_entry layer;
	int r = dependency_layer_find(engine, record, work->more, &layer, err);

	if (r == 0)
		job_log(work->job, "there is such a layer");
	else
		r = dependency_layer_make(engine, work->job, record, work->more, &layer, err);
	if (r == 0)
		json_decref(layer.note);
	return r;
}

/* One try, by the record as it is now. */
static int install(struct work *work, const struct sandbox_record *record, struct err *err)
{
	const char *job = job_record(work->job)->id;
	json_auto_t *wanted = dependency_set_join(member(record, "shown"), work->more);
	struct engine *engine = work->sandbox->engine;
	struct build_cache_entry layer;
	struct gift gift = {record, wanted, &layer, job};
	struct err ignored;
	int r = dependency_set_check_size(wanted, err);

	if (r < 0)
		return r;
	if (work->is_for_others)
		return make_for_others(work, record, err);
	if (!work->no_cache) {
		r = give_cached(work->sandbox, record, wanted, job, &ignored);
		if (r == 0)
			job_log(work->job, "taken from the cache");
		if (r == 0 || r == -EAGAIN)
			return r;
	}
	r = dependency_layer_make(engine, work->job, record, wanted, &layer, err);
	if (r < 0)
		return r;
	/* From here on they are in the cache. */
	work->no_cache = false;
	r = take_and_give(work->sandbox, &gift, err);
	json_decref(layer.note);
	return r;
}

static int install_or_retry(struct work *work, int64_t created_at_ms, struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		struct sandbox_record record;
		int r;

		if (job_must_stop(work->job))
			return -ECANCELED;
		sandbox_read(work->sandbox, &record);
		/* It may have been removed, and another have its id by now. */
		r = record.created_at_ms == created_at_ms ? install(work, &record, err)
							  : sandbox_not_found(record.id, err);
		sandbox_record_fini(&record);
		if (r != -EAGAIN)
			return r;
	}
	return err_explain(err, ERR_CONFLICT, "sandbox_changed", "ask again",
		"the packages of the sandbox were changed by others all the time");
}

int dependencies_run(struct job *job, void *templates, struct err *err)
{
	const struct job_record *record = job_record(job);
	auto_(sandbox_unrefp) struct sandbox *sandbox = NULL;
	struct work work = {.job = job,
		.more = json_object_get(record->input, "packages"),
		.no_cache = json_is_true(json_object_get(record->input, "no_cache")),
		.is_for_others = json_is_true(json_object_get(record->input, "is_for_others"))};
	int r = sandbox_get(
		templates_engine(templates), &record->owner, record->target, &sandbox, err);

	if (r < 0)
		return r;
	work.sandbox = sandbox;
	r = install_or_retry(
		&work, json_integer_value(json_object_get(record->input, "created_at")), err);
	/* What it was doing then fails in its own way. */
	return r < 0 && job_must_stop(job) ? -ECANCELED : r;
}
