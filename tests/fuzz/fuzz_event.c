/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of events as the command line reads it: in whatever pieces it comes, the events are the same. */
#include "cli/remote/event_reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that was heard, one behind the other. */
static int hear(const struct event *event, void *arg)
{
	struct buf *heard = arg;

	assert(event->name[0] && strlen(event->id) < 64);
	buf_printf(heard, "%s|%s|%zu|", event->name, event->id, event->data_len);
	buf_append(heard, event->data, event->data_len);
	return 0;
}

static int feed(const uint8_t *data, size_t size, size_t piece, struct buf *heard)
{
	struct event_reader reader;
	int r = 0;

	event_reader_init(&reader);
	while (size > 0 && r == 0) {
		size_t n = piece < size ? piece : size;
		char *copy = mem_new(n); /* so that a read past its end is seen */

		memcpy(copy, data, n);
		r = event_reader_feed(&reader, copy, n, hear, heard);
		free(copy);
		data += n;
		size -= n;
	}
	event_reader_fini(&reader);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(8u << 20), single = BUF_INIT(8u << 20);
	int r = feed(data, size, size, &whole);

	assert(r == 0 || r == -EMSGSIZE);
	assert(feed(data, size, 1, &single) == r);
	assert(whole.len == single.len &&
		(whole.len == 0 || memcmp(whole.data, single.data, whole.len) == 0));
	buf_fini(&whole);
	buf_fini(&single);
	return 0;
}
