/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dependency_spec.h"

#include "base/format.h"
#include "cli/cli.h"
#include "cli/code_file.h"
#include "cli/terminal/output/job_bars.h"

#include <errno.h>
#include <string.h>

static int add_list(
	json_t *body, const char *field, const struct option_list *list, struct err *err)
{
	json_auto_t *items = json_array();

	for (size_t i = 0; i < list->count; i++) {
		if (json_array_append_new(items, json_string(list->items[i])) < 0)
			return err_set(err, ERR_INVALID, "--%s is not UTF-8 text", field);
	}
	if (list->count > 0)
		json_object_set(body, field, items);
	return 0;
}

/* The text of a file of ours. */
static int add_file(json_t *body, const char *field, const char *file, struct err *err)
{
	auto_(buf_fini) struct buf text = BUF_INIT(CODE_FILE_MAX);
	json_t *value;
	int r = code_file_read(file, &text, err);

	if (r == -EMSGSIZE)
		return err_explain(err, ERR_TOO_LARGE, NULL,
			"copy it in with \"sandlot cp\" and name it as :/workspace/...",
			"%s has more than 1 MiB", file);
	if (r < 0)
		return r;
	value = json_stringn((const char *)text.data, text.len);
	if (!value)
		return err_set(err, ERR_INVALID, "%s is not UTF-8 text", file);
	json_object_set_new(body, field, value);
	return 0;
}

/* Names a file of the sandbox. */
static int add_path(json_t *body, const char *field, const char *option, const char *path,
	bool has_sandbox, struct err *err)
{
	json_t *value = json_string(path + 1);

	if (value && has_sandbox) {
		json_object_set_new(body, field, value);
		return 0;
	}
	json_decref(value);
	if (!value)
		return err_set(err, ERR_INVALID, "%s is not UTF-8 text", option);
	return err_explain(err, ERR_INVALID, NULL,
		"name a file of this machine, or use \"sandlot deps\" afterwards",
		"%s %s: a sandbox that is not there yet has no files", option, path);
}

static int add_requirements(json_t *body, const char *file, bool has_sandbox, struct err *err)
{
	if (!file)
		return 0;
	if (file[0] == ':')
		return add_path(
			body, "requirements_path", "--requirements", file, has_sandbox, err);
	return add_file(body, "requirements", file, err);
}

static int add_lock(json_t *body, const char *dir, bool has_sandbox, struct err *err)
{
	auto_free char *manifest = NULL, *lock = NULL;
	int r;

	if (!dir)
		return 0;
	if (dir[0] == ':')
		return add_path(body, "package_path", "--lock", dir, has_sandbox, err);
	manifest = mem_printf("%s/package.json", dir);
	lock = mem_printf("%s/package-lock.json", dir);
	r = add_file(body, "package_json", manifest, err);
	return r < 0 ? r : add_file(body, "package_lock", lock, err);
}

bool dependency_spec_is_empty(const struct dependency_spec *spec)
{
	return spec->python.count == 0 && spec->node.count == 0 && !spec->requirements &&
	       !spec->lock;
}

int dependency_spec_body(
	const struct dependency_spec *spec, bool has_sandbox, json_t **ret_body, struct err *err)
{
	json_auto_t *body = json_object();
	int r = add_list(body, "python", &spec->python, err);

	if (r == 0)
		r = add_list(body, "node", &spec->node, err);
	if (r == 0)
		r = add_requirements(body, spec->requirements, has_sandbox, err);
	if (r == 0)
		r = add_lock(body, spec->lock, has_sandbox, err);
	if (r == 0)
		*ret_body = json_object_size(body) > 0 ? json_incref(body) : NULL;
	return r;
}

static bool goes_on(const json_t *document)
{
	const char *status = cli_text(document, "status");

	return strcmp(status, "queued") == 0 || strcmp(status, "running") == 0;
}

int dependency_spec_await(
	struct client *client, const char *id, json_t **ret_document, struct err *err)
{
	auto_free char *path = mem_printf("/v1/sandboxes/%s/dependencies", id);
	const struct client_call call = {.method = "GET", .path = path};
	char remedy[sizeof(err->remedy)] = "";
	json_auto_t *document = NULL;
	int r = client_json(client, &call, &document, err);

	while (r == 0 && goes_on(document)) {
		/* Why the job failed is in the document too, but not what helps. */
		r = job_bars_wait(client, cli_text(document, "job"), err);
		if (r == -EINTR)
			return r;
		snprintf(remedy, sizeof(remedy), "%s", r < 0 ? err->remedy : "");
		json_decref(document);
		document = NULL;
		r = client_json(client, &call, &document, err);
	}
	if (r < 0)
		return r;
	if (strcmp(cli_text(document, "status"), "succeeded") != 0) {
		r = err_explain(err, ERR_CONFLICT, "dependencies_failed", remedy[0] ? remedy : NULL,
			"packages of %s are not installed: %s", id,
			json_is_string(json_object_get(document, "error"))
				? cli_text(document, "error")
				: cli_text(document, "status"));
		format_end_at_word(err->message, sizeof(err->message));
		return r;
	}
	if (ret_document)
		*ret_document = json_incref(document);
	return 0;
}
