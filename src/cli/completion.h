/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completions, written out of the table of commands. */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>

/* The shells, with one space between. */
#define COMPLETION_SHELLS "bash fish zsh"

/* shell: one of COMPLETION_SHELLS. */
int completion_write(const char *shell, FILE *out, struct err *err) must_check;
