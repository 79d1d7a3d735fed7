/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller asks for as members (model/member_spec.h), as drafts of their rows. */
#pragma once

#include "core/engine/engine.h"
#include "model/sandbox_spec.h"

/*
 * Adds the members of a spec to the draft of its sandbox: 0; 1 if a template is not there yet, but will be when the job
 * has succeeded. Environment that members give each other is in the drafts then.
 */
int member_draft(struct engine *engine, const struct owner *owner, const struct sandbox_spec *spec,
	struct sandbox_record *draft, char ret_job[ID_LEN + 1], struct err *err) must_check;
