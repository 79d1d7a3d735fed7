/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/template_build.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/engine/disk_reserve.h"
#include "core/engine/sandbox_state.h"
#include "core/template/templates.h"
#include "egress/own_address.h"
#include "model/address.h"
#include "model/template/template.h"
#include "store/template/store_layer.h"
#include "store/template/store_template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TELL_MS 100 /* between two reports of progress */

/* How far a layer is. */
struct template_layer {
	uint64_t done, total;
};

/* --- what the layers of a build ask --- */

static bool has_layer(void *arg, const struct digest *diff_id)
{
	const struct template_build *build = arg;
	struct err ignored;

	return store_layer_has(engine_store(build->engine), build->owner, digest_hex(diff_id),
		       &ignored) == 1;
}

static void note_layer(
	void *arg, const struct digest *diff_id, const struct layer_installed *installed)
{
	const struct template_build *build = arg;
	struct err err;

	/* Without the note the layer is only fetched again. One that was there before has no bytes to tell of. */
	if (store_layer_note(engine_store(build->engine), build->owner, digest_hex(diff_id),
		    installed->bytes > 0 ? (int64_t)installed->bytes : -1,
		    (installed->has_python ? STORE_LAYER_PYTHON : 0u) |
			    (installed->has_python_bytecode ? STORE_LAYER_PYTHON_BYTECODE : 0u),
		    &err) < 0)
		log_warning("%s", err.message);
	/* From now on its row counts. */
	templates_count_growth(build->engine, build->owner, -(int64_t)installed->bytes);
}

static int begin_layer(void *arg, const char *name, bool is_stack, struct err *err)
{
	const struct template_build *build = arg;

	return store_layer_begin(engine_store(build->engine), name, is_stack, err);
}

static int may_bring(void *arg, uint64_t bytes, struct err *err)
{
	const struct template_build *build = arg;

	return templates_check_quota(build->engine, build->owner, bytes, err);
}

static bool must_stop(void *arg)
{
	const struct template_build *build = arg;

	return build->job && job_must_stop(build->job);
}

static int may_grow(void *arg, int64_t bytes, struct err *err)
{
	const struct template_build *build = arg;
	int r;

	templates_count_growth(build->engine, build->owner, bytes);
	if (bytes < 0)
		return 0;
	if (must_stop(arg)) {
		err_explain(err, ERR_CONFLICT, "cancelled", NULL, "the build was cancelled");
		return -ECANCELED;
	}
	r = templates_check_quota(build->engine, build->owner, 0, err);
	return r < 0 ? r : disk_reserve_check_more(build->engine, LAYER_INSTALL_AHEAD, err);
}

static json_t *layers_to_json(const struct template_build *build)
{
	json_t *layers = json_array();

	for (size_t i = 0; i < build->layer_count; i++)
		json_array_append_new(layers,
			json_pack("{s:I, s:I}", "done_bytes", (json_int_t)build->layers[i].done,
				"total_bytes", (json_int_t)build->layers[i].total));
	return layers;
}

/* With the lock held. */
static void tell_progress(struct template_build *build)
{
	uint64_t done = 0, total = 0;
	size_t ready = 0;

	for (size_t i = 0; i < build->layer_count; i++) {
		done += build->layers[i].done;
		total += build->layers[i].total;
		ready += build->layers[i].total > 0 &&
			 build->layers[i].done == build->layers[i].total;
	}
	job_set_result(build->job, "layers", layers_to_json(build));
	job_progress(
		build->job, done, total, "%zu of %zu layers are here", ready, build->layer_count);
}

static void report(void *arg, size_t layer, size_t layers, uint64_t bytes, uint64_t of)
{
	struct template_build *build = arg;
	uint64_t now_ms = clock_steady_ms();

	if (!build->job)
		return;
	pthread_mutex_lock(&build->lock);
	if (build->layer_count != layers) {
		free(build->layers);
		build->layers = mem_new(layers * sizeof(*build->layers));
		build->layer_count = layers;
	}
	build->has_news |= build->layers[layer].done != bytes || build->layers[layer].total != of;
	build->layers[layer] = (struct template_layer){.done = bytes, .total = of};
	/* What came too soon after the last report is told with the next call, which comes also while a server is silent. */
	if (build->has_news && (bytes == of || now_ms - build->told_ms >= TELL_MS)) {
		build->told_ms = now_ms;
		build->has_news = false;
		tell_progress(build);
	}
	pthread_mutex_unlock(&build->lock);
}

struct image_pull template_build_pull(struct template_build *build)
{
	struct templates *templates = build->engine->config.templates;

	return (struct image_pull){.owner = build->owner,
		.driver = engine_driver(build->engine),
		.blobs = templates_blobs(templates),
		.installs = templates_installs(templates),
		.has_layer = has_layer,
		.note_layer = note_layer,
		.begin = begin_layer,
		.may_bring = may_bring,
		.may_grow = may_grow,
		.progress = report,
		.arg = build};
}

