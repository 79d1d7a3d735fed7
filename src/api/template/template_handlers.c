/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: what sandboxes start from. */
#include "api/file_sender.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "api/list_page.h"
#include "api/template/template_options_body.h"
#include "base/share_pool.h"
#include "core/job/job.h"
#include "core/template/build/apt_sources.h"
#include "core/template/build/build_files.h"
#include "core/template/template_catalogue.h"
#include "core/template/template_export.h"
#include "core/template/template_source.h"
#include "core/template/templates.h"
#include "core/template/templates_request.h"
#include "image/dockerfile.h"
#include "image/recipe.h"
#include "model/access/owner.h"
#include "model/template/template.h"
#include "store/template/store_build.h"
#include "store/template/store_template.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100

struct template_body {
	const char *name;
	const char *image;
	const char *archive_path;
	const char *snapshot;
	const char *dockerfile;
	json_t *files, *files_base64, *modes, *links, *directories, *args, *mirrors;
	const char *target, *files_digest;
	enum field_boolean shared, no_cache;
	struct recipe_body {
		const char *from;
		json_t *apt, *apk, *pip, *npm, *run, *files, *files_base64, *modes, *links,
			*directories;
		json_t *env, *mirrors;
	} recipe;
	struct bootstrap_body {
		const char *suite;
		json_t *packages;
	} bootstrap;
	struct template_options_body options;
};

static const char *check_name(const json_t *value)
{
	return template_name_is_valid(json_string_value(value)) &&
			       !template_find(json_string_value(value))
		       ? NULL
		       : "must be 1 to 63 of a-z 0-9 . _ -, first a letter, and neither host nor "
			 "browser";
}

#define PLACE(member) offsetof(struct template_body, member)

#define RECIPE(member) offsetof(struct recipe_body, member)

/* Of a recipe and of a Dockerfile. */
#define CONTEXT_ROWS(place)                                                                        \
	{"modes", FIELD_STRING_MAP, place(modes), 0, RECIPE_FILES_MAX, 0,                          \
		"Permission bits of those files that have others than 644, in octal: "             \
		"{\"run.sh\": \"755\"}."},                                                         \
		{"links", FIELD_STRING_MAP, place(links), 0, RECIPE_FILES_MAX, 0,                  \
			"Symbolic links among the files: where each leads, by its path."},         \
	{                                                                                          \
		"directories", FIELD_STRING_LIST, place(directories), 0, RECIPE_FILES_MAX, 0,      \
			"Directories among the files that are empty."                              \
	}
#define MIRRORS_MAX   4
#define NO_CACHE_TEXT "Take nothing that an earlier build has made."
#define MIRRORS_TEXT  "Addresses that packages come from: of `apt`, `pip`, `npm` and `apk`."

static const struct field recipe_rows[] = {
	{"from", FIELD_STRING, RECIPE(from), 1, IMAGE_REFERENCE_MAX, FIELD_REQUIRED,
		"The template, or the reference of an image, that it begins with."},
	{"apt", FIELD_STRING_LIST, RECIPE(apt), 0, RECIPE_PACKAGES_MAX, 0,
		"Debian's packages to install."},
	{"apk", FIELD_STRING_LIST, RECIPE(apk), 0, RECIPE_PACKAGES_MAX, 0,
		"Alpine's packages to install."},
	{"pip", FIELD_STRING_LIST, RECIPE(pip), 0, RECIPE_PACKAGES_MAX, 0,
		"Python's packages to install."},
	{"npm", FIELD_STRING_LIST, RECIPE(npm), 0, RECIPE_PACKAGES_MAX, 0,
		"Packages of Node to install for all users."},
	{"run", FIELD_STRING_LIST, RECIPE(run), 0, RECIPE_STEPS_MAX, 0,
		"Lines for the shell, run as root one after the other."},
	{"files", FIELD_STRING_MAP, RECIPE(files), 0, RECIPE_FILES_MAX, 0,
		"Texts of files by their paths; written after packages and before `run`."},
	{"files_base64", FIELD_STRING_MAP, RECIPE(files_base64), 0, RECIPE_FILES_MAX, 0,
		"The same for what is not UTF-8."},
	CONTEXT_ROWS(RECIPE),
	{"env", FIELD_STRING_MAP, RECIPE(env), 0, SPEC_ENV_MAX, 0,
		"Variables of its commands, beside those of what it begins with."},
	{"mirrors", FIELD_STRING_MAP, RECIPE(mirrors), 0, MIRRORS_MAX, 0, MIRRORS_TEXT},
};

