/* SPDX-License-Identifier: Apache-2.0 */
#include "image/bearer_challenge.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define SPACE " \t"
#define TOKEN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* Reads a quoted string or a plain word into value; returns what follows, NULL if it does not fit. */
static const char *read_value(const char *at, char value[BEARER_TEXT_MAX])
{
	size_t len = 0;
	bool is_quoted = *at == '"';

	at += is_quoted;
	while (*at && (is_quoted ? *at != '"' : !strchr(", \t", *at))) {
		if (is_quoted && *at == '\\' && at[1])
			at++;
		if (len + 1 == BEARER_TEXT_MAX)
			return NULL;
		value[len++] = *at++;
	}
	value[len] = '\0';
	if (is_quoted && *at != '"')
		return NULL;
	return at + is_quoted;
}

static char *place_of(struct bearer_challenge *challenge, const char *name, size_t len, char *other)
{
	if (len == 5 && strncasecmp(name, "realm", len) == 0)
		return challenge->realm;
	if (len == 7 && strncasecmp(name, "service", len) == 0)
		return challenge->service;
	if (len == 5 && strncasecmp(name, "scope", len) == 0)
		return challenge->scope;
	return other;
}

int bearer_challenge_parse(const char *value, struct bearer_challenge *ret_challenge)
{
	struct bearer_challenge challenge = {0};
	char other[BEARER_TEXT_MAX];
	const char *at = value + strspn(value, SPACE);

	if (strncasecmp(at, "Bearer", 6) != 0 || !at[6] || !strchr(SPACE, at[6]))
		return -ENOENT;
	at += 6;
	while (*(at += strspn(at, SPACE ","))) {
		size_t len = strspn(at, TOKEN);

		if (len == 0 || at[len] != '=')
			return -EINVAL;
		at = read_value(at + len + 1, place_of(&challenge, at, len, other));
		if (!at)
			return -EINVAL;
	}
	if (!challenge.realm[0])
		return -EINVAL;
	*ret_challenge = challenge;
	return 0;
}
