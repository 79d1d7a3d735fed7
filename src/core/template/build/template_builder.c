/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/template_builder.h"

#include "core/engine/sandbox_state.h"
#include "core/template/build/build_layers.h"
#include "core/template/build/mirror_rules.h"
#include "core/template/templates.h"
#include "image/recipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Changes with what steps do, so that layers of before are not taken. */
#define CACHE_EPOCH "1"

struct builder {
	struct template_build *build;
	struct build_layers layers;
	struct recipe recipe;
	json_t *image; /* what the next step starts from: the base's config, stack and layers */
	bool is_own;   /* the recipe is the program's own, not a user's */
	const json_t
		*sources; /* of packages, if it is on a Debian that was made of these; or NULL */
};

/* --- packages --- */

/* A Debian image with another source of packages keeps its own for later; /tmp is in no layer. */
static const char apt_script[] =
	"set -e\n"
	"if [ -n \"$SANDLOT_APT_MIRROR\" ]; then\n"
	"  . /etc/os-release\n"
	"  echo \"deb $SANDLOT_APT_MIRROR $VERSION_CODENAME main\" > /tmp/sandlot.list\n"
	"  set -- -o Dir::Etc::sourcelist=/tmp/sandlot.list -o Dir::Etc::sourceparts=- \"$@\"\n"
	"fi\n"
	"[ -z \"$SANDLOT_APT_CA\" ] || set -- -o Acquire::https::CAInfo=\"$SANDLOT_APT_CA\" "
	"\"$@\"\n"
	"update() { while [ \"$1\" = -o ]; do o=\"$o $1 $2\"; shift 2; done; apt-get $o update; }\n"
	"update -o APT::Sandbox::User=root -o Acquire::Retries=3 \"$@\"\n"
	"apt-get install -y --no-install-recommends -o APT::Sandbox::User=root"
	" -o Acquire::Retries=3 \"$@\"\n"
	"apt-get clean\n"
	"rm -rf /var/lib/apt/lists/*\n";

/* An Alpine has its own release in the addresses of its packages; its list of them stays as it is. */
static const char apk_script[] =
	"set -e\n"
	"if [ -n \"$SANDLOT_APK_MIRROR\" ]; then\n"
	"  IFS=. read major minor rest < /etc/alpine-release\n"
	"  at=\"${SANDLOT_APK_MIRROR%/}/v$major.$minor\"\n"
	"  set -- --repositories-file /dev/null -X \"$at/main\" -X \"$at/community\" \"$@\"\n"
	"fi\n"
	"exec apk add --no-cache \"$@\"\n";

#define CA_FILE	     "/tmp/sandlot-ca.crt"
#define APT_LIST     "/tmp/sandlot-run.list"
#define APT_CONFIG   "/tmp/sandlot-apt.conf"
#define OS_RELEASE   "/etc/os-release"
#define RELEASE_MAX  (64u << 10)
#define CODENAME_MAX 32

static const struct package_kind {
	const char *mirror;	 /* the name of its setting */
	const char *variable;	 /* that names the mirror to the program */
	const char *ca_variable; /* that names the certificates */
	const char *const *argv;
} package_kinds[] = {
	[RECIPE_APT] = {"apt", "SANDLOT_APT_MIRROR", "SANDLOT_APT_CA",
		(const char *const[]){"/bin/sh", "-c", apt_script, "apt", NULL}},
	[RECIPE_PIP] = {"pip", "PIP_INDEX_URL", "PIP_CERT",
		(const char *const[]){
			"python3", "-m", "pip", "install", "--no-cache-dir", "--", NULL}},
	[RECIPE_NPM] = {"npm", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE",
		(const char *const[]){
			"npm", "install", "-g", "--no-audit", "--no-fund", "--", NULL}},
	[RECIPE_APK] = {"apk", "SANDLOT_APK_MIRROR", "SSL_CA_CERT_FILE",
		(const char *const[]){"/bin/sh", "-c", apk_script, "apk", NULL}},
};

