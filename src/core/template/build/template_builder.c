/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/template_builder.h"

#include "core/engine/sandbox_state.h"
#include "core/template/build/build_files.h"
#include "core/template/build/build_layers.h"
#include "core/template/build/stage_copy.h"
#include "core/template/build/step_packages.h"
#include "core/template/image/layer_capture.h"
#include "core/template/templates.h"
#include "image/recipe_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Changes with what steps do, so that layers of before are not taken. */
#define CACHE_EPOCH "1"
#define SCRATCH	    "scratch" /* a base without files, of which Dockerfiles speak */

/* What a build of several stages has made so far, as images with their `bytes`. */
struct stages {
	struct template_build *build;
	const json_t *source;
	json_t *made[RECIPE_STAGES_MAX];
	json_t *foreign;	    /* other images that files were copied from, by their names */
	struct build_sandbox files; /* shows what was sent before, once a step wants it */
};

struct builder {
	struct template_build *build;
	struct stages *stages; /* NULL: it has but one, and copies from no image */
	int stage;
	json_t *copied;	       /* the image that the next step copies from, borrowed; or NULL */
	const char *run_title; /* struct template_own_recipe */
	struct build_layers layers;
	struct recipe recipe;
	json_t *image; /* what the next step starts from: the base's config, stack and layers */
	struct step_packages packages;
};

/* --- the cache --- */

static void add_text(struct digest_stream *hash, const char *text)
{
	/* With its NUL: two texts are never taken for one. */
	digest_stream_add(hash, text ? text : "", strlen(text ? text : "") + 1);
}

static void add_json(struct digest_stream *hash, const json_t *value)
{
	auto_free char *text = json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);

	add_text(hash, text);
}

struct file_hash {
	const struct recipe *recipe;
	struct digest_stream *hash;
};

static void add_file(void *arg, const char *path, const char *below)
{
	struct file_hash *files = arg;

	add_text(files->hash, path);
	add_text(files->hash, below);
	add_json(files->hash, json_object_get(files->recipe->files, path));
}

/* What was sent before the build, of which a step copies. */
static int open_files(struct stages *stages, struct stage_copy_source *ret_source, struct err *err)
{
	struct template_build *build = stages->build;
	struct build_sandbox_spec spec = {.template_name = build->name};
	json_auto_t *image = NULL;
	int r = 0;

	*ret_source = (struct stage_copy_source){
		&stages->files, BUILD_FILES_ROOT, "what was sent for the build"};
	if (stages->files.sandbox)
		return 0;
	r = build_files_image(build, build_files_named_by(stages->source), &image, err);
	spec.image = image;
	return r < 0 ? r
		     : build_sandbox_open(
			       build->engine, build->owner, build->job, &spec, &stages->files, err);
}

static int add_copied(struct builder *builder, const struct recipe_step *step,
	struct digest_stream *hash, struct err *err)
{
	struct file_hash files = {&builder->recipe, hash};
	struct stage_copy_source source;
	int r;

	if (step->source) {
		add_text(hash, json_string_value(json_object_get(builder->copied, "stack")));
		return 0;
	}
	if (step->kind != RECIPE_COPY)
		return 0;
	if (builder->recipe.has_sent_files) {
		r = open_files(builder->stages, &source, err);
		return r < 0 ? r : stage_copy_hash(&source, step, hash, err);
	}
	for (size_t i = 0; i < json_array_size(step->words); i++)
		recipe_match(builder->recipe.files,
			json_string_value(json_array_get(step->words, i)), add_file, &files);
	return 0;
}

