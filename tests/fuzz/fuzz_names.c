/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, entries of allowlists, base64, and bytes that may be text. */
#include "api/text.h"
#include "base/format.h"
#include "model/id.h"
#include "model/sandbox/egress_rule.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rule(const char *rule)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-.:/[]*_";

	if (!egress_rule_is_valid(rule))
		return;
	/* Nothing that could end a name, a line or a word wherever it is put. */
	assert(rule[0] && strlen(rule) < 300 && strspn(rule, plain) == strlen(rule));
	assert(!strstr(rule, "..") && !strstr(rule, "//"));
}

static void check_base64(const char *text)
{
	json_t *object = json_object();
	uint8_t *decoded = NULL;
	ssize_t len = text_decode_base64(text, &decoded);

	if (len >= 0) {
		const char *again;

		assert((size_t)len <= strlen(text) / 4 * 3);
		text_set(object, "x", decoded, (size_t)len);
		again = json_string_value(json_object_get(object, "x_base64"));
		assert(!again || strcmp(again, text) == 0);
		free(decoded);
	}
	json_decref(object);
}

static void check_text(const uint8_t *data, size_t size)
{
	json_t *object = json_object();
	const json_t *text;

	assert(format_unfinished(data, size) <= 3);
	text_set(object, "x", data, size);
	text = json_object_get(object, "x");
	assert(text ? text_is_utf8(data, size) : !!json_object_get(object, "x_base64"));
	if (text)
		assert(json_string_length(text) == size &&
			memcmp(json_string_value(text), data, size) == 0);
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_new(size + 1);

	if (size > 0)
		memcpy(text, data, size);
	if (id_is_valid(text))
		assert(strlen(text) == ID_LEN &&
			strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == ID_LEN);
	check_rule(text);
	check_base64(text);
	check_text(data, size);
	free(text);
	return 0;
}
