/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fields.h"

#include "base/format.h"
#include "base/similar.h"
#include "model/sandbox/sandbox_port.h"
#include "model/size.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_MAX	64
#define FIELD_ENTRY_MAX 512 /* bytes of the struct of an entry of a list */
#define REPEATED_MAX	96  /* bytes of what was given, in a message */

static int bad(struct err *err, const char *prefix, const struct field *field, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "field %s%s %s", prefix,
		field->name, what);
}

static int bad_bounds(
	struct err *err, const char *prefix, const struct field *field, const char *unit)
{
	char what[96];

	if (field->min == field->max)
		snprintf(what, sizeof(what), "must be %lld%s", (long long)field->min, unit);
	else
		snprintf(what, sizeof(what), "must be from %lld to %lld%s", (long long)field->min,
			(long long)field->max, unit);
	return bad(err, prefix, field, what);
}

static int bad_size(struct err *err, const char *prefix, const struct field *field)
{
	char what[96], least[FORMAT_SIZE_LEN], most[FORMAT_SIZE_LEN];

	format_size((uint64_t)field->min, least);
	format_size((uint64_t)field->max, most);
	snprintf(what, sizeof(what), "must be from %s to %s", least, most);
	return bad(err, prefix, field, what);
}

/* What was given, as far as a message has room for it: no half of a character at its end. */
static int bad_text(struct err *err, const char *prefix, const struct field *field,
	const char *what, const char *text)
{
	size_t len = strlen(text);
	bool is_cut = len > REPEATED_MAX;

	if (is_cut) {
		len = REPEATED_MAX;
		len -= format_unfinished(text, len);
	}
	return err_explain(err, ERR_INVALID, "invalid_field", NULL, "field %s%s %s: \"%.*s\"%s",
		prefix, field->name, what, (int)len, text, is_cut ? "..." : "");
}

static int bad_choice(
	struct err *err, const char *prefix, const struct field *field, const char *text)
{
	char what[160] = "must be ";

	for (size_t i = 0; field->choices[i]; i++) {
		const char *between = i == 0 ? "" : field->choices[i + 1] ? ", " : " or ";
		size_t len = strlen(what);

		snprintf(what + len, sizeof(what) - len, "%s%s", between, field->choices[i]);
	}
	return bad_text(err, prefix, field,
		strlen(what) < sizeof(what) - 1 ? what
						: "has a value that is not one of the known ones",
		text);
}

static bool in_bounds(const struct field *field, int64_t value)
{
	return value >= field->min && value <= field->max;
}

static void *place(const struct field *field, void *out)
{
	return (char *)out + field->offset;
}

static int decode_string(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	const char *text = json_string_value(value);

	if (!text)
		return bad(err, prefix, field, "must be a string");
	if (!in_bounds(field, (int64_t)json_string_length(value)))
		return bad_bounds(err, prefix, field, " bytes long");
	if (field->choices) {
		const char *const *choice = field->choices;

		while (*choice && strcmp(*choice, text) != 0)
			choice++;
		if (!*choice)
			return bad_choice(err, prefix, field, text);
	}
	*(const char **)place(field, out) = text;
	return 0;
}

static int decode_integer(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	if (!json_is_integer(value))
		return bad(err, prefix, field, "must be a whole number");
	if (!in_bounds(field, json_integer_value(value)))
		return bad_bounds(err, prefix, field, "");
	*(int64_t *)place(field, out) = json_integer_value(value);
	return 0;
}

static double least_number(const struct field *field)
{
	return field->flags & FIELD_FRACTION ? (double)field->min / 100 : (double)field->min;
}

static int decode_number(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	double number = json_number_value(value), least = least_number(field);
	char what[96];

	if (!json_is_number(value))
		return bad(err, prefix, field, "must be a number");
	if (!isfinite(number) || number < least || number > (double)field->max) {
		snprintf(what, sizeof(what), "must be from %g to %lld", least,
			(long long)field->max);
		return bad(err, prefix, field, what);
	}
	*(double *)place(field, out) = number;
	return 0;
}

static int decode_boolean(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	if (!json_is_boolean(value))
		return bad(err, prefix, field, "must be true or false");
	*(enum field_boolean *)place(field, out) = json_is_true(value) ? FIELD_TRUE : FIELD_FALSE;
	return 0;
}

static int decode_json(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	(void)prefix;
	(void)err;
	*(const json_t **)place(field, out) = value;
	return 0;
}

static int decode_size(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	uint64_t bytes = 0;

	if (json_is_integer(value) && json_integer_value(value) >= 0)
		bytes = (uint64_t)json_integer_value(value);
	else if (!json_is_string(value) || size_parse(json_string_value(value), &bytes) < 0)
		return bad(err, prefix, field,
			"must be a number of bytes, or one with Ki, Mi, Gi, Ti or Pi");
	if (!in_bounds(field, (int64_t)bytes))
		return bad_size(err, prefix, field);
	*(int64_t *)place(field, out) = (int64_t)bytes;
	return 0;
}

