/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/body.h"

#include <stdbool.h>
#include <string.h>

/* The deepest nesting. jansson recurses up to 2048 levels, which is more than a document needs. */
static unsigned depth_of(const char *text, size_t len)
{
	unsigned depth = 0, deepest = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\') {
			i++;
		} else if (text[i] == '"') {
			quoted = !quoted;
		} else if (!quoted && (text[i] == '{' || text[i] == '[')) {
			if (++depth > deepest)
				deepest = depth;
		} else if (!quoted && (text[i] == '}' || text[i] == ']') && depth > 0) {
			depth--;
		}
	}
	return deepest;
}

/* Without what stands there in the body, which may be a secret. */
static size_t reason_len(const char *text)
{
	const char *quote = strstr(text, " near '");

	return quote ? (size_t)(quote - text) : strlen(text);
}

int body_parse_any(const char *text, size_t len, json_t **ret_value, struct err *err)
{
	json_error_t why;

	if (len == 0)
		return err_explain(err, ERR_INVALID, "invalid_json", NULL, "the body is empty");
	if (depth_of(text, len) > BODY_DEPTH)
		return err_explain(err, ERR_INVALID, "invalid_json", NULL,
			"the body is nested more than %d levels deep", BODY_DEPTH);
	*ret_value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!*ret_value && json_error_code(&why) == json_error_null_character)
		return err_explain(err, ERR_INVALID, "invalid_json", NULL,
			"the body has \\u0000 at line %d, column %d: no text that is sent may have "
			"a "
			"NUL character",
			why.line, why.column);
	if (!*ret_value)
		return err_explain(err, ERR_INVALID, "invalid_json", NULL,
			"the body is not valid JSON: line %d, column %d: %.*s", why.line,
			why.column, (int)(reason_len(why.text)), why.text);
	return 0;
}

int body_parse(const char *text, size_t len, json_t **ret_object, struct err *err)
{
	json_t *object;
	int r = body_parse_any(text, len, &object, err);

	if (r < 0)
		return r;
	if (!json_is_object(object)) {
		json_decref(object);
		return err_explain(
			err, ERR_INVALID, "invalid_json", NULL, "the body must be a JSON object");
	}
	*ret_object = object;
	return 0;
}
