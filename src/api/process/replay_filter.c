/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/replay_filter.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define ESC 0x1b
#define BEL 0x07
#define ENQ 0x05
#define CAN 0x18
#define SUB 0x1a

/* --- which sequences are questions --- */

/* A control sequence in its parts: CSI, marker, parameters, intermediate bytes, final byte. */
struct control {
	uint8_t marker;	      /* one of < = > ?, or 0 */
	uint8_t intermediate; /* the last, or 0 */
	uint8_t final;
	unsigned first; /* the first parameter */
};

/* Those without intermediate bytes; the markers with which each is a question, where '0' is for none. */
static const struct {
	uint8_t final;
	const char *markers;
} plain[] = {
	{'c', "0>="}, /* what kind of terminal */
	{'g', "?"},   /* formats of keys */
	{'m', "?"},   /* modifiers of keys */
	{'n', "0?"},  /* status, and where the cursor is */
	{'q', ">"},   /* its version */
	{'S', "?"},   /* graphics */
	{'u', "?"},   /* protocol of the keyboard */
	{'x', "0"},   /* parameters of the line */
};

/* Those with one: intermediate and final byte. */
static const char *const with_intermediate[] = {
	"$p", "$u", "$w", "&u", "*y", "\"v", "'|", "#|", "#R", "#S", "+x"};

/* "t" is for windows: these ask, others move and resize them. */
static bool is_window_question(unsigned number)
{
	return number == 11 || (number >= 13 && number <= 16) || (number >= 18 && number <= 21);
}

static bool is_control_question(const struct control *control)
{
	if (control->intermediate) {
		for (size_t i = 0; i < sizeof(with_intermediate) / sizeof(*with_intermediate);
			i++) {
			if (with_intermediate[i][0] == control->intermediate &&
				with_intermediate[i][1] == control->final)
				return true;
		}
		return false;
	}
	if (control->final == 't')
		return !control->marker && is_window_question(control->first);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if (plain[i].final == control->final)
			return strchr(plain[i].markers, control->marker ? control->marker : '0');
	}
	return false;
}

/* The sequence that is held: two bytes of introducer, then its parts, then the final byte. */
static bool is_csi_question(const struct replay_filter *filter)
{
	struct control control = {.final = filter->held[filter->held_len - 1]};
	bool in_first = true;

	for (size_t i = 2; i + 1 < filter->held_len; i++) {
		uint8_t byte = filter->held[i];

		if (byte >= 0x3c && byte <= 0x3f)
			control.marker = byte;
		else if (byte >= 0x20 && byte <= 0x2f)
			control.intermediate = byte;
		else if (byte >= '0' && byte <= '9' && in_first && control.first < 1000)
			control.first = control.first * 10 + (byte - '0');
		else if (byte == ';' || byte == ':')
			in_first = false;
	}
	return is_control_question(&control);
}

