/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/dependency_body.h"

static const char *check_list(const json_t *list, const char *(*check)(const char *text))
{
	const json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (check(json_string_value(entry)))
			return check(json_string_value(entry));
	}
	return NULL;
}

static const char *check_python(const json_t *list)
{
	return check_list(list, dependency_set_check_python);
}

static const char *check_node(const json_t *list)
{
	return check_list(list, dependency_set_check_node);
}

const struct field dependency_body_rows[DEPENDENCY_BODY_ROWS] = {
	{"python", FIELD_STRING_LIST, offsetof(struct dependency_body, python), 0,
		DEPENDENCY_PACKAGES_MAX, 0,
		"Packages that pip installs: name, name==1.2, name[extra]>=1,<2.",
		.check = check_python},
	{"node", FIELD_STRING_LIST, offsetof(struct dependency_body, node), 0,
		DEPENDENCY_PACKAGES_MAX, 0,
		"Packages that npm installs: name, name@1.2, @scope/name@^1.", .check = check_node},
	{"no_cache", FIELD_BOOLEAN, offsetof(struct dependency_body, no_cache), 0, 0, 0,
		"Install them anew, with the newest versions that fit, also if the same packages "
		"were installed before."},
};
const struct fields dependency_body_fields = FIELDS(dependency_body_rows);

struct dependency_spec dependency_body_decode(
	const struct dependency_body *body, struct dependency_parts *parts)
{
	return (struct dependency_spec){
		.python = {parts->python, fields_copy_list(body->python, parts->python)},
		.node = {parts->node, fields_copy_list(body->node, parts->node)},
		.no_cache = body->no_cache == FIELD_TRUE};
}