static const char *mirror_of(const struct builder *builder, const char *name)
{
	const char *own = json_string_value(json_object_get(builder->recipe.mirrors, name));

	return own ? own : templates_mirror(builder->build->engine->config.templates, name);
}

/* Whether a step may fetch packages of a kind: a command may run any of these programs. */
static bool needs(const struct recipe_step *step, enum recipe_step_kind kind)
{
	return step->kind == kind || step->kind == RECIPE_RUN;
}

/*
 * What a builder may reach for packages beside its network: where the operator's mirrors are now. A recipe of the
 * program's own may also go where the host gets its packages from, which is where that Debian came from.
 */
static json_t *mirror_rules(const struct builder *builder, const struct recipe_step *step)
{
	const struct templates *templates = builder->build->engine->config.templates;
	json_t *rules = json_array();

	for (enum recipe_step_kind kind = RECIPE_APT; kind <= RECIPE_APK; kind++) {
		json_auto_t *some = NULL;

		if (needs(step, kind))
			some = mirror_rules_of(
				templates_mirror(templates, package_kinds[kind].mirror));
		json_array_extend(rules, some);
	}
	if (builder->sources && needs(step, RECIPE_APT)) {
		json_auto_t *some = mirror_rules_of_sources(builder->sources);

		json_array_extend(rules, some);
	}
	return rules;
}

/* What a step says itself goes before what the mirrors are. */
static void set_missing(json_t *env, const char *name, const char *value)
{
	if (!json_object_get(env, name))
		json_object_set_new(env, name, json_string(value));
}

/* The name of the release of a Debian, by its own files; false if it is none, or tells of none. */
static bool read_codename(struct build_sandbox *box, char name[CODENAME_MAX])
{
	static const char key[] = "VERSION_CODENAME=";
	auto_free char *text = NULL;
	struct err ignored;
	const char *at;
	size_t len;

	if (build_sandbox_load(box, OS_RELEASE, RELEASE_MAX, &text, &ignored) < 0)
		return false;
	/* Its derivatives have archives of their own. */
	if (!strstr(text, "ID=debian") && strstr(text, "ID="))
		return false;
	at = strstr(text, key);
	at = at ? at + strlen(key) : "";
	len = strspn(at, "abcdefghijklmnopqrstuvwxyz");
	if (len == 0 || len >= CODENAME_MAX)
		return false;
	snprintf(name, CODENAME_MAX, "%.*s", (int)len, at);
	return true;
}

/*
 * apt has no variable for where packages come from, but one for a file of its settings. Sources that a step adds itself
 * stay; those that Debian came with are passed over.
 */
static int add_apt_config(const struct builder *builder, struct build_sandbox *box, json_t *env,
	bool has_ca, struct err *err)
{
	const char *mirror = mirror_of(builder, "apt");
	char codename[CODENAME_MAX];
	auto_free char *list = NULL, *config = NULL;
	int r;

	if (!mirror || json_object_get(env, "APT_CONFIG") || !read_codename(box, codename))
		return 0;
	list = mem_printf("deb %s %s main\n", mirror, codename);
	config = mem_printf("Dir::Etc::sourcelist \"" APT_LIST "\";\n"
			    "Dir::Ignore-Files-Silently:: \"^debian\\.sources$\";\n"
			    "APT::Sandbox::User \"root\";\n%s",
		has_ca ? "Acquire::https::CAInfo \"" CA_FILE "\";\n" : "");
	r = build_sandbox_write(box, APT_LIST, 0644, list, strlen(list), err);
	if (r == 0)
		r = build_sandbox_write(box, APT_CONFIG, 0644, config, strlen(config), err);
	if (r == 0)
		set_missing(env, "APT_CONFIG", APT_CONFIG);
	return r;
}

/*
 * The variables by which programs know the mirrors, and the operator's certificates if these are the operator's. Puts
 * the certificates there, where no layer takes them.
 */