#define BOOTSTRAP(member) offsetof(struct bootstrap_body, member)

static const struct field bootstrap_rows[] = {
	{"suite", FIELD_STRING, BOOTSTRAP(suite), 1, APT_SUITE_MAX, FIELD_REQUIRED,
		"The release of Debian: bookworm."},
	{"packages", FIELD_STRING_LIST, BOOTSTRAP(packages), 0, RECIPE_PACKAGES_MAX, 0,
		"What is installed beside apt and what every Debian has."},
};

static const struct field rows[] = {
	{"name", FIELD_STRING, PLACE(name), 1, TEMPLATE_NAME_MAX - 1, FIELD_REQUIRED,
		"What creates say to use it. A template of yours with that name gets a new "
		"version.",
		.check = check_name},
	{"image", FIELD_STRING, PLACE(image), 1, IMAGE_REFERENCE_MAX, 0,
		"The image that it is made of: [registry[:port]/]name[:tag][@sha256:digest]."},
	{"archive_path", FIELD_STRING, PLACE(archive_path), 1, PATH_MAX - 1, 0,
		"Instead of `image`: a file of the server, an OCI layout as a tar or what `docker "
		"save` writes, or a directory that is an OCI layout. Needs the scope admin."},
	{"snapshot", FIELD_STRING, PLACE(snapshot), ID_LEN, ID_LEN, 0,
		"Instead of `image`: the id of a snapshot of a sandbox that was started from an "
		"image."},
	{"recipe", FIELD_OBJECT, PLACE(recipe), 0, 0, 0,
		"Instead of `image`: packages, files and commands on another template.",
		.sub = recipe_rows, .sub_count = array_len(recipe_rows)},
	{"bootstrap", FIELD_OBJECT, PLACE(bootstrap), 0, 0, 0,
		"Instead of `image`: a Debian made of its packages, which needs mmdebstrap on the "
		"host.",
		.sub = bootstrap_rows, .sub_count = array_len(bootstrap_rows)},
	{"dockerfile", FIELD_STRING, PLACE(dockerfile), 1, DOCKERFILE_MAX, 0,
		"Instead of `image`: the text of a Dockerfile, with FROM RUN COPY ADD ENV WORKDIR "
		"USER EXPOSE CMD ENTRYPOINT ARG. It may have several stages."},
	{"files", FIELD_STRING_MAP, PLACE(files), 0, RECIPE_FILES_MAX, 0,
		"Texts of the files that the Dockerfile copies, by their paths beside it."},
	{"files_base64", FIELD_STRING_MAP, PLACE(files_base64), 0, RECIPE_FILES_MAX, 0,
		"The same for what is not UTF-8."},
	CONTEXT_ROWS(PLACE),
	{"files_digest", FIELD_STRING, PLACE(files_digest), DIGEST_LEN, DIGEST_LEN, 0,
		"Instead of `files` and the like: the digest of what was sent before, by PUT "
		"/v1/templates/{name}/files."},
	{"mirrors", FIELD_STRING_MAP, PLACE(mirrors), 0, MIRRORS_MAX, 0, MIRRORS_TEXT},
	{"args", FIELD_STRING_MAP, PLACE(args), 0, SPEC_ENV_MAX, 0,
		"Values of the Dockerfile's ARG."},
	{"target", FIELD_STRING, PLACE(target), 1, RECIPE_NAME_MAX, 0,
		"The stage of the Dockerfile that is wanted, by its name or number; else it is the "
		"last."},
	{"no_cache", FIELD_BOOLEAN, PLACE(no_cache), 0, 0, 0, NO_CACHE_TEXT},
	{"shared", FIELD_BOOLEAN, PLACE(shared), 0, 0, 0,
		"Whether it is everybody's: all owners use it, and who has the scope admin changes "
		"it. Needs the scope admin."},
	TEMPLATE_OPTION_ROWS(struct template_body),
};
const struct fields templates_fields = FIELDS(rows);

