/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_catalogue.h"

#include "base/mem.h"

#include <assert.h>
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
