/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a stage of a launch failed, by the last words of its program: a table of what programs say, in the order of how
 * much each tells.
 */
#pragma once

#include "base/err.h"
#include "model/process/termination.h"

#include <jansson.h>

struct failure_cause {
	char code[40]; /* "missing_module", ...; "failed" if nothing is known */
	char message[320];
	char remedy[196];
};

/* The output may be anything; what is taken of it is made printable. */
void failure_cause_find(const char *output, struct failure_cause *ret_cause);

/* Whether it ended at a limit of its sandbox. */
bool failure_cause_of_limit(const struct termination *how, struct failure_cause *ret_cause);

/* The last line that names an exception ("ValueError: no such key"), printable; empty if there is none. */
#define FAILURE_CAUSE_EXCEPTION_LEN 200
void failure_cause_read_exception(const char *output, char text[FAILURE_CAUSE_EXCEPTION_LEN]);
