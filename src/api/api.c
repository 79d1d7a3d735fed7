/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include "base/clock.h"
#include "base/number.h"
#include "base/signal_name.h"
#include "core/files/paths.h"
#include "core/sandbox/member.h"
#include "core/sandbox/sandbox.h"
#include "model/sandbox/preview_name.h"
#include "store/store_clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int api_admit(void *context, const struct credential *credential, const struct route *route,
	struct principal *ret_principal, struct err *err)
{
	const struct api *api = context;

	return gate_admit(&api->gate, credential, route, ret_principal, err);
}

struct caller api_caller_of(const struct principal *principal)
{
	struct caller caller = {.scopes = principal->scopes};

	memcpy(caller.owner.organization, principal->organization,
		sizeof(caller.owner.organization));
	memcpy(caller.owner.user, principal->user, sizeof(caller.owner.user));
	return caller;
}

struct caller api_caller(const struct request *req)
{
	return api_caller_of(request_principal(req));
}

struct owner api_owner(const struct request *req)
{
	return api_caller(req).owner;
}

int api_check_ready(struct api *api, struct err *err)
{
	struct err why;
	int r;

	if (api->engine)
		return 0;
	pthread_mutex_lock(&api->unready_lock);
	why = api->unready;
	pthread_mutex_unlock(&api->unready_lock);
	r = err_explain(err, ERR_UNAVAILABLE, "not_ready",
		why.remedy[0] ? why.remedy : "see GET /readyz, and `sandlot doctor`",
		"sandboxes cannot be served: %s", why.message);
	if (err)
		err->retry_after_s = why.retry_after_s;
	return r;
}

void api_set_unready(struct api *api, const struct err *why)
{
	pthread_mutex_lock(&api->unready_lock);
	api->unready = *why;
	pthread_mutex_unlock(&api->unready_lock);
}

static void release_sandbox(void *sandbox)
{
	sandbox_unref(sandbox);
}

/* The audit log names objects by id, also where the path had a name, which may become another's. */
static void note_object(struct request *req, const char *id)
{
	const char *process = request_param(req, "process");
	char object[128];

	if (strcmp(request_param(req, "id"), id) == 0)
		return;
	snprintf(object, sizeof(object), "%s%s%.40s", id, process ? "/" : "",
		process ? process : "");
	request_set_object(req, object);
}

/* The member of a sandbox, in the place of the sandbox. */
static int find_member(
	struct request *req, const char *role, struct sandbox **sandbox, struct err *err)
{
	struct sandbox *member;
	int r = member_get(*sandbox, role, &member, err);

	if (r < 0)
		return r;
	request_keep(req, member, release_sandbox);
	*sandbox = member;
	return 0;
}

int api_sandbox(struct request *req, struct api *api, struct sandbox **ret_sandbox, struct err *err)
{
	const char *role = request_query(req, "member");
	struct owner owner = api_owner(req);
	struct sandbox *sandbox;
	int r = api_check_ready(api, err);

	if (r < 0)
		return r;
	r = sandbox_get(api->engine, &owner, request_param(req, "id"), &sandbox, err);
	if (r < 0)
		return r;
	request_keep(req, sandbox, release_sandbox);
	note_object(req, sandbox_id(sandbox));
	if (role)
		r = find_member(req, role, &sandbox, err);
	if (r == 0)
		*ret_sandbox = sandbox;
	return r;
}

int api_query_sandbox(const struct request *req, struct api *api, char id[ID_LEN + 1],
	const char **ret_id, struct err *err)
{
	const char *text = request_query(req, "sandbox");
	struct owner owner = api_owner(req);
	struct sandbox *sandbox;
	int r;

	*ret_id = text;
	if (!text || id_is_valid(text))
		return 0;
	if (!sandbox_name_is_valid(text))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter sandbox must be the id of a sandbox or its name");
	r = api_check_ready(api, err);
	if (r == 0)
		r = sandbox_get(api->engine, &owner, text, &sandbox, err);
	if (r < 0)
		return r;
	memcpy(id, sandbox_id(sandbox), ID_LEN + 1);
	sandbox_unref(sandbox);
	*ret_id = id;
	return 0;
}

int api_port(const struct request *req, uint16_t *ret_port, struct err *err)
{
	const char *text = request_param(req, "port");
	uint64_t port;

	if (text[0] == '0' || number_parse(text, 1, 65535, &port) < 0)
		return err_explain(err, ERR_INVALID, "invalid_port", "use a number from 1 to 65535",
			"\"%s\" is no port", text);
	*ret_port = (uint16_t)port;
	return 0;
}

