/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program has switched on in a terminal that shows its output: the alternate screen, reports of the
 * mouse, a hidden cursor. A user who leaves such a program by keys, or whose connection ends, gets the
 * terminal back as it was. Only what was switched is undone: to leave an alternate screen that was never
 * entered would move the cursor. And a terminal that gets only the last part of the output needs what was
 * switched before that part.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

#define SCREEN_STATE_PARAMETERS 16 /* of one sequence; more are not looked at */
#define SCREEN_STATE_MODES	20

struct screen_state {
	bool is_set
		[SCREEN_STATE_MODES]; /* rows of the table of modes: switched from their defaults */
	bool is_keypad, has_region, has_style, has_cursor_shape, has_key_modifiers;
	unsigned keyboard_levels; /* pushed on the stack of keyboard protocols */

	/* The sequence that is being read. */
	enum { SCREEN_TEXT, SCREEN_ESCAPE, SCREEN_CONTROL, SCREEN_STRING, SCREEN_STRING_ESCAPE } at;
	uint8_t marker, intermediate;
	unsigned parameters[SCREEN_STATE_PARAMETERS];
	unsigned parameter_count;
};

/* Looks at output on its way to the terminal. */
void screen_state_feed(struct screen_state *state, const uint8_t *data, size_t len);

/* Appends what switches the modes of another terminal to the same. */
void screen_state_redo(const struct screen_state *state, struct buf *out);

/* Appends what undoes all that is switched, and forgets it. */
void screen_state_undo(struct screen_state *state, struct buf *out);
