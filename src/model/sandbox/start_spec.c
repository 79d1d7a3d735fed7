/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/start_spec.h"

#include "base/mem.h"
#include "model/text_digest.h"

#include <stdlib.h>

json_t *start_spec_to_json(const struct start_spec *start)
{
	json_t *spec = json_pack("{s:s, s:s}", "name", start->name, "command", start->command);

	if (start->cwd)
		json_object_set_new(spec, "cwd", json_string(start->cwd));
	if (start->env.pairs)
		json_object_set_new(spec, "env", text_map_to_json(start->env));
	return spec;
}

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
