/* SPDX-License-Identifier: Apache-2.0 */
/* What is about the daemon rather than about sandboxes. */
#include "api/handlers.h"
#include "api/list_page.h"
#include "core/engine/backups.h"
#include "core/engine/disk_reserve.h"
#include "driver/driver_table.h"

#include <stdio.h>
#include <sys/stat.h>

#define BACKUPS_PAGE 64
#define BACKUPS_MAX  1000

HANDLER(service_health)
{
	(void)context;
	(void)err;
	request_answer_text(req, 200, "text/plain", "ok\n");
	return 0;
}

HANDLER(service_ready)
{
	struct api *api = context;
	char text[sizeof(err->message) + 2];
	int r = api_check_ready(api, err);

	if (r == 0)
		r = driver_check(engine_driver(api->engine), err);
	if (r == 0)
		r = disk_reserve_check(api->engine, err);
	snprintf(text, sizeof(text), "%s\n", r < 0 ? err->message : "ready");
	request_answer_text(req, r < 0 ? 503 : 200, "text/plain", text);
	return 0;
}

HANDLER(service_version)
{
	const struct api *api = context;

	(void)err;
	request_answer_json(req, 200,
		json_pack("{s:s, s:o}", "version", SANDLOT_VERSION, "preview_url",
			json_sprintf("%s://%s:%u", api->preview_scheme, api->preview_domain,
				api->preview_port)));
	return 0;
}

static json_t *driver_to_json(const struct driver_kind *kind, bool is_used)
{
	json_t *capabilities = json_object();

	for (unsigned i = 0; i < DRIVER_CAPABILITY_COUNT; i++)
		json_object_set_new(capabilities, driver_capability_name(i),
			json_boolean(kind->capabilities & DRIVER_BIT(i)));
	return json_pack("{s:s, s:b, s:o}", "name", kind->name, "used", is_used, "capabilities",
		capabilities);
}

HANDLER(service_drivers)
{
	const struct api *api = context;
	json_t *list = json_array();
	const struct driver_kind *kinds;
	size_t count;

	(void)err;
	kinds = driver_table_list(&count);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			list, driver_to_json(&kinds[i], strcmp(kinds[i].name, api->driver) == 0));
	request_answer_json(req, 200, list_page_whole("drivers", list));
	return 0;
}

HANDLER(service_openapi)
{
	const struct api *api = context;

	(void)err;
	request_answer_json(req, 200, json_incref(api->openapi));
	return 0;
}

HANDLER(service_shutdown)
{
	struct api *api = context;

	(void)err;
	request_answer_json(req, 202, json_pack("{s:s}", "status", "shutting down"));
	api->shutdown(api->shutdown_arg);
	return 0;
}

/* --- backups --- */

static json_t *backup_to_json(const char *dir, const char *name)
{
	auto_free char *path = mem_printf("%s/%s", dir, name);
	struct stat st;

	if (stat(path, &st) < 0) /* it was the oldest, and gave way just now */
		return NULL;
	return json_pack("{s:s, s:o, s:I}", "name", name, "written_at",
		api_time_to_json((int64_t)st.st_mtim.tv_sec * 1000), "bytes",
		(json_int_t)st.st_size);
}

static int list_backups(const char *dir, json_t *list, struct err *err)
{
	char names[BACKUPS_PAGE][STORE_BACKUP_NAME_MAX], after[STORE_BACKUP_NAME_MAX] = "";
	int count;

	do {
		count = store_backup_list(dir, after, names, BACKUPS_PAGE, err);
		for (int i = 0; i < count; i++) {
			json_t *backup = backup_to_json(dir, names[i]);

			if (backup)
				json_array_append_new(list, backup);
			memcpy(after, names[i], sizeof(after));
		}
	} while (count == BACKUPS_PAGE && json_array_size(list) < BACKUPS_MAX);
	return count < 0 ? count : 0;
}

HANDLER(service_backups)
{
	struct api *api = context;
	json_auto_t *list = json_array();
	struct err why = {0};
	bool has_failed = backups_has_failed(api->backups, &why);
	/* As with every failure of our own: the log has the whole of it, with paths. */
	const char *failure =
		why.kind == ERR_INTERNAL ? "the server failed; see its log" : why.message;
	int r = list_backups(backups_dir(api->backups), list, err);

	if (r == 0)
		request_answer_json(req, 200,
			json_pack("{s:O, s:n, s:o}", "backups", list, "next_cursor", "failure",
				has_failed ? json_string(failure) : json_null()));
	return r;
}
