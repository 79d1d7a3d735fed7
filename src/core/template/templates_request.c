/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/templates_request.h"

#include "base/log.h"
#include "core/engine/capability.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_state.h"
#include "core/job/job.h"
#include "core/template/build/python_layer.h"
#include "core/template/build/template_build.h"
#include "core/template/template_catalogue.h"
#include "core/template/template_source.h"
#include "core/template/templates.h"
#include "model/access/owner.h"
#include "model/template/template.h"
#include "store/store_clock.h"
#include "store/template/store_template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- asking for a build --- */

/* A new reference. */
static json_t *options_of(const struct templates_request *request)
{
	return request->options ? json_incref((json_t *)request->options) : json_object();
}

/* What the job is given, and what makes two requests the same. */
static json_t *make_input(const struct templates_request *request, bool adds)
{
	json_t *input = json_pack("{s:s, s:O, s:o, s:b, s:b}", "name", request->name, "source",
		(json_t *)request->source, "options", options_of(request), "no_cache",
		request->no_cache, "adds", adds);

	if (request->is_shared)
		json_object_set_new(input, "shared", json_true());
	return input;
}

static void make_key(const json_t *input, struct digest *ret_key)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	auto_free char *text = json_dumps(input, JSON_COMPACT | JSON_SORT_KEYS);

	if (text)
		digest_stream_add(hash, text, strlen(text));
	digest_stream_read(hash, ret_key);
}

static int submit(struct engine *engine, const struct owner *owner, const char *name,
	const json_t *input, struct job_record *ret_job, bool *ret_is_joined, struct err *err)
{
	struct digest key;
	struct job_request request = {.kind = TEMPLATE_JOB_KIND, .target = name, .input = input};

	make_key(input, &key);
	request.key = key.text;
	return job_submit(engine->config.jobs, owner, &request, ret_job, ret_is_joined, err);
}

struct asked {
	const json_t *source, *options;
	const struct job_record *job;
	int64_t now_ms;
};

/* The row is about this job from now on; the version that there is stays. */
static int note_asked(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	const struct asked *asked = arg;

	(void)err;
	json_object_clear(record->source);
	json_object_update(record->source, (json_t *)asked->source);
	json_object_clear(record->options);
	json_object_update(record->options, (json_t *)asked->options);
	snprintf(record->job, sizeof(record->job), "%s", asked->job->id);
	if (is_new)
		record->created_at_ms = record->used_at_ms = asked->now_ms;
	return 0;
}

/* Whose the row of a template is, which is not always who asks for it. */
static const struct owner *row_owner(const struct owner *owner, bool is_shared)
{
	return is_shared ? &owner_everybody : owner;
}

/* The template of that very owner; -ENOENT if it is another's, which this one sees. */
static int find_of(struct engine *engine, const struct owner *owner, const char *name,
	struct template_record *ret_record, struct err *err)
{
	int r = store_template_find(engine_store(engine), owner, name, ret_record, err);

	if (r == 0 && !owner_equals(&ret_record->owner, owner)) {
		template_record_fini(ret_record);
		return err_explain(err, ERR_NOT_FOUND, "template_not_found",
			"list the templates that there are", "you have no template %.120s", name);
	}
	return r;
}

int templates_find_own(struct engine *engine, const struct caller *caller, const char *name,
	struct template_record *ret_record, struct err *err)
{
	struct template_record record;
	int r = store_template_find(engine_store(engine), &caller->owner, name, &record, err);

	if (r < 0)
		return r;
	if (owner_equals(&record.owner, &caller->owner) || (caller->scopes & SCOPE_ADMIN)) {
		*ret_record = record;
		return 0;
	}
	template_record_fini(&record);
	return err_explain(err, ERR_DENIED, "template_shared",
		"make a template of your own: sandlot template create NAME --from THIS",
		"the template %.120s is the operator's: everybody uses it, and who has the scope "
		"admin changes it",
		name);
}

static int check_shared(const struct caller *caller, bool is_shared, struct err *err)
{
	if (!is_shared || (caller->scopes & SCOPE_ADMIN))
		return 0;
	return err_explain(err, ERR_DENIED, "missing_scope", "leave out shared",
		"a template for everybody is for tokens with the scope admin");
}

