/* SPDX-License-Identifier: Apache-2.0 */
#include "model/access/scope.h"
#include "base/format.h"

#include <stdio.h>
#include <string.h>

const struct scope_row scope_table[] = {
	{SCOPE_READ, "read", "look at sandboxes, processes, their output, events and tokens"},
	{SCOPE_RUN, "run", "run commands and terminals, write to processes and end them"},
	{SCOPE_FILES, "files", "read, write and watch files in sandboxes"},
	{SCOPE_MANAGE, "manage",
		"create, change, start, stop and remove sandboxes, and revoke tokens"},
	{SCOPE_ADMIN, "admin", "all of these, make tokens for anybody, and shut the daemon down"},
};
const size_t scope_count = array_len(scope_table);

unsigned scope_find(const char *name, size_t len)
{
	for (size_t i = 0; i < scope_count; i++) {
		if (strlen(scope_table[i].name) == len &&
			strncmp(scope_table[i].name, name, len) == 0)
			return scope_table[i].scope;
	}
	return 0;
}

unsigned scope_parse(const char *text)
{
	unsigned scopes = 0;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t len = strcspn(text, " ");

		scopes |= scope_find(text, len);
		text += len;
	}
	return scopes;
}

void scope_format(unsigned scopes, char text[SCOPE_TEXT_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < scope_count; i++) {
		if (scopes & scope_table[i].scope)
			len = format_append(text, SCOPE_TEXT_MAX, len, "%s%s", len ? " " : "",
				scope_table[i].name);
	}
}
