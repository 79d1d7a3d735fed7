/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_catalogue.h"

#include "image/recipe_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const char catalogue_json[];

static bool is_recipe(const json_t *recipe)
{
	json_t *named = json_deep_copy(recipe);
	json_auto_t *source = json_pack("{s:o}", "recipe", named);
	struct recipe read;
	struct err err = {0};

	json_object_set_new(named, "from", json_string("debian12"));
	if (recipe_read(source, NULL, &read, &err) < 0)
		fail_msg("%s", err.message);
	recipe_fini(&read);
	return true;
}

static void each_row_can_be_made_without_an_image(void **state)
{
	json_auto_t *table = json_loads(catalogue_json, 0, NULL);
	const json_t *row;
	size_t i;

	(void)state;
	assert_true(json_array_size(table) > 8);
	json_array_foreach(table, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		const json_t *on_debian = json_object_get(row, "on_debian"),
			     *on_both = json_object_get(row, "on_both");
		char *image = template_catalogue_image(name);

		assert_non_null(image);
		free(image);
		if (json_object_get(row, "same_as"))
			continue;
		assert_non_null(json_object_get(row, "suite"));
		assert_true(!on_debian || is_recipe(on_debian));
		assert_true(!on_both || is_recipe(on_both));
	}
}

static void another_name_of_a_row_stands_for_that_row(void **state)
{
	json_auto_t *source = template_catalogue_source("python312");

	(void)state;
	assert_string_equal(json_string_value(json_object_get(source, "catalogue")), "python3.12");
	assert_null(template_catalogue_source("python"));
	assert_null(template_catalogue_image("host"));
}

static void an_image_that_cannot_be_had_is_made_of_packages(void **state)
{
	static const struct {
		const char *image, *code, *name;
	} cases[] = {
		{"postgres:15", "registry_unreachable", "postgres15"},
		{"docker.io/library/redis:7", "no_registry", "redis7"},
		{"python:3.12-slim", "registry_stalled", "python3.12"},
		{"postgres:15-alpine", "image_not_found", "postgres15"},
		{"postgres:15", "disk_full", NULL},
		{"postgres:16", "registry_unreachable", NULL},
		{"registry.example/postgres:15", "registry_unreachable", NULL},
		{"redis", "registry_unreachable", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		char begin[64];
		struct err err;

		err_explain(&err, ERR_UNAVAILABLE, cases[i].code, "look", "it cannot be had");
		template_catalogue_advise(cases[i].image, &err);
		snprintf(begin, sizeof(begin), "use the template %s, ",
			cases[i].name ? cases[i].name : "");
		if (cases[i].name)
			assert_ptr_equal(strstr(err.remedy, begin), err.remedy);
		else
			assert_string_equal(err.remedy, "look");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_can_be_made_without_an_image),
		cmocka_unit_test(another_name_of_a_row_stands_for_that_row),
		cmocka_unit_test(an_image_that_cannot_be_had_is_made_of_packages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