/* Whether it is there as it is asked for, and cannot have changed since. */
static bool is_done(const struct template_record *record, const struct templates_request *request)
{
	const json_t *value = NULL;
	const struct template_source *kind = template_source_of(request->source, &value);
	json_auto_t *options = options_of(request);

	return json_equal(record->options, options) && !request->no_cache &&
	       record->status == TEMPLATE_READY &&
	       json_equal(record->source, (json_t *)request->source) && kind && kind->is_fixed &&
	       kind->is_fixed(value);
}

/* With `asking` held. */
static int submit_asked(struct engine *engine, const struct owner *owner,
	const struct templates_request *request, const struct template_record *before,
	struct err *err)
{
	json_auto_t *input = make_input(request, false);
	struct asked asked = {
		.source = request->source, .options = json_object_get(input, "options")};
	const struct owner *row = row_owner(owner, request->is_shared);
	struct job_record job;
	bool is_joined;
	int r;

	r = submit(engine, owner, request->name, input, &job, &is_joined, err);
	if (r < 0)
		return r;
	asked.job = &job;
	asked.now_ms = store_clock_ms(engine_store(engine));
	if (is_joined && before && strcmp(before->job, job.id) == 0)
		r = 0;
	else if (before && before->status == TEMPLATE_BUILDING)
		r = err_explain(err, ERR_CONFLICT, "template_building",
			"wait for it, or cancel it: POST /v1/templates/{name}/cancel",
			"the template %s is being built of something else", request->name);
	else
		r = store_template_change(
			engine_store(engine), row, request->name, note_asked, &asked, err);
	if (r < 0 && !is_joined) {
		struct job_record ended;
		struct err ignored;

		if (job_cancel(engine->config.jobs, owner, job.id, &ended, &ignored) == 0)
			job_record_fini(&ended);
	}
	job_record_fini(&job);
	return r;
}

static int ask(struct engine *engine, const struct owner *owner,
	const struct templates_request *request, struct template_record *ret_record,
	struct err *err)
{
	const struct owner *row = row_owner(owner, request->is_shared);
	struct template_record before;
	bool is_there;
	int r = capability_need(engine_driver(engine), DRIVER_LAYERS, err);

	if (r == 0)
		r = disk_reserve_check(engine, err);
	if (r < 0)
		return r;
	templates_lock_asking(engine);
	r = find_of(engine, row, request->name, &before, err);
	is_there = r == 0;
	if (r == -ENOENT || (r == 0 && !is_done(&before, request)))
		r = submit_asked(engine, owner, request, is_there ? &before : NULL, err);
	templates_unlock_asking(engine);
	if (is_there)
		template_record_fini(&before);
	return r < 0 ? r
		     : store_template_find(
			       engine_store(engine), row, request->name, ret_record, err);
}

/* A profile that opens more than the default is the operator's to offer, as the template of its name is. */
static int check_security(const struct engine *engine, const char *security, struct err *err)
{
	if (!security || strcmp(security, "browser") != 0 || templates_offers(engine, security))
		return 0;
	return err_explain(err, ERR_INVALID, "template_not_offered",
		"take strict or default, or start sandlotd with browser in --templates",
		"the operator does not offer the security profile %s", security);
}

static int check_options(struct engine *engine, const struct caller *caller,
	const struct template_options *options, struct err *err)
{
	int r = template_options_check(options, err);

	if (r == 0)
		r = check_security(engine, options->security, err);
	return r < 0 ? r
		     : engine->verbs->check_template(engine, caller, options->spec,
			       options->starts_image == CHOICE_YES || options->ready_command ||
				       options->spec->member_count > 0,
			       err);
}

int templates_ask(struct engine *engine, const struct caller *caller,
	const struct templates_request *request, struct template_record *ret_record,
	struct err *err)
{
	int r = check_shared(caller, request->is_shared, err);

	if (r == 0)
		r = template_source_check(engine, caller, request->source, err);
	if (r == 0 && request->asked)
		r = check_options(engine, caller, request->asked, err);
	return r < 0 ? r : ask(engine, &caller->owner, request, ret_record, err);
}

