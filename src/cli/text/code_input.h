/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what was typed so far is whole, as a REPL must know before it runs it.
 *
 * Only strings, comments and brackets are looked at, and what Python wants: a block ends with an empty line. What
 * is wrong in another way counts as whole: the interpreter says what it is.
 */
#pragma once

#include <stdbool.h>

/* `text` has all lines so far, each with its line feed. */
bool code_input_is_whole(const char *language, const char *text);
