/* SPDX-License-Identifier: Apache-2.0 */
#include "model/egress_rule.h"

#include "base/number.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define RULE_MAX      280
#define HOST_NAME_LEN 253
#define LABEL_MAX     63

static bool is_label(const char *text, size_t len)
{
	if (len < 1 || len > LABEL_MAX || text[0] == '-' || text[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
			return false;
	}
	return true;
}

static bool is_name(const char *text)
{
	if (strncmp(text, "*.", 2) == 0)
		text += 2;
	if (strlen(text) > HOST_NAME_LEN)
		return false;
	for (;;) {
		size_t len = strcspn(text, ".");

		if (!is_label(text, len))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

/* An address, with the length of a network behind a slash if there is one; cut in place. */
static bool is_network(char *text)
{
	char *slash = strchr(text, '/');
	struct in6_addr address;
	uint64_t length, longest;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, &address) == 1)
		longest = 32;
	else if (inet_pton(AF_INET6, text, &address) == 1)
		longest = 128;
	else
		return false;
	return !slash || number_parse(slash + 1, 0, longest, &length) == 0;
}

static bool looks_numeric(const char *text)
{
	return text[strspn(text, "0123456789./")] == '\0';
}

bool egress_rule_is_valid(const char *text)
{
	char rule[RULE_MAX], *colon, *end;
	uint64_t port;

	if (strlen(text) >= sizeof(rule))
		return false;
	snprintf(rule, sizeof(rule), "%s", text);
	end = strchr(rule, ']');
	if (rule[0] == '[' && end) {
		*end++ = '\0';
		return (!*end || (*end == ':' && number_parse(end + 1, 1, 65535, &port) == 0)) &&
		       is_network(rule + 1);
	}
	colon = strchr(rule, ':');
	/* Two colons or more: an IPv6 address without brackets, which has no port. */
	if (colon && !strchr(colon + 1, ':')) {
		if (number_parse(colon + 1, 1, 65535, &port) < 0)
			return false;
		*colon = '\0';
	}
	if (strchr(rule, ':') || strchr(rule, '/') || looks_numeric(rule))
		return is_network(rule);
	return is_name(rule);
}