static int decode_map(const struct field *field, const char *prefix, const json_t *value, void *out,
	struct err *err)
{
	const char *key;
	json_t *entry;

	if (!json_is_object(value))
		return bad(err, prefix, field, "must be an object of strings");
	if (!in_bounds(field, (int64_t)json_object_size(value)))
		return bad_bounds(err, prefix, field, " entries");
	json_object_foreach((json_t *)value, key, entry)
	{
		if (!json_is_string(entry))
			return bad(err, prefix, field, "must be an object of strings");
	}
	*(const json_t **)place(field, out) = value;
	return 0;
}

static int decode_list(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	size_t i;
	json_t *entry;

	if (!json_is_array(value))
		return bad(err, prefix, field, "must be an array of strings");
	if (!in_bounds(field, (int64_t)json_array_size(value)))
		return bad_bounds(err, prefix, field, " entries");
	json_array_foreach((json_t *)value, i, entry)
	{
		if (!json_is_string(entry))
			return bad(err, prefix, field, "must be an array of strings");
	}
	*(const json_t **)place(field, out) = value;
	return 0;
}

static int decode_ports(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	const char *wrong;

	if (!json_is_array(value))
		return bad(err, prefix, field, "must be an array of ports");
	if (!in_bounds(field, (int64_t)json_array_size(value)))
		return bad_bounds(err, prefix, field, " entries");
	wrong = sandbox_port_check(value);
	if (wrong)
		return bad(err, prefix, field, wrong);
	*(const json_t **)place(field, out) = value;
	return 0;
}

static int decode_name_or_number(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	if (!json_is_string(value) && !json_is_integer(value))
		return bad(err, prefix, field, "must be a string or a whole number");
	*(const json_t **)place(field, out) = value;
	return 0;
}

static int decode(const struct fields *fields, const char *prefix, const json_t *object, void *out,
	struct err *err);

static int decode_object(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	struct fields sub = {field->sub, field->sub_count};
	char below[PREFIX_MAX];

	if (json_is_false(value) && (field->flags & FIELD_OR_FALSE))
		return 0;
	if (!json_is_object(value))
		return bad(err, prefix, field,
			field->flags & FIELD_OR_FALSE ? "must be an object, or false"
						      : "must be an object");
	snprintf(below, sizeof(below), "%s%s.", prefix, field->name);
	return decode(&sub, below, value, place(field, out), err);
}

