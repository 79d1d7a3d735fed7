/* SPDX-License-Identifier: Apache-2.0 */
#include "api/openapi_examples.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 12 /* deeper than any schema is */

static const json_t *find(const json_t *examples, const char *owner, const char *name)
{
	char key[128];
	const json_t *own;

	snprintf(key, sizeof(key), "%s.%s", owner, name);
	own = json_object_get(examples, key);
	return own ? own : json_object_get(examples, name);
}

/* --- fields --- */

/* A field that has fields of its own, or stands for another schema, needs no example: theirs are put together. */
static bool is_composed(const json_t *schema)
{
	const json_t *items = json_object_get(schema, "items");
	const json_t *kind = json_array_get(json_object_get(items, "oneOf"), 0);

	return json_object_get(schema, "$ref") || json_object_get(schema, "properties") ||
	       json_object_get(items, "$ref") || json_object_get(items, "properties") ||
	       json_object_get(kind, "$ref");
}

static void add_to_fields(json_t *schema, const json_t *examples, const char *owner)
{
	const char *name;
	json_t *field;
	size_t i;

	json_object_foreach(json_object_get(schema, "properties"), name, field)
	{
		const json_t *example = find(examples, owner, name);

		if (!is_composed(field) && example)
			json_object_set_new(
				field, "examples", json_pack("[o]", json_deep_copy(example)));
		add_to_fields(field, examples, owner);
	}
	if (json_object_get(schema, "items"))
		add_to_fields(json_object_get(schema, "items"), examples, owner);
	json_array_foreach(json_object_get(schema, "oneOf"), i, field)
		add_to_fields(field, examples, owner);
}

/* --- bodies and answers --- */

static json_t *compose(const json_t *document, const json_t *schema, int depth);

static bool has_text(const json_t *list, const char *text)
{
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (strcmp(json_string_value(one), text) == 0)
			return true;
	}
	return false;
}

/* Bytes that are not text come in the place of another field; of fields that exclude each other the first is shown. */
static bool is_alternative(const json_t *schema, const char *name)
{
	const json_t *either = json_object_get(schema, "oneOf");
	size_t len = strlen(name);

	for (size_t i = 1; i < json_array_size(either); i++) {
		if (has_text(json_object_get(json_array_get(either, i), "required"), name))
			return true;
	}
	return len > 7 && strcmp(name + len - 7, "_base64") == 0;
}

static void compose_fields(const json_t *document, const json_t *schema, int depth, json_t *into)
{
	const char *name;
	json_t *field;
	size_t i;

	json_array_foreach(json_object_get(schema, "allOf"), i, field)
	{
		json_t *base = compose(document, field, depth + 1);

		json_object_update(into, base);
		json_decref(base);
	}
	json_object_foreach(json_object_get(schema, "properties"), name, field)
	{
		json_t *value =
			is_alternative(schema, name) ? NULL : compose(document, field, depth + 1);

		if (value)
			json_object_set_new(into, name, value);
	}
}

static json_t *compose(const json_t *document, const json_t *schema, int depth)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	const json_t *examples = json_object_get(schema, "examples");
	const json_t *items = json_object_get(schema, "items");
	json_t *value;

	if (!schema || depth > DEPTH_MAX)
		return NULL;
	if (examples)
		return json_deep_copy(json_array_get(examples, 0));
	if (ref) {
		const json_t *schemas =
			json_object_get(json_object_get(document, "components"), "schemas");

		return compose(
			document, json_object_get(schemas, strrchr(ref, '/') + 1), depth + 1);
	}
	if (items) {
		value = compose(document, items, depth + 1);
		return value ? json_pack("[o]", value) : json_array();
	}
	if (json_object_get(schema, "oneOf") && !json_object_get(schema, "properties"))
		return compose(
			document, json_array_get(json_object_get(schema, "oneOf"), 0), depth + 1);
	if (!json_object_get(schema, "properties") && !json_object_get(schema, "allOf"))
		return NULL;
	value = json_object();
	compose_fields(document, schema, depth, value);
	return value;
}

/* What is no JSON has the example of its media type; `what` names the example of a body as a whole. */
static void add_to_content(const json_t *document, json_t *content, const json_t *examples,
	const char *id, const char *what)
{
	const char *type;
	json_t *media;

	json_object_foreach(content, type, media)
	{
		json_t *whole = json_deep_copy(find(examples, id, what ? what : type));

		if (!whole && what)
			whole = json_deep_copy(find(examples, id, type));

		if (!whole)
			whole = compose(document, json_object_get(media, "schema"), 0);
		if (whole)
			json_object_set_new(media, "example", whole);
	}
}

static void add_to_operation(const json_t *document, json_t *operation, const json_t *examples)
{
	const char *id = json_string_value(json_object_get(operation, "operationId"));
	json_t *body = json_object_get(operation, "requestBody"), *one;
	const char *status;
	size_t i;

	json_array_foreach(json_object_get(operation, "parameters"), i, one)
	{
		const json_t *example =
			find(examples, id, json_string_value(json_object_get(one, "name")));

		if (example)
			json_object_set_new(one, "example", json_deep_copy(example));
	}
	json_object_foreach(json_object_get(body, "content"), status, one)
		add_to_fields(json_object_get(one, "schema"), examples, id);
	add_to_content(document, json_object_get(body, "content"), examples, id, "body");
	json_object_foreach(json_object_get(operation, "responses"), status, one)
		add_to_content(document, json_object_get(one, "content"), examples, id, NULL);
}

void openapi_examples_add(json_t *document, const json_t *examples)
{
	const char *name;
	json_t *one, *operation;

	json_object_foreach(json_object_get(json_object_get(document, "components"), "schemas"),
		name, one) add_to_fields(one, examples, name);
	json_object_foreach(json_object_get(document, "paths"), name, one)
	{
		const char *method;

		json_object_foreach(one, method, operation)
			add_to_operation(document, operation, examples);
	}
}