/* --- registries --- */

/* As of sandboxes: no owner reaches by an image what it could not reach from inside. */
static bool may_dial(void *arg, const char *host, const struct sockaddr *address)
{
	const struct template_build *build = arg;
	struct address dialled;

	if (templates_allow_host(build->engine, host))
		return true;
	if (address->sa_family == AF_INET)
		dialled = address_from_v4(((const struct sockaddr_in *)address)->sin_addr);
	else if (address->sa_family == AF_INET6)
		dialled = (struct address){((const struct sockaddr_in6 *)address)->sin6_addr};
	else
		return false;
	return address_is_public(dialled) && !own_address_is(dialled);
}

static int fetch_from(struct template_build *build, const struct image_reference *reference,
	unsigned connect_s, struct image_pulled *ret_pulled, struct err *err)
{
	auto_(registry_closep) struct registry *registry = NULL;
	struct image_pull pull = template_build_pull(build);
	struct registry_settings settings = {.may_dial = may_dial,
		.is_cancelled = must_stop,
		.arg = build,
		.connect_s = connect_s};
	char whole[IMAGE_REFERENCE_MAX + 1];
	int r;

	image_reference_write(reference, whole);
	job_log(build->job, "fetching %s", whole);
	r = templates_open_registry(build->engine, reference->registry, &settings, &registry, err);
	return r < 0 ? r : image_pull_registry(&pull, registry, reference, ret_pulled, err);
}

/* Asks the mirrors of a registry, until one has the image. What they have brought need not be brought again. */
static int fetch_from_mirrors(struct template_build *build, const struct image_reference *reference,
	unsigned connect_s, struct image_pulled *ret_pulled, struct err *err)
{
	struct registry_mirror mirror;
	struct image_reference there;
	int r = -ENOENT;

	for (unsigned i = 0; templates_mirror_of(build->engine, reference->registry, i, &mirror);
		i++) {
		if (registry_mirror_translate(&mirror, reference, &there) < 0)
			continue;
		r = fetch_from(build, &there, connect_s, ret_pulled, err);
		if (r == 0 || must_stop(build) || err->kind == ERR_NO_SPACE)
			return r;
		job_log(build->job, "the mirror %s: %s", mirror.host, err->message);
	}
	return -ENOENT;
}

int template_build_fetch(struct template_build *build, const char *text, unsigned connect_s,
	struct image_pulled *ret_pulled, struct err *err)
{
	struct image_reference reference;
	int r = templates_parse(build->engine, text, &reference, err);

	if (r < 0)
		return r;
	r = fetch_from_mirrors(build, &reference, connect_s, ret_pulled, err);
	if (r == -ENOENT)
		r = fetch_from(build, &reference, connect_s, ret_pulled, err);
	if (r == 0)
		image_reference_write(&reference, build->reference);
	return r;
}

/* --- what a sandbox takes of an image --- */

/* "NAME=value"; what is not of that form is left out. */
static json_t *env_to_json(const struct image_texts *env)
{
	json_t *object = json_object();

	for (size_t i = 0; i < env->count; i++) {
		char *equals = strchr(env->list[i], '=');

		if (!equals || equals == env->list[i])
			continue;
		*equals = '\0';
		json_object_set_new(object, env->list[i], json_string(equals + 1));
		*equals = '=';
	}
	return object;
}

static json_t *texts_to_json(const struct image_texts *texts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < texts->count; i++)
		json_array_append_new(array, json_string(texts->list[i]));
	return array;
}

/* "8080/tcp" and "8080"; others are no ports that a preview could show. */
static json_t *ports_to_json(const struct image_texts *ports)
{
	json_t *array = json_array();

	for (size_t i = 0; i < ports->count; i++) {
		char *end;
		unsigned long port = strtoul(ports->list[i], &end, 10);

		if (end != ports->list[i] && port > 0 && port < 65536 &&
			(!*end || strcmp(end, "/tcp") == 0))
			json_array_append_new(array, json_integer((json_int_t)port));
	}
	return array;
}

static json_t *layer_names(const struct image_config *config)
{
	json_t *names = json_array();

	for (size_t i = 0; i < config->layer_count; i++)
		json_array_append_new(names, json_string(config->diff_ids[i].text));
	return names;
}

json_t *template_build_to_image(const struct image_pulled *pulled)
{
	const struct image_config *config = &pulled->config;

	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:s*}", "stack",
		digest_hex(&pulled->stack), "layers", layer_names(config), "env",
		env_to_json(&config->env), "user", config->user ? config->user : "", "workdir",
		config->workdir ? config->workdir : "", "entrypoint",
		texts_to_json(&config->entrypoint), "command", texts_to_json(&config->command),
		"ports", ports_to_json(&config->ports), "volumes", texts_to_json(&config->volumes),
		"health", config->health);
}

