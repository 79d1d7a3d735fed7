/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/route/target.h"

#include <stdbool.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes text in place. In a query a plus is a space, as URLSearchParams and forms write it. */
static int decode(char *text, bool is_query, struct err *err)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from == '+' && is_query) {
			*to++ = ' ';
			continue;
		}
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = hex_digit(from[1]);
		low = high < 0 ? -1 : hex_digit(from[2]);
		if (low < 0)
			return err_set(err, ERR_INVALID, "the URL has a broken percent escape");
		if (high == 0 && low == 0)
			return err_set(err, ERR_INVALID, "the URL has an encoded NUL byte");
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

static int parse_path(char *path, struct target *target, struct err *err)
{
	if (path[1] == '\0')
		return 0;
	while (path) {
		char *segment = path + 1;
		int r;

		if (target->segment_count == TARGET_SEGMENTS)
			return err_explain(err, ERR_NOT_FOUND, "route_not_found", NULL,
				"no such route: the path has too many parts");
		path = strchr(segment, '/');
		if (path)
			*path = '\0';
		r = decode(segment, false, err);
		if (r < 0)
			return r;
		target->segments[target->segment_count++] = segment;
	}
	return 0;
}

static int add_param(struct target *target, char *name, char *value, struct err *err)
{
	int r = decode(name, true, err);

	if (r == 0)
		r = decode(value, true, err);
	if (r < 0)
		return r;
	if (target_query(target, name) && !target->repeated)
		target->repeated = name;
	if (target->param_count == TARGET_PARAMS)
		return err_set(err, ERR_INVALID, "more than %d query parameters", TARGET_PARAMS);
	target->params[target->param_count++] = (struct target_param){name, value};
	return 0;
}

static int parse_query(char *query, struct arena *arena, struct target *target, struct err *err)
{
	char *rest = query;
	char *part;

	target->params = arena_alloc(arena, sizeof(*target->params) * TARGET_PARAMS);
	while ((part = strsep(&rest, "&"))) {
		char *value = strchr(part, '=');
		int r;

		if (*part == '\0')
			continue;
		if (value)
			*value++ = '\0';
		else
			value = part + strlen(part);
		r = add_param(target, part, value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int target_parse(const char *raw, struct arena *arena, struct target *ret_target, struct err *err)
{
	struct target target = {0};
	size_t len = strlen(raw);
	char *text, *query;
	int r;

	if (len > TARGET_MAX)
		return err_explain(err, ERR_TOO_LARGE, "url_too_long", NULL,
			"the URL is longer than %d bytes", TARGET_MAX);
	if (raw[0] != '/')
		return err_set(err, ERR_INVALID, "the request target must begin with a slash");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)raw[i] <= ' ' || (unsigned char)raw[i] >= 0x7f || raw[i] == '#')
			return err_set(err, ERR_INVALID, "the URL has a byte that must be escaped");
	text = arena_strndup(arena, raw, len);
	query = strchr(text, '?');
	if (query)
		*query++ = '\0';
	r = parse_path(text, &target, err);
	if (r == 0 && query && *query)
		r = parse_query(query, arena, &target, err);
	if (r < 0)
		return r;
	*ret_target = target;
	return 0;
}

const char *target_query(const struct target *target, const char *name)
{
	for (unsigned i = 0; i < target->param_count; i++)
		if (strcmp(target->params[i].name, name) == 0)
			return target->params[i].value;
	return NULL;
}
