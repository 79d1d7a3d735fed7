/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_catalogue.h"

#include "image/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

static void each_row_can_be_made_or_says_what_there_is_instead(void **state)
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
		assert_true(!json_object_get(row, "suite") != !json_object_get(row, "instead"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_can_be_made_or_says_what_there_is_instead),
		cmocka_unit_test(another_name_of_a_row_stands_for_that_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
