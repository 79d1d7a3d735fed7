/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fields.h"
#include "api/handlers.h"
#include "api/process/command_body.h"
#include "api/sandbox/sandbox_body.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct inner {
	const char *mode;
	int64_t depth;
	double ratio;
};

struct body {
	const char *text, *choice, *must, *maybe;
	int64_t whole, whole_or_null, size;
	double number;
	enum field_boolean flag;
	const json_t *map, *list, *ports, *objects;
	struct inner inner, inner_or_false;
};

static const char *const choices[] = {"red", "blue", NULL};

static const char *no_x(const json_t *value)
{
	return strchr(json_string_value(value), 'x') ? "has an x" : NULL;
}

static const struct field inner_rows[] = {
	{"mode", FIELD_STRING, offsetof(struct inner, mode), 1, 8, FIELD_REQUIRED, "mode"},
	{"depth", FIELD_INTEGER, offsetof(struct inner, depth), 0, 5, FIELD_NULLABLE, "depth"},
	{"ratio", FIELD_NUMBER, offsetof(struct inner, ratio), 0, 1, 0, "ratio"},
};

static const struct field rows[] = {
	{"must", FIELD_STRING, offsetof(struct body, must), 0, 100, FIELD_REQUIRED, "required"},
	{"text", FIELD_STRING, offsetof(struct body, text), 2, 4, 0, "two to four bytes",
		.check = no_x},
	{"choice", FIELD_STRING, offsetof(struct body, choice), 0, 100, 0, "a colour",
		.choices = choices},
	{"maybe", FIELD_STRING, offsetof(struct body, maybe), 1, 10, FIELD_NULLABLE, "may be null"},
	{"whole", FIELD_INTEGER, offsetof(struct body, whole), -5, 5, 0, "a whole number"},
	{"whole_or_null", FIELD_INTEGER, offsetof(struct body, whole_or_null), 1, INT64_MAX,
		FIELD_NULLABLE, "a whole number or null"},
	{"number", FIELD_NUMBER, offsetof(struct body, number), -1, 1, 0, "a number"},
	{"flag", FIELD_BOOLEAN, offsetof(struct body, flag), 0, 0, 0, "a flag"},
	{"size", FIELD_SIZE, offsetof(struct body, size), 1024, 1ll << 40, 0, "a size"},
	{"map", FIELD_STRING_MAP, offsetof(struct body, map), 1, 2, 0, "a map"},
	{"list", FIELD_STRING_LIST, offsetof(struct body, list), 1, 2, 0, "a list"},
	{"ports", FIELD_PORT_LIST, offsetof(struct body, ports), 0, 3, 0, "ports"},
	{"objects", FIELD_OBJECT_LIST, offsetof(struct body, objects), 0, 2, 0, "objects",
		.sub = inner_rows, .sub_count = array_len(inner_rows)},
	{"inner", FIELD_OBJECT, offsetof(struct body, inner), 0, 0, 0, "an object",
		.sub = inner_rows, .sub_count = array_len(inner_rows)},
	{"inner_or_false", FIELD_OBJECT, offsetof(struct body, inner_or_false), 0, 0,
		FIELD_OR_FALSE, "an object, or none", .sub = inner_rows,
		.sub_count = array_len(inner_rows)},
};

static const struct fields fields = FIELDS(rows);

/* Decodes {"must": "", <text>}; what is borrowed stays until release(). */
static json_t *borrowed;

static int decode(const char *text, struct body *body, struct err *err)
{
	char *json = mem_printf("{\"must\":\"\"%s%s}", text[0] ? "," : "", text);
	json_error_t why;
	int r;

	json_decref(borrowed);
	borrowed = json_loads(json, 0, &why);
	if (!borrowed)
		fail_msg("%s: %s", json, why.text);
	free(json);
	*body = (struct body){0};
	*err = (struct err){0};
	fields_clear(&fields, body);
	r = fields_decode(&fields, borrowed, body, err);
	assert_true(r == 0 || (r == -EINVAL && err->kind == ERR_INVALID));
	return r;
}

static int release(void **state)
{
	(void)state;
	json_decref(take_ptr(&borrowed));
	return 0;
}

static struct body accepted(const char *text)
{
	struct body body;
	struct err err;

	if (decode(text, &body, &err) < 0)
		fail_msg("%s is refused: %s", text, err.message);
	return body;
}