static int add_mirrors(const struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, json_t *env, struct err *err)
{
	const struct templates *templates = builder->build->engine->config.templates;
	auto_free char *ca = NULL;
	int r = templates_package_ca(templates, &ca, err);

	if (r == 0 && ca)
		r = build_sandbox_write(box, CA_FILE, 0644, ca, strlen(ca), err);
	if (r < 0)
		return r;
	for (enum recipe_step_kind kind = RECIPE_APT; kind <= RECIPE_APK; kind++) {
		const struct package_kind *row = &package_kinds[kind];
		const char *mirror = mirror_of(builder, row->mirror);
		bool is_operators = mirror == templates_mirror(templates, row->mirror);

		if (!needs(step, kind))
			continue;
		if (mirror)
			set_missing(env, row->variable, mirror);
		/* A user's commands may go elsewhere, where other certificates count. */
		if (ca && is_operators && (mirror || builder->is_own || step->kind == kind))
			set_missing(env, row->ca_variable, CA_FILE);
	}
	if (ca && step->kind == RECIPE_RUN && builder->is_own)
		set_missing(env, "CURL_CA_BUNDLE", CA_FILE);
	if (step->kind != RECIPE_RUN || builder->is_own)
		return 0;
	return add_apt_config(builder, box, env,
		ca && mirror_of(builder, "apt") == templates_mirror(templates, "apt"), err);
}

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

/* Names all that decides what a step makes. */
static void make_key(const struct builder *builder, const struct recipe_step *step, char *ret_key)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	struct file_hash files = {&builder->recipe, hash};
	struct digest digest;
	char numbers[64];

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
		add_text(hash, mirror_of(builder, package_kinds[step->kind].mirror));
	if (step->kind == RECIPE_RUN && json_object_size(builder->recipe.mirrors) > 0)
		add_json(hash, builder->recipe.mirrors);
	for (size_t i = 0; step->kind == RECIPE_COPY && i < json_array_size(step->words); i++)
		recipe_match(builder->recipe.files,
			json_string_value(json_array_get(step->words, i)), add_file, &files);
	digest_stream_read(hash, &digest);
	strcpy(ret_key, digest_hex(&digest));
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

/* An archive that is named itself, by ADD. */
static int unpack_file(
	struct copying *copying, const char *path, const json_t *content, struct err *err)
{
	auto_free uint8_t *data = NULL;
	size_t len;
	int r;

	if (copying->step->chown)
		return err_explain(err, ERR_UNPROCESSABLE, "step_failed",
			"unpack it without --chown, and chown it in a RUN",
			"ADD --chown is for files, and %.120s is an archive", path);
	r = recipe_decode(content, &data, &len, err);
	if (r == 0)
		r = build_sandbox_unpack(copying->box, copying->step->target, data, len, err);
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
		r = add_mirrors(builder, box, step, env, err);
	if (r == 0)
		r = build_sandbox_run(box,
			&(struct build_command){
				.argv = argv, .env = env, .user = step->user, .workdir = workdir},
			err);
	return r;
}

static int install_packages(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	const struct package_kind *kind = &package_kinds[step->kind];
	json_auto_t *argv = json_array();
	json_auto_t *env = json_pack("{s:s, s:s, s:s, s:s}", "DEBIAN_FRONTEND", "noninteractive",
		"PIP_BREAK_SYSTEM_PACKAGES", "1", "PIP_ROOT_USER_ACTION", "ignore",
		"npm_config_cache", "/tmp/npm");
	int r = add_mirrors(builder, box, step, env, err);

	if (r < 0)
		return r;

	for (size_t i = 0; kind->argv[i]; i++)
		json_array_append_new(argv, json_string(kind->argv[i]));
	json_array_extend(argv, step->words);
	json_object_update(env, step->env);
	return build_sandbox_run(box,
		&(struct build_command){.argv = argv, .env = env, .user = "", .workdir = "/"}, err);
}

