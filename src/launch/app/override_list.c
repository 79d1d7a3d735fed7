/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/override_list.h"

#include "launch/app/part_command.h"

#include <stdio.h>
#include <string.h>

#define WHAT_MAX 32

/* The entry takes over what was found. */
static void add(
	json_t *list, const char *what, const json_t *said, json_t *found, const char *source)
{
	json_array_append_new(
		list, json_pack("{s:s, s:O, s:o, s:s}", "what", what, "said", said, "found",
			      found ? found : json_null(), "source", source));
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *found_directory(const struct app_part *part)
{
	return json_string(part->dir); /* empty: the root */
}

static json_t *found_framework(const struct app_part *part)
{
	return json_string(part->framework->name);
}

static json_t *found_entry(const struct app_part *part)
{
	return text_or_null(part->entry);
}

static json_t *found_command(const struct app_part *part)
{
	char shown[APP_COMMAND_MAX];

	part_command_line(part, "/", shown);
	return text_or_null(shown);
}

static json_t *found_install(const struct app_part *part)
{
	return part->package_manager ? json_string(part->package_manager) : json_null();
}

static json_t *found_port(const struct app_part *part)
{
	return json_integer(part->port);
}

static const struct {
	const char *name;
	json_t *(*found)(const struct app_part *part);
} choices[] = {{"directory", found_directory}, {"framework", found_framework},
	{"entry", found_entry}, {"command", found_command}, {"install", found_install},
	{"port", found_port}};

/* Of a part: the choices for it, or that there is none. The part is NULL if none was found. */
static void add_part(json_t *list, const char *name, const json_t *said, const char *source,
	const struct app_part *part)
{
	if (json_is_false(said))
		add(list, name, said, part ? found_framework(part) : NULL, source);
	for (size_t i = 0; i < array_len(choices); i++) {
		const json_t *value = json_object_get(said, choices[i].name);
		char what[WHAT_MAX];

		if (!value || json_is_null(value))
			continue;
		snprintf(what, sizeof(what), "%s.%s", name, choices[i].name);
		add(list, what, value, part ? choices[i].found(part) : NULL, source);
	}
}

void override_list_add(
	json_t *list, const json_t *said, const char *source, const struct override_found *found)
{
	const json_t *services = json_object_get(said, "services");

	for (int role = 0; role < ROLE_COUNT; role++) {
		const char *name = framework_role_name(role);

		add_part(list, name, json_object_get(said, name), source,
			found->has_part[role] ? &found->parts[role] : NULL);
	}
	if (services && !json_is_null(services))
		add(list, "services", services, json_incref(found->services), source);
}