void template_build_note_left_out(
	json_t *image, const json_t *before, const struct image_pulled *pulled)
{
	json_t *known = json_object_get(before, "left_out");

	if (pulled->stripped || pulled->devices)
		json_object_set_new(image, "left_out",
			json_pack("{s:I, s:I}", "attributes", (json_int_t)pulled->stripped,
				"devices", (json_int_t)pulled->devices));
	else if (known &&
		 json_equal(json_object_get(image, "layers"), json_object_get(before, "layers")))
		json_object_set(image, "left_out", known);
}

static struct image_texts texts_of(const json_t *list)
{
	struct image_texts texts = {.list = mem_new((json_array_size(list) + 1) * sizeof(char *))};
	const json_t *value;
	size_t i;

	json_array_foreach((json_t *)list, i, value)
	{
		texts.list[texts.count++] =
			json_is_integer(value)
				? mem_printf("%lld/tcp", (long long)json_integer_value(value))
				: mem_strdup(json_string_value(value));
	}
	return texts;
}

static struct image_texts env_of(const json_t *env)
{
	struct image_texts texts = {.list = mem_new((json_object_size(env) + 1) * sizeof(char *))};
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		texts.list[texts.count++] = mem_printf("%s=%s", name, json_string_value(value));
	}
	return texts;
}

static char *text_of(const json_t *image, const char *name)
{
	const char *text = json_string_value(json_object_get(image, name));

	return mem_strdup(text ? text : "");
}

int template_build_from_image(const json_t *image, struct image_pulled *ret_pulled, struct err *err)
{
	struct image_pulled pulled = {0};
	const json_t *layers = json_object_get(image, "layers"), *value;
	auto_free char *stack =
		mem_printf("sha256:%s", json_string_value(json_object_get(image, "stack")));
	size_t i;

	/* Versions before this one did not note the layers. */
	if (!layers || json_array_size(layers) > IMAGE_LAYERS_MAX ||
		digest_parse(stack, &pulled.stack, err) < 0)
		return err_explain(err, ERR_CONFLICT, "template_too_old",
			"build that template again", "the layers of the template are not known");
	json_array_foreach((json_t *)layers, i, value)
	{
		int r = digest_parse(json_string_value(value), &pulled.config.diff_ids[i], err);

		if (r < 0)
			return r;
	}
	pulled.config.layer_count = json_array_size(layers);
	pulled.config.user = text_of(image, "user");
	pulled.config.workdir = text_of(image, "workdir");
	pulled.config.env = env_of(json_object_get(image, "env"));
	pulled.config.entrypoint = texts_of(json_object_get(image, "entrypoint"));
	pulled.config.command = texts_of(json_object_get(image, "command"));
	pulled.config.ports = texts_of(json_object_get(image, "ports"));
	pulled.config.volumes = texts_of(json_object_get(image, "volumes"));
	if (json_object_get(image, "health"))
		pulled.config.health = text_of(image, "health");
	*ret_pulled = pulled;
	return 0;
}

/* What a build begins with: the row of a template, or a source that must be made for it first. */
struct base {
	struct template_record record;
	json_t *source; /* NULL: it is the record */
};

static void base_fini(struct base *base)
{
	if (!base->source)
		template_record_fini(&base->record);
	json_decref(base->source);
}

static int find_base(const struct engine *engine, const struct owner *owner, const char *name,
	struct base *ret_base, struct err *err)
{
	struct base base = {0};
	int r;

	if (template_find(name))
		return err_explain(err, ERR_INVALID, "invalid_base",
			"name a template that is made of an image, or an image",
			"%s is the host's files, on which no template can build", name);
	r = store_template_find(engine->config.store, owner, name, &base.record, err);
	if (r == -ENOENT)
		base.source = templates_implied_source(engine, name);
	if (r == -ENOENT && !base.source)
		return err_explain(err, ERR_INVALID, "template_not_found",
			"name a template of yours, or an image with its tag",
			"there is no template %.120s", name);
	if (r < 0 && !base.source)
		return r;
	if (!base.source && base.record.version == 0) {
		template_record_fini(&base.record);
		return err_explain(err, ERR_CONFLICT, "template_not_ready", "build it first",
			"the template %s has not been built", name);
	}
	*ret_base = base;
	return 0;
}

int template_build_check_base(
	const struct engine *engine, const struct owner *owner, const char *name, struct err *err)
{
	struct base base;
	int r = find_base(engine, owner, name, &base, err);

	if (r < 0) {
		err_prefix(err, "from %.80s", name);
		return r;
	}
	base_fini(&base);
	return 0;
}

int template_build_base(struct template_build *build, const char *name,
	struct image_pulled *ret_base, struct err *err)
{
	const char *part = build->part;
	struct base base;
	int r = find_base(build->engine, build->owner, name, &base, err);

	if (r < 0)
		return r;
	build->part = name;
	r = base.source ? build->make(build, base.source, ret_base, err)
			: template_build_from_image(base.record.image, ret_base, err);
	build->part = part;
	base_fini(&base);
	return r;
}
