/* SPDX-License-Identifier: Apache-2.0 */
/* Events are read back with a small parser and jansson; the bytes must be those that went in. */
#include "api/sse.h"
#include "api/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROOM (4u << 20)

struct event {
	unsigned long long id;
	char name[16];
	json_t *data;
	bool is_base64;
	uint8_t *bytes;
	size_t len;
};

static void event_fini(struct event *event)
{
	json_decref(event->data);
	free(event->bytes);
}

/* Takes the first event out of the buffer; exactly three lines and an empty one. */
static void take_event(struct buf *out, struct event *ret_event)
{
	char *text, *data, *end;
	struct event event = {0};
	int at = 0;

	buf_append(out, "", 1);
	out->len--;
	text = (char *)out->data;
	assert_int_equal(
		sscanf(text, "id: %llu\nevent: %15[a-z]\ndata: %n", &event.id, event.name, &at), 2);
	assert_true(at > 0);
	data = text + at;
	end = strchr(data, '\n');
	assert_non_null(end);
	assert_int_equal(end[1], '\n');
	assert_null(memchr(data, '\r', (size_t)(end - data)));
	event.data = json_loadb(
		data, (size_t)(end - data), JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(event.data);
	buf_consume(out, (size_t)(end + 2 - text));
	*ret_event = event;
}

static void take_output(struct buf *out, struct event *ret_event)
{
	json_t *text, *encoded;

	take_event(out, ret_event);
	assert_int_equal(json_object_size(ret_event->data), 1);
	text = json_object_get(ret_event->data, "data");
	encoded = json_object_get(ret_event->data, "data_base64");
	ret_event->is_base64 = encoded;
	if (encoded) {
		ssize_t len = text_decode_base64(json_string_value(encoded), &ret_event->bytes);

		assert_true(len > 0);
		ret_event->len = (size_t)len;
		return;
	}
	ret_event->len = json_string_length(text);
	ret_event->bytes = mem_new(ret_event->len + 1);
	memcpy(ret_event->bytes, json_string_value(text), ret_event->len);
}

/* Puts bytes and reads back what came: it must be the same, in events that are all text, or all base64. */
static size_t round_trip(const void *data, size_t len, bool may_continue, bool is_base64)
{
	struct buf out = BUF_INIT(ROOM);
	size_t n = sse_put_output(&out, &(struct sse_run){true, 1000, 0}, data, len, may_continue),
	       at = 0;
	struct event event;

	assert_false(out.failed);
	assert_in_range(out.len, 0, SSE_OUTPUT_ROOM(len));
	while (at < n) {
		take_output(&out, &event);
		assert_string_equal(event.name, "stderr");
		assert_int_equal(event.is_base64, is_base64);
		assert_true(event.len <= n - at);
		assert_memory_equal(event.bytes, (const uint8_t *)data + at, event.len);
		at += event.len;
		assert_int_equal(event.id, 1000 + at);
		event_fini(&event);
	}
	assert_int_equal(out.len, 0);
	buf_fini(&out);
	return n;
}

static void an_event_is_exactly_this(void **state)
{
	struct buf out = BUF_INIT(1024);

	(void)state;
	assert_int_equal(sse_put_output(&out, &(struct sse_run){false, 10, 0},
				 (const uint8_t *)"a\"b\\\n", 5, true),
		5);
	assert_int_equal(sse_put_output(&out, &(struct sse_run){true, 15, 1},
				 (const uint8_t *)"\xff", 1, true),
		1);
	buf_append(&out, "", 1);
	assert_string_equal(out.data,
		"id: 15\nevent: stdout\ndata: {\"data\":\"a\\\"b\\\\\\n\"}\n\n"
		"id: 16\nevent: stderr\ndata: "
		"{\"data_base64\":\"/w==\",\"at\":\"1970-01-01T00:00:00.001Z\"}\n\n");
	buf_fini(&out);
}

static void nothing_is_no_event(void **state)
{
	(void)state;
	assert_int_equal(round_trip(NULL, 0, true, false), 0);
	assert_int_equal(round_trip("", 0, false, false), 0);
}

/* Cut anywhere, the rest carried over: always text, always all of it. */
static void text_is_text_however_it_is_split(void **state)
{
	static const char text[] =
		"a\u00fc\u20ac\U0001f600z\u07ff\u0800\ud7ff\ue000\uffff\U00010000"
		"\U0010ffff plain plain plain \u00e9\u00e9\u00e9 \"\\/\b\f\n\r\t\x7f";
	size_t len = sizeof(text) - 1;

	(void)state;
	for (size_t from = 0; from < len; from++) {
		if ((text[from] & 0xc0) == 0x80)
			continue;
		for (size_t to = from; to <= len; to++) {
			size_t n = round_trip(text + from, to - from, true, false);

			assert_in_range(to - from - n, 0, 3);
			assert_true(n == to - from || (text[from + n] & 0x80));
			assert_int_equal(round_trip(text + from + n, len - from - n, false, false),
				len - from - n);
		}
	}
}

static void a_character_without_its_rest_is_no_text_at_the_end(void **state)
{
	(void)state;
	assert_int_equal(round_trip("abc\xe2\x82", 5, true, false), 3);
	assert_int_equal(round_trip("abc\xe2\x82", 5, false, true), 5);
	assert_int_equal(round_trip("\xe2\x82", 2, true, false), 0);
	assert_int_equal(round_trip("\xe2\x82", 2, false, true), 2);
	/* It is not waited for where the rest is no text anyway. */
	assert_int_equal(round_trip("\xff\xe2\x82", 3, true, true), 3);
}

static void what_is_no_utf8_is_base64(void **state)
{
	static const char *const bad[] = {"\xff", "\xfe", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf",
		"\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3\x28",
		"\xe2\x28\xa1", "\xe2\x82\x28", "\xf0\x28\x8c\xbc", "\xf0\x90\x28\xbc",
		"\xf0\x90\x8c\x28", "\xe2\x82\xe2\x82\xac", "\xf0\x9f\x98\xf0"};
	char text[80];

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		size_t len = strlen(bad[i]);

		/* At every place in a block. */
		for (size_t before = 0; before < 40; before++) {
			memset(text, 'x', sizeof(text));
			memcpy(text + before, bad[i], len);
			round_trip(text, before + len + 20, true, true);
			round_trip(text, before + len, false, true);
			assert_false(text_is_utf8((uint8_t *)text, before + len + 20));
			assert_false(text_is_utf8((uint8_t *)text, before + len));
		}
	}
}

