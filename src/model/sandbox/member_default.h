/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members that a template gives to sandboxes that are created from it and ask for none. Its options keep them as an
 * array of objects with the fields of struct member_spec that were given; resources are in millis and bytes.
 */
#pragma once

#include "model/sandbox/sandbox_spec.h"

/* Of a spec; new. */
json_t *member_default_to_json(const struct member_spec *members, size_t count);

/* What specs that were read point to, beside the JSON that they were read from. Large: made on the heap. */
struct member_defaults {
	struct member_spec members[MEMBERS_MAX];
	size_t count;
	struct text_pair env[MEMBERS_MAX][SPEC_ENV_MAX];
	const char *depends_on[MEMBERS_MAX][MEMBERS_MAX];
};

/* Reads what member_default_to_json wrote; texts are borrowed of the list. */
void member_default_read(const json_t *list, struct member_defaults *ret_defaults);