static int do_step(struct builder *builder, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	switch (step->kind) {
	case RECIPE_RUN:
		return run_command(builder, box, step, step->words, err);
	case RECIPE_COPY:
		return copy_files(builder, box, step, err);
	case RECIPE_MKDIR:
		return build_sandbox_mkdir(box, step->target, err);
	case RECIPE_APT:
	case RECIPE_PIP:
	case RECIPE_NPM:
	case RECIPE_APK:
		return install_packages(builder, box, step, err);
	}
	return err_set(err, ERR_INTERNAL, "a step of an unknown kind");
}

/* Runs a step in a sandbox of its own, and makes a layer of what it changed. */
static int make_layer(
	struct builder *builder, const struct recipe_step *step, const char *key, struct err *err)
{
	const struct template_build *build = builder->build;
	json_auto_t *rules = mirror_rules(builder, step);
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

static int run_step(struct builder *builder, size_t index, struct err *err)
{
	const struct template_build *build = builder->build;
	const struct recipe_step *step = &builder->recipe.steps[index];
	char key[DIGEST_LEN + 1];
	int r;

	if (job_must_stop(build->job))
		return -ECANCELED;
	make_key(builder, step, key);
	job_log(build->job, "step %zu of %zu: %s", index + 1, builder->recipe.count, step->title);
	job_progress(build->job, index, builder->recipe.count, "step %zu of %zu", index + 1,
		builder->recipe.count);
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

static int build_steps(struct builder *builder, const json_t *source,
	struct image_pulled *ret_pulled, struct err *err)
{
	int r;

	builder->image = template_build_to_image(&builder->layers.so_far);
	if (!builder->image)
		return err_set(err, ERR_INVALID, "the config of the base is not UTF-8");
	r = recipe_read(source, builder->image, &builder->recipe, err);
	if (r < 0)
		return r;
	log_notes(builder);
	/* Steps are root's unless they say otherwise; the base's user is in the recipe. */
	json_object_set_new(builder->image, "user", json_string(""));
	/* Who that is stands there, so nothing is prepared, which would become part of a layer. */
	json_object_set_new(builder->image, "uid", json_integer(0));
	json_object_set_new(builder->image, "gid", json_integer(0));
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

static int make(struct template_build *build, const json_t *source, struct image_pulled *ret_pulled,
	struct err *err)
{
	auto_free char *from = NULL;
	struct image_pulled base;
	struct recipe recipe;
	int r = recipe_read(source, NULL, &recipe, err);

	if (r < 0)
		return r;
	from = mem_strdup(recipe.from);
	recipe_fini(&recipe);
	job_log(build->job, "from %s", from);
	r = template_build_base(build, from, &base, err);
	if (r < 0) {
		err_prefix(err, "from %.80s", from);
		return r;
	}
	return build_on((struct builder){.build = build}, &base, source, ret_pulled, err);
}

int template_builder_add_own(struct template_build *build, struct image_pulled *base,
	const json_t *sources, const json_t *recipe, struct image_pulled *ret_pulled,
	struct err *err)
{
	json_auto_t *named = json_deep_copy(recipe), *source = NULL;

	json_object_set_new(named, "from", json_string(build->name));
	source = json_pack("{s:O}", "recipe", named);
	return build_on((struct builder){.build = build, .is_own = true, .sources = sources}, base,
		source, ret_pulled, err);
}

/* Whether it can be read and what it begins with is there: what cannot work is refused before it is kept. */
static int check(const struct engine *engine, const struct caller *caller, const json_t *source,
	struct err *err)
{
	struct recipe recipe;
	int r = recipe_read(source, NULL, &recipe, err);

	if (r < 0)
		return r;
	r = template_build_check_base(engine, &caller->owner, recipe.from, err);
	recipe_fini(&recipe);
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
	static const char *const names[] = {
		"files", "files_base64", "modes", "links", "directories", "args", "mirrors"};
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
