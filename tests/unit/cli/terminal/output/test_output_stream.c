/* SPDX-License-Identifier: Apache-2.0 */
/* Output events become bytes, and a stream that is cut off anywhere can be resumed exactly. */
#include "base/fd.h"
#include "cli/terminal/output/output_stream.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;

static int memory_file(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void expect_content(int fd, const char *expected)
{
	char text[256] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	assert_int_equal(n, strlen(expected));
	assert_string_equal(text, expected);
}

static int feed(struct output_stream *stream, const char *text)
{
	return output_stream_feed(stream, text, strlen(text), &err);
}

static void each_stream_goes_to_its_descriptor(void **state)
{
	auto_fd int out = memory_file();
	auto_fd int errors = memory_file();
	struct output_stream stream;

	(void)state;
	output_stream_init(&stream, out, errors);
	assert_int_equal(
		feed(&stream, "id: 0\nevent: start\ndata: {\"process\":\"p7\",\"pid\":12}\n\n"), 0);
	assert_int_equal(feed(&stream, "id: 2\nevent: stdout\ndata: {\"data\":\"a\\n\"}\n\n"), 0);
	assert_int_equal(feed(&stream, "id: 4\nevent: stderr\ndata: {\"data\":\"b\\n\"}\n\n"), 0);
	assert_int_equal(
		feed(&stream, "id: 6\nevent: stdout\ndata: {\"data_base64\":\"/zA=\"}\n\n"), 0);
	assert_int_equal(stream.next, 6);
	assert_int_equal(feed(&stream, "id: 7\nevent: exit\ndata: {\"exit_code\":3}\n\n"),
		OUTPUT_STREAM_ENDED);
	assert_int_equal(json_integer_value(json_object_get(stream.result, "exit_code")), 3);
	expect_content(out, "a\n\xff"
			    "0");
	expect_content(errors, "b\n");
	output_stream_fini(&stream);
}

static const char *const lines[] = {"one\n", "two\n", "three\n", "four\n"};

/* What a daemon sends that is asked for the output from there on. */
static void serve(struct buf *answer, uint64_t from)
{
	uint64_t at = 0;

	for (size_t i = 0; i < array_len(lines); i++) {
		uint64_t end = at + strlen(lines[i]);

		if (from < end)
			buf_printf(answer,
				"id: %" PRIu64 "\nevent: stdout\ndata: {\"data\":\"%.*s\\n\"}\n\n",
				end, (int)strlen(lines[i]) - 1, lines[i]);
		at = end;
	}
	buf_printf(answer, "id: %" PRIu64 "\nevent: exit\ndata: {}\n\n", at + 1);
}

static void a_stream_cut_off_anywhere_goes_on_without_loss_or_double(void **state)
{
	struct buf whole = BUF_INIT(4096);

	(void)state;
	serve(&whole, 0);
	for (size_t cut = 0; cut < whole.len; cut++) {
		auto_(buf_fini) struct buf rest = BUF_INIT(4096);
		auto_fd int out = memory_file();
		struct output_stream stream;

		output_stream_init(&stream, out, out);
		assert_int_equal(
			output_stream_feed(&stream, (const char *)whole.data, cut, &err), 0);
		serve(&rest, stream.has_next ? stream.next : 0);
		output_stream_restart(&stream);
		assert_int_equal(
			output_stream_feed(&stream, (const char *)rest.data, rest.len, &err),
			OUTPUT_STREAM_ENDED);
		expect_content(out, "one\ntwo\nthree\nfour\n");
		output_stream_fini(&stream);
	}
	buf_fini(&whole);
}

static void an_event_that_could_not_be_written_is_not_counted(void **state)
{
	struct output_stream stream;

	(void)state;
	output_stream_init(&stream, -1, -1);
	assert_true(feed(&stream, "id: 5\nevent: stdout\ndata: {\"data\":\"hello\"}\n\n") < 0);
	assert_false(stream.has_next);
	output_stream_fini(&stream);
}

static void a_cut_moves_on_behind_what_is_gone(void **state)
{
	struct output_stream stream;

	(void)state;
	output_stream_init(&stream, -1, -1);
	assert_int_equal(
		feed(&stream, "id: 900\nevent: cut\ndata: {\"from\":5,\"to\":900}\n\n"), 0);
	assert_int_equal(stream.next, 900);
	output_stream_fini(&stream);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = {
		"event: stdout\ndata: not json\n\n",
		"event: stdout\ndata: {}\n\n",
		"event: stdout\ndata: {\"data_base64\":\"!\"}\n\n",
		"event: error\ndata: {\"error\":{\"message\":\"broken\"}}\n\n",
	};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct output_stream stream;

		output_stream_init(&stream, -1, -1);
		assert_true(feed(&stream, bad[i]) < 0);
		assert_int_equal(err.kind, ERR_INTERNAL);
		output_stream_fini(&stream);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stream_goes_to_its_descriptor),
		cmocka_unit_test(a_stream_cut_off_anywhere_goes_on_without_loss_or_double),
		cmocka_unit_test(an_event_that_could_not_be_written_is_not_counted),
		cmocka_unit_test(a_cut_moves_on_behind_what_is_gone),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