int templates_rebuild(struct engine *engine, const struct caller *caller, const char *name,
	bool no_cache, struct template_record *ret_record, struct err *err)
{
	struct templates_request request = {.name = name, .no_cache = no_cache};
	json_auto_t *listed = template_catalogue_source(name);
	struct template_record before;
	const json_t *value;
	const struct template_source *kind;
	int r = templates_find_own(engine, caller, name, &before, err);

	request.source = listed;
	if (r == -ENOENT && listed)
		return templates_ask(engine, caller, &request, ret_record, err);
	if (r < 0)
		return r;
	request.is_shared = owner_equals(&before.owner, &owner_everybody);
	kind = template_source_of(before.source, &value);
	request.source = before.source;
	request.options = before.options;
	if (!kind || !kind->make)
		r = err_explain(err, ERR_CONFLICT, "template_not_buildable",
			"send the archive again: PUT /v1/templates/{name}/archive",
			"the template %s came as an archive, which is not kept", name);
	else
		r = templates_ask(engine, caller, &request, ret_record, err);
	template_record_fini(&before);
	return r;
}

/* --- options --- */

struct change {
	const struct template_options *options;
	int64_t now_ms;
};

/* How many wait for a create is nothing that a sandbox has. */
static bool differ_in_pool_alone(const json_t *one, const json_t *other)
{
	json_auto_t *first = json_copy((json_t *)one), *second = json_copy((json_t *)other);

	json_object_del(first, "pool");
	json_object_del(second, "pool");
	return json_equal(first, second);
}

/* The version that is there with other options is another version. */
static int change_options(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	const struct change *change = arg;
	json_auto_t *before = json_deep_copy(record->options);

	if (is_new)
		return err_explain(err, ERR_NOT_FOUND, "template_not_found",
			"list the templates that there are", "you have no template %.120s",
			record->name);
	if (record->status == TEMPLATE_BUILDING)
		return err_explain(err, ERR_CONFLICT, "template_building",
			"wait for it, or cancel it: POST /v1/templates/{name}/cancel",
			"the template %.120s is being built", record->name);
	template_options_set(record->options, change->options);
	if (record->version == 0 || json_equal(before, record->options))
		return 0;
	json_object_set(record->image, "options", record->options);
	if (differ_in_pool_alone(before, record->options))
		return 0;
	record->version++;
	record->created_at_ms = change->now_ms;
	return 0;
}

int templates_change(struct engine *engine, const struct caller *caller, const char *name,
	const struct template_options *options, struct template_record *ret_record, struct err *err)
{
	struct change change = {.options = options, .now_ms = store_clock_ms(engine_store(engine))};
	struct template_record found;
	struct owner row;
	int r = check_options(engine, caller, options, err);

	if (r == 0)
		r = templates_find_own(engine, caller, name, &found, err);
	if (r < 0)
		return r;
	row = found.owner;
	template_record_fini(&found);
	r = templates_keep(engine, &row, name, change_options, &change, err);
	return r < 0 ? r : store_template_find(engine_store(engine), &row, name, ret_record, err);
}

/* --- archives --- */

struct imported {
	json_t *image;
	const struct image_pulled *pulled;
	int64_t now_ms;
};

static int note_imported(struct template_record *record, bool is_new, void *arg, struct err *err)
{
	const struct imported *imported = arg;

	(void)err;
	if (is_new)
		record->used_at_ms = imported->now_ms;
	json_object_clear(record->source);
	json_object_set_new(record->source, "archive", json_true());
	if (json_object_size(record->options) > 0)
		json_object_set(imported->image, "options", record->options);
	template_build_note_left_out(imported->image, record->image, imported->pulled);
	json_decref(record->image);
	record->image = json_incref(imported->image);
	record->bytes = imported->pulled->bytes;
	record->created_at_ms = imported->now_ms;
	record->version++;
	record->job[0] = record->reference[0] = '\0';
	snprintf(record->digest, sizeof(record->digest), "%s", imported->pulled->digest.text);
	return 0;
}

static int keep_imported(struct engine *engine, const struct owner *owner, const char *name,
	const struct image_pulled *pulled, struct template_record *ret_record, struct err *err)
{
	json_auto_t *image = template_build_to_image(pulled);
	struct imported imported = {
		.image = image, .pulled = pulled, .now_ms = store_clock_ms(engine_store(engine))};
	int r;

	if (!image)
		return err_set(err, ERR_INVALID, "the image's config is not UTF-8");
	r = templates_keep(engine, owner, name, note_imported, &imported, err);
	return r < 0 ? r : store_template_find(engine_store(engine), owner, name, ret_record, err);
}

