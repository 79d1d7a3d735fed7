/* SPDX-License-Identifier: Apache-2.0 */
/* Members in JSON: `members` of create and ensure, and how each fares. */
#pragma once

#include "api/api.h"
#include "api/fields.h"
#include "model/sandbox/sandbox_spec.h"

/* The fields of one member. */
#define MEMBER_BODY_ROWS 9
extern const struct field member_body_rows[MEMBER_BODY_ROWS];

/* What decoded members point to. */
struct member_body_parts {
	struct member_spec members[MEMBERS_MAX];
	struct text_pair env[MEMBERS_MAX][SPEC_ENV_MAX];
	const char *depends_on[MEMBERS_MAX][MEMBERS_MAX];
};

/*
 * Adds decoded members to a spec. What the one in the role `primary` says of the sandbox itself (template, command, env,
 * resources) becomes what the spec says, where that says nothing.
 */
int member_body_decode(const json_t *list, struct member_body_parts *parts,
	struct sandbox_spec *spec, struct text_pair env[static SPEC_ENV_MAX],
	struct start_spec starts[static SPEC_STARTS_MAX], struct err *err) must_check;

/* Those of a sandbox as they are shown; new. */
json_t *member_body_encode(const struct api *api, const struct sandbox_record *record);
