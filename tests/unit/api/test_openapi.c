/* SPDX-License-Identifier: Apache-2.0 */
/* The document against the table of routes: nothing is served that is not described, or the reverse. */
#include "api/openapi.h"

#include "api/api.h"
#include "api/routes.h"
#include "http/arena.h"
#include "http/server/route/router.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static json_t *document;
static const struct route *routes;
static size_t route_count;

static int setup(void **state)
{
	(void)state;
	document = openapi_make();
	routes = routes_table(&route_count);
	return document ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(document);
	return 0;
}

static const json_t *operation_of(const struct route *route)
{
	char method[16] = "", path[256] = "";
	const json_t *operation;

	/* OpenAPI has no sign for a part that takes all that follows. */
	for (size_t i = 0, len = 0; route->path[i] && len < sizeof(path) - 1; i++) {
		if (route->path[i] != '*')
			path[len++] = route->path[i];
	}
	for (size_t i = 0; route->method[i] && i < sizeof(method) - 1; i++)
		method[i] = (char)tolower((unsigned char)route->method[i]);
	operation =
		json_object_get(json_object_get(json_object_get(document, "paths"), path), method);
	if (!operation)
		fail_msg("%s %s is not described", route->method, route->path);
	return operation;
}

static void the_document_is_an_openapi_document(void **state)
{
	const json_t *info = json_object_get(document, "info");

	(void)state;
	assert_string_equal(json_string_value(json_object_get(document, "openapi")), "3.1.0");
	assert_string_equal(json_string_value(json_object_get(info, "version")), SANDLOT_VERSION);
	assert_true(json_object_size(json_object_get(document, "paths")) > 0);
	assert_int_equal(json_array_size(json_object_get(document, "security")), 2);
}

static void every_route_is_described_and_nothing_else(void **state)
{
	size_t described = 0;
	const char *path;
	json_t *operations;

	(void)state;
	assert_true(route_count > 20);
	for (size_t i = 0; i < route_count; i++) {
		const json_t *operation = operation_of(&routes[i]);
		const json_t *responses = json_object_get(operation, "responses");
		const struct api_doc *doc = routes[i].doc;
		char status[8];

		assert_true(strlen(json_string_value(json_object_get(operation, "summary"))) > 5);
		assert_int_equal(json_array_size(json_object_get(operation, "tags")), 1);
		snprintf(status, sizeof(status), "%d", doc->status);
		if (doc->status != 101) /* that is a WebSocket */
			assert_in_range(doc->status, 200, 299);
		assert_non_null(json_object_get(responses, status));
		assert_non_null(json_object_get(responses, "default"));
	}
	json_object_foreach(json_object_get(document, "paths"), path, operations) described +=
		json_object_size(operations);
	assert_int_equal(described, route_count);
}

static void operation_ids_are_unique(void **state)
{
	json_t *seen = json_object();

	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		const char *id =
			json_string_value(json_object_get(operation_of(&routes[i]), "operationId"));

		assert_non_null(id);
		if (json_object_get(seen, id))
			fail_msg("%s is there twice", id);
		json_object_set_new(seen, id, json_true());
	}
	json_decref(seen);
}

/* A body is documented just where the server takes one, and a token where it asks for one. */
static void flags_and_words_agree(void **state)
{
	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		const struct api_doc *doc = routes[i].doc;
		const json_t *operation = operation_of(&routes[i]);
		bool json_body = routes[i].flags & ROUTE_BODY,
		     raw_body = routes[i].flags & ROUTE_RAW_BODY;

		assert_int_equal(json_body, doc->body || doc->takes_any);
		assert_int_equal(raw_body, doc->raw_body != NULL);
		assert_int_equal(
			json_body || raw_body, json_object_get(operation, "requestBody") != NULL);
		assert_int_equal((routes[i].flags & ROUTE_OPEN) != 0,
			json_array_size(json_object_get(operation, "security")) == 0);
	}
}

/* One of the closed set, and no more; the document names it for both ways to send a token. */
static void every_route_that_is_not_open_asks_for_one_scope(void **state)
{
	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		const json_t *security = json_object_get(operation_of(&routes[i]), "security");
		const json_t *bearer = json_object_get(json_array_get(security, 0), "bearer");
		const json_t *key = json_object_get(json_array_get(security, 1), "key");
		const char *name = json_string_value(json_array_get(bearer, 0));

		if (routes[i].flags & ROUTE_OPEN) {
			assert_int_equal(routes[i].scope, 0);
			continue;
		}
		if (!name || json_array_size(bearer) != 1 ||
			scope_find(name, strlen(name)) != routes[i].scope)
			fail_msg("%s %s has no scope", routes[i].method, routes[i].path);
		assert_true(json_equal(bearer, key));
	}
}

