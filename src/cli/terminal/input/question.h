/* SPDX-License-Identifier: Apache-2.0 */
/* A question that only a person answers. */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>

/* Whether somebody sits at a terminal, who sees a question and can answer it. */
bool question_has_listener(void);

/* 0 after a yes. Anything else is a no; without a terminal it says that --force is needed. */
int question_ask(const char *question, struct err *err) must_check;
