/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the questions out of terminal output that is sent again.
 *
 * Programs ask their terminal for its kind, its colours or the place of the cursor, and the terminal types
 * the answer. When old output is replayed, nobody waits for the answers, and the shell takes them for
 * commands. So each byte of a question becomes NUL, which terminals ignore: whoever counts bytes, as clients
 * that come back do, counts the same as before.
 *
 * The bytes come from a sandbox: any input is fine, and memory is bounded. A string that is too long to be
 * looked at as a whole is taken out too.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define REPLAY_FILTER_HELD_MAX 1024 /* of a sequence that is not complete */

enum replay_filter_state {
	REPLAY_TEXT,
	REPLAY_ESCAPE,	 /* after ESC */
	REPLAY_C1,	 /* after the first byte of a C1 control in UTF-8 */
	REPLAY_CSI,	 /* until its final byte */
	REPLAY_OSC,	 /* until its end, by which it is judged */
	REPLAY_DCS,	 /* until its final byte, by which it is judged */
	REPLAY_STRING,	 /* inside of a string that is kept */
	REPLAY_SKIP,	 /* inside of a string that is taken out */
	REPLAY_SKIP_CSI, /* of a control sequence that is too long */
};

struct replay_filter {
	enum replay_filter_state state;
	enum replay_filter_state
		string; /* in REPLAY_ESCAPE: the string that may end here, else text */
	size_t held_len;
	uint8_t held[REPLAY_FILTER_HELD_MAX];
};

/* Filters a piece into out, which has room for len + REPLAY_FILTER_HELD_MAX; returns how much there is. */
size_t replay_filter_run(
	struct replay_filter *filter, const uint8_t *data, size_t len, uint8_t *out);

/* The end of the old output: what is held may be continued by new output, and is passed on as it is. */
size_t replay_filter_finish(struct replay_filter *filter, uint8_t *out);
