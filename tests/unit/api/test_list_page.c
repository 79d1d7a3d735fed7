/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of lists: bounded in items and bytes, and never empty while there is something. */
#include "api/list_page.h"
#include "base/mem.h"
#include "model/process/process_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static json_t *item_of(size_t len)
{
	char *text = mem_new(len + 1);
	json_t *item;

	memset(text, 'x', len);
	item = json_string(text);
	free(text);
	return item;
}

static void a_page_has_no_more_items_than_its_limit(void **state)
{
	struct list_page page;

	(void)state;
	list_page_init(&page, 2);
	assert_true(list_page_add(&page, item_of(1)));
	assert_true(list_page_add(&page, item_of(1)));
	assert_false(page.has_more);
	assert_false(list_page_add(&page, item_of(1)));
	assert_true(page.has_more);
	assert_int_equal(json_array_size(page.items), 2);
	list_page_fini(&page);
}

static void a_page_has_no_more_bytes_than_its_bound(void **state)
{
	struct list_page page;
	char *text;

	(void)state;
	list_page_init(&page, 1000);
	while (list_page_add(&page, item_of(9997))) /* with quotes and a comma: 10000 */
		continue;
	assert_int_equal(json_array_size(page.items), LIST_PAGE_BYTES / 10000);
	/* Nothing may follow what was left off, small as it is. */
	assert_false(list_page_add(&page, item_of(1)));
	text = json_dumps(page.items, JSON_COMPACT);
	assert_true(strlen(text) <= LIST_PAGE_BYTES + 2);
	free(text);
	list_page_fini(&page);
}

static void one_item_is_always_there(void **state)
{
	struct list_page page;

	(void)state;
	list_page_init(&page, 1000);
	assert_true(list_page_add(&page, item_of(3u << 20)));
	assert_false(list_page_add(&page, item_of(1)));
	assert_int_equal(json_array_size(page.items), 1);
	list_page_fini(&page);
}

static void assert_short(const char *argv, size_t max, const char *expected, bool is_cut)
{
	json_t *words = json_loads(argv, 0, NULL), *shorter;
	bool was_cut;
	char *text;

	shorter = process_argv_shorten(words, max, &was_cut);
	text = json_dumps(shorter, JSON_COMPACT);
	assert_string_equal(text, expected);
	assert_int_equal(was_cut, is_cut);
	free(text);
	json_decref(shorter);
	json_decref(words);
}

static void a_long_command_is_cut_between_characters(void **state)
{
	(void)state;
	assert_short("[]", 10, "[]", false);
	assert_short("[\"ls\",\"-l\"]", 10, "[\"ls\",\"-l\"]", false);
	assert_short("[\"ls\",\"-l\"]", 5, "[\"ls\",\"-l\"]", false);
	assert_short("[\"ls\",\"-l\"]", 4, "[\"ls\",\"-\"]", true);
	assert_short("[\"ls\",\"-l\"]", 2, "[\"ls\"]", true);
	assert_short("[\"a\xc3\xa4\"]", 2, "[\"a\"]", true);
	assert_short("[\"a\xc3\xa4\"]", 3, "[\"a\xc3\xa4\"]", false);
	assert_short("[\"\",\"\",\"\",\"\"]", 2, "[\"\",\"\"]", true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_has_no_more_items_than_its_limit),
		cmocka_unit_test(a_page_has_no_more_bytes_than_its_bound),
		cmocka_unit_test(one_item_is_always_there),
		cmocka_unit_test(a_long_command_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
