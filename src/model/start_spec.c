/* SPDX-License-Identifier: Apache-2.0 */
#include "model/start_spec.h"

#include "base/mem.h"
#include "model/text_digest.h"

#include <stdlib.h>

const char *start_spec_name(const json_t *spec)
{
	return json_string_value(json_object_get(spec, "name"));
}

uint64_t start_spec_digest(const json_t *spec)
{
	auto_free char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		abort();
	return text_digest(text);
}