/* Names all that decides what a step makes. */
static int make_key(
	struct builder *builder, const struct recipe_step *step, char *ret_key, struct err *err)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	struct digest digest;
	char numbers[64];
	int r;

	snprintf(numbers, sizeof(numbers), CACHE_EPOCH " %d %d %d%s", (int)step->kind, step->mode,
		step->is_into, step->unpacks ? " unpacks" : "");
	add_text(hash, numbers);
	add_text(hash, digest_hex(&builder->layers.so_far.stack));
	add_json(hash, step->words);
	add_json(hash, step->env);
	add_text(hash, step->target);
	add_text(hash, step->chown);
	add_text(hash, step->user);
	add_text(hash, step->workdir);
	if (step->kind >= RECIPE_APT)
		add_text(hash, step_packages_mirror(&builder->packages, step));
	if (step->kind == RECIPE_RUN && json_object_size(builder->recipe.mirrors) > 0)
		add_json(hash, builder->recipe.mirrors);
	r = add_copied(builder, step, hash, err);
	digest_stream_read(hash, &digest);
	strcpy(ret_key, digest_hex(&digest));
	return r;
}

/* --- steps --- */

struct copying {
	struct builder *builder;
	struct build_sandbox *box;
	const struct recipe_step *step;
	bool is_into;	 /* the target is a directory */
	json_t *written; /* paths, for chown */
	int result;
	struct err *err;
};

struct memory {
	const struct build_sandbox *box;
	const uint8_t *data;
	size_t left;
};

static ssize_t read_memory(void *arg, void *data, size_t size)
{
	struct memory *memory = arg;
	size_t n = size < memory->left ? size : memory->left;

	if (build_sandbox_must_stop(memory->box))
		return -ECANCELED;
	memcpy(data, memory->data, n);
	memory->data += n;
	memory->left -= n;
	return (ssize_t)n;
}

/* An archive that is named itself, by ADD. */
static int unpack_file(
	struct copying *copying, const char *path, const json_t *content, struct err *err)
{
	struct memory memory = {.box = copying->box};
	const struct tar_reader_source source = {read_memory, &memory};
	struct tar_reader_result result;
	auto_free uint8_t *data = NULL;
	int r;

	if (copying->step->chown)
		return err_explain(err, ERR_UNPROCESSABLE, "step_failed",
			"unpack it without --chown, and chown it in a RUN",
			"ADD --chown is for files, and %.120s is an archive", path);
	r = recipe_decode(content, &data, &memory.left, err);
	memory.data = data;
	if (r == 0)
		r = build_sandbox_unpack(
			copying->box, copying->step->target, &source, &result, err);
	if (r < 0)
		err_prefix(err, "%.120s", path);
	return r;
}

static int write_file(struct copying *copying, const json_t *content, const char *target)
{
	const struct recipe_step *step = copying->step;
	auto_free uint8_t *data = NULL;
	size_t len;
	int r = recipe_decode(content, &data, &len, copying->err);

	return r < 0 ? r
		     : build_sandbox_write(copying->box, target,
			       step->mode >= 0 ? step->mode : recipe_file_mode(content), data, len,
			       copying->err);
}

static void copy_file(void *arg, const char *path, const char *below)
{
	struct copying *copying = arg;
	const struct recipe_step *step = copying->step;
	const json_t *files = copying->builder->recipe.files;
	/* What is named itself is meant, not a link to it; links among what is below a directory stay. */
	const json_t *named = below[0] ? NULL : recipe_resolve(files, path);
	const json_t *content = named ? named : json_object_get(files, path);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *joint = strcmp(step->target, "/") == 0 ? "" : "/";
	auto_free char *target = NULL;

	if (copying->result < 0)
		return;
	if (step->unpacks && !below[0] && recipe_is_archive(path)) {
		copying->result = unpack_file(copying, path, content, copying->err);
		return;
	}
	if (below[0])
		target = mem_printf("%s%s%s", step->target, joint, below);
	else if (copying->is_into && recipe_file_kind(content) != RECIPE_DIRECTORY)
		target = mem_printf("%s%s%s", step->target, joint, name);
	else
		target = mem_strdup(step->target);
	switch (recipe_file_kind(content)) {
	case RECIPE_FILE:
		copying->result = write_file(copying, content, target);
		break;
	case RECIPE_LINK:
		copying->result = build_sandbox_link(
			copying->box, target, recipe_link_target(content), copying->err);
		break;
	case RECIPE_DIRECTORY:
		copying->result = build_sandbox_mkdir(copying->box, target, copying->err);
		break;
	}
	json_array_append_new(copying->written, json_string(target));
}

