/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query.h"

#include <string.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~/", c));
}

void query_add(struct buf *target, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_str(target, memchr(target->data, '?', target->len) ? "&" : "?");
	buf_append_str(target, name);
	buf_append_str(target, "=");
	for (; *value; value++) {
		if (is_plain(*value))
			buf_append(target, value, 1);
		else
			buf_printf(target, "%%%02X", (unsigned char)*value);
	}
}
