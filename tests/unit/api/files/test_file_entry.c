/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files/file_entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(const json_t *entry, const char *key)
{
	const char *text = json_string_value(json_object_get(entry, key));

	if (!text)
		fail_msg("no text %s", key);
	return text;
}

static void an_entry_says_all_there_is_to_know(void **state)
{
	struct file_channel_answer answer = {.file = {.kind = AGENT_FILE_REGULAR,
						     .mode = 0100644,
						     .uid = 1000,
						     .gid = 1001,
						     .size = 1ull << 40,
						     .mtime_ns = 1767323045678901234}};
	json_t *entry = file_entry_to_json("/a/b.txt", &answer);

	(void)state;
	assert_string_equal(text_of(entry, "name"), "b.txt");
	assert_string_equal(text_of(entry, "path"), "/a/b.txt");
	assert_string_equal(text_of(entry, "type"), "file");
	assert_string_equal(text_of(entry, "mode"), "0644");
	assert_string_equal(text_of(entry, "modified_at"), "2026-01-02T03:04:05.678Z");
	assert_true(json_integer_value(json_object_get(entry, "size")) == 1ll << 40);
	assert_int_equal(json_integer_value(json_object_get(entry, "uid")), 1000);
	assert_int_equal(json_integer_value(json_object_get(entry, "gid")), 1001);
	assert_true(json_is_null(json_object_get(entry, "target")));
	json_decref(entry);
}

static void the_root_and_links_have_names_and_targets(void **state)
{
	struct file_channel_answer answer = {.file = {.kind = AGENT_FILE_DIRECTORY, .mode = 01777}};
	json_t *entry = file_entry_to_json("/", &answer);

	(void)state;
	assert_string_equal(text_of(entry, "name"), "/");
	assert_string_equal(text_of(entry, "type"), "dir");
	assert_string_equal(text_of(entry, "mode"), "1777");
	json_decref(entry);
	answer.file.kind = AGENT_FILE_SYMLINK;
	snprintf(answer.target, sizeof(answer.target), "../elsewhere");
	entry = file_entry_to_json("relative", &answer);
	assert_string_equal(text_of(entry, "name"), "relative");
	assert_string_equal(text_of(entry, "type"), "symlink");
	assert_string_equal(text_of(entry, "target"), "../elsewhere");
	json_decref(entry);
}

static void names_that_are_no_text_come_as_base64(void **state)
{
	struct file_channel_answer answer = {.file = {.kind = AGENT_FILE_OTHER}};
	json_t *entry = file_entry_to_json("/\xff", &answer);

	(void)state;
	assert_string_equal(text_of(entry, "name_base64"), "/w==");
	assert_string_equal(text_of(entry, "path_base64"), "L/8=");
	assert_null(json_object_get(entry, "name"));
	json_decref(entry);
}

static void hostile_numbers_do_not_break_the_answer(void **state)
{
	struct file_channel_answer answer = {.file = {.kind = AGENT_FILE_REGULAR,
						     .mode = UINT32_MAX,
						     .uid = UINT32_MAX,
						     .size = UINT64_MAX,
						     .mtime_ns = UINT64_MAX}};
	json_t *entry = file_entry_to_json("/x", &answer);

	(void)state;
	assert_string_equal(text_of(entry, "mode"), "7777");
	assert_int_equal(strlen(text_of(entry, "modified_at")), 24);
	json_decref(entry);
}

static void a_file_from_before_1970_is_not_from_the_future(void **state)
{
	struct file_channel_answer answer = {
		.file = {.kind = AGENT_FILE_REGULAR, .mtime_ns = (uint64_t)-1000000000ll}};
	json_t *entry = file_entry_to_json("/x", &answer);

	(void)state;
	assert_string_equal(text_of(entry, "modified_at"), "1969-12-31T23:59:59.000Z");
	json_decref(entry);
}

static void a_tag_changes_with_inode_time_and_size(void **state)
{
	struct agent_file_answer file = {.inode = 1, .mtime_ns = 2, .size = 3};
	char tag[FILE_ENTRY_TAG_LEN], other[FILE_ENTRY_TAG_LEN];

	(void)state;
	file_entry_tag(&file, tag);
	assert_int_equal(tag[0], '"');
	assert_int_equal(tag[strlen(tag) - 1], '"');
	for (int i = 0; i < 3; i++) {
		struct agent_file_answer changed = file;

		changed.inode += i == 0;
		changed.mtime_ns += i == 1;
		changed.size += i == 2;
		file_entry_tag(&changed, other);
		assert_string_not_equal(tag, other);
	}
	file = (struct agent_file_answer){
		.inode = UINT64_MAX, .mtime_ns = UINT64_MAX, .size = UINT64_MAX};
	file_entry_tag(&file, tag);
	assert_int_equal(tag[strlen(tag) - 1], '"'); /* the largest fits */
}

static void a_tag_is_found_in_a_list(void **state)
{
	static const char *const matching[] = {"\"a-b\"", "*", " * ", "\"x\", \"a-b\"",
		"\"x\",\"a-b\",\"y\"", "W/\"a-b\"", "\t\"a-b\" ", "\"x\",*"};
	static const char *const others[] = {"", " ", ",,,", "\"a\"", "\"a-bc\"", "a-b", "\"a-b",
		"\"a-b\"x", "\"x\", \"y\"", "W/\"x\""};

	(void)state;
	for (size_t i = 0; i < sizeof(matching) / sizeof(matching[0]); i++) {
		if (!file_entry_tag_matches(matching[i], "\"a-b\""))
			fail_msg("%s does not match", matching[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (file_entry_tag_matches(others[i], "\"a-b\""))
			fail_msg("%s matches", others[i]);
	}
}

static void a_file_is_saved_under_a_name_that_says_nothing_else(void **state)
{
	char text[FILE_ENTRY_DISPOSITION_LEN], longest[260] = "/";
	size_t prefix = strlen("attachment; filename*=UTF-8''");

	(void)state;
	file_entry_disposition("/a/b-1_x.txt", "", text);
	assert_string_equal(text, "attachment; filename*=UTF-8''b-1_x.txt");
	file_entry_disposition("/", ".tar", text);
	assert_string_equal(text, "attachment");
	file_entry_disposition("/a \"\r\n;%\xc3\xa4\xff", ".tar", text);
	assert_string_equal(text, "attachment; filename*=UTF-8''a%20%22%0D%0A%3B%25%C3%A4%FF.tar");
	memset(longest + 1, '"', 255);
	file_entry_disposition(longest, ".tar", text);
	assert_int_equal(strlen(text), prefix + 3 * 255 + 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_says_all_there_is_to_know),
		cmocka_unit_test(the_root_and_links_have_names_and_targets),
		cmocka_unit_test(names_that_are_no_text_come_as_base64),
		cmocka_unit_test(hostile_numbers_do_not_break_the_answer),
		cmocka_unit_test(a_file_from_before_1970_is_not_from_the_future),
		cmocka_unit_test(a_tag_changes_with_inode_time_and_size),
		cmocka_unit_test(a_tag_is_found_in_a_list),
		cmocka_unit_test(a_file_is_saved_under_a_name_that_says_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