struct patch_body {
	struct template_options_body options;
};

static const struct field patch_rows[] = {TEMPLATE_OPTION_ROWS(struct patch_body)};
const struct fields templates_patch_fields = FIELDS(patch_rows);

/* What it is to be made of: an object with the fields of the body that say so. */
static json_t *read_source(const json_t *body)
{
	static const char *const kinds[] = {
		"image", "archive_path", "snapshot", "recipe", "bootstrap"};
	static const char *const parts[] = {"files", "files_base64", "modes", "links",
		"directories", "args", "target", "mirrors", "files_digest"};
	json_t *source = json_object(), *text = json_object_get(body, "dockerfile"), *dockerfile;

	if (text) {
		dockerfile = json_pack("{s:O}", "text", text);
		for (size_t i = 0; i < array_len(parts); i++) {
			if (json_object_get(body, parts[i]))
				json_object_set(
					dockerfile, parts[i], json_object_get(body, parts[i]));
		}
		json_object_set_new(source, "dockerfile", dockerfile);
	}
	for (size_t i = 0; i < array_len(kinds); i++) {
		json_t *value = json_object_get(body, kinds[i]);

		if (value)
			json_object_set(source, kinds[i], value);
	}
	return source;
}

struct build_body {
	enum field_boolean no_cache;
};

static const struct field build_rows[] = {
	{"no_cache", FIELD_BOOLEAN, offsetof(struct build_body, no_cache), 0, 0, 0, NO_CACHE_TEXT},
};
const struct fields templates_build_fields = FIELDS(build_rows);

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *member_or(const json_t *image, const char *name, json_t *otherwise)
{
	json_t *value = json_object_get(image, name);

	if (!value)
		return otherwise;
	json_decref(otherwise);
	return json_deep_copy(value);
}

static const char *kind_of(const struct template_record *record)
{
	const json_t *value;
	const struct template_source *source = template_source_of(record->source, &value);

	return source ? source->kind : "image";
}

/* What a recipe, a new Debian or a row of the catalogue installs, by the programs that do. */
static json_t *packages_of(const struct template_record *record)
{
	static const char *const kinds[] = {"apt", "apk", "pip", "npm"};
	const json_t *recipe = json_object_get(record->source, "recipe");
	const json_t *debian =
		json_object_get(json_object_get(record->source, "bootstrap"), "packages");
	json_t *packages = json_object();

	for (size_t i = 0; i < array_len(kinds); i++) {
		const json_t *list = json_object_get(recipe, kinds[i]);

		if (json_array_size(list) > 0)
			json_object_set(packages, kinds[i], (json_t *)list);
	}
	if (json_array_size(debian) > 0)
		json_object_set(packages, "apt", (json_t *)debian);
	return packages;
}

static json_t *to_json(const struct template_record *record)
{
	/* Before the first version is there, what it will be is shown. */
	const json_t *options =
		record->version > 0 ? json_object_get(record->image, "options") : record->options;
	const char *asked = json_string_value(json_object_get(record->source, "image"));
	json_auto_t *image = json_deep_copy(record->image);
	const char *user, *workdir;
	json_t *ports = json_object_get(options, "ports"), *template;

	template_options_fill_image(image);
	user = json_string_value(json_object_get(image, "user"));
	workdir = json_string_value(json_object_get(image, "workdir"));
	template = json_pack(
		"{s:s, s:I, s:s, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:I, s:o, s:o}",
		"name", record->name, "version", (json_int_t)record->version, "status",
		template_status_name(record->status), "error",
		record->status == TEMPLATE_ERROR ? text_or_null(record->error) : json_null(), "job",
		text_or_null(record->job), "source", kind_of(record), "shared",
		owner_equals(&record->owner, &owner_everybody), "image",
		text_or_null(record->reference[0] || !asked ? record->reference : asked), "digest",
		text_or_null(record->digest), "env", member_or(image, "env", json_object()), "user",
		text_or_null(user ? user : ""), "workdir", text_or_null(workdir ? workdir : ""),
		"entrypoint", member_or(image, "entrypoint", json_array()), "command",
		member_or(image, "command", json_array()), "ports",
		ports ? json_deep_copy(ports) : member_or(image, "ports", json_array()), "bytes",
		(json_int_t)record->bytes, "created_at", api_time_to_json(record->created_at_ms),
		"used_at", api_time_to_json(record->used_at_ms));
	json_object_set_new(template, "disk_bytes", json_integer((json_int_t)record->disk_bytes));
	json_object_set_new(template, "left_out", member_or(image, "left_out", json_null()));
	json_object_set_new(template, "packages", packages_of(record));
	template_options_body_encode(template, options);
	return template;
}

