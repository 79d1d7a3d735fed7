/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller asks for as members (model/sandbox/member_spec.h), as drafts of their rows. */
#pragma once

#include "core/engine/engine.h"
#include "model/sandbox/sandbox_spec.h"

/*
 * Adds the members of a spec to the draft of its sandbox: 0; 1 if a template is not there yet, but will be when the job
 * has succeeded. Environment that members give each other is in the drafts then. Roles that the draft has already stay as
 * they are, so the record of a sandbox that is there can be given more. With ret_job NULL no job is
 * begun: a template that is not there is -ENOENT.
 */
int member_draft(struct engine *engine, const struct owner *owner, const struct sandbox_spec *spec,
	struct sandbox_record *draft, char ret_job[ID_LEN + 1], struct err *err) must_check;

/* The same for the members that the template of the sandbox gives, if it gives some. `image` is what it takes of it. */
int member_draft_usual(struct engine *engine, const struct owner *owner,
	const struct sandbox_spec *spec, const json_t *image, struct sandbox_record *draft,
	char ret_job[ID_LEN + 1], struct err *err) must_check;

/*
 * All that members depend on which were drafted so, but for their limits: two sandboxes whose members have equal keys
 * can be each other. `entries` are those of a draft; new.
 */
json_t *member_draft_key(const json_t *entries);