/* It is refused, and the message names the field. */
static void refused(const char *text, const char *field)
{
	struct body body;
	struct err err;
	char *name = mem_printf("field %s ", field);

	if (decode(text, &body, &err) == 0)
		fail_msg("%s is accepted", text);
	assert_string_equal(err.code, "invalid_field");
	if (!strstr(err.message, name))
		fail_msg("%s: the message does not name %s: %s", text, field, err.message);
	free(name);
}

static void what_is_not_given_is_absent(void **state)
{
	struct body body = accepted("");

	(void)state;
	assert_null(body.text);
	assert_true(body.whole == FIELD_ABSENT && body.size == FIELD_ABSENT);
	assert_true(body.whole_or_null == FIELD_ABSENT);
	assert_true(isnan(body.number));
	assert_int_equal(body.flag, FIELD_UNSET);
	assert_null(body.map);
	assert_true(body.inner.depth == FIELD_ABSENT && isnan(body.inner.ratio));
}

static void a_required_field_must_be_there(void **state)
{
	json_t *object = json_object();
	struct body body = {0};
	struct err err;

	(void)state;
	fields_clear(&fields, &body);
	assert_int_equal(fields_decode(&fields, object, &body, &err), -EINVAL);
	assert_non_null(strstr(err.message, "field must is missing"));
	json_decref(object);
	refused("\"inner\":{}", "inner.mode");
}

static void strings_have_lengths_in_bytes_choices_and_checks(void **state)
{
	(void)state;
	assert_string_equal(accepted("\"text\":\"ab\"").text, "ab");
	assert_string_equal(accepted("\"text\":\"abcd\"").text, "abcd");
	refused("\"text\":\"a\"", "text");
	refused("\"text\":\"abcde\"", "text");
	refused("\"text\":\"\u00fc\u00fc\u00fc\"", "text"); /* three characters, six bytes */
	refused("\"text\":\"axb\"", "text");
	refused("\"text\":5", "text");
	refused("\"text\":null", "text");
	refused("\"text\":[\"ab\"]", "text");
	assert_string_equal(accepted("\"choice\":\"blue\"").choice, "blue");
	refused("\"choice\":\"green\"", "choice");
	refused("\"choice\":\"\"", "choice");
	refused("\"choice\":\"redd\"", "choice");
}

static void whole_numbers_have_bounds(void **state)
{
	(void)state;
	assert_int_equal(accepted("\"whole\":-5").whole, -5);
	assert_int_equal(accepted("\"whole\":5").whole, 5);
	assert_int_equal(accepted("\"whole\":0").whole, 0);
	refused("\"whole\":6", "whole");
	refused("\"whole\":-6", "whole");
	refused("\"whole\":1.0", "whole");
	refused("\"whole\":\"1\"", "whole");
	refused("\"whole\":true", "whole");
	assert_true(accepted("\"whole_or_null\":9223372036854775807").whole_or_null == INT64_MAX);
	refused("\"whole_or_null\":0", "whole_or_null");
	/* What stands for absent and null cannot be sent. */
	refused("\"whole_or_null\":-9223372036854775808", "whole_or_null");
	refused("\"whole_or_null\":-9223372036854775807", "whole_or_null");
}

static void numbers_have_bounds(void **state)
{
	(void)state;
	assert_true(accepted("\"number\":0.5").number == 0.5);
	assert_true(accepted("\"number\":-1").number == -1);
	assert_true(accepted("\"number\":1").number == 1);
	refused("\"number\":1.0000001", "number");
	refused("\"number\":1e308", "number");
	refused("\"number\":\"0.5\"", "number");
	refused("\"number\":false", "number");
}

static void booleans_are_true_or_false(void **state)
{
	(void)state;
	assert_int_equal(accepted("\"flag\":true").flag, FIELD_TRUE);
	assert_int_equal(accepted("\"flag\":false").flag, FIELD_FALSE);
	refused("\"flag\":1", "flag");
	refused("\"flag\":\"true\"", "flag");
	refused("\"flag\":null", "flag");
}

static void sizes_are_numbers_or_have_a_unit(void **state)
{
	(void)state;
	assert_int_equal(accepted("\"size\":1024").size, 1024);
	assert_int_equal(accepted("\"size\":\"1024\"").size, 1024);
	assert_int_equal(accepted("\"size\":\"1Ki\"").size, 1024);
	assert_true(accepted("\"size\":\"1Ti\"").size == 1ll << 40);
	refused("\"size\":1023", "size");
	refused("\"size\":\"2Ti\"", "size");
	refused("\"size\":-1", "size");
	refused("\"size\":1024.0", "size");
	refused("\"size\":\"1K\"", "size");
	refused("\"size\":\"1 Ki\"", "size");
	refused("\"size\":\"\"", "size");
	refused("\"size\":\"99999999999999999999\"", "size");
	refused("\"size\":[]", "size");
}