/* Those that need no image: they have no version and nothing to show. */
static json_t *builtin_to_json(const char *name)
{
	json_t *template = json_pack(
		"{s:s, s:i, s:s, s:n, s:n, s:s, s:b, s:n, s:n, s:{}, s:n, s:n, s:[], s:[], "
		"s:[], s:i, s:n, s:n}",
		"name", name, "version", 1, "status", "ready", "error", "job", "source", "host",
		"shared", 1, "image", "digest", "env", "user", "workdir", "entrypoint", "command",
		"ports", "bytes", 0, "created_at", "used_at");

	json_object_set_new(template, "disk_bytes", json_integer(0));
	json_object_set_new(template, "left_out", json_null());
	json_object_set_new(template, "packages", json_object());
	template_options_body_encode(template, NULL);
	if (template_find(name)) {
		json_object_set_new(template, "security",
			json_string(template_profile_name(template_find(name)->profile)));
		json_object_set_new(template, "skeleton", json_string(""));
	}
	return template;
}

/* The image of a short name that the operator has set; NULL for one of the catalogue. */
static const char *set_image(const json_t *source)
{
	return json_string_value(json_object_get(source, "image"));
}

/* One that was not used yet. */
static json_t *available_to_json(const char *name, const json_t *source)
{
	auto_free char *listed = template_catalogue_image(name);
	const char *image = set_image(source) ? set_image(source) : listed;
	json_t *template = builtin_to_json(name);

	json_object_set_new(template, "version", json_integer(0));
	json_object_set_new(template, "status", json_string("available"));
	json_object_set_new(template, "source", json_string("catalogue"));
	json_object_set_new(template, "image", json_string(image));
	return template;
}

/* Whether an owner has or sees a template of that name. */
static bool is_there(struct api *api, const struct owner *owner, const char *name)
{
	struct template_record record;
	struct err ignored;

	if (store_template_find(engine_store(api->engine), owner, name, &record, &ignored) < 0)
		return false;
	template_record_fini(&record);
	return true;
}

/* Ends the record. */
static void answer_template(struct request *req, int status, struct template_record *record)
{
	request_answer_json(req, status, to_json(record));
	template_record_fini(record);
}

HANDLER(templates_create)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	auto_free struct template_options_parts *parts = mem_new(sizeof(*parts));
	struct template_body body = {0};
	json_auto_t *source = NULL, *options = json_object();
	struct template_record record;
	int r = api_check_ready(api, err);

	fields_clear(&templates_fields, &body);
	if (r == 0)
		r = fields_decode(&templates_fields, request_body(req), &body, err);
	if (r == 0)
		r = template_options_body_decode(request_body(req), &body.options, parts, err);
	if (r < 0)
		return r;
	source = read_source(request_body(req));
	template_options_set(options, &parts->options);
	request_set_detail(req, body.name);
	r = templates_ask(api->engine, &caller,
		&(struct templates_request){.name = body.name,
			.source = source,
			.options = options,
			.asked = &parts->options,
			.no_cache = body.no_cache == FIELD_TRUE,
			.is_shared = body.shared == FIELD_TRUE},
		&record, err);
	if (r == 0)
		answer_template(req, 202, &record);
	return r;
}

static ssize_t read_body(void *arg, void *data, size_t size)
{
	return request_read(arg, data, size);
}