int templates_import(struct engine *engine, const struct caller *caller, const char *name,
	const struct image_source *source, const char *tag, bool is_shared,
	struct template_record *ret_record, struct err *err)
{
	const struct owner *owner = &caller->owner;
	struct template_build build = {.engine = engine, .owner = owner, .name = name};
	struct image_pull pull = template_build_pull(&build);
	struct image_pulled pulled;
	int r = check_shared(caller, is_shared, err);

	if (r == 0)
		r = templates_check_quota(engine, owner, 1, err);
	if (r == 0)
		r = templates_begin(engine, err);
	if (r < 0)
		return r;
	r = image_pull_archive(&pull, source, tag, &pulled, err);
	if (r == 0) {
		(void)!python_layer_add(&build, &pulled);
		r = keep_imported(
			engine, row_owner(owner, is_shared), name, &pulled, ret_record, err);
		image_pulled_fini(&pulled);
	}
	templates_end(engine);
	return r;
}

/* --- use --- */

static int resolve_builtin(
	const struct engine *engine, const char *name, json_t **ret_image, struct err *err)
{
	if (!templates_offers(engine, name))
		return err_explain(err, ERR_INVALID, "template_not_offered",
			"start sandlotd with it in --templates",
			"the operator does not offer the template %s", name);
	*ret_image = json_object();
	return 0;
}

static int refuse_name(const char *name, struct err *err)
{
	return err_explain(err, ERR_INVALID, "template_not_found",
		"list them with `sandlot template ls`; the reference of an image has a : or a /",
		"there is no template %.120s", name);
}

/* Has it made, or joins who does; then it is a template of that name. */
static int bring(struct engine *engine, const struct owner *owner, const char *name,
	const json_t *source, char ret_job[ID_LEN + 1], struct err *err)
{
	json_auto_t *input =
		make_input(&(struct templates_request){.name = name, .source = source}, true);
	const char *image = json_string_value(json_object_get(source, "image"));
	struct image_reference parsed;
	struct job_record job;
	bool is_joined;
	int r = image ? templates_parse(engine, image, &parsed, err) : 0;

	if (r < 0)
		template_catalogue_advise(image, err);
	if (r == 0)
		r = capability_need(engine_driver(engine), DRIVER_LAYERS, err);
	if (r == 0)
		r = disk_reserve_check(engine, err);
	if (r == 0)
		r = submit(engine, owner, name, input, &job, &is_joined, err);
	if (r < 0)
		return r;
	memcpy(ret_job, job.id, sizeof(job.id));
	job_record_fini(&job);
	return 0;
}

json_t *templates_image_of(const struct template_record *record)
{
	json_t *image = json_deep_copy(record->image);

	template_options_fill_image(image);
	json_object_set_new(image, "version", json_integer(record->version));
	json_object_set_new(image, "reference", json_string(record->reference));
	json_object_set_new(image, "digest", json_string(record->digest));
	return image;
}

/* What a sandbox takes of a version, which counts as used now; a new reference. */
static json_t *take_version(struct engine *engine, struct template_record *record)
{
	struct store *store = engine_store(engine);
	struct err err;

	if (store_template_touch(store, record, store_clock_ms(store), &err) < 0)
		log_warning("%s", err.message);
	return templates_image_of(record);
}

/* Whether an owner may wait for a job: that of a template for everybody is another's. */
static bool may_follow(struct engine *engine, const struct owner *owner, const char *id)
{
	struct job_record job;
	struct err ignored;

	if (job_get(engine->config.jobs, owner, id, &job, &ignored) < 0)
		return false;
	job_record_fini(&job);
	return true;
}

/* One that is in the database: 0 if it can be used, 1 while its first build is under way. */
static int take_known(struct engine *engine, const struct owner *owner,
	struct template_record *record, json_t **ret_image, char ret_job[ID_LEN + 1],
	struct err *err)
{
	if (record->version > 0) {
		int r = check_security(engine,
			json_string_value(json_object_get(
				json_object_get(record->image, "options"), "security")),
			err);

		if (r == 0)
			*ret_image = take_version(engine, record);
		return r;
	}
	if (record->status != TEMPLATE_BUILDING)
		return err_explain(err, ERR_CONFLICT, "template_not_ready",
			"build it again: POST /v1/templates/{name}/build",
			"template %.120s could not be built: %s", record->name, record->error);
	if (!may_follow(engine, owner, record->job))
		return err_explain(err, ERR_CONFLICT, "template_not_ready",
			"try again when the operator has built it",
			"template %.120s is the operator's, and is being built", record->name);
	memcpy(ret_job, record->job, sizeof(record->job));
	*ret_image = json_pack("{s:O}", "options", record->options);
	return 1;
}

