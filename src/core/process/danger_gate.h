/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of commands that the table of model/process/danger.h names: the policy of their owner (store_quota.h) says whether
 * they are only flagged, must be asked for twice, or are refused. Whatever starts a command that a client wrote asks here.
 */
#pragma once

#include "core/engine/engine.h"
#include "core/engine/sandbox_handle.h"
#include "model/process/danger.h"
#include "model/sandbox/sandbox_record.h"

#define DANGER_CODE_LEN 12 /* of a confirmation, without NUL */

struct danger_question {
	const char *const *argv; /* or */
	const char *language, *code;
	const char *input; /* what argv reads; NULL: nothing that is known */
	size_t input_len;
	const char *confirm; /* the code that was sent with it; NULL: none */
	bool is_confirmed;   /* somebody did so before: it is not asked for again */
	const char *sandbox; /* the id of where it is to run; NULL: nobody knows yet */
	const struct owner *owner;
};

struct danger_verdict {
	danger_set flags;
	char code[DANGER_CODE_LEN + 1]; /* that confirms it, if it must be; else empty */
};

/*
 * 0 if it may run, with what is to be noted of it. ERR_CONFLICT (confirmation_required) if it must be confirmed, ERR_DENIED
 * (command_refused) if it must not run; the verdict is set then too. All that is flagged is published: command.flagged,
 * command.held, command.refused.
 */
int danger_gate_ask(struct engine *engine, const struct danger_question *question,
	struct danger_verdict *ret_verdict, struct err *err) must_check;
