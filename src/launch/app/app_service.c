/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/app_service.h"

#include "base/mem.h"
#include "launch/app/made_files.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MI (1024ull * 1024)

const struct app_service app_services[APP_SERVICES_MAX] = {
	{"postgres", MEMBER_DATABASE, "postgres15", "DATABASE_URL", 5432, 512 * MI},
	{"redis", MEMBER_CACHE, "redis7", "REDIS_URL", 6379, 256 * MI},
};

const struct app_service *app_service_find(const char *name)
{
	for (size_t i = 0; i < APP_SERVICES_MAX; i++) {
		if (strcmp(app_services[i].name, name) == 0)
			return &app_services[i];
	}
	return NULL;
}

/* --- what shows them --- */

/* Packages of either runtime. */
static const struct {
	const char *service, *package;
} drivers[] = {
	{"postgres", "pg"},
	{"postgres", "postgres"},
	{"postgres", "pg-promise"},
	{"postgres", "psycopg"},
	{"postgres", "psycopg2"},
	{"postgres", "psycopg2-binary"},
	{"postgres", "asyncpg"},
	{"postgres", "pg8000"},
	{"redis", "redis"},
	{"redis", "ioredis"},
	{"redis", "@redis/client"},
	{"redis", "bull"},
	{"redis", "bullmq"},
	{"redis", "django-redis"},
	{"redis", "celery"},
};

/* Texts in files, unless the same file has the other one, which tells of another database. */
static const struct {
	const char *service, *text, *unless;
} signs[] = {
	{"postgres", "postgres://", NULL},
	{"postgres", "postgresql://", NULL},
	{"postgres", "DATABASE_URL", "sqlite"},
	{"redis", "redis://", NULL},
	{"redis", "REDIS_URL", NULL},
};
static const char *const other_databases[] = {"mysql", "mariadb", "mongodb"};

static const char *const env_files[] = {".env.example", ".env.sample", ".env.template", ".env"};
/* Code is looked at that is called so first, of the rest what there is room for. */
static const char *const telling_names[] = {"db", "database", "config", "settings", "models", "env",
	"redis", "cache", "queue", "session", "store"};
static const char *const code_ends[] = {".py", ".js", ".mjs", ".cjs", ".ts"};
static const char *const other_code[] = {"test", "spec", "example", ".config.", ".min.", ".d.ts"};
#define CODE_FILES_MAX 200

/* One look at an app. */
struct service_look {
	json_t *list;
	const struct file_set *set;
	bool is_other[APP_SERVICES_MAX]; /* a file tells of another service of that kind */
	json_t *weak; /* of {"name", "file", "confidence", "why"}: counts if none does */
};

static void add(
	json_t *list, const char *name, double confidence, const char *path, const char *why)
{
	json_t *evidence = json_pack("{s:s, s:s}", "file", path, "why", why), *known;
	size_t i;

	json_array_foreach(list, i, known)
	{
		if (strcmp(json_string_value(json_object_get(known, "name")), name) == 0) {
			json_array_append_new(json_object_get(known, "evidence"), evidence);
			return;
		}
	}
	json_array_append_new(list, json_pack("{s:s, s:f, s:[o]}", "name", name, "confidence",
					    confidence, "evidence", evidence));
}

static void look_at_packages(json_t *list, const struct app_service_place *place)
{
	auto_free char *path =
		file_set_join(place->dir, place->manifest ? place->manifest : place->entry);

	for (size_t i = 0; i < array_len(drivers); i++) {
		if (place->needs(place->arg, drivers[i].package))
			add(list, drivers[i].service, 0.9, path, "requires a driver for it");
	}
}

static bool is_of_another(const char *text, const char *unless)
{
	bool is_so = unless && strstr(text, unless);

	for (size_t i = 0; unless && i < array_len(other_databases); i++)
		is_so |= strstr(text, other_databases[i]) != NULL;
	return is_so;
}

static void look_at_file(
	struct service_look *look, const char *path, double confidence, const char *why)
{
	auto_free char *text = file_set_read(look->set, "", path);
	const char *found = "";

	for (size_t i = 0; text && i < array_len(signs); i++) {
		/* One line for each service and file is enough. */
		if (strcmp(found, signs[i].service) == 0 || !strstr(text, signs[i].text))
			continue;
		if (is_of_another(text, signs[i].unless)) {
			look->is_other[app_service_find(signs[i].service) - app_services] = true;
			continue;
		}
		found = signs[i].service;
		if (signs[i].unless)
			json_array_append_new(
				look->weak, json_pack("{s:s, s:s, s:f, s:s}", "name", found, "file",
						    path, "confidence", confidence, "why", why));
		else
			add(look->list, found, confidence, path, why);
	}
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strstr(text, words[i]))
			return true;
	}
	return false;
}

static bool is_code(const char *path, const char *dir)
{
	size_t len = strlen(path), dir_len = strlen(dir);

	if (dir_len > 0 && (strncmp(path, dir, dir_len) != 0 || path[dir_len] != '/'))
		return false;
	if (made_files_named(path) > 0 || is_one_of(path, other_code, array_len(other_code)))
		return false;
	for (size_t i = 0; i < array_len(code_ends); i++) {
		size_t end = strlen(code_ends[i]);

		if (len > end && strcmp(path + len - end, code_ends[i]) == 0)
			return true;
	}
	return false;
}