/* A name, or the reference of an image that was used without one; its slashes come escaped. */
static int read_name(const struct request *req, const char **ret_name, struct err *err)
{
	const char *name = request_param(req, "template");

	if (!template_text_is_valid(name))
		return err_explain(err, ERR_NOT_FOUND, "template_not_found",
			"list the templates that there are", "there is no template %.120s", name);
	*ret_name = name;
	return 0;
}

HANDLER(templates_import_archive)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	const struct image_source source = {.read = read_body, .arg = req};
	struct template_record record;
	bool is_shared;
	const char *name;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0 ||
		(r = api_query_boolean(req, "shared", &is_shared, err)) < 0)
		return r;
	if (template_find(name) || !template_name_is_valid(name))
		return err_explain(err, ERR_INVALID, "invalid_name", "choose another name",
			"%.120s cannot be the name of a template of yours", name);
	request_set_detail(req, name);
	r = templates_import(api->engine, &caller, name, &source, request_query(req, "tag"),
		is_shared, &record, err);
	if (r < 0)
		return r;
	answer_template(req, 200, &record);
	return 0;
}

HANDLER(templates_put_files)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	const struct tar_reader_source source = {.read = read_body, .arg = req};
	struct tar_reader_result result;
	struct digest digest;
	const char *name;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	request_set_detail(req, name);
	r = build_files_keep(api->engine, &caller, name, &source, &digest, &result, err);
	if (r < 0)
		return r;
	request_answer_json(req, 200,
		json_pack("{s:s, s:I, s:I}", "files_digest", digest.text, "entries",
			(json_int_t)result.entries, "bytes", (json_int_t)result.bytes));
	return 0;
}

struct listing {
	struct list_page page;
	char last[TEMPLATE_REFERENCE_MAX];
};

static bool list_one(const struct template_record *record, void *arg)
{
	struct listing *listing = arg;

	if (!list_page_add(&listing->page, to_json(record)))
		return false;
	snprintf(listing->last, sizeof(listing->last), "%s", record->name);
	return true;
}

/* Lists a name that was not used yet, if its source is as wanted: of the catalogue or not. */
static void list_available(struct api *api, const struct owner *owner, const char *name,
	bool is_listed, struct listing *listing)
{
	json_auto_t *source = templates_implied_source(api->engine, name);

	if (is_listed == !set_image(source) && !is_there(api, owner, name))
		(void)!list_page_add(&listing->page, available_to_json(name, source));
}

/* The first page begins with those of the program that the operator offers, and with what was not used yet. */
static void list_builtins(struct api *api, const struct owner *owner, struct listing *listing)
{
	static const char *const names[] = {"host", "browser"};
	json_auto_t *listed = template_catalogue_names();
	struct short_name set;
	const json_t *one;
	size_t at;

	for (size_t i = 0; i < array_len(names); i++) {
		if (templates_offers(api->engine, names[i]))
			(void)!list_page_add(&listing->page, builtin_to_json(names[i]));
	}
	for (unsigned i = 0; templates_short_name(api->engine, i, &set); i++)
		list_available(api, owner, set.name, false, listing);
	/* One that the operator has set instead was listed above. */
	json_array_foreach(listed, at, one)
		list_available(api, owner, json_string_value(one), true, listing);
}