/* The entries of a list are only looked at: they are taken as JSON. */
static int look_at_list(
	const struct field *field, const char *prefix, const json_t *value, struct err *err)
{
	struct fields sub = {field->sub, field->sub_count};
	uint64_t ignored[FIELD_ENTRY_MAX / sizeof(uint64_t)];
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)value, i, entry)
	{
		char below[PREFIX_MAX];
		int r;

		if (!json_is_object(entry))
			return bad(err, prefix, field, "must be an array of objects");
		snprintf(below, sizeof(below), "%s%s[%zu].", prefix, field->name, i);
		r = decode(&sub, below, entry, ignored, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_line_or_list(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	*(const json_t **)place(field, out) = value;
	if (json_is_string(value) && !in_bounds(field, (int64_t)json_string_length(value)))
		return bad_bounds(err, prefix, field, " bytes long");
	if (json_is_string(value))
		return 0;
	if (!json_is_array(value) || json_array_size(value) > FIELD_LIST_MAX)
		return bad(
			err, prefix, field, "must be a string, or an array of at most 8 objects");
	return look_at_list(field, prefix, value, err);
}

static int decode_object_list(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	*(const json_t **)place(field, out) = value;
	if (!json_is_array(value))
		return bad(err, prefix, field, "must be an array of objects");
	if (!in_bounds(field, (int64_t)json_array_size(value)))
		return bad_bounds(err, prefix, field, " entries");
	return look_at_list(field, prefix, value, err);
}

/* One row a type: how it is read, and what its schema says. */
static const struct {
	int (*decode)(const struct field *field, const char *prefix, const json_t *value, void *out,
		struct err *err);
	const char *schema;
	const char *min, *max; /* keywords for the bounds; NULL: none */
} types[] = {
	[FIELD_STRING] = {decode_string, "{\"type\":\"string\"}", "minLength", "maxLength"},
	[FIELD_INTEGER] = {decode_integer, "{\"type\":\"integer\"}", "minimum", "maximum"},
	[FIELD_NUMBER] = {decode_number, "{\"type\":\"number\"}", "minimum", "maximum"},
	[FIELD_BOOLEAN] = {decode_boolean, "{\"type\":\"boolean\"}", NULL, NULL},
	[FIELD_SIZE] = {decode_size,
		"{\"oneOf\":[{\"type\":\"integer\",\"minimum\":0},"
		"{\"type\":\"string\",\"pattern\":\"^[0-9]+(Ki|Mi|Gi|Ti|Pi)?$\"}]}",
		NULL, NULL},
	[FIELD_STRING_MAP] = {decode_map,
		"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
		"minProperties", "maxProperties"},
	[FIELD_STRING_LIST] = {decode_list, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
		"minItems", "maxItems"},
	[FIELD_PORT_LIST] = {decode_ports,
		"{\"type\":\"array\",\"uniqueItems\":true,"
		"\"items\":{\"$ref\":\"#/components/schemas/PreviewedPort\"}}",
		"minItems", "maxItems"},
	[FIELD_OBJECT_LIST] = {decode_object_list, "{\"type\":\"array\"}", "minItems", "maxItems"},
	[FIELD_NAME_OR_NUMBER] = {decode_name_or_number,
		"{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", NULL, NULL},
	[FIELD_JSON] = {decode_json, "{}", NULL, NULL},
	[FIELD_OBJECT] = {decode_object, "{\"type\":\"object\",\"additionalProperties\":false}",
		NULL, NULL},
	[FIELD_LINE_OR_LIST] = {decode_line_or_list,
		"{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\"}]}", NULL, NULL},
};

/* Of a list of strings, or a map, the first entry that is wrong by itself; NULL: it is not one alone. */
static const char *wrong_entry(
	const struct field *field, const json_t *value, const char **ret_what)
{
	const char *name;
	json_t *entry;
	size_t i;

	if (field->type == FIELD_STRING_MAP) {
		json_object_foreach((json_t *)value, name, entry)
		{
			json_auto_t *alone = json_pack("{s:O}", name, entry);

			*ret_what = field->check(alone);
			if (*ret_what)
				return name;
		}
	} else if (field->type == FIELD_STRING_LIST) {
		json_array_foreach((json_t *)value, i, entry)
		{
			json_auto_t *alone = json_pack("[O]", entry);

			*ret_what = field->check(alone);
			if (*ret_what)
				return json_string_value(entry);
		}
	}
	return NULL;
}

/* The check of its row: names the entry that is wrong, of a map its name alone. */
static int check_value(
	const struct field *field, const char *prefix, const json_t *value, struct err *err)
{
	const char *wrong = field->check ? field->check(value) : NULL;
	const char *what, *entry;

	if (!wrong)
		return 0;
	what = wrong;
	entry = field->flags & FIELD_NAME ? json_string_value(value)
					  : wrong_entry(field, value, &what);
	return entry ? bad_text(err, prefix, field, what, entry) : bad(err, prefix, field, wrong);
}

static int decode_field(const struct field *field, const char *prefix, const json_t *value,
	void *out, struct err *err)
{
	int r;

	if (json_is_null(value) && field->type != FIELD_JSON) {
		if (!(field->flags & FIELD_NULLABLE))
			return bad(err, prefix, field, "must not be null");
		if (field->type == FIELD_INTEGER || field->type == FIELD_SIZE)
			*(int64_t *)place(field, out) = FIELD_NULL;
		return 0;
	}
	r = types[field->type].decode(field, prefix, value, out, err);
	return r < 0 ? r : check_value(field, prefix, value, err);
}

static const struct field *find_row(const struct field *rows, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

/* What may have been meant: a field of an object that is here, or the row whose name is the nearest. */
static void find_meant(const struct fields *fields, const char *key, char *ret_name, size_t size)
{
	unsigned least = SIMILAR_MAX + 1;

	ret_name[0] = '\0';
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *row = &fields->rows[i];
		unsigned distance = similar_distance(row->name, key);

		if (row->type == FIELD_OBJECT && find_row(row->sub, row->sub_count, key)) {
			snprintf(ret_name, size, "%s.%s", row->name, key);
			return;
		}
		if (distance < least && distance < strlen(row->name)) {
			least = distance;
			snprintf(ret_name, size, "%s", row->name);
		}
	}
}

static int bad_name(
	const struct fields *fields, const char *prefix, const char *key, struct err *err)
{
	static const char list[] = "the fields are listed in /openapi.json";
	char meant[64], remedy[sizeof(err->remedy)];

	find_meant(fields, key, meant, sizeof(meant));
	if (meant[0])
		snprintf(remedy, sizeof(remedy), "did you mean %s%s? %s", prefix, meant, list);
	return err_explain(err, ERR_INVALID, "unknown_field", meant[0] ? remedy : list,
		"unknown field %s%.64s", prefix, key);
}

static int decode(const struct fields *fields, const char *prefix, const json_t *object, void *out,
	struct err *err)
{
	size_t known = 0;
	const char *key;
	json_t *value;

	for (size_t i = 0; i < fields->count; i++) {
		const struct field *field = &fields->rows[i];
		int r;

		value = json_object_get(object, field->name);
		if (!value && (field->flags & FIELD_REQUIRED))
			return bad(err, prefix, field, "is missing");
		if (!value)
			continue;
		known++;
		r = decode_field(field, prefix, value, out, err);
		if (r < 0)
			return r;
	}
	if (known == json_object_size(object))
		return 0;
	json_object_foreach((json_t *)object, key, value)
	{
		if (!find_row(fields->rows, fields->count, key))
			return bad_name(fields, prefix, key, err);
	}
	return 0;
}

int fields_decode(const struct fields *fields, const json_t *object, void *out, struct err *err)
{
	return decode(fields, "", object, out, err);
}

void fields_clear(const struct fields *fields, void *out)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *field = &fields->rows[i];
		struct fields sub = {field->sub, field->sub_count};

		if (field->type == FIELD_INTEGER || field->type == FIELD_SIZE)
			*(int64_t *)place(field, out) = FIELD_ABSENT;
		else if (field->type == FIELD_NUMBER)
			*(double *)place(field, out) = NAN;
		else if (field->type == FIELD_OBJECT)
			fields_clear(&sub, place(field, out));
	}
}