static int chown_files(struct copying *copying, struct err *err)
{
	json_t *argv = json_pack("[s, s, s, s]", "chown", "-h", "--", copying->step->chown);
	int r;

	json_array_extend(argv, copying->written);
	r = build_sandbox_run(copying->box,
		&(struct build_command){.argv = argv, .user = "", .workdir = "/"}, err);
	json_decref(argv);
	return r;
}

/* Nothing runs in a sandbox whose files are only read. */
static int copy_from_image(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	const struct template_build *build = builder->build;
	json_auto_t *image = json_deep_copy(builder->copied);
	const struct build_sandbox_spec spec = {.template_name = build->name, .image = image};
	struct build_sandbox from;
	int r;

	build_sandbox_show_as_root(image);
	r = build_sandbox_open(build->engine, build->owner, build->job, &spec, &from, err);
	if (r < 0)
		return r;
	r = stage_copy_run(&(struct stage_copy_source){&from, "", step->source}, box, step, err);
	build_sandbox_close(&from);
	return r;
}

static int copy_sent_files(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	struct stage_copy_source source;
	int r = open_files(builder->stages, &source, err);

	return r < 0 ? r : stage_copy_run(&source, box, step, err);
}

static int copy_files(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	struct copying copying = {.builder = builder,
		.box = box,
		.step = step,
		.is_into = step->is_into || build_sandbox_has_directory(box, step->target),
		.written = json_array(),
		.err = err};

	for (size_t i = 0; i < json_array_size(step->words) && copying.result == 0; i++)
		recipe_match(builder->recipe.files,
			json_string_value(json_array_get(step->words, i)), copy_file, &copying);
	if (copying.result == 0 && step->chown)
		copying.result = chown_files(&copying, err);
	json_decref(copying.written);
	return copying.result;
}

static int run_command(const struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, json_t *argv, struct err *err)
{
	/* A place that the image only promises is made, as its WORKDIR would be. */
	const char *workdir = step->workdir[0] == '/' ? step->workdir : "/";
	json_auto_t *env = json_copy(step->env);
	int r = strcmp(workdir, "/") == 0 ? 0 : build_sandbox_mkdir(box, workdir, err);

	if (r == 0)
		r = step_packages_add_mirrors(&builder->packages, box, step, env, err);
	if (r == 0)
		r = build_sandbox_run(box,
			&(struct build_command){
				.argv = argv, .env = env, .user = step->user, .workdir = workdir},
			err);
	return r;
}

static int do_step(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	switch (step->kind) {
	case RECIPE_RUN:
		return run_command(builder, box, step, step->words, err);
	case RECIPE_COPY:
		if (step->source)
			return copy_from_image(builder, box, step, err);
		return builder->recipe.has_sent_files ? copy_sent_files(builder, box, step, err)
						      : copy_files(builder, box, step, err);
	case RECIPE_MKDIR:
		return build_sandbox_mkdir(box, step->target, err);
	case RECIPE_APT:
	case RECIPE_PIP:
	case RECIPE_NPM:
	case RECIPE_APK:
		return step_packages_install(&builder->packages, box, step, err);
	}
	return err_set(err, ERR_INTERNAL, "a step of an unknown kind");
}

/* Runs a step in a sandbox of its own, and makes a layer of what it changed. */
static int make_layer(
	struct builder *builder, const struct recipe_step *step, const char *key, struct err *err)
{
	const struct template_build *build = builder->build;
	json_auto_t *rules = step_packages_rules(&builder->packages, step);
	const struct build_sandbox_spec spec = {
		.template_name = build->name, .image = builder->image, .allow = rules};
	struct build_sandbox box;
	int r;

