/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/format.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/query.h"
#include "cli/text/base64.h"
#include "cli/text/human.h"
#include "cli/text/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void sizes_read_well(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{999, "999 B"},
		{1000, "0.977 KiB"},
		{1024, "1 KiB"},
		{1536 * 1024, "1.5 MiB"},
		{2ull << 30, "2 GiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char text[HUMAN_LEN];

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		format_size(cases[i].bytes, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void ages_read_well(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{-5000, "0s"},
		{119999, "119s"},
		{120000, "2m"},
		{7200000, "2h"},
		{3 * 86400000ll, "3d"},
		{INT64_MAX, "106751991167d"},
	};
	char text[HUMAN_LEN];

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		human_age(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void durations_and_sizes_are_parsed_strictly(void **state)
{
	static const char *const bad[] = {"", "s", "-1s", "1 s", "1S", "1.5s", "01s", "1sm",
		"99999999999999999999", "20000d"};
	static const char *const bad_sizes[] = {
		"", "Mi", "1M", "1mi", "-1", "1.5Gi", "99999999999Ti"};
	uint64_t value = 42;

	(void)state;
	assert_int_equal(human_parse_duration("1d", &value), 0);
	assert_int_equal(value, 86400000);
	assert_int_equal(human_parse_duration("0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(human_parse_duration("7", &value), 0);
	assert_int_equal(value, 7000);
	assert_int_equal(human_parse_bytes("512Mi", &value), 0);
	assert_int_equal(value, 512u << 20);
	value = 42;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_true(human_parse_duration(bad[i], &value) < 0);
	for (size_t i = 0; i < array_len(bad_sizes); i++)
		assert_true(human_parse_bytes(bad_sizes[i], &value) < 0);
	assert_int_equal(value, 42);
}

static void a_time_survives_being_written_and_read(void **state)
{
	char text[CLOCK_TEXT_LEN];
	int64_t ms;

	(void)state;
	clock_format(1767323045678, text);
	assert_int_equal(human_parse_time(text, &ms), 0);
	assert_true(ms == 1767323045678);
	assert_int_equal(human_parse_time("2026-01-02T03:04:05Z", &ms), 0);
	assert_true(ms == 1767323045000);
	assert_true(human_parse_time("2026-01-02T03:04:05", &ms) < 0);
	assert_true(human_parse_time("yesterday", &ms) < 0);
}

static void base64_goes_there_and_back(void **state)
{
	uint8_t data[300];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t len = 0; len <= sizeof(data); len++) {
		struct buf text = BUF_INIT(4096);
		struct buf back = BUF_INIT(4096);

		assert_int_equal(base64_encode(data, len, &text), 0);
		assert_int_equal(base64_decode((char *)text.data, text.len, &back), 0);
		assert_int_equal(back.len, len);
		if (len > 0)
			assert_memory_equal(back.data, data, len);
		buf_fini(&text);
		buf_fini(&back);
	}
}

static void bad_base64_is_refused_whole(void **state)
{
	static const char *const bad[] = {"A", "AAA", "AA=A", "=AAA", "A===", "AAAA=AAA",
		"AA==AAAA", "AA\n=", "AAA-", "AAAA A=="};
	struct buf out = BUF_INIT(4096);

	(void)state;
	assert_int_equal(buf_append_str(&out, "x"), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_int_equal(base64_decode(bad[i], strlen(bad[i]), &out), -EINVAL);
		assert_int_equal(out.len, 1);
	}
	buf_fini(&out);
}

static void a_table_cannot_be_broken_out_of(void **state)
{
	struct table table = TABLE_INIT(2);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	table_add(&table, "%s", "ID");
	table_add(&table, "%s", "LABELS");
	table_add(&table, "%s", "a\x1b[2Jb\n");
	table_add(&table, "%s", "ü\xc2\x9b");
	table_add(&table, "%s", "");
	table_add(&table, "%s", "x");
	table_print(&table, out);
	fclose(out);
	assert_string_equal(text, "ID       LABELS\na?[2Jb?  ü??\n-        x\n");
	free(text);
	table_fini(&table);
}

static void a_query_is_encoded(void **state)
{
	struct buf target = BUF_INIT(256);
	char *text;

	(void)state;
	buf_append_str(&target, "/files");
	query_add(&target, "path", "/a b&c=ü?#%+");
	query_add(&target, "none", NULL);
	query_add(&target, "mode", "755");
	text = buf_take_str(&target);
	assert_string_equal(text, "/files?path=/a%20b%26c%3D%C3%BC%3F%23%25%2B&mode=755");
	free(text);
}

static void expect_endpoint(const char *text, enum endpoint_kind kind, const char *id,
	const char *path, bool names_a_dir)
{
	struct endpoint endpoint;
	struct err err;

	assert_int_equal(endpoint_parse(text, &endpoint, &err), 0);
	assert_int_equal(endpoint.kind, kind);
	assert_string_equal(endpoint.id, id);
	assert_string_equal(endpoint.path ? endpoint.path : "", path);
	assert_int_equal(endpoint.names_a_dir, names_a_dir);
	endpoint_fini(&endpoint);
}

static void the_sides_of_a_copy_are_told_apart(void **state)
{
	struct endpoint endpoint;
	struct err err;

	(void)state;
	expect_endpoint("01k9:/a/b", ENDPOINT_REMOTE, "01k9", "/a/b", false);
	expect_endpoint("01k9:b", ENDPOINT_REMOTE, "01k9", "/workspace/b", false);
	expect_endpoint("01k9:", ENDPOINT_REMOTE, "01k9", "/workspace", true);
	expect_endpoint("01k9:/d/", ENDPOINT_REMOTE, "01k9", "/d/", true);
	expect_endpoint("./a:b", ENDPOINT_LOCAL, "", "./a:b", false);
	expect_endpoint("/x:y", ENDPOINT_LOCAL, "", "/x:y", false);
	expect_endpoint("File:x", ENDPOINT_LOCAL, "", "File:x", false);
	expect_endpoint("my-app:", ENDPOINT_REMOTE, "my-app", "/workspace", true);
	expect_endpoint("a-name-as-long-as-a-name-may-be-to-the-d:x", ENDPOINT_REMOTE,
		"a-name-as-long-as-a-name-may-be-to-the-d", "/workspace/x", false);
	expect_endpoint("a-name-as-long-as-a-name-may-be-to-the-dot:x", ENDPOINT_LOCAL, "",
		"a-name-as-long-as-a-name-may-be-to-the-dot:x", false);
	expect_endpoint("-a:b", ENDPOINT_LOCAL, "", "-a:b", false);
	expect_endpoint("-", ENDPOINT_STDIO, "", "", false);
	assert_true(endpoint_parse("", &endpoint, &err) < 0);
}

static void only_a_real_name_is_a_basename(void **state)
{
	static const char *const none[] = {"/", ".", "..", "a/.", "a/..", "a/../", "//", ""};
	char *name;

	(void)state;
	for (size_t i = 0; i < array_len(none); i++)
		assert_null(endpoint_basename(none[i]));
	name = endpoint_basename("/a/b.txt//");
	assert_string_equal(name, "b.txt");
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_read_well),
		cmocka_unit_test(ages_read_well),
		cmocka_unit_test(durations_and_sizes_are_parsed_strictly),
		cmocka_unit_test(a_time_survives_being_written_and_read),
		cmocka_unit_test(base64_goes_there_and_back),
		cmocka_unit_test(bad_base64_is_refused_whole),
		cmocka_unit_test(a_table_cannot_be_broken_out_of),
		cmocka_unit_test(a_query_is_encoded),
		cmocka_unit_test(the_sides_of_a_copy_are_told_apart),
		cmocka_unit_test(only_a_real_name_is_a_basename),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