static void parameters_of_a_path_are_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		const json_t *parameters = json_object_get(operation_of(&routes[i]), "parameters");
		unsigned in_path = 0, braces = 0;
		const json_t *parameter;
		size_t j;

		for (const char *c = routes[i].path; *c; c++)
			braces += *c == '{';
		json_array_foreach(parameters, j, parameter)
		{
			const char *in = json_string_value(json_object_get(parameter, "in"));

			assert_true(strcmp(in, "path") == 0 || strcmp(in, "query") == 0 ||
				    strcmp(in, "header") == 0);
			assert_true(json_is_object(json_object_get(parameter, "schema")));
			assert_non_null(json_string_value(json_object_get(parameter, "name")));
			if (strcmp(in, "path") == 0) {
				in_path++;
				assert_true(json_is_true(json_object_get(parameter, "required")));
			}
		}
		assert_int_equal(in_path, braces);
	}
}

/* "#/components/schemas/Sandbox" leads somewhere. */
static unsigned check_references(const json_t *value)
{
	const char *key;
	json_t *below;
	unsigned count = 0;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach((json_t *)value, i, below) count += check_references(below);
		return count;
	}
	json_object_foreach((json_t *)value, key, below)
	{
		static const char prefix[] = "#/components/schemas/";
		const char *reference = json_string_value(below);

		count += check_references(below);
		if (strcmp(key, "$ref") != 0)
			continue;
		count++;
		assert_non_null(reference);
		assert_int_equal(strncmp(reference, prefix, sizeof(prefix) - 1), 0);
		if (!json_object_get(
			    json_object_get(json_object_get(document, "components"), "schemas"),
			    reference + sizeof(prefix) - 1))
			fail_msg("%s leads nowhere", reference);
	}
	return count;
}

static void every_reference_leads_somewhere(void **state)
{
	(void)state;
	assert_true(check_references(document) > 20);
}

/* A property that is required and not described is a slip of the pen. */
static void check_required(const char *name, const json_t *schema)
{
	const json_t *required = json_object_get(schema, "required");
	const json_t *properties = json_object_get(schema, "properties");
	const char *key;
	json_t *below;
	size_t i;

	if (!json_is_object(schema))
		return;
	if (json_is_array(required)) {
		json_array_foreach((json_t *)required, i, below)
		{
			if (!json_object_get(properties, json_string_value(below)))
				fail_msg("%s requires %s, which it does not describe", name,
					json_string_value(below));
		}
	}
	json_object_foreach((json_t *)schema, key, below) check_required(name, below);
}

static void what_a_schema_requires_it_describes(void **state)
{
	const char *name;
	json_t *schema;

	(void)state;
	json_object_foreach(json_object_get(json_object_get(document, "components"), "schemas"),
		name, schema) check_required(name, schema);
}

static void the_table_can_be_served(void **state)
{
	struct router *router = router_new(routes, route_count);

	(void)state;
	assert_non_null(router); /* a pattern that is wrong, or there twice, would have aborted */
	router_free(router);
	for (size_t i = 0; i < route_count; i++)
		assert_true(method_parse(routes[i].method) < METHOD_COUNT);
}

static bool only_reads(const struct route *route)
{
	/* A call of a door goes on as the request of its route, and has the action of that. */
	if (strcmp(route->path, "/mcp") == 0 || strcmp(route->path, "/e2b/{call*}") == 0)
		return true;
	return (strcmp(route->method, "GET") == 0 || strcmp(route->method, "HEAD") == 0) &&
	       !(route->flags & ROUTE_WEBSOCKET);
}

/* Without one the audit log would not hear of it. */
static void every_route_that_may_change_something_has_an_action_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		const char *action = routes[i].action;

		if (!action != only_reads(&routes[i]))
			fail_msg("%s %s", routes[i].method, routes[i].path);
		for (size_t j = 0; action && j < i; j++) {
			if (routes[j].action && strcmp(routes[j].action, action) == 0)
				fail_msg("%s is there twice", action);
		}
		assert_true(!action || strlen(action) < 48);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_is_an_openapi_document),
		cmocka_unit_test(every_route_is_described_and_nothing_else),
		cmocka_unit_test(operation_ids_are_unique),
		cmocka_unit_test(flags_and_words_agree),
		cmocka_unit_test(every_route_that_is_not_open_asks_for_one_scope),
		cmocka_unit_test(parameters_of_a_path_are_described),
		cmocka_unit_test(every_reference_leads_somewhere),
		cmocka_unit_test(what_a_schema_requires_it_describes),
		cmocka_unit_test(the_table_can_be_served),
		cmocka_unit_test(every_route_that_may_change_something_has_an_action_of_its_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
