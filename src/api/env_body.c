/* SPDX-License-Identifier: Apache-2.0 */
#include "api/env_body.h"

#include "model/sandbox/sandbox_spec.h"

const char *env_body_check(const json_t *env)
{
	const char *name, *wrong = NULL;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		if (!wrong)
			wrong = sandbox_spec_check_env(name, json_string_length(value));
	}
	return wrong;
}