/* Every sequence of up to three bytes, and many of four: the same verdict as jansson's. */
static void jansson_agrees_on_what_is_text(void **state)
{
	static const uint8_t edges[] = {0x00, 0x20, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
		0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5,
		0xff};
	size_t count = array_len(edges);

	(void)state;
	for (size_t i = 0; i < count * count * count * count; i++) {
		uint8_t bytes[4] = {edges[i % count], edges[i / count % count],
			edges[i / count / count % count], edges[i / count / count / count]};

		for (size_t len = 1; len <= 4; len++) {
			json_t *text = json_stringn((char *)bytes, len);
			bool is_text = text_is_utf8(bytes, len);

			assert_int_equal(is_text, text != NULL);
			json_decref(text);
		}
	}
}

static void every_byte_of_ascii_comes_back(void **state)
{
	char text[64];

	(void)state;
	for (int c = 0; c < 128; c++) {
		for (size_t at = 0; at < 40; at++) {
			memset(text, 'x', sizeof(text));
			text[at] = (char)c;
			round_trip(text, sizeof(text), false, false);
			round_trip(text, at + 1, false, false);
		}
		memset(text, c, sizeof(text));
		round_trip(text, sizeof(text), false, false);
	}
}

/* As much as is allowed is text and fits the room that was promised; one more is base64. */
static void control_characters_have_a_limit(void **state)
{
	size_t len = 16000, limit = 64 + len / 4;
	char *text = mem_new(len);

	(void)state;
	memset(text, '"', len);
	memset(text + len - limit, 1, limit);
	round_trip(text, len, false, false);
	text[0] = 2;
	round_trip(text, len, false, true);
	memset(text, '\n', len);
	round_trip(text, len, false, false);
	free(text);
}

static void large_output_is_several_events(void **state)
{
	size_t len = 5 * SSE_OUTPUT_MAX + 10;
	char *text = mem_new(len);

	(void)state;
	for (size_t i = 0; i < len; i++)
		text[i] = "\xe2\x82\xac"[i % 3];
	assert_int_equal(round_trip(text, len, true, false), len - len % 3);
	memset(text, 0xff, len);
	assert_int_equal(round_trip(text, len, true, true), len);
	free(text);
}