HANDLER(templates_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	const char *after = request_query(req, "cursor");
	struct listing listing = {0};
	uint64_t limit;
	int r;

	if ((r = api_check_ready(api, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0)
		return r;
	list_page_init(&listing.page, limit);
	if (!after)
		list_builtins(api, &owner, &listing);
	/* One more tells whether there is a next page. */
	r = store_template_list(engine_store(api->engine), &owner, after ? after : "",
		(unsigned)limit + 1, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "templates", json_string(listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(templates_get)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	json_auto_t *implied = NULL;
	struct template_record record;
	const char *name;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	if (template_find(name) && templates_offers(api->engine, name)) {
		request_answer_json(req, 200, builtin_to_json(name));
		return 0;
	}
	r = store_template_find(engine_store(api->engine), &owner, name, &record, err);
	if (r == -ENOENT && !image_reference_is_explicit(name))
		implied = templates_implied_source(api->engine, name);
	if (implied) {
		request_answer_json(req, 200, available_to_json(name, implied));
		return 0;
	}
	if (r < 0)
		return r;
	answer_template(req, 200, &record);
	return 0;
}

HANDLER(templates_patch)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	auto_free struct template_options_parts *parts = mem_new(sizeof(*parts));
	struct patch_body body = {0};
	struct template_record record;
	const char *name;
	int r;

	fields_clear(&templates_patch_fields, &body);
	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0 ||
		(r = fields_decode(&templates_patch_fields, request_body(req), &body, err)) < 0 ||
		(r = template_options_body_decode(request_body(req), &body.options, parts, err)) <
			0)
		return r;
	request_set_detail(req, name);
	r = templates_change(api->engine, &caller, name, &parts->options, &record, err);
	if (r == 0)
		answer_template(req, 200, &record);
	return r;
}

HANDLER(templates_export)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	struct share *share = NULL;
	auto_free char *disposition = NULL;
	const char *name;
	uint64_t size;
	int fd, r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	request_set_detail(req, name);
	if (share_pool_take(api->packers, owner_key(&owner), request_principal(req)->is_operator,
		    &share) < 0)
		return err_explain(err, ERR_RATE, "too_many_downloads",
			"wait for some of the downloads to end before you begin more",
			"as many archives are being downloaded as may be");
	r = template_export_run(api->engine, &owner, name, &fd, &size, err);
	if (r == 0) {
		disposition = mem_printf("attachment; filename=\"%s.tar\"", name);
		/* No part of a path, and nothing that a file system refuses. */
		for (char *c = disposition; *c; c++)
			*c = strchr("/:@", *c) ? '-' : *c;
		request_answer_header(req, "Content-Disposition", disposition);
		r = file_sender_answer(req, 200, "application/x-tar", fd, size, share, err);
	}
	if (r < 0)
		share_give_back(share);
	return r;
}

HANDLER(templates_clear_cache)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	int r = store_build_cache_clear(engine_store(api->engine), &owner, err);

	if (r < 0)
		return r;
	request_answer_json(req, 200, json_pack("{s:i}", "removed", r));
	return 0;
}

HANDLER(templates_delete)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	const char *name;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	request_set_detail(req, name);
	r = templates_remove(api->engine, &caller, name, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

/* --- builds --- */

HANDLER(templates_build)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct build_body body = {0};
	struct template_record record;
	const char *name;
	int r;

	fields_clear(&templates_build_fields, &body);
	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0 ||
		(request_body(req) && (r = fields_decode(&templates_build_fields, request_body(req),
					       &body, err)) < 0))
		return r;
	request_set_detail(req, name);
	r = templates_rebuild(
		api->engine, &caller, name, body.no_cache == FIELD_TRUE, &record, err);
	if (r == 0)
		answer_template(req, 202, &record);
	return r;
}

HANDLER(templates_log)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct template_record record;
	const char *name;
	bool is_shared;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	request_set_detail(req, name);
	/* What a build says is for those who may change its template. */
	r = templates_find_own(api->engine, &caller, name, &record, err);
	if (r < 0)
		return r;
	is_shared = owner_equals(&record.owner, &owner_everybody);
	r = record.job[0]
		    ? jobs_answer_log(req, api, is_shared ? NULL : &caller.owner, record.job, err)
		    : err_explain(err, ERR_NOT_FOUND, "build_not_found", NULL,
			      "the template %.120s was not made by a build", name);
	template_record_fini(&record);
	return r;
}

HANDLER(templates_cancel)
{
	struct api *api = context;
	struct caller caller = api_caller(req);
	struct template_record record;
	const char *name;
	int r;

	if ((r = api_check_ready(api, err)) < 0 || (r = read_name(req, &name, err)) < 0)
		return r;
	request_set_detail(req, name);
	r = templates_cancel_build(api->engine, &caller, name, &record, err);
	if (r == 0)
		answer_template(req, 200, &record);
	return r;
}
