/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that requests of sandboxes are given on their way out. Their values come in and never go out
 * again: not to whoever set them either.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "base/clock.h"
#include "core/secret/secret_store.h"
#include "store/access/store_secret.h"

#include <stdio.h>
#include <strings.h>

struct secret_body {
	const char *value;
	const char *url;
	const char *header;
	const char *prefix;
};

static const char *check_value(const json_t *value)
{
	return secret_value_is_valid(json_string_value(value), json_string_length(value))
		       ? NULL
		       : "must be printable ASCII, without a space at its ends";
}

static const char *check_url(const json_t *value)
{
	struct secret_server server;

	return secret_server_read(json_string_value(value), &server) == 0
		       ? NULL
		       : "must be http:// or https://, a name or address, and maybe a port "
			 "and a path; no user, query, fragment (#) or steps (..)";
}

static const char *check_header(const json_t *value)
{
	return secret_header_is_valid(json_string_value(value))
		       ? NULL
		       : "must be the name of a field of a request, but none that says how long "
			 "it is or whom it is for";
}

static const char *check_prefix(const json_t *value)
{
	return secret_prefix_is_valid(json_string_value(value))
		       ? NULL
		       : "must be printable ASCII, without a space at its beginning";
}

#define PLACE(member) offsetof(struct secret_body, member)

static const struct field rows[] = {
	{"value", FIELD_STRING, PLACE(value), 1, SECRET_VALUE_MAX, FIELD_REQUIRED,
		"The secret itself. It is shown to nobody.", .check = check_value},
	{"url", FIELD_STRING, PLACE(url), 1, SECRET_URL_MAX - 1, FIELD_REQUIRED,
		"The one server that gets it; http://<name>.internal/ inside stands for this. If "
		"the server has an address that is not public, the scope admin is needed.",
		.check = check_url},
	{"header", FIELD_STRING, PLACE(header), 1, SECRET_HEADER_MAX - 1, 0,
		"The field of requests that it is sent as; Authorization by default.",
		.check = check_header},
	{"prefix", FIELD_STRING, PLACE(prefix), 0, SECRET_PREFIX_MAX - 1, 0,
		"What stands before it there; by default `Bearer ` in Authorization, else nothing.",
		.check = check_prefix},
};
const struct fields secrets_fields = FIELDS(rows);

static json_t *to_json(const struct secret_record *record)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", record->name, "url", record->url,
		"header", record->header, "prefix", record->prefix, "changed_at",
		api_time_to_json(record->changed_at_ms));
}

static int read_name(const struct request *req, char ret_name[SECRET_NAME_MAX], struct err *err)
{
	const char *name = request_param(req, "secret");

	if (!secret_name_is_valid(name))
		return err_explain(err, ERR_INVALID, "invalid_name", NULL,
			"the name of a secret is 1 to 63 of a-z 0-9 -, with no - at its ends");
	snprintf(ret_name, SECRET_NAME_MAX, "%s", name);
	return 0;
}

static void fill(const struct secret_body *body, struct secret_record *record)
{
	const char *header = body->header ? body->header : "Authorization";
	const char *prefix = strcasecmp(header, "Authorization") == 0 ? "Bearer " : "";

	snprintf(record->url, sizeof(record->url), "%s", body->url);
	snprintf(record->header, sizeof(record->header), "%s", header);
	snprintf(
		record->prefix, sizeof(record->prefix), "%s", body->prefix ? body->prefix : prefix);
}

/* An address in the URL is judged now; what a name leads to, when it is dialled. */
static int check_reach(const struct request *req, const struct secret_body *body, struct err *err)
{
	struct secret_server server;

	if (request_principal(req)->scopes & SCOPE_ADMIN ||
		secret_server_read(body->url, &server) < 0 || server.at.name[0] ||
		address_is_public(server.at.address))
		return 0;
	return err_explain(err, ERR_DENIED, "private_address", "use a token with the scope admin",
		"%s is an address that is not public", server.host);
}

HANDLER(secrets_put)
{
	struct api *api = context;
	struct secret_record record = {.owner = api_owner(req),
		.is_trusted = request_principal(req)->scopes & SCOPE_ADMIN,
		.changed_at_ms = clock_wall_ms()};
	struct secret_body body = {0};
	int r = read_name(req, record.name, err);

	if (r < 0)
		return r;
	request_set_detail(req, record.name);
	fields_clear(&secrets_fields, &body);
	r = fields_decode(&secrets_fields, request_body(req), &body, err);
	if (r == 0)
		r = check_reach(req, &body, err);
	if (r < 0)
		return r;
	fill(&body, &record);
	r = secret_store_put(api->secret_store, &record, body.value, err);
	if (r == 0)
		request_answer_json(req, 200, to_json(&record));
	return r;
}

static void list_one(const struct secret_record *record, const void *sealed, size_t len, void *arg)
{
	(void)sealed, (void)len;
	json_array_append_new(arg, to_json(record));
}

HANDLER(secrets_list)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	json_t *list = json_array();
	int r = store_secret_list(api->gate.store, &owner, list_one, list, err);

	if (r < 0) {
		json_decref(list);
		return r;
	}
	request_answer_json(req, 200, list_page_whole("secrets", list));
	return 0;
}

HANDLER(secrets_delete)
{
	struct api *api = context;
	struct owner owner = api_owner(req);
	char name[SECRET_NAME_MAX];
	int r = read_name(req, name, err);

	if (r < 0)
		return r;
	request_set_detail(req, name);
	r = secret_store_remove(api->secret_store, &owner, name, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}