static void maps_and_lists_hold_strings_and_count(void **state)
{
	(void)state;
	assert_int_equal(json_object_size(accepted("\"map\":{\"a\":\"b\"}").map), 1);
	refused("\"map\":{}", "map");
	refused("\"map\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}", "map");
	refused("\"map\":{\"a\":1}", "map");
	refused("\"map\":{\"a\":null}", "map");
	refused("\"map\":[]", "map");
	assert_int_equal(json_array_size(accepted("\"list\":[\"a\",\"b\"]").list), 2);
	refused("\"list\":[]", "list");
	refused("\"list\":[\"a\",\"b\",\"c\"]", "list");
	refused("\"list\":[1]", "list");
	refused("\"list\":{\"0\":\"a\"}", "list");
	refused("\"list\":\"a\"", "list");
}

static void ports_are_ports_and_distinct(void **state)
{
	(void)state;
	assert_int_equal(json_array_size(accepted("\"ports\":[1,65535]").ports), 2);
	assert_int_equal(json_array_size(accepted("\"ports\":[]").ports), 0);
	assert_int_equal(json_array_size(accepted("\"ports\":[{\"port\":1}]").ports), 1);
	refused("\"ports\":[0]", "ports");
	refused("\"ports\":[65536]", "ports");
	refused("\"ports\":[80,443,80]", "ports");
	refused("\"ports\":[80.0]", "ports");
	refused("\"ports\":[\"80\"]", "ports");
	refused("\"ports\":[1,2,3,4]", "ports");
	refused("\"ports\":80", "ports");
}

static void objects_of_a_list_are_checked_each(void **state)
{
	(void)state;
	assert_int_equal(json_array_size(accepted("\"objects\":[{\"mode\":\"a\"}]").objects), 1);
	assert_non_null(accepted("\"objects\":[]").objects);
	refused("\"objects\":[1]", "objects");
	refused("\"objects\":{}", "objects");
	refused("\"objects\":[{\"mode\":\"a\"},{\"mode\":\"a\"},{\"mode\":\"a\"}]", "objects");
	refused("\"objects\":[{\"mode\":\"a\"},{\"mode\":\"a\",\"depth\":6}]", "objects[1].depth");
	refused("\"objects\":[{}]", "objects[0].mode");
}

static void null_is_for_those_that_say_so(void **state)
{
	(void)state;
	assert_true(accepted("\"whole_or_null\":null").whole_or_null == FIELD_NULL);
	assert_null(accepted("\"maybe\":null").maybe);
	assert_true(
		accepted("\"inner\":{\"mode\":\"m\",\"depth\":null}").inner.depth == FIELD_NULL);
	refused("\"whole\":null", "whole");
	refused("\"size\":null", "size");
	refused("\"map\":null", "map");
	refused("\"inner\":null", "inner");
	refused("\"number\":null", "number");
}

static void objects_are_decoded_in_place_and_named_with_a_dot(void **state)
{
	struct body body = accepted("\"inner\":{\"mode\":\"m\",\"depth\":5,\"ratio\":0.25}");

	(void)state;
	assert_string_equal(body.inner.mode, "m");
	assert_int_equal(body.inner.depth, 5);
	assert_true(body.inner.ratio == 0.25);
	refused("\"inner\":{\"mode\":\"m\",\"depth\":6}", "inner.depth");
	refused("\"inner\":[]", "inner");
	refused("\"inner\":false", "inner");
	assert_null(accepted("\"inner_or_false\":false").inner_or_false.mode);
	assert_string_equal(
		accepted("\"inner_or_false\":{\"mode\":\"m\"}").inner_or_false.mode, "m");
	refused("\"inner_or_false\":true", "inner_or_false");
	refused("\"inner_or_false\":{}", "inner_or_false.mode");
	refused("\"inner\":\"m\"", "inner");
}

static void assert_unknown(const char *text, const char *name)
{
	struct body body;
	struct err err;

	assert_int_equal(decode(text, &body, &err), -EINVAL);
	assert_string_equal(err.code, "unknown_field");
	assert_non_null(strstr(err.message, name));
}

