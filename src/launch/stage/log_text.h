/* SPDX-License-Identifier: Apache-2.0 */
/* Words of programs, which may be any bytes, as text for a log: of one line, in UTF-8, and without colours. */
#pragma once

/*
 * Takes escape sequences out of a text, in place, and a character at its end that is cut short. A tab becomes a space,
 * and what is no character of UTF-8 or steers a terminal a question mark.
 */
void log_text_clean(char *text);