static void look_at_code(struct service_look *look, const char *dir, const char *entry)
{
	unsigned count = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < look->set->count && count < CODE_FILES_MAX; i++) {
			const char *path = look->set->paths[i], *name = strrchr(path, '/');
			bool is_telling = is_one_of(
				name ? name : path, telling_names, array_len(telling_names));

			if (is_telling != (pass == 0) || !is_code(path, dir) ||
				strcmp(path, entry) == 0)
				continue;
			count++;
			look_at_file(look, path, 0.7, "asks for its address");
		}
	}
}

/* In the order of the table. */
static void sort(json_t *list)
{
	json_auto_t *found = json_copy(list);
	json_t *entry;
	size_t i;

	json_array_clear(list);
	for (size_t row = 0; row < APP_SERVICES_MAX; row++) {
		json_array_foreach(found, i, entry)
		{
			if (strcmp(json_string_value(json_object_get(entry, "name")),
				    app_services[row].name) == 0)
				json_array_append(list, entry);
		}
	}
}

void app_service_detect(
	json_t *list, const struct file_set *set, const struct app_service_place *place)
{
	struct service_look look = {.list = list, .set = set, .weak = json_array()};
	auto_free char *entry = file_set_join(place->dir, place->entry);
	json_t *found;
	size_t i;

	look_at_packages(list, place);
	for (size_t j = 0; j < array_len(env_files); j++) {
		auto_free char *path = file_set_join(place->dir, env_files[j]);

		look_at_file(&look, path, 0.8, "has its address");
	}
	if (place->entry[0])
		look_at_file(&look, entry, 0.7, "asks for its address");
	look_at_code(&look, place->dir, entry);
	json_array_foreach(look.weak, i, found)
	{
		const char *name = json_string_value(json_object_get(found, "name"));

		if (!look.is_other[app_service_find(name) - app_services])
			add(list, name, json_number_value(json_object_get(found, "confidence")),
				json_string_value(json_object_get(found, "file")),
				json_string_value(json_object_get(found, "why")));
	}
	json_decref(look.weak);
	sort(list);
}

int app_service_choose(json_t *list, const json_t *names, const char *source, struct err *err)
{
	json_t *name;
	size_t i;

	if (!names || json_is_null(names))
		return 0;
	if (!json_is_array(names) || json_array_size(names) > APP_SERVICES_MAX)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field services must be an array of postgres and redis");
	json_array_foreach((json_t *)names, i, name)
	{
		if (!json_is_string(name) || !app_service_find(json_string_value(name)))
			return err_explain(err, ERR_INVALID, "invalid_field", NULL,
				"field services must name postgres and redis alone");
	}
	json_array_clear(list);
	json_array_foreach((json_t *)names, i, name)
		add(list, json_string_value(name), 1, source, "asks for it");
	return 0;
}

/* --- addresses --- */

/* A part of an address without its escapes; false if it is too long. */
static bool decode(const char *from, size_t len, char to[APP_SERVICE_TEXT_MAX])
{
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned code;

		if (at + 1 >= APP_SERVICE_TEXT_MAX)
			return false;
		if (from[i] == '%' && i + 2 < len && isxdigit((unsigned char)from[i + 1]) &&
			isxdigit((unsigned char)from[i + 2]) &&
			sscanf(from + i + 1, "%2x", &code) == 1 && code >= ' ') {
			to[at++] = (char)code;
			i += 2;
		} else {
			to[at++] = from[i];
		}
	}
	to[at] = '\0';
	return true;
}

static bool read_login(const char *from, size_t len, struct app_service_address *address)
{
	const char *colon = memchr(from, ':', len);
	size_t user_len = colon ? (size_t)(colon - from) : len;

	return decode(from, user_len, address->user) &&
	       (!colon || decode(colon + 1, len - user_len - 1, address->password));
}

/* "localhost:5432" */
static bool is_local(const struct app_service *service, const char *from, size_t len)
{
	char host[APP_SERVICE_TEXT_MAX], *colon;
	unsigned long port = service->port;

	if (!decode(from, len, host))
		return false;
	colon = strrchr(host, ':');
	if (colon) {
		port = strtoul(colon + 1, NULL, 10);
		*colon = '\0';
	}
	return port == service->port &&
	       (strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0);
}

bool app_service_address_read(
	const struct app_service *service, const char *url, struct app_service_address *ret_address)
{
	struct app_service_address address = {0};
	const char *host = strstr(url, "://"), *at, *path;
	size_t len;

	if (!host)
		return false;
	host += 3;
	len = strcspn(host, "/?#");
	path = host + len;
	for (at = path; at > host && at[-1] != '@'; at--)
		;
	if (at > host && !read_login(host, (size_t)(at - 1 - host), &address))
		return false;
	address.is_local = is_local(service, at, (size_t)(path - at));
	if (*path == '/' && !decode(path + 1, strcspn(path + 1, "?#"), address.database))
		return false;
	*ret_address = address;
	return true;
}
