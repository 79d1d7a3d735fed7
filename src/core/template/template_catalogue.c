/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_catalogue.h"

#include "base/format.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

extern const char catalogue_json[];
extern const char catalogue_json_end[];

static const char *text_of(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

static json_t *read_table(void)
{
	json_error_t error;
	json_t *table = json_loadb(
		catalogue_json, (size_t)(catalogue_json_end - catalogue_json), 0, &error);

	assert(table);
	return table;
}

json_t *template_catalogue_row(const char *name)
{
	json_auto_t *table = read_table();
	json_t *row;
	size_t i;

	json_array_foreach(table, i, row)
	{
		const char *same = text_of(row, "same_as");

		if (strcmp(text_of(row, "name"), name) == 0)
			return same ? template_catalogue_row(same) : json_incref(row);
	}
	return NULL;
}

json_t *template_catalogue_names(void)
{
	json_auto_t *table = read_table();
	json_t *names = json_array(), *row;
	size_t i;

	json_array_foreach(table, i, row)
	{
		json_array_append(names, json_object_get(row, "name"));
	}
	return names;
}

json_t *template_catalogue_source(const char *name)
{
	json_auto_t *row = template_catalogue_row(name);

	return row ? json_pack("{s:O}", "catalogue", json_object_get(row, "name")) : NULL;
}

char *template_catalogue_image(const char *name)
{
	json_auto_t *row = template_catalogue_row(name);

	return row ? mem_strdup(text_of(row, "image")) : NULL;
}

bool template_catalogue_is_out_of_reach(const struct err *err)
{
	return strncmp(err->code, "registry_", strlen("registry_")) == 0 ||
	       strcmp(err->code, "image_not_found") == 0 || strcmp(err->code, "no_registry") == 0;
}

/* Without the place of the images that everybody knows, and without the variant: "python:3.12" of "python:3.12-slim". */
static size_t plain_name(const char **image)
{
	static const char *const places[] = {"docker.io/", "library/"};

	for (size_t i = 0; i < array_len(places); i++) {
		if (strncmp(*image, places[i], strlen(places[i])) == 0)
			*image += strlen(places[i]);
	}
	return strcspn(*image, "-");
}

/* Of several names for one image the last has the most in it. */
void template_catalogue_advise(const char *image, struct err *err)
{
	json_auto_t *table = read_table();
	size_t len = plain_name(&image), i;
	const char *name = NULL;
	char remedy[sizeof(err->remedy)];
	const json_t *row;

	if (!template_catalogue_is_out_of_reach(err))
		return;
	json_array_foreach(table, i, row)
	{
		const char *known = text_of(row, "image");

		if (known && plain_name(&known) == len && strncmp(known, image, len) == 0)
			name = text_of(row, "name");
	}
	if (!name)
		return;
	snprintf(remedy, sizeof(remedy),
		"use the template %s, which is made of packages where there is no image; else: %s",
		name, err->remedy);
	format_end_at_word(remedy, sizeof(remedy));
	memcpy(err->remedy, remedy, sizeof(remedy));
}