static bool begins(const uint8_t *text, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/*
 * Questions have a "?" as a value, such as "11;?". Those for the clipboard go in any case: also to set it anew
 * would be a surprise. Some of one vendor's have names.
 */
static bool is_osc_question(const struct replay_filter *filter)
{
	const uint8_t *text = filter->held + 2;
	size_t len = filter->held_len - 2;

	if (begins(text, len, "52;") || begins(text, len, "1337;Report") ||
		begins(text, len, "1337;Request") || begins(text, len, "1337;Capabilities"))
		return true;
	for (size_t i = 1; i < len; i++) {
		bool is_last = i + 1 == len || text[i + 1] == ';' || text[i + 1] < 0x20 ||
			       text[i + 1] == 0xc2;

		if (text[i] == '?' && (text[i - 1] == ';' || text[i - 1] == '=') && is_last)
			return true;
	}
	return false;
}

/* "+q" asks for capabilities, "$q" for settings, "+Q" for resources. */
static bool is_dcs_question(const struct replay_filter *filter)
{
	uint8_t final = filter->held[filter->held_len - 1];
	uint8_t before = filter->held[filter->held_len - 2];

	return (final == 'q' && (before == '+' || before == '$')) ||
	       (final == 'Q' && before == '+');
}

/* --- the parser --- */

static void hold(struct replay_filter *filter, uint8_t byte)
{
	assert(filter->held_len < REPLAY_FILTER_HELD_MAX);
	filter->held[filter->held_len++] = byte;
}

/* Passes on what is held, or as many NULs. */
static uint8_t *emit(struct replay_filter *filter, bool is_question, uint8_t *out)
{
	if (is_question)
		memset(out, 0, filter->held_len);
	else
		memcpy(out, filter->held, filter->held_len);
	out += filter->held_len;
	filter->held_len = 0;
	return out;
}

static uint8_t *emit_byte(uint8_t byte, uint8_t *out)
{
	*out = byte == ENQ ? 0 : byte; /* ENQ asks for the answerback text */
	return out + 1;
}

static bool is_in_string(enum replay_filter_state state)
{
	return state == REPLAY_OSC || state == REPLAY_STRING || state == REPLAY_SKIP;
}

/* Begins what ESC and a letter, or a C1 control of the same meaning, introduces. */
static uint8_t *introduce(struct replay_filter *filter, uint8_t letter, uint8_t *out)
{
	switch (letter) {
	case '[':
		filter->state = REPLAY_CSI;
		return out;
	case ']':
		filter->state = REPLAY_OSC;
		return out;
	case 'P':
		filter->state = REPLAY_DCS;
		return out;
	case '_': /* graphics: an image that is drawn is answered too */
		filter->state = REPLAY_SKIP;
		return emit(filter, true, out);
	case 'X':
	case '^':
		filter->state = REPLAY_STRING;
		return emit(filter, false, out);
	default:
		filter->state = REPLAY_TEXT;
		return emit(filter, letter == 'Z', out); /* ESC Z asks what it is */
	}
}

/* Ends a string with what is held of it; its terminator is part of it. */
static uint8_t *end_string(
	struct replay_filter *filter, enum replay_filter_state string, uint8_t *out)
{
	bool is_question =
		string == REPLAY_SKIP || (string == REPLAY_OSC && is_osc_question(filter));

	filter->state = REPLAY_TEXT;
	return emit(filter, is_question, out);
}

/* A byte of a string. ESC may begin its end: that is seen with the next byte. */
static uint8_t *take_string(struct replay_filter *filter, uint8_t byte, uint8_t *out)
{
	enum replay_filter_state string = filter->state;

	/* Room for the two bytes of its end must stay. */
	if (string == REPLAY_OSC && filter->held_len > REPLAY_FILTER_HELD_MAX - 3) {
		string = filter->state = REPLAY_SKIP;
		out = emit(filter, true, out);
	}
	hold(filter, byte);
	if (byte == ESC || byte == 0xc2) {
		filter->string = string;
		filter->state = byte == ESC ? REPLAY_ESCAPE : REPLAY_C1;
		return out;
	}
	if (byte == CAN || byte == SUB || (byte == BEL && string != REPLAY_STRING))
		return end_string(filter, string, out);
	return string == REPLAY_OSC ? out : emit(filter, string == REPLAY_SKIP, out);
}

static uint8_t *take_text(struct replay_filter *filter, uint8_t byte, uint8_t *out)
{
	if (byte != ESC && byte != 0xc2)
		return emit_byte(byte, out);
	hold(filter, byte);
	filter->string = REPLAY_TEXT;
	filter->state = byte == ESC ? REPLAY_ESCAPE : REPLAY_C1;
	return out;
}

static uint8_t *take(struct replay_filter *filter, uint8_t byte, uint8_t *out);

/* After ESC, or after the first byte of a C1 control; letter is its letter, or 0 if it is no introducer. */
static uint8_t *take_second(
	struct replay_filter *filter, uint8_t byte, uint8_t letter, uint8_t *out)
{
	enum replay_filter_state string = filter->string;

	filter->string = REPLAY_TEXT;
	if (letter == '\\' && is_in_string(string)) {
		hold(filter, byte);
		return end_string(filter, string, out);
	}
	/* Two bytes of text in a string, such as a letter with an accent. */
	if (filter->state == REPLAY_C1 && !letter && string != REPLAY_TEXT) {
		filter->state = string;
		if (string != REPLAY_OSC)
			out = emit(filter, string == REPLAY_SKIP, out);
		return take(filter, byte, out);
	}
	if (string != REPLAY_TEXT) {
		/* The string is cut off, and the next sequence begins with what was held last. */
		uint8_t introducer = filter->held[--filter->held_len];

		out = end_string(filter, string, out);
		hold(filter, introducer);
	}
	if (!letter || byte < 0x20) {
		filter->state = REPLAY_TEXT;
		out = emit(filter, false, out);
		return take(filter, byte, out);
	}
	hold(filter, byte);
	return introduce(filter, letter, out);
}

/* The letter that stands after ESC for the same as the second byte of a C1 control in UTF-8. */
static uint8_t letter_of_c1(uint8_t byte)
{
	return byte >= 0x80 && byte <= 0x9f ? (uint8_t)(byte - 0x40) : 0;
}

/* A byte of a control sequence, or of the head of a device control string. */
static uint8_t *take_control(struct replay_filter *filter, uint8_t byte, uint8_t *out)
{
	bool is_csi = filter->state != REPLAY_DCS;

	if (byte == ESC || byte == CAN || byte == SUB) {
		filter->state = REPLAY_TEXT;
		out = emit(filter, false, out);
		return take(filter, byte, out);
	}
	hold(filter, byte == ENQ ? 0 : byte);
	if (filter->state == REPLAY_SKIP_CSI) {
		if (byte >= 0x40 && byte <= 0x7e)
			filter->state = REPLAY_TEXT;
		return emit(filter, true, out);
	}
	if (byte >= 0x40 && byte <= 0x7e) {
		bool is_question = is_csi ? is_csi_question(filter) : is_dcs_question(filter);

		filter->state = is_csi ? REPLAY_TEXT : is_question ? REPLAY_SKIP : REPLAY_STRING;
		return emit(filter, is_question, out);
	}
	if (filter->held_len < REPLAY_FILTER_HELD_MAX)
		return out;
	filter->state = is_csi ? REPLAY_SKIP_CSI : REPLAY_SKIP;
	return emit(filter, true, out);
}

static uint8_t *take(struct replay_filter *filter, uint8_t byte, uint8_t *out)
{
	switch (filter->state) {
	case REPLAY_TEXT:
		return take_text(filter, byte, out);
	case REPLAY_ESCAPE:
		return take_second(filter, byte, byte, out);
	case REPLAY_C1:
		return take_second(filter, byte, letter_of_c1(byte), out);
	case REPLAY_CSI:
	case REPLAY_DCS:
	case REPLAY_SKIP_CSI:
		return take_control(filter, byte, out);
	case REPLAY_OSC:
	case REPLAY_STRING:
	case REPLAY_SKIP:
		return take_string(filter, byte, out);
	}
	return out;
}

size_t replay_filter_run(
	struct replay_filter *filter, const uint8_t *data, size_t len, uint8_t *out)
{
	uint8_t *at = out;

	for (size_t i = 0; i < len; i++)
		at = take(filter, data[i], at);
	return (size_t)(at - out);
}

size_t replay_filter_finish(struct replay_filter *filter, uint8_t *out)
{
	size_t len = filter->held_len;

	memcpy(out, filter->held, len);
	*filter = (struct replay_filter){0};
	return len;
}
