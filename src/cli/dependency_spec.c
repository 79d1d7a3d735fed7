/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dependency_spec.h"

#include "cli/cli.h"
#include "cli/terminal/job_bars.h"

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

int dependency_spec_body(const struct dependency_spec *spec, json_t **ret_body, struct err *err)
{
	json_auto_t *body = json_object();
	int r = add_list(body, "python", &spec->python, err);

	if (r == 0)
		r = add_list(body, "node", &spec->node, err);
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
	json_auto_t *document = NULL;
	int r = client_json(client, &call, &document, err);

	while (r == 0 && goes_on(document)) {
		/* Why the job failed is in the document too. */
		r = job_bars_wait(client, cli_text(document, "job"), err);
		if (r == -EINTR)
			return r;
		json_decref(document);
		document = NULL;
		r = client_json(client, &call, &document, err);
	}
	if (r < 0)
		return r;
	if (strcmp(cli_text(document, "status"), "succeeded") != 0)
		return err_explain(err, ERR_UNPROCESSABLE, "dependencies_failed", NULL,
			"packages of %s are not installed: %s", id,
			json_is_string(json_object_get(document, "error"))
				? cli_text(document, "error")
				: cli_text(document, "status"));
	if (ret_document)
		*ret_document = json_incref(document);
	return 0;
}
