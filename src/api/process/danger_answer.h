/* SPDX-License-Identifier: Apache-2.0 */
/* Dangerous commands (core/process/danger_gate.h), as their client is told of them. */
#pragma once

#include "api/api.h"
#include "core/process/danger_gate.h"

/*
 * 0 if it may run, with what it is flagged for. The header Sandlot-Flags of the answer says so, from which the audit log has
 * it too; if it must be confirmed, Sandlot-Confirm has the code.
 */
int danger_answer_ask(struct request *req, struct api *api, const struct danger_question *question,
	danger_set *ret_flags, struct err *err) must_check;

/* A command of exec, or of a sandbox's code. */
int danger_answer_ask_in(struct request *req, struct api *api, struct sandbox *sandbox,
	struct danger_question question, danger_set *ret_flags, struct err *err) must_check;
