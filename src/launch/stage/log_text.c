/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/log_text.h"

#include "base/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The length of an escape sequence: colours and places of the cursor (CSI), titles and links (OSC), and short ones. */
static size_t escape_len(const char *at)
{
	size_t len = 2;

	if (at[1] == '[') {
		len += strspn(at + len, "0123456789;:<=>?");
		len += strspn(at + len, " !\"#$%&'()*+,-./");
		return at[len] ? len + 1 : len;
	}
	if (at[1] == ']') {
		len += strcspn(at + len, "\a\x1b");
		return at[len] == '\x1b' && at[len + 1] == '\\' ? len + 2
		       : at[len] == '\a'			? len + 1
								: len;
	}
	return at[1] > ' ' && at[1] <= '~' ? 2 : 1;
}

/* The length of the character of UTF-8 that stands there, and which it is; 0 if there is none. */
static size_t read_character(const uint8_t *at, uint32_t *ret_character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	uint32_t character = len == 1 ? at[0] : at[0] & (0x7fu >> len);

	if (at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (at[i] & 0x3f);
	}
	if (len == 0 || character < least[len] || character > 0x10ffff ||
		(character >= 0xd800 && character < 0xe000))
		return 0;
	*ret_character = character;
	return len;
}

/* Control characters, and those that turn the direction of text or end a line. */
static bool steers_terminal(uint32_t character)
{
	return character < ' ' || (character >= 0x7f && character < 0xa0) ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069) || character == 0x200e ||
	       character == 0x200f || character == 0x061c;
}

void log_text_clean(char *text)
{
	size_t end = strlen(text);
	char *to = text;

	text[end - format_unfinished(text, end)] = '\0';
	for (const char *at = text; *at;) {
		uint32_t character = 0;
		size_t len;

		if (*at == '\x1b') {
			at += escape_len(at);
			continue;
		}
		len = read_character((const uint8_t *)at, &character);
		if (len == 0 || steers_terminal(character)) {
			*to++ = *at == '\t' ? ' ' : '?';
			at += len ? len : 1;
			continue;
		}
		memmove(to, at, len);
		to += len;
		at += len;
	}
	*to = '\0';
}
