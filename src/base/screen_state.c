/* SPDX-License-Identifier: Apache-2.0 */
#include "base/screen_state.h"

#include <assert.h>
#include <string.h>

#define ESC 0x1b

/* Private modes: CSI ? number h switches one on, l off. In the order in which they are undone. */
static const struct {
	unsigned number;
	bool is_on; /* by default */
} modes[] = {
	{1000, false}, {1001, false}, {1002, false}, {1003, false}, /* mouse */
	{1004, false},						    /* focus */
	{1005, false}, {1006, false}, {1015, false}, {1016, false}, /* how the mouse is told */
	{2004, false},						    /* paste in brackets */
	{2026, false},						    /* output is held back */
	{2031, false},						    /* colours are told */
	{2048, false},						    /* sizes are told */
	{1, false},						    /* keys of the cursor */
	{5, false},						    /* black on white */
	{7, true},						    /* lines wrap */
	{25, true},						    /* the cursor is seen */
	{47, false}, {1047, false}, {1049, false},		    /* the alternate screen */
};

static_assert(array_len(modes) == SCREEN_STATE_MODES, "a place for each mode");

static void set_mode(struct screen_state *state, unsigned number, bool is_on)
{
	for (size_t i = 0; i < array_len(modes); i++) {
		if (modes[i].number == number)
			state->is_set[i] = is_on != modes[i].is_on;
	}
}

static bool has_parameter(const struct screen_state *state)
{
	for (unsigned i = 0; i < state->parameter_count; i++) {
		if (state->parameters[i])
			return true;
	}
	return false;
}

static void push_keyboard(struct screen_state *state, uint8_t marker)
{
	unsigned count = state->parameters[0] ? state->parameters[0] : 1;

	if (marker == '>' && state->keyboard_levels < 1000)
		state->keyboard_levels++;
	else if (marker == '<')
		state->keyboard_levels -=
			count < state->keyboard_levels ? count : state->keyboard_levels;
}

/* The final byte of a control sequence. */
static void take_final(struct screen_state *state, uint8_t final)
{
	uint8_t marker = state->marker;

	if (state->intermediate == ' ' && final == 'q')
		state->has_cursor_shape = has_parameter(state);
	if (state->intermediate)
		return;
	if (marker == '?' && (final == 'h' || final == 'l')) {
		for (unsigned i = 0; i < state->parameter_count; i++)
			set_mode(state, state->parameters[i], final == 'h');
	} else if (final == 'u') {
		push_keyboard(state, marker);
	} else if (marker == '>' && final == 'm' && state->parameters[0] == 4) {
		state->has_key_modifiers = state->parameter_count > 1 && state->parameters[1];
	} else if (!marker && final == 'm') {
		state->has_style = has_parameter(state);
	} else if (!marker && final == 'r') {
		state->has_region = has_parameter(state);
	}
}

static void take_control(struct screen_state *state, uint8_t byte)
{
	unsigned *last = &state->parameters[state->parameter_count - 1];

	if (byte >= '0' && byte <= '9') {
		if (*last < 100000)
			*last = *last * 10 + (byte - '0');
	} else if (byte == ';' || byte == ':') {
		if (state->parameter_count < SCREEN_STATE_PARAMETERS)
			state->parameters[state->parameter_count++] = 0;
	} else if (byte >= 0x3c && byte <= 0x3f) {
		state->marker = byte;
	} else if (byte >= 0x20 && byte <= 0x2f) {
		state->intermediate = byte;
	} else if (byte >= 0x40 && byte <= 0x7e) {
		take_final(state, byte);
		state->at = SCREEN_TEXT;
	} else if (byte == 0x18 || byte == 0x1a) {
		state->at = SCREEN_TEXT;
	}
}

static void take_escape(struct screen_state *state, uint8_t byte)
{
	state->at = SCREEN_TEXT;
	switch (byte) {
	case '[':
		state->at = SCREEN_CONTROL;
		state->marker = state->intermediate = 0;
		state->parameters[0] = 0;
		state->parameter_count = 1;
		break;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		state->at = SCREEN_STRING;
		break;
	case '=':
	case '>':
		state->is_keypad = byte == '=';
		break;
	case 'c': /* it resets all of the terminal */
		*state = (struct screen_state){0};
		break;
	default:
		break;
	}
}

static void take(struct screen_state *state, uint8_t byte)
{
	if (byte == ESC) {
		state->at = state->at == SCREEN_STRING ? SCREEN_STRING_ESCAPE : SCREEN_ESCAPE;
		return;
	}
	switch (state->at) {
	case SCREEN_ESCAPE:
	case SCREEN_STRING_ESCAPE: /* what is no end of the string begins something else */
		take_escape(state, byte);
		break;
	case SCREEN_CONTROL:
		take_control(state, byte);
		break;
	case SCREEN_STRING:
		if (byte == 0x07 || byte == 0x18 || byte == 0x1a)
			state->at = SCREEN_TEXT;
		break;
	case SCREEN_TEXT:
		break;
	}
}

void screen_state_feed(struct screen_state *state, const uint8_t *data, size_t len)
{
	const uint8_t *end = data + len;

	while (data < end) {
		/* Most of it is text. */
		if (state->at == SCREEN_TEXT)
			data = memchr(data, ESC, (size_t)(end - data));
		if (!data)
			return;
		take(state, *data++);
	}
}

void screen_state_redo(const struct screen_state *state, struct buf *out)
{
	/* The alternate screen comes first: to enter it clears it. */
	for (size_t i = array_len(modes); i-- > 0;) {
		if (state->is_set[i])
			buf_printf(out, "\033[?%u%c", modes[i].number, modes[i].is_on ? 'l' : 'h');
	}
	if (state->is_keypad)
		buf_append_str(out, "\033=");
}

void screen_state_undo(struct screen_state *state, struct buf *out)
{
	if (state->has_key_modifiers)
		buf_append_str(out, "\033[>4m");
	if (state->keyboard_levels)
		buf_printf(out, "\033[<%uu", state->keyboard_levels);
	if (state->is_keypad)
		buf_append_str(out, "\033>");
	if (state->has_cursor_shape)
		buf_append_str(out, "\033[0 q");
	/* To reset the region moves the cursor. */
	if (state->has_region)
		buf_append_str(out, "\0337\033[r\0338");
	for (size_t i = 0; i < array_len(modes); i++) {
		if (state->is_set[i])
			buf_printf(out, "\033[?%u%c", modes[i].number, modes[i].is_on ? 'h' : 'l');
	}
	if (state->has_style)
		buf_append_str(out, "\033[m");
	*state = (struct screen_state){0};
}
