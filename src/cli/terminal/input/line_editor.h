/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that a person types, with keys to edit them and those of earlier days: libedit, loaded when there is a
 * terminal. Without it, or without a terminal, they are lines all the same.
 *
 * Signals stay held while it waits: one that comes ends the line, and the terminal is as it was before whenever a
 * function here has returned.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/terminal/interrupt.h"

#define LINE_EDITOR_MAX (1u << 20) /* bytes of one line */

struct line_editor;

/* `history` is where lines are kept from one day to the next; NULL: nowhere. Both are lent. */
struct line_editor *line_editor_new(struct interrupt *interrupt, const char *history);

/* Writes the history. */
void line_editor_free(struct line_editor *editor);

static inline void line_editor_freep(struct line_editor **editorp)
{
	line_editor_free(*editorp);
}

/*
 * Appends the next line to `line`, with its line feed: 1, or 0 at the end of input. -EINTR: a signal came, which
 * `interrupt` names. The prompt is shown on a terminal.
 */
int line_editor_read(struct line_editor *editor, const char *prompt, struct buf *line,
	struct err *err) must_check;
