/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/request/event_filter.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_MAX (33u << 20) /* the largest one shows what code has made (api/execution) */
#define TOLD_MAX  (3u * EVENT_MAX)

struct event_filter {
	event_filter_fn tell;
	void *arg;
	struct buf in, out;
	bool is_over;
};

struct event_filter *event_filter_new(event_filter_fn tell, void *arg)
{
	struct event_filter *filter = mem_new(sizeof(*filter));

	*filter = (struct event_filter){
		.tell = tell, .arg = arg, .in = BUF_INIT(EVENT_MAX), .out = BUF_INIT(TOLD_MAX)};
	return filter;
}

void event_filter_free(struct event_filter *filter)
{
	if (!filter)
		return;
	buf_fini(&filter->in);
	buf_fini(&filter->out);
	free(filter);
}

/* What stands behind "name: " in a line, at NULL if it is another line. */
static const char *value_of(const char *line, size_t len, const char *name, size_t *ret_len)
{
	size_t skip = strlen(name);

	if (len < skip || memcmp(line, name, skip) != 0)
		return NULL;
	*ret_len = len - skip;
	return line + skip;
}

/* One block of lines, without the empty one behind it. */
static void tell(struct event_filter *filter, const char *block, size_t len)
{
	const char *name = NULL, *text = NULL, *found;
	size_t name_len = 0, text_len = 0, found_len;
	auto_free char *event = NULL;
	json_t *data;

	for (size_t at = 0; at < len;) {
		const char *newline = memchr(block + at, '\n', len - at);
		size_t line = newline ? (size_t)(newline - block) - at : len - at;

		if ((found = value_of(block + at, line, "event: ", &found_len))) {
			name = found;
			name_len = found_len;
		} else if ((found = value_of(block + at, line, "data: ", &found_len))) {
			text = found;
			text_len = found_len;
		}
		at += line + 1;
	}
	event = mem_printf("%.*s", (int)name_len, name ? name : "");
	data = text ? json_loadb(text, text_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
	filter->tell(filter->arg, event, data, &filter->out);
	json_decref(data);
}

int event_filter_feed(struct event_filter *filter, const char *data, size_t len)
{
	size_t before = filter->in.len, begin = 0;

	if (buf_append(&filter->in, data, len) < 0)
		return -EMSGSIZE;
	for (size_t at = before > 0 ? before : 1; at < filter->in.len; at++) {
		const char *text = (const char *)filter->in.data;

		if (text[at] != '\n' || text[at - 1] != '\n' || at <= begin)
			continue;
		tell(filter, text + begin, at - 1 - begin);
		begin = at + 1;
	}
	buf_consume(&filter->in, begin);
	return filter->out.failed ? -EMSGSIZE : 0;
}

void event_filter_end(struct event_filter *filter)
{
	if (!filter->is_over)
		filter->tell(filter->arg, NULL, NULL, &filter->out);
	filter->is_over = true;
}

ssize_t event_filter_take(struct event_filter *filter, char *data, size_t size)
{
	size_t n = filter->out.len < size ? filter->out.len : size;

	if (n == 0)
		return filter->is_over ? -ENODATA : 0;
	memcpy(data, filter->out.data, n);
	buf_consume(&filter->out, n);
	return (ssize_t)n;
}
