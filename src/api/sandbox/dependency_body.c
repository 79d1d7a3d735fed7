/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/dependency_body.h"

#include "wire/agent.h"

#include <string.h>

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

/* Of a body at `at`; one table is a part of the other. */
#define BODY_ROWS(at)                                                                              \
	{"python", FIELD_STRING_LIST, (at) + offsetof(struct dependency_body, python), 0,          \
		DEPENDENCY_PACKAGES_MAX, 0,                                                        \
		"Packages that pip installs: name, name==1.2, name[extra]>=1,<2.",                 \
		.check = check_python},                                                            \
		{"node", FIELD_STRING_LIST, (at) + offsetof(struct dependency_body, node), 0,      \
			DEPENDENCY_PACKAGES_MAX, 0,                                                \
			"Packages that npm installs: name, name@1.2, @scope/name@^1.",             \
			.check = check_node},                                                      \
		{"requirements", FIELD_STRING,                                                     \
			(at) + offsetof(struct dependency_body, files[DEPENDENCY_REQUIREMENTS]),   \
			1, DEPENDENCY_FILE_MAX, 0,                                                 \
			"Text of a requirements.txt, for pip install -r. Files that it includes "  \
			"are not there."},                                                         \
		{"package_json", FIELD_STRING,                                                     \
			(at) + offsetof(struct dependency_body, files[DEPENDENCY_PACKAGE_JSON]),   \
			1, DEPENDENCY_FILE_MAX, 0,                                                 \
			"Text of a package.json, for npm ci; its scripts do not run."},            \
		{"package_lock", FIELD_STRING,                                                     \
			(at) + offsetof(struct dependency_body, files[DEPENDENCY_PACKAGE_LOCK]),   \
			1, DEPENDENCY_FILE_MAX, 0,                                                 \
			"Text of the package-lock.json that belongs to it."},                      \
	{                                                                                          \
		"no_cache", FIELD_BOOLEAN, (at) + offsetof(struct dependency_body, no_cache), 0,   \
			0, 0,                                                                      \
			"Install them anew, with the newest versions that fit, also if the same "  \
			"packages were installed before."                                          \
	}

const struct field dependency_body_rows[DEPENDENCY_BODY_ROWS] = {BODY_ROWS(0)};

static const struct field request_rows[] = {
	BODY_ROWS(offsetof(struct dependency_request, body)),
	{"requirements_path", FIELD_STRING, offsetof(struct dependency_request, requirements_path),
		1, AGENT_PATH_MAX - 1, 0,
		"Absolute path of a requirements.txt in the sandbox, instead of its text."},
	{"package_path", FIELD_STRING, offsetof(struct dependency_request, package_path), 1,
		AGENT_PATH_MAX - 1, 0,
		"Absolute path of a directory in the sandbox with package.json and "
		"package-lock.json, instead of their texts."},
};
const struct fields dependency_request_fields = FIELDS(request_rows);

struct dependency_spec dependency_body_decode(
	const struct dependency_body *body, struct dependency_parts *parts)
{
	struct dependency_spec spec = {
		.python = {parts->python, fields_copy_list(body->python, parts->python)},
		.node = {parts->node, fields_copy_list(body->node, parts->node)},
		.no_cache = body->no_cache == FIELD_TRUE};

	memcpy(spec.files, body->files, sizeof(spec.files));
	return spec;
}