int api_query_number(const struct request *req, const char *name, uint64_t min, uint64_t max,
	uint64_t default_value, uint64_t *ret_value, struct err *err)
{
	const char *text = request_query(req, name);

	if (!text) {
		*ret_value = default_value;
		return 0;
	}
	if (number_parse(text, min, max, ret_value) < 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter %s must be a whole number from %llu to %llu", name,
			(unsigned long long)min, (unsigned long long)max);
	return 0;
}

int api_query_time(const struct request *req, const struct api *api, const char *name,
	int64_t *ret_stored_ms, struct err *err)
{
	const char *text = request_query(req, name), *rest;
	int64_t now_ms = store_clock_ms(api->gate.store), wall_ms;
	struct tm tm = {0};

	*ret_stored_ms = 0;
	if (!text)
		return 0;
	rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (rest && *rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (!rest || strcmp(rest, "Z") != 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter %s must be a time such as 2026-01-31T12:00:00Z", name);
	wall_ms = (int64_t)timegm(&tm) * 1000;
	*ret_stored_ms = wall_ms - (store_clock_to_wall(api->gate.store, now_ms) - now_ms);
	if (*ret_stored_ms < 1) /* 0 is no time */
		*ret_stored_ms = 1;
	return 0;
}

int api_query_boolean(const struct request *req, const char *name, bool *ret_value, struct err *err)
{
	const char *text = request_query(req, name);

	if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter %s must be true or false", name);
	*ret_value = text && strcmp(text, "true") == 0;
	return 0;
}

int api_query_from(const struct request *req, uint64_t *ret_from, bool *ret_given, struct err *err)
{
	const char *last = request_header(req, "Last-Event-ID");

	*ret_given = last || request_query(req, "from");
	if (!last)
		return api_query_number(req, "from", 0, INT64_MAX, 0, ret_from, err);
	if (number_parse(last, 0, INT64_MAX, ret_from) < 0)
		return err_explain(err, ERR_INVALID, "invalid_header", NULL,
			"header Last-Event-ID must be the id of an event of this stream");
	return 0;
}

void api_preview_url(
	const struct api *api, const char *sandbox_id, uint16_t port, char url[API_PREVIEW_URL_MAX])
{
	char host[160];

	preview_name_format(sandbox_id, port, api->preview_domain, host, sizeof(host));
	snprintf(url, API_PREVIEW_URL_MAX, "%s://%s:%u", api->preview_scheme, host,
		api->preview_port);
}

json_t *api_time_to_json(int64_t wall_ms)
{
	char text[CLOCK_TEXT_LEN];

	if (wall_ms == 0)
		return json_null();
	clock_format(wall_ms, text);
	return json_string(text);
}

json_t *api_stored_time_to_json(const struct api *api, int64_t stored_ms)
{
	return stored_ms ? api_time_to_json(store_clock_to_wall(api->gate.store, stored_ms))
			 : json_null();
}

json_t *api_scopes_to_json(unsigned scopes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < scope_count; i++) {
		if (scopes & scope_table[i].scope)
			json_array_append_new(list, json_string(scope_table[i].name));
	}
	return list;
}

int api_signal_parse(const json_t *value)
{
	const char *name = json_string_value(value);

	if (json_is_integer(value)) {
		json_int_t number = json_integer_value(value);

		return number >= 1 && number <= SIGRTMAX ? (int)number : 0;
	}
	return name ? signal_name_parse(name) : 0;
}

int api_query_mode(const struct request *req, uint32_t *ret_mode, struct err *err)
{
	const char *text = request_query(req, "mode");
	size_t digits = text ? strspn(text, "01234567") : 0;

	*ret_mode = AGENT_MODE_KEEP;
	if (!text)
		return 0;
	if (text[digits] || digits < 3 || digits > 4 || (digits == 4 && text[0] != '0'))
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter mode must be permission bits in octal, such as 0644");
	*ret_mode = (uint32_t)strtoul(text, NULL, 8);
	return 0;
}

int api_query_path(const struct request *req, char path[AGENT_PATH_MAX], struct err *err)
{
	const char *text = request_query(req, "path");

	if (!text)
		return err_explain(
			err, ERR_INVALID, "invalid_parameter", NULL, "parameter path is missing");
	return paths_clean(text, path, err);
}