size_t fields_copy_map(const json_t *map, struct text_pair pairs[])
{
	const char *name;
	json_t *value;
	size_t i = 0;

	json_object_foreach((json_t *)map, name, value) pairs[i++] =
		(struct text_pair){name, json_string_value(value)};
	return i;
}

size_t fields_copy_list(const json_t *list, const char *texts[])
{
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry) texts[i] = json_string_value(entry);
	return json_array_size(list);
}

static void fill_line_or_list(json_t *schema, const struct field *field)
{
	struct fields sub = {field->sub, field->sub_count};
	json_t *either = json_object_get(schema, "oneOf");
	json_t *line = json_array_get(either, 0), *list = json_array_get(either, 1);

	json_object_set_new(line, "minLength", json_integer(field->min));
	json_object_set_new(line, "maxLength", json_integer(field->max));
	json_object_set_new(list, "items", fields_schema(&sub));
	json_object_set_new(list, "maxItems", json_integer(FIELD_LIST_MAX));
	if (field->flags & FIELD_NULLABLE)
		json_array_append_new(either, json_pack("{s:s}", "type", "null"));
}

/* Of an object in whose place false may stand. */
static json_t *schema_or_false(json_t *object)
{
	return json_pack("{s:O, s:[o, {s:s, s:[b], s:s}]}", "description",
		json_object_get(object, "description"), "oneOf", object, "type", "boolean", "enum",
		0, "description", "There is none.");
}

static json_t *field_schema(const struct field *field)
{
	json_t *schema = json_loads(types[field->type].schema, 0, NULL);
	struct fields sub = {field->sub, field->sub_count};

	assert(schema);
	json_object_set_new(schema, "description", json_string(field->doc));
	if (types[field->type].min) {
		json_object_set_new(schema, types[field->type].min,
			field->flags & FIELD_FRACTION ? json_real(least_number(field))
						      : json_integer(field->min));
		json_object_set_new(schema, types[field->type].max, json_integer(field->max));
	}
	if (field->choices) {
		json_t *values = json_array();

		for (const char *const *choice = field->choices; *choice; choice++)
			json_array_append_new(values, json_string(*choice));
		json_object_set_new(schema, "enum", values);
	}
	if (field->type == FIELD_OBJECT) {
		json_t *below = fields_schema(&sub);

		json_object_update(schema, below);
		json_object_set_new(schema, "description", json_string(field->doc));
		json_decref(below);
	}
	if (field->type == FIELD_LINE_OR_LIST)
		fill_line_or_list(schema, field);
	if (field->type == FIELD_OBJECT_LIST)
		json_object_set_new(schema, "items", fields_schema(&sub));
	if ((field->flags & FIELD_NULLABLE) && json_object_get(schema, "type"))
		json_object_set_new(schema, "type",
			json_pack("[O, s]", json_object_get(schema, "type"), "null"));
	return field->flags & FIELD_OR_FALSE ? schema_or_false(schema) : schema;
}

json_t *fields_schema(const struct fields *fields)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema;

	for (size_t i = 0; i < fields->count; i++) {
		assert(fields->rows[i].name); /* a table that is longer than its rows */
		json_object_set_new(
			properties, fields->rows[i].name, field_schema(&fields->rows[i]));
		if (fields->rows[i].flags & FIELD_REQUIRED)
			json_array_append_new(required, json_string(fields->rows[i].name));
	}
	schema = json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
		"properties", properties);
	if (json_array_size(required) > 0)
		json_object_set(schema, "required", required);
	json_decref(required);
	return schema;
}
