/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/short_name.h"

#include "model/template/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Reads an entry of len bytes. */
static int read_entry(const char *text, size_t len, struct short_name *ret_name)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	size_t image_len = equals ? len - name_len - 1 : 0;

	if (name_len >= sizeof(ret_name->name) || image_len == 0 ||
		image_len >= sizeof(ret_name->image))
		return -EINVAL;
	snprintf(ret_name->name, sizeof(ret_name->name), "%.*s", (int)name_len, text);
	snprintf(ret_name->image, sizeof(ret_name->image), "%.*s", (int)image_len, equals + 1);
	return template_name_is_valid(ret_name->name) && !template_find(ret_name->name) ? 0
											: -EINVAL;
}

int short_name_check(const char *setting, struct err *err)
{
	/* Which registry it is makes no difference here. */
	const struct image_defaults defaults = {.registry = "", .prefix = ""};

	while (*setting) {
		size_t len = strcspn(setting, ",");
		struct image_reference parsed;
		struct short_name entry;

		if (read_entry(setting, len, &entry) < 0)
			return err_set(err, ERR_INVALID,
				"short-names is a list of NAME=IMAGE, such as py=python:3.12-slim");
		if (image_reference_parse(entry.image, &defaults, &parsed, err) < 0) {
			err_prefix(err, "short-names");
			return -EINVAL;
		}
		setting += len + (setting[len] == ',');
	}
	return 0;
}

bool short_name_get(const char *setting, unsigned number, struct short_name *ret_name)
{
	while (*setting) {
		size_t len = strcspn(setting, ",");

		if (number-- == 0)
			return read_entry(setting, len, ret_name) == 0;
		setting += len + (setting[len] == ',');
	}
	return false;
}

bool short_name_find(const char *setting, const char *name, struct short_name *ret_name)
{
	struct short_name entry;

	for (unsigned i = 0; short_name_get(setting, i, &entry); i++) {
		if (strcmp(entry.name, name) != 0)
			continue;
		*ret_name = entry;
		return true;
	}
	return false;
}