	build_layers_show(&builder->layers, builder->image);
	r = build_sandbox_open(build->engine, build->owner, build->job, &spec, &box, err);
	if (r < 0)
		return r;
	r = do_step(builder, &box, step, err);
	if (r == 0)
		r = build_layers_add(&builder->layers, &box, NULL, key, err);
	build_sandbox_close(&box);
	return r;
}

static int make_stage(struct stages *stages, int number, struct err *err);

/* A template or an image that a step copies from: asked for once in a build. */
static int fetch_foreign(
	struct stages *stages, const char *name, json_t **ret_image, struct err *err)
{
	struct image_pulled pulled;
	int r;

	*ret_image = json_object_get(stages->foreign, name);
	if (*ret_image)
		return 0;
	job_log(stages->build->job, "copying from %s", name);
	r = template_build_base(stages->build, name, &pulled, err);
	if (r < 0)
		return r;
	*ret_image = template_build_to_image(&pulled);
	image_pulled_fini(&pulled);
	if (json_object_set_new(stages->foreign, name, *ret_image) < 0)
		return err_set(err, ERR_INVALID, "the config of %.80s is not UTF-8", name);
	return 0;
}

static int find_copied(struct builder *builder, const struct recipe_step *step, struct err *err)
{
	struct stages *stages = builder->stages;
	int r;

	if (step->source_stage < 0) {
		r = fetch_foreign(stages, step->source, &builder->copied, err);
		if (r < 0)
			err_prefix(err, "line %u: copy from %.80s", step->line, step->source);
		return r;
	}
	r = make_stage(stages, step->source_stage, err);
	builder->copied = stages->made[step->source_stage];
	return r;
}

/* What is under way. A template that another one builds on has steps of its own. */
static void tell_step(const struct builder *builder, size_t index)
{
	const struct template_build *build = builder->build;
	size_t count = builder->recipe.count;
	char text[RECIPE_TITLE_MAX + 256];

	snprintf(text, sizeof(text), "%.120s%sstep %zu of %zu: %s", build->part ? build->part : "",
		build->part ? ": " : "", index + 1, count, builder->recipe.steps[index].title);
	job_log(build->job, "%s", text);
	job_progress(build->job, index, count, "%s", text);
}

static int run_step(struct builder *builder, size_t index, struct err *err)
{
	const struct template_build *build = builder->build;
	const struct recipe_step *step = &builder->recipe.steps[index];
	char key[DIGEST_LEN + 1];
	int r;

	if (job_must_stop(build->job))
		return -ECANCELED;
	if (step->source) {
		r = find_copied(builder, step, err);
		if (r < 0)
			return r;
	}
	tell_step(builder, index);
	r = make_key(builder, step, key, err);
	if (r < 0 && r != -ECANCELED)
		err_prefix(err, "step %zu (%.80s)", index + 1, step->title);
	if (r < 0)
		return r;
	if (build_layers_take(&builder->layers, key)) {
		job_log(build->job, "taken from the cache");
		return 0;
	}
	r = make_layer(builder, step, key, err);
	if (r < 0 && r != -ECANCELED)
		err_prefix(err, "step %zu (%.80s)", index + 1, step->title);
	return r;
}

/* --- builds --- */

static void log_notes(const struct builder *builder)
{
	const json_t *note;
	size_t i;

	json_array_foreach(builder->recipe.notes, i, note)
	{
		job_log(builder->build->job, "%s", json_string_value(note));
	}
}

/* A script tells a reader less than what it is for. */
static void set_titles(struct builder *builder)
{
	for (size_t i = 0; builder->run_title && i < builder->recipe.count; i++) {
		struct recipe_step *step = &builder->recipe.steps[i];

		if (step->kind != RECIPE_RUN)
			continue;
		free(step->title);
		step->title = mem_strdup(builder->run_title);
	}
}

