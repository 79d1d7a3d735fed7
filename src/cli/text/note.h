/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line tells the user beside its output. */
#pragma once

/* To standard error: a sentence that is no failure. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
