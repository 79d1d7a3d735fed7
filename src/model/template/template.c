/* SPDX-License-Identifier: Apache-2.0 */
#include "model/template/template.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

static const struct template templates[] = {
	{"host", TEMPLATE_PROFILE_DEFAULT},
	{"browser", TEMPLATE_PROFILE_BROWSER}, /* the files of host */
};

static const struct template *find(const char *name, size_t len)
{
	for (size_t i = 0; i < array_len(templates); i++) {
		if (strlen(templates[i].name) == len && strncmp(templates[i].name, name, len) == 0)
			return &templates[i];
	}
	return NULL;
}

const struct template *template_find(const char *name)
{
	return find(name, strlen(name));
}

static const char *const profile_names[] = {
	[TEMPLATE_PROFILE_DEFAULT] = "default",
	[TEMPLATE_PROFILE_BROWSER] = "browser",
	[TEMPLATE_PROFILE_STRICT] = "strict",
};

const char *template_profile_name(enum template_profile profile)
{
	return profile_names[profile];
}

int template_profile_parse(const char *name, enum template_profile *ret_profile)
{
	for (size_t i = 0; i < array_len(profile_names); i++) {
		if (strcmp(name, profile_names[i]) == 0) {
			*ret_profile = (enum template_profile)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum template_profile template_profile_of(const struct sandbox_record *record)
{
	const char *name = json_string_value(json_object_get(record->image, "security"));
	const struct template *template = template_find(record->template_name);
	enum template_profile profile;

	if (name && template_profile_parse(name, &profile) == 0)
		return profile;
	/* An image that says nothing, as a template that is gone since, has the profile of most. */
	return template ? template->profile : TEMPLATE_PROFILE_DEFAULT;
}

bool template_is_offered(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n == len && strncmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

int template_check_list(const char *list, struct err *err)
{
	if (!*list)
		return err_set(err, ERR_INVALID, "no template is offered");
	while (*list) {
		size_t n = strcspn(list, ",");

		if (!find(list, n))
			return err_explain(err, ERR_INVALID, "template_not_found",
				"the templates are host and browser",
				"there is no template \"%.*s\"", (int)n, list);
		list += n + (list[n] == ',');
	}
	return 0;
}