static int bring_unknown(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, char ret_job[ID_LEN + 1], struct err *err)
{
	json_auto_t *source = templates_implied_source(engine, name);
	int r = source ? bring(engine, owner, name, source, ret_job, err) : refuse_name(name, err);

	if (r == 0) {
		*ret_image = json_object();
		return 1;
	}
	/* The reader of references does not know which field one stood in. */
	if (strcmp(err->code, "invalid_image") == 0)
		err_prefix(err, "template");
	return r;
}

int templates_resolve(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, char ret_job[ID_LEN + 1], struct err *err)
{
	struct template_record record;
	int r;

	ret_job[0] = '\0';
	if (template_find(name))
		return resolve_builtin(engine, name, ret_image, err);
	if (!engine->config.templates)
		return refuse_name(name, err);
	r = store_template_find(engine_store(engine), owner, name, &record, err);
	if (r == -ENOENT)
		return bring_unknown(engine, owner, name, ret_image, ret_job, err);
	if (r == 0) {
		r = take_known(engine, owner, &record, ret_image, ret_job, err);
		template_record_fini(&record);
	}
	return r;
}

int templates_look(struct engine *engine, const struct owner *owner, const char *name,
	json_t **ret_image, struct err *err)
{
	struct template_record record;
	int r;

	if (template_find(name))
		return resolve_builtin(engine, name, ret_image, err);
	r = store_template_find(engine_store(engine), owner, name, &record, err);
	if (r < 0)
		return r;
	if (record.version > 0)
		*ret_image = take_version(engine, &record);
	else
		r = err_explain(err, ERR_NOT_FOUND, "template_not_ready", NULL,
			"template %.120s is not built", name);
	template_record_fini(&record);
	return r;
}

bool templates_is_upgradable(
	struct engine *engine, const struct sandbox_record *sandbox, json_t **ret_image)
{
	const json_t *taken = json_object_get(sandbox->image, "version");
	struct template_record record;
	struct err ignored;
	bool is_newer;

	if (!taken || store_template_find(engine_store(engine), &sandbox->owner,
			      sandbox->template_name, &record, &ignored) < 0)
		return false;
	is_newer = record.version > json_integer_value(taken);
	if (is_newer && ret_image)
		*ret_image = templates_image_of(&record);
	template_record_fini(&record);
	return is_newer;
}

/* The job of a template for everybody is that of who asked for it. */
static int cancel_build(
	struct engine *engine, const struct template_record *record, struct err *err)
{
	bool is_shared = owner_equals(&record->owner, &owner_everybody);
	struct job_record job;
	int r = job_cancel(
		engine->config.jobs, is_shared ? NULL : &record->owner, record->job, &job, err);

	if (r == 0)
		job_record_fini(&job);
	return r;
}

int templates_remove(
	struct engine *engine, const struct caller *caller, const char *name, struct err *err)
{
	struct template_record record;
	struct err ignored;
	int r = templates_find_own(engine, caller, name, &record, err);

	if (r == -ENOENT && template_find(name))
		return err_explain(err, ERR_CONFLICT, "template_built_in", NULL,
			"the template %.120s is a part of Sandlot, and cannot be removed", name);
	if (r < 0)
		return r;
	r = store_template_delete(engine_store(engine), &record.owner, name, err);
	if (r == 0 && record.status == TEMPLATE_BUILDING)
		(void)!cancel_build(engine, &record, &ignored);
	template_record_fini(&record);
	return r;
}

int templates_cancel_build(struct engine *engine, const struct caller *caller, const char *name,
	struct template_record *ret_record, struct err *err)
{
	struct template_record record;
	struct owner row;
	int r = templates_find_own(engine, caller, name, &record, err);

	if (r < 0)
		return r;
	row = record.owner;
	r = record.job[0] ? cancel_build(engine, &record, err)
			  : err_explain(err, ERR_NOT_FOUND, "build_not_found", NULL,
				    "the template %.120s was not made by a build", name);
	template_record_fini(&record);
	return r < 0 ? r : store_template_find(engine_store(engine), &row, name, ret_record, err);
}
