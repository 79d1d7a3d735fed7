/* SPDX-License-Identifier: Apache-2.0 */
#include "model/template.h"

#include "base/mem.h"

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

const char *template_profile_name(enum template_profile profile)
{
	static const char *const names[] = {
		[TEMPLATE_PROFILE_DEFAULT] = "default",
		[TEMPLATE_PROFILE_BROWSER] = "browser",
	};

	return names[profile];
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
