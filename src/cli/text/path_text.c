/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/path_text.h"

#include "cli/cli.h"
#include "cli/text/table.h"

/* Whether a path could do something to a terminal, or be taken for two. */
static bool is_tricky(const char *path)
{
	size_t len;

	for (const char *at = path; *at; at += len) {
		if (table_control(at, &len) || *at == ' ' || *at == '"')
			return true;
	}
	return false;
}

void path_text_add(struct buf *line, const json_t *data, const char *name)
{
	auto_free char *encoded_name = mem_printf("%s_base64", name);
	const char *encoded = json_string_value(json_object_get(data, encoded_name));
	const json_t *text = json_object_get(data, name);
	const char *path = json_string_value(text);
	auto_free char *quoted = NULL;

	if (path && is_tricky(path))
		quoted = cli_dump_json(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (path)
		buf_printf(line, " %s", quoted ? quoted : path);
	else if (encoded)
		buf_printf(line, " base64:%s", encoded);
}
