/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message through the proxy, cut into pieces. The first byte says whether it is an answer, the second how it is
 * cut. However that is, the same is read; and what goes out again, head and body, is read as the same message.
 */
#include "proxy/message/rewrite.h"

#include <assert.h>
#include <string.h>

#define OUT_MAX	     (4u * 1024 * 1024)
#define FIELDS_ADDED 16 /* by the proxy, at most; and so many bytes: */
#define BYTES_ADDED  2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	bool has_head, is_complete, has_failed;
	size_t head_len, field_count;
	struct buf body; /* without its framing */
};

/* Each piece lies in memory of its own, so that a read past its end is seen. */
static ssize_t feed(struct message *message, const uint8_t *data, size_t len)
{
	uint8_t *copy = mem_new(len ? len : 1);
	ssize_t n;

	memcpy(copy, data, len);
	n = message_feed(message, copy, len);
	assert(n <= (ssize_t)len);
	free(copy);
	return n;
}

static void write_head(const struct message *message, struct buf *out)
{
	static const struct rewrite rewrite = {
		.scheme = "http", .host = "a.test", .client = "10.0.0.1", .port = 3000};

	if (message->kind == MESSAGE_REQUEST)
		rewrite_request(message, &rewrite, false, out);
	else
		rewrite_response(message, &rewrite, message->in_chunks, false, out);
	assert(!out->failed && memcmp(out->data + out->len - 4, "\r\n\r\n", 4) == 0);
	assert(!memmem(out->data, out->len - 1, "\r\n\r\n", 4));
}

/* Reads in pieces of growing size; with `again`, what goes out goes there, too. */
static void read_message(enum message_kind type, const uint8_t *data, size_t size, size_t step,
	struct buf *again, struct reading *ret)
{
	struct message message = {0};
	size_t at = 0, end = 0;
	ssize_t n = 0;

	*ret = (struct reading){.body = BUF_INIT(OUT_MAX)};
	message_begin(&message, type);
	while (!message.is_complete && n >= 0 && (at < size || end < size)) {
		bool had_head = message.has_head;

		end = end + step < size ? end + step : size;
		n = feed(&message, data + at, end - at);
		if (n > 0)
			at += (size_t)n;
		else if (end == size)
			break;
		if (!had_head && message.has_head && n >= 0) {
			ret->head_len = (size_t)n;
			ret->field_count = message.field_count;
			message.out = again ? again : &ret->body;
			message.in_chunks = again && !message.is_complete && !message.has_length &&
					    (type == MESSAGE_RESPONSE || message.is_chunked);
			if (again)
				write_head(&message, again);
			end = at;
		}
	}
	if (n >= 0 && !message.is_complete)
		(void)message_end(&message);
	ret->has_failed = n < 0;
	ret->has_head = message.has_head;
	ret->is_complete = message.is_complete;
	message_fini(&message);
}

/* Whether a reader with the same limits takes it with what the proxy adds. */
static bool has_room(const struct reading *reading)
{
	return reading->field_count + FIELDS_ADDED <= MESSAGE_FIELDS_MAX &&
	       reading->head_len + BYTES_ADDED <= MESSAGE_HEAD_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf again = BUF_INIT(OUT_MAX);
	struct reading whole, cut, copied, second;
	enum message_kind type;
	size_t step;

	if (size < 2 || size > 65536)
		return 0;
	type = data[0] % 2 ? MESSAGE_RESPONSE : MESSAGE_REQUEST;
	step = data[1] + 1u;
	read_message(type, data + 2, size - 2, size, NULL, &whole);
	read_message(type, data + 2, size - 2, step, NULL, &cut);
	assert(whole.is_complete == cut.is_complete);
	if (whole.is_complete) {
		assert(whole.body.len == cut.body.len);
		assert(whole.body.len == 0 ||
			memcmp(whole.body.data, cut.body.data, cut.body.len) == 0);
	}
	if (whole.is_complete && has_room(&whole)) {
		read_message(type, data + 2, size - 2, step, &again, &copied);
		assert(copied.is_complete);
		read_message(type, again.data, again.len, again.len, NULL, &second);
		assert(second.is_complete);
		assert(second.body.len == whole.body.len);
		assert(whole.body.len == 0 ||
			memcmp(second.body.data, whole.body.data, whole.body.len) == 0);
		buf_fini(&copied.body);
		buf_fini(&second.body);
	}
	buf_fini(&whole.body);
	buf_fini(&cut.body);
	buf_fini(&again);
	return 0;
}