static void unknown_fields_are_refused_by_name(void **state)
{
	char *text = mem_printf("\"%0500d\":1", 7);

	(void)state;
	assert_unknown("\"nonsense\":1", "nonsense");
	assert_unknown("\"Must\":\"\"", "Must");
	assert_unknown("\"inner\":{\"mode\":\"m\",\"extra\":1}", "inner.extra");
	assert_unknown("\"text\":\"ab\",\"other\":null", "other");
	assert_unknown(text, "00000000");
	free(text);
}

static void assert_meant(const char *text, const char *begin)
{
	struct body body;
	struct err err;

	assert_int_equal(decode(text, &body, &err), -EINVAL);
	assert_string_equal(err.code, "unknown_field");
	if (strncmp(err.remedy, begin, strlen(begin)) != 0)
		fail_msg("%s: %s", text, err.remedy);
}

static void the_field_that_was_meant_is_named(void **state)
{
	(void)state;
	assert_meant("\"depth\":1", "did you mean inner.depth? the fields are listed");
	assert_meant("\"txet\":1", "did you mean text? ");
	assert_meant("\"inner\":{\"mode\":\"m\",\"deepth\":1}", "did you mean inner.depth? ");
	assert_meant("\"nonsense\":1", "the fields are listed");
}

static const json_t *property(const json_t *schema, const char *name)
{
	return json_object_get(json_object_get(schema, "properties"), name);
}

static json_int_t keyword(const json_t *schema, const char *name, const char *key)
{
	const json_t *value = json_object_get(property(schema, name), key);

	if (!json_is_integer(value))
		fail_msg("%s has no %s", name, key);
	return json_integer_value(value);
}

static void the_schema_says_what_the_decoder_does(void **state)
{
	json_t *schema = fields_schema(&fields);
	const json_t *required = json_object_get(schema, "required"), *inner, *either;

	(void)state;
	assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
	assert_int_equal(json_object_size(json_object_get(schema, "properties")), array_len(rows));
	assert_int_equal(json_array_size(required), 1);
	assert_string_equal(json_string_value(json_array_get(required, 0)), "must");
	assert_int_equal(keyword(schema, "text", "minLength"), 2);
	assert_int_equal(keyword(schema, "text", "maxLength"), 4);
	assert_int_equal(keyword(schema, "whole", "minimum"), -5);
	assert_int_equal(keyword(schema, "map", "maxProperties"), 2);
	assert_int_equal(keyword(schema, "list", "minItems"), 1);
	assert_int_equal(keyword(schema, "objects", "maxItems"), 2);
	assert_int_equal(json_array_size(json_object_get(property(schema, "choice"), "enum")), 2);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(property(schema, "maybe"), "type"), 1)),
		"null");
	inner = property(schema, "inner");
	assert_string_equal(json_string_value(json_object_get(inner, "description")), "an object");
	assert_true(json_is_false(json_object_get(inner, "additionalProperties")));
	assert_non_null(property(inner, "ratio"));
	either = json_object_get(property(schema, "inner_or_false"), "oneOf");
	assert_non_null(property(json_array_get(either, 0), "ratio"));
	assert_true(json_is_false(
		json_array_get(json_object_get(json_array_get(either, 1), "enum"), 0)));
	for (size_t i = 0; i < array_len(rows); i++)
		assert_string_equal(json_string_value(json_object_get(
					    property(schema, rows[i].name), "description")),
			rows[i].doc);
	json_decref(schema);
}

/* --- the tables that are served --- */

static int decode_with(const struct fields *table, const char *text, struct err *err)
{
	char body[1024];
	json_t *object = json_loads(text, 0, NULL);
	int r;

	assert_non_null(object);
	memset(body, 0, sizeof(body));
	fields_clear(table, body);
	r = fields_decode(table, object, body, err);
	json_decref(object);
	return r;
}

