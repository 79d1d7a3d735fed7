/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that a sandbox has beside its template. */
#include "api/handlers.h"
#include "api/sandbox/dependency_body.h"
#include "core/dependency/dependencies.h"
#include "core/files/file_channel.h"
#include "core/files/paths.h"

#include <stdio.h>
#include <string.h>

static json_t *describe(struct api *api, struct sandbox *sandbox)
{
	struct sandbox_record record;
	json_t *answer;

	sandbox_read(sandbox, &record);
	answer = dependencies_describe(api->engine, &record);
	sandbox_record_fini(&record);
	return answer;
}

HANDLER(dependency_get)
{
	struct api *api = context;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	if (r == 0)
		request_answer_json(req, 200, describe(api, sandbox));
	return r;
}

/* Texts of files that were read from the sandbox. */
struct read_files {
	char *texts[DEPENDENCY_FILES];
};

static void free_files(struct read_files *files)
{
	for (size_t i = 0; i < DEPENDENCY_FILES; i++)
		free(files->texts[i]);
}

/* Reads a file of the sandbox. What is in it is for pip and npm; here it only has to be a text. */
static int read_file(struct sandbox *sandbox, const char *path, enum dependency_file file,
	struct read_files *files, struct dependency_spec *spec, struct err *err)
{
	json_auto_t *text = NULL;
	size_t len;
	int r;

	if (spec->files[file])
		return err_explain(err, ERR_INVALID, "invalid_field", "leave one of them out",
			"field %s and a path of such a file do not go together",
			dependency_file_names[file]);
	r = file_channel_load(sandbox, path, DEPENDENCY_FILE_MAX, &files->texts[file], &len, err);
	if (r < 0)
		return r;
	text = json_stringn(files->texts[file], len);
	if (!text || len == 0 || memchr(files->texts[file], 0, len))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL, "%s is %s", path,
			len == 0 ? "empty" : "not a text in UTF-8");
	spec->files[file] = files->texts[file];
	return 0;
}

static int read_requirements(struct sandbox *sandbox, const char *text, struct read_files *files,
	struct dependency_spec *spec, struct err *err)
{
	char path[AGENT_PATH_MAX];
	int r = paths_clean(text, path, err);

	return r < 0 ? r : read_file(sandbox, path, DEPENDENCY_REQUIREMENTS, files, spec, err);
}

static int read_package(struct sandbox *sandbox, const char *text, struct read_files *files,
	struct dependency_spec *spec, struct err *err)
{
	auto_free char *manifest = mem_printf("%s/package.json", text);
	auto_free char *lock = mem_printf("%s/package-lock.json", text);
	char path[AGENT_PATH_MAX];
	int r = paths_clean(manifest, path, err);

	if (r == 0)
		r = read_file(sandbox, path, DEPENDENCY_PACKAGE_JSON, files, spec, err);
	if (r == 0)
		r = paths_clean(lock, path, err);
	return r < 0 ? r : read_file(sandbox, path, DEPENDENCY_PACKAGE_LOCK, files, spec, err);
}

HANDLER(dependency_add)
{
	struct api *api = context;
	auto_free struct dependency_parts *parts = mem_new(sizeof(*parts));
	auto_(free_files) struct read_files files = {0};
	struct dependency_request asked = {0};
	struct dependency_spec spec;
	struct sandbox *sandbox;
	int r = api_sandbox(req, api, &sandbox, err);

	fields_clear(&dependency_request_fields, &asked);
	if (r == 0)
		r = fields_decode(&dependency_request_fields, request_body(req), &asked, err);
	if (r < 0)
		return r;
	spec = dependency_body_decode(&asked.body, parts);
	if (asked.requirements_path)
		r = read_requirements(sandbox, asked.requirements_path, &files, &spec, err);
	if (r == 0 && asked.package_path)
		r = read_package(sandbox, asked.package_path, &files, &spec, err);
	if (r == 0)
		r = dependencies_ask(sandbox, &spec, err);
	if (r == 0)
		request_answer_json(req, 202, describe(api, sandbox));
	return r;
}
