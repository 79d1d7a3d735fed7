/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/mcp_result.h"

#include "api/mcp/mcp_tool.h"
#include "api/text.h"
#include "base/format.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

#define TEXT_MAX  (48u << 10) /* bytes of one text; of a longer one both ends are shown */
#define DEPTH_MAX 64

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

json_t *mcp_result_fail(const char *message, const char *remedy)
{
	auto_(buf_fini) struct buf text = BUF_INIT(4096);
	auto_free char *plain = NULL;

	/* What a message quotes may be cut in the middle of a character. */
	text_put_plain(&text, (const uint8_t *)message, strlen(message));
	if (remedy && remedy[0]) {
		buf_append_str(&text, "\n");
		text_put_plain(&text, (const uint8_t *)remedy, strlen(remedy));
	}
	plain = buf_take_str(&text);
	return json_pack(
		"{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", plain, "isError", 1);
}

static json_t *fail_with(const json_t *body)
{
	const json_t *error = json_object_get(body, "error");
	const char *confirm = text_of(error, "confirm");
	auto_free char *advice = mcp_tool_speak(text_of(error, "remediation"));
	auto_free char *remedy =
		mem_printf("%s%s%s", advice, confirm[0] ? "\nconfirm: " : "", confirm);
	json_t *result = mcp_result_fail(
		text_of(error, "message")[0] ? text_of(error, "message") : "it failed", remedy);

	json_object_set_new(result, "structuredContent", json_deep_copy(body));
	return result;
}

/* Both ends of a text that is too long; no character is cut in half. */
static json_t *shorten(const char *text, size_t len)
{
	auto_(buf_fini) struct buf both = BUF_INIT(TEXT_MAX + 128);
	size_t head = TEXT_MAX / 2, tail = len - TEXT_MAX / 2;
	char size[FORMAT_SIZE_LEN];

	head -= format_unfinished(text, head);
	while (tail < len && ((unsigned char)text[tail] & 0xc0) == 0x80)
		tail++;
	format_size(tail - head, size);
	buf_append(&both, text, head);
	buf_printf(&both, "\n[... %s left out ...]\n", size);
	buf_append(&both, text + tail, len - tail);
	return json_stringn((const char *)both.data, both.len);
}

static json_t *fit(json_t *value, unsigned depth)
{
	const char *name;
	json_t *part;
	size_t i;

	if (json_is_string(value) && json_string_length(value) > TEXT_MAX)
		return shorten(json_string_value(value), json_string_length(value));
	if (depth > DEPTH_MAX)
		return json_incref(value);
	json_object_foreach(value, name, part)
		json_object_set_new(value, name, fit(part, depth + 1));
	json_array_foreach(value, i, part) json_array_set_new(value, i, fit(part, depth + 1));
	return json_incref(value);
}

/* Pictures among the results of code are shown as such, and left out of the text. */
static void take_pictures(json_t *body, json_t *content)
{
	static const char *const types[] = {"image/png", "image/jpeg"};
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(body, "results"), i, one)
	{
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
			json_t *data = json_object_get(one, types[t]);

			if (!json_is_string(data))
				continue;
			json_array_append_new(content, json_pack("{s:s, s:O, s:s}", "type", "image",
							       "data", data, "mimeType", types[t]));
			json_object_set_new(one, types[t], json_string("shown as a picture"));
		}
	}
}

/* A command with another exit code than 0, or code that did not succeed. */
static bool has_failed(const json_t *body)
{
	const json_t *code = json_object_get(body, "exit_code");
	const char *status = text_of(body, "status");

	if (json_is_integer(code))
		return json_integer_value(code) != 0;
	if (!json_object_get(body, "metrics"))
		return false;
	return strcmp(status, "failed") == 0 || strcmp(status, "timeout") == 0 ||
	       strcmp(status, "lost") == 0;
}

json_t *mcp_result_make(int status, json_t *body)
{
	json_auto_t *answer = body ? body : json_pack("{s:b}", "done", 1);
	json_t *content = json_array();
	auto_free char *text = NULL;

	if (status >= 400) {
		json_decref(content);
		return fail_with(answer);
	}
	take_pictures(answer, content);
	json_decref(fit(answer, 0));
	text = json_dumps(answer, JSON_INDENT(1) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	json_array_insert_new(
		content, 0, json_pack("{s:s, s:s}", "type", "text", "text", text ? text : ""));
	return json_pack("{s:o, s:O, s:b}", "content", content, "structuredContent", answer,
		"isError", has_failed(answer));
}