static void random_bytes_come_back(void **state)
{
	uint64_t seed = 7;
	uint8_t data[300];

	(void)state;
	for (size_t round = 0; round < 20000; round++) {
		struct buf out = BUF_INIT(ROOM);
		size_t len;
		struct event event;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		len = 1 + (seed >> 33) % sizeof(data);
		for (size_t i = 0; i < len; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			data[i] = (uint8_t)(seed >> 56);
			if (round % 2) /* all of it is text */
				data[i] = (data[i] & 0x7f) | 0x20;
		}
		assert_int_equal(
			sse_put_output(&out, &(struct sse_run){false, 0, 0}, data, len, false),
			len);
		take_output(&out, &event);
		assert_true(event.is_base64 ? round % 2 == 0 : text_is_utf8(data, len));
		assert_int_equal(event.len, len);
		assert_memory_equal(event.bytes, data, len);
		assert_int_equal(event.id, len);
		event_fini(&event);
		buf_fini(&out);
	}
}

/* A buffer of every size takes whole events, or says that it failed. */
static void a_full_buffer_gets_no_half_event(void **state)
{
	static const char text[] =
		"some \"text\" with \x01 and \xe2\x82\xac, which takes a little room";
	struct buf full = BUF_INIT(ROOM);
	size_t len = sizeof(text) - 1, need;

	(void)state;
	sse_put_output(&full, &(struct sse_run){false, 5, 0}, (const uint8_t *)text, len, false);
	need = full.len;
	buf_fini(&full);
	for (size_t max = 1; max < need + 600; max++) {
		struct buf out = BUF_INIT(max);
		size_t n = sse_put_output(
			&out, &(struct sse_run){false, 5, 0}, (const uint8_t *)text, len, false);

		assert_int_equal(n, max < need ? 0 : len);
		assert_int_equal(out.len, max < need ? 0 : need);
		assert_int_equal(out.failed, max < need);
		buf_fini(&out);
	}
}

static void a_full_buffer_keeps_the_events_before(void **state)
{
	size_t len = 4 * SSE_OUTPUT_MAX;
	uint8_t *text = mem_new(len);
	struct buf out = BUF_INIT(2 * SSE_OUTPUT_MAX + 1000);
	struct event event;

	(void)state;
	memset(text, 'x', len);
	assert_int_equal(sse_put_output(&out, &(struct sse_run){false, 0, 0}, text, len, false),
		2 * SSE_OUTPUT_MAX);
	assert_true(out.failed);
	for (int i = 0; i < 2; i++) {
		take_output(&out, &event);
		assert_int_equal(event.len, SSE_OUTPUT_MAX);
		event_fini(&event);
	}
	assert_int_equal(out.len, 0);
	buf_fini(&out);
	free(text);
}

static void other_events_have_any_json(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct buf small = BUF_INIT(10);
	json_t *data = json_pack("{s:i, s:s}", "exit_code", 3, "text", "a\nb");
	struct event event;

	(void)state;
	sse_put_event(&out, UINT64_MAX, "exit", data);
	sse_put_event(&small, 1, "exit", data);
	assert_true(small.failed);
	assert_int_equal(small.len, 0);
	take_event(&out, &event);
	assert_true(event.id == UINT64_MAX);
	assert_string_equal(event.name, "exit");
	assert_true(json_equal(event.data, data));
	assert_int_equal(out.len, 0);
	event_fini(&event);
	json_decref(data);
	buf_fini(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_exactly_this),
		cmocka_unit_test(nothing_is_no_event),
		cmocka_unit_test(text_is_text_however_it_is_split),
		cmocka_unit_test(a_character_without_its_rest_is_no_text_at_the_end),
		cmocka_unit_test(what_is_no_utf8_is_base64),
		cmocka_unit_test(jansson_agrees_on_what_is_text),
		cmocka_unit_test(every_byte_of_ascii_comes_back),
		cmocka_unit_test(control_characters_have_a_limit),
		cmocka_unit_test(large_output_is_several_events),
		cmocka_unit_test(random_bytes_come_back),
		cmocka_unit_test(a_full_buffer_gets_no_half_event),
		cmocka_unit_test(a_full_buffer_keeps_the_events_before),
		cmocka_unit_test(other_events_have_any_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