static void assert_verdicts(
	const struct fields *table, const char *const *good, const char *const *bad)
{
	struct err err;

	for (; *good; good++) {
		if (decode_with(table, *good, &err) < 0)
			fail_msg("%s: %s", *good, err.message);
	}
	for (; *bad; bad++) {
		if (decode_with(table, *bad, &err) == 0)
			fail_msg("%s is accepted", *bad);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_create_body_is_checked(void **state)
{
	static const char *const good[] = {"{}",
		"{\"id\":\"00000000000000000000000000\",\"template\":\"host\",\"project\":null}",
		"{\"resources\":{\"cpu\":0.5,\"memory\":\"16Mi\",\"disk\":1048576,\"pids\":4}}",
		"{\"env\":{\"_A9\":\"\"},\"labels\":{\"a.b/c-d_e\":\"\u00fc\"},\"ports\":[8080]}",
		"{\"network\":{\"mode\":\"allowlist\",\"allow\":[\"*.example.org:443\",\"10.0.0.0/"
		"8\"]}}",
		"{\"idle_timeout_s\":null,\"lifetime_s\":1,\"private\":false,\"members\":[]}",
		"{\"start\":\"npm run dev\"}", "{\"start\":[]}",
		"{\"start\":[{\"name\":\"a\",\"command\":\"b\",\"cwd\":\"/"
		"\",\"env\":{\"A\":\"\"}}]}",
		NULL};
	static const char *const bad[] = {"{\"id\":\"0000000000000000000000000A\"}",
		"{\"id\":\"0000000000000000000000000\"}",
		"{\"id\":\"../../../../../../../../../etc\"}", "{\"template\":\"\"}",
		"{\"project\":\"-x\"}", "{\"project\":\"a b\"}", "{\"project\":\"\"}",
		"{\"resources\":{\"memory\":\"15Mi\"}}", "{\"resources\":{\"pids\":3}}",
		"{\"resources\":{\"cpu\":-1}}", "{\"resources\":{\"cpu\":1025}}",
		"{\"env\":{\"9A\":\"\"}}", "{\"env\":{\"A=B\":\"\"}}", "{\"env\":{\"\":\"\"}}",
		"{\"env\":{\"A-B\":\"\"}}", "{\"labels\":{\"\":\"x\"}}",
		"{\"labels\":{\"a b\":\"x\"}}", "{\"labels\":{\"a\":\"x\\ny\"}}",
		"{\"network\":{\"mode\":\"everything\"}}", "{\"network\":{\"allow\":[\"\"]}}",
		"{\"network\":{\"allow\":[\"a b\"]}}", "{\"idle_timeout_s\":0}",
		"{\"idle_timeout_s\":31622401}", "{\"members\":[1]}", "{\"owner\":\"me\"}",
		"{\"start\":\"\"}", "{\"start\":null}", "{\"start\":{}}", "{\"start\":[\"a\"]}",
		"{\"start\":[{\"name\":\"a\"}]}", "{\"start\":[{\"name\":\"a\",\"command\":1}]}",
		"{\"start\":[{\"name\":\"a\",\"command\":\"b\"},{\"name\":\"a\",\"command\":\"c\"}]"
		"}",
		"{\"start\":[{},{},{},{},{},{},{},{},{}]}", NULL};

	(void)state;
	assert_verdicts(&sandbox_body_fields, good, bad);
}

static void an_exec_body_is_checked(void **state)
{
	static const char *const good[] = {"{\"command\":\"true\"}", "{\"argv\":[\"a\",\"\"]}",
		"{\"command\":\"x\",\"cwd\":\"/\",\"user\":\"root\",\"timeout_ms\":null}", NULL};
	static const char *const bad[] = {"{\"command\":\"\"}", "{\"argv\":[]}",
		"{\"argv\":[\"\"]}", "{\"argv\":[1]}", "{\"command\":\"x\",\"cwd\":\"relative\"}",
		"{\"command\":\"x\",\"cwd\":\"\"}", "{\"command\":\"x\",\"timeout_ms\":0}",
		"{\"command\":\"x\",\"env\":{\"A B\":\"\"}}", "{\"cmd\":\"x\"}", NULL};

	(void)state;
	assert_verdicts(&command_body_fields, good, bad);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_given_is_absent),
		cmocka_unit_test(a_required_field_must_be_there),
		cmocka_unit_test(strings_have_lengths_in_bytes_choices_and_checks),
		cmocka_unit_test(whole_numbers_have_bounds),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(booleans_are_true_or_false),
		cmocka_unit_test(sizes_are_numbers_or_have_a_unit),
		cmocka_unit_test(maps_and_lists_hold_strings_and_count),
		cmocka_unit_test(ports_are_ports_and_distinct),
		cmocka_unit_test(objects_of_a_list_are_checked_each),
		cmocka_unit_test(null_is_for_those_that_say_so),
		cmocka_unit_test(objects_are_decoded_in_place_and_named_with_a_dot),
		cmocka_unit_test(unknown_fields_are_refused_by_name),
		cmocka_unit_test(the_field_that_was_meant_is_named),
		cmocka_unit_test(the_schema_says_what_the_decoder_does),
		cmocka_unit_test(a_create_body_is_checked),
		cmocka_unit_test(an_exec_body_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
