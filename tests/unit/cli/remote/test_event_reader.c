/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/event_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct seen {
	struct buf log;
	int stop_after;
	int count;
};

static int record(const struct event *event, void *arg)
{
	struct seen *seen = arg;

	buf_printf(&seen->log, "[%s|%s|", event->name, event->id);
	buf_append(&seen->log, event->data, event->data_len);
	buf_append_str(&seen->log, "]");
	return ++seen->count == seen->stop_after ? 77 : 0;
}

/* Feeds text in pieces of the given size and compares what was seen. */
static void expect(const char *text, size_t len, size_t piece, const char *expected)
{
	struct seen seen = {.log = BUF_INIT(1 << 20)};
	struct event_reader reader;
	char *log;

	event_reader_init(&reader);
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		assert_int_equal(event_reader_feed(&reader, text + at, n, record, &seen), 0);
	}
	log = buf_take_str(&seen.log);
	assert_string_equal(log, expected);
	free(log);
	event_reader_fini(&reader);
}

static void the_same_events_come_out_of_every_split(void **state)
{
	static const char text[] = "\xef\xbb\xbf: ping\n\n"
				   "id: 1\nevent: start\ndata: {}\n\n"
				   "id: 2\r\nevent:stdout\r\ndata: a\r\ndata:  b\r\n\r\n"
				   "id: 3\revent: stderr\rdata\r\r"
				   "retry: 5\nunknown: x\n:c\n\n"
				   "data: last\n\n"
				   "data: cut off\n";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(text); piece++)
		expect(text, sizeof(text) - 1, piece,
			"[start|1|{}][stdout|2|a\n b][stderr|3|][message|3|last]");
}

static void an_event_without_data_is_no_event(void **state)
{
	static const char text[] = "event: exit\n\ndata: x\n\n";

	(void)state;
	expect(text, sizeof(text) - 1, 5, "[message||x]");
}

static void the_visitor_can_end_it(void **state)
{
	struct seen seen = {.log = BUF_INIT(4096), .stop_after = 1};
	struct event_reader reader;
	static const char text[] = "data: 1\n\ndata: 2\n\n";

	(void)state;
	event_reader_init(&reader);
	assert_int_equal(event_reader_feed(&reader, text, sizeof(text) - 1, record, &seen), 77);
	assert_int_equal(seen.count, 1);
	event_reader_fini(&reader);
	buf_fini(&seen.log);
}

/* Feeds a line over and over until it is refused; how many bytes went in before. */
static size_t feed_until_refused(const char *line)
{
	struct seen seen = {.log = BUF_INIT(4096)};
	struct event_reader reader;
	size_t total = 0;
	int r = 0;

	event_reader_init(&reader);
	while (r == 0 && total < 8u * EVENT_READER_MAX) {
		r = event_reader_feed(&reader, line, strlen(line), record, &seen);
		total += strlen(line);
	}
	assert_int_equal(r, -EMSGSIZE);
	assert_int_equal(seen.count, 0);
	event_reader_fini(&reader);
	return total;
}

static void an_endless_line_and_an_endless_event_are_refused(void **state)
{
	(void)state;
	assert_in_range(
		feed_until_refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		EVENT_READER_MAX, EVENT_READER_MAX + 1024);
	assert_in_range(
		feed_until_refused("data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"),
		EVENT_READER_MAX, 2 * EVENT_READER_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_events_come_out_of_every_split),
		cmocka_unit_test(an_event_without_data_is_no_event),
		cmocka_unit_test(the_visitor_can_end_it),
		cmocka_unit_test(an_endless_line_and_an_endless_event_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
