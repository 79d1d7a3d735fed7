/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a visit of the preview of a sandbox that sleeps does: it wakes it or not, and is answered at once
 * or waits. A start that failed is not tried again by each visit. Any thread may call these.
 */
#pragma once

#include "core/engine/engine.h"

#define WAKE_RULES_MESSAGE_MAX 320

struct wake_rules;

enum wake_rules_answer {
	WAKE_RULES_FAILED, /* a moment ago it did not start, for a reason; it is not tried again yet */
	WAKE_RULES_NOT,	   /* what programs ask for by themselves is no reason to start anything */
	WAKE_RULES_TELL, /* it is woken, and a person sees meanwhile that it starts */
	WAKE_RULES_WAIT, /* it is woken, and a program waits for that */
};

struct wake_rules *wake_rules_new(void);
void wake_rules_free(struct wake_rules *rules);

/* A request by method and target; is_page: a browser will show the answer to a person. */
enum wake_rules_answer wake_rules_judge(struct wake_rules *rules, const char *id,
	const char *method, const char *target, bool is_page,
	char ret_message[WAKE_RULES_MESSAGE_MAX]);

/* Wakes it, and notes a failure. Blocks. */
void wake_rules_wake(struct wake_rules *rules, struct engine *engine, const char *id);