static int build_steps(struct builder *builder, const json_t *source,
	struct image_pulled *ret_pulled, struct err *err)
{
	int r;

	builder->image = template_build_to_image(&builder->layers.so_far);
	if (!builder->image)
		return err_set(err, ERR_INVALID, "the config of the base is not UTF-8");
	r = recipe_read_stage(source, builder->stage, builder->image, &builder->recipe, err);
	if (r < 0)
		return r;
	builder->packages.engine = builder->build->engine;
	builder->packages.mirrors = builder->recipe.mirrors;
	set_titles(builder);
	log_notes(builder);
	/* The base's user is in the recipe. */
	build_sandbox_show_as_root(builder->image);
	for (size_t i = 0; i < builder->recipe.count && r == 0; i++)
		r = run_step(builder, i, err);
	if (r < 0)
		return r;
	build_layers_show(&builder->layers, builder->recipe.image);
	r = template_build_from_image(builder->recipe.image, ret_pulled, err);
	if (r == 0)
		ret_pulled->bytes = builder->layers.so_far.bytes;
	return r;
}

static int build_on(struct builder of, struct image_pulled *base, const json_t *source,
	struct image_pulled *ret_pulled, struct err *err)
{
	struct builder builder = of;
	int r;

	build_layers_init(&builder.layers, builder.build, base);
	r = build_steps(&builder, source, ret_pulled, err);
	json_decref(builder.image);
	recipe_fini(&builder.recipe);
	build_layers_fini(&builder.layers);
	return r;
}

/* What a stage begins with: an earlier one, a template, an image, or nothing. */
static int begin_stage(struct stages *stages, const struct recipe *recipe,
	struct image_pulled *ret_base, struct err *err)
{
	struct template_build *build = stages->build;
	int from = recipe->from_stage, r;

	if (recipe->stage_count > 1)
		job_log(build->job, "stage %d of %d: from %s", recipe->stage + 1,
			recipe->stage_count, recipe->from);
	else
		job_log(build->job, "from %s", recipe->from);
	if (from >= 0) {
		r = make_stage(stages, from, err);
		if (r == 0)
			r = template_build_from_image(stages->made[from], ret_base, err);
		if (r == 0)
			ret_base->bytes = (uint64_t)json_integer_value(
				json_object_get(stages->made[from], "bytes"));
		return r;
	}
	if (strcmp(recipe->from, SCRATCH) == 0)
		return build_layers_begin_with_nothing(build, ret_base, err);
	r = template_build_base(build, recipe->from, ret_base, err);
	if (r < 0)
		err_prefix(err, "from %.80s", recipe->from);
	return r;
}

static int build_stage(
	struct stages *stages, int number, struct image_pulled *ret_pulled, struct err *err)
{
	const struct builder builder = {.build = stages->build, .stages = stages, .stage = number};
	struct image_pulled base;
	struct recipe recipe;
	int r = recipe_read_stage(stages->source, number, NULL, &recipe, err);

	if (r < 0)
		return r;
	r = begin_stage(stages, &recipe, &base, err);
	recipe_fini(&recipe);
	return r < 0 ? r : build_on(builder, &base, stages->source, ret_pulled, err);
}

/* Stages are made when they are needed, each once; those that nothing needs are not. */
static int make_stage(struct stages *stages, int number, struct err *err)
{
	struct image_pulled pulled;
	json_t *image;
	int r;

	if (stages->made[number])
		return 0;
	r = build_stage(stages, number, &pulled, err);
	if (r < 0)
		return r;
	image = template_build_to_image(&pulled);
	if (image)
		json_object_set_new(image, "bytes", json_integer((json_int_t)pulled.bytes));
	image_pulled_fini(&pulled);
	stages->made[number] = image;
	return image ? 0 : err_set(err, ERR_INVALID, "the config of a stage is not UTF-8");
}

