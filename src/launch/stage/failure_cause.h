/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a stage of a launch failed, by the last words of its program: a table of what programs say, in the order of how
 * much each tells.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>

struct failure_cause {
	char code[40]; /* "missing_module", ...; "failed" if nothing is known */
	char message[320];
	char remedy[196];
};

/* The output may be anything; what is taken of it is made printable. */
void failure_cause_find(const char *output, struct failure_cause *ret_cause);

/* Makes what is not printable ASCII question marks. */
void failure_cause_clean(char *text);
