/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_fini(struct buf *buf)
{
	free(buf->data);
	*buf = BUF_INIT(buf->max);
}

int buf_reserve(struct buf *buf, size_t more)
{
	size_t cap = buf->cap ? buf->cap : 256;
	uint8_t *data;

	assert(buf->max > 0);
	if (more > buf->max || buf->len > buf->max - more) {
		buf->failed = true;
		return -EMSGSIZE;
	}
	if (buf->len + more <= buf->cap)
		return 0;
	while (cap < buf->len + more)
		cap *= 2;
	data = realloc(buf->data, cap);
	if (!data) {
		buf->failed = true;
		return -ENOMEM;
	}
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int buf_append(struct buf *buf, const void *data, size_t len)
{
	int r = buf_reserve(buf, len);

	if (r < 0)
		return r;
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return 0;
}

int buf_append_str(struct buf *buf, const char *s)
{
	return buf_append(buf, s, strlen(s));
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
	auto_free char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		s = NULL;
		buf->failed = true;
		return -ENOMEM;
	}
	return buf_append(buf, s, (size_t)n);
}

void buf_consume(struct buf *buf, size_t len)
{
	assert(len <= buf->len);
	buf->len -= len;
	if (buf->len > 0)
		memmove(buf->data, buf->data + len, buf->len);
}

char *buf_take_str(struct buf *buf)
{
	char *s = realloc(buf->data, buf->len + 1);

	if (!s)
		abort();
	s[buf->len] = '\0';
	*buf = BUF_INIT(buf->max);
	return s;
}