static int make(struct template_build *build, const json_t *source, struct image_pulled *ret_pulled,
	struct err *err)
{
	struct stages stages = {.build = build, .source = source};
	struct recipe recipe;
	int r = recipe_read(source, NULL, &recipe, err), target;

	if (r < 0)
		return r;
	target = recipe.stage;
	recipe_fini(&recipe);
	stages.foreign = json_object();
	r = build_stage(&stages, target, ret_pulled, err);
	build_sandbox_close(&stages.files);
	for (size_t i = 0; i < array_len(stages.made); i++)
		json_decref(stages.made[i]);
	json_decref(stages.foreign);
	return r;
}

int template_builder_add_own(struct template_build *build, struct image_pulled *base,
	const struct template_own_recipe *own, struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *named = json_deep_copy(own->recipe), *source = NULL;

	json_object_set_new(named, "from", json_string(build->name));
	source = json_pack("{s:O}", "recipe", named);
	return build_on((struct builder){.build = build,
				.run_title = own->run_title,
				.packages = {.is_own = true, .sources = own->sources}},
		base, source, ret_pulled, err);
}

/* What a stage begins with and copies from, unless these are earlier stages. */
static int check_stage(const struct engine *engine, const struct caller *caller,
	const struct recipe *recipe, struct err *err)
{
	bool is_made_here = recipe->from_stage >= 0 || strcmp(recipe->from, SCRATCH) == 0;
	int r = is_made_here ? 0
			     : template_build_check_base(engine, &caller->owner, recipe->from, err);

	for (size_t i = 0; i < recipe->count && r == 0; i++) {
		const struct recipe_step *step = &recipe->steps[i];

		if (step->source && step->source_stage < 0)
			r = template_build_check_base(engine, &caller->owner, step->source, err);
	}
	return r;
}

/* Whether it can be read and what it begins with is there: what cannot work is refused before it is kept. */
static int check(const struct engine *engine, const struct caller *caller, const json_t *source,
	struct err *err)
{
	struct recipe recipe;
	int r = recipe_read(source, NULL, &recipe, err), count;

	if (r < 0)
		return r;
	count = recipe.stage_count;
	recipe_fini(&recipe);
	if (build_files_named_by(source))
		r = build_files_check(engine, &caller->owner, build_files_named_by(source), err);
	for (int stage = 0; stage < count && r == 0; stage++) {
		r = recipe_read_stage(source, stage, NULL, &recipe, err);
		if (r < 0)
			return r;
		r = check_stage(engine, caller, &recipe, err);
		recipe_fini(&recipe);
	}
	return r;
}

static json_t *recipe_source(const json_t *value)
{
	return json_pack("{s:O}", "recipe", value);
}

static json_t *dockerfile_source(const json_t *value)
{
	if (!json_is_object(value))
		return json_pack("{s:O}", "dockerfile", value);
	static const char *const names[] = {"files", "files_base64", "modes", "links",
		"directories", "args", "target", "mirrors", "files_digest"};
	json_t *source = json_pack("{s:O*}", "dockerfile", json_object_get(value, "text"));

	for (size_t i = 0; i < array_len(names); i++) {
		if (json_object_get(value, names[i]))
			json_object_set(source, names[i], json_object_get(value, names[i]));
	}
	return source;
}

int template_builder_check_recipe(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	json_auto_t *source = recipe_source(value);

	return check(engine, caller, source, err);
}

int template_builder_make_recipe(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *source = recipe_source(value);

	return make(build, source, ret_pulled, err);
}

int template_builder_check_dockerfile(const struct engine *engine, const struct caller *caller,
	const json_t *value, struct err *err)
{
	json_auto_t *source = dockerfile_source(value);

	return check(engine, caller, source, err);
}

int template_builder_make_dockerfile(struct template_build *build, const json_t *value,
	struct image_pulled *ret_pulled, struct err *err)
{
	json_auto_t *source = dockerfile_source(value);

	return make(build, source, ret_pulled, err);
}
