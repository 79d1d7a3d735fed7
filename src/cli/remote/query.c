/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/query.h"

#include <string.h>

/* Appends a text; what is neither a letter, a digit nor among `plain` is escaped. */
static void put(struct buf *target, const char *text, const char *plain)
{
	for (; *text; text++) {
		char c = *text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strchr(plain, c))
			buf_append(target, text, 1);
		else
			buf_printf(target, "%%%02X", (unsigned char)c);
	}
}

void query_escape(struct buf *target, const char *text)
{
	put(target, text, "-._~");
}

void query_add(struct buf *target, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_str(target, memchr(target->data, '?', target->len) ? "&" : "?");
	buf_append_str(target, name);
	buf_append_str(target, "=");
	put(target, value, "-._~/");
}
