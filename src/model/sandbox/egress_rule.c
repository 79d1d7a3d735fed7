/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/egress_rule.h"

#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63

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

/* What some programs take for an address: its last label begins with a digit. */
static bool looks_numeric(const char *name)
{
	const char *dot = strrchr(name, '.');

	return isdigit((unsigned char)(dot ? dot[1] : name[0]));
}

int egress_name_read(const char *text, size_t len, char ret_name[EGRESS_NAME_MAX])
{
	char name[EGRESS_NAME_MAX] = "";
	const char *label = name;

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len < 1 || len >= sizeof(name) || memchr(text, '\0', len))
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)tolower((unsigned char)text[i]);
	name[len] = '\0';
	if (looks_numeric(name))
		return -EINVAL;
	for (;;) {
		size_t label_len = strcspn(label, ".");

		if (!is_label(label, label_len))
			return -EINVAL;
		if (!label[label_len])
			break;
		label += label_len + 1;
	}
	memcpy(ret_name, name, len + 1);
	return 0;
}

static int read_name(const char *text, struct egress_rule *rule)
{
	rule->kind = strncmp(text, "*.", 2) == 0 ? EGRESS_NAMES_BELOW : EGRESS_NAME;
	if (rule->kind == EGRESS_NAMES_BELOW)
		text += 2;
	return egress_name_read(text, strlen(text), rule->name);
}

/* An address, with the length of a network behind a slash if there is one; cut in place. */
static int read_network(char *text, struct egress_rule *rule)
{
	char *slash = strchr(text, '/');
	unsigned before = strchr(text, ':') ? 0 : ADDRESS_V4_PREFIX;
	uint64_t prefix_len = ADDRESS_PREFIX_MAX - before;

	if (slash)
		*slash = '\0';
	rule->kind = EGRESS_NETWORK;
	if (address_parse(text, &rule->network) < 0 ||
		(slash && number_parse(slash + 1, 0, ADDRESS_PREFIX_MAX - before, &prefix_len) < 0))
		return -EINVAL;
	rule->prefix_len = before + (unsigned)prefix_len;
	return 0;
}

/* Digits, dots and a slash: an address or nothing. */
static bool is_numeric(const char *text)
{
	return text[strspn(text, "0123456789./")] == '\0';
}

int egress_rule_parse(const char *text, struct egress_rule *ret_rule)
{
	struct egress_rule rule = {0};
	char copy[EGRESS_RULE_MAX], *host = copy, *port = NULL, *end;
	uint64_t number = 0;
	int r;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%s", text);
	end = strchr(copy, ']');
	if (copy[0] == '[' && end) {
		host = copy + 1;
		*end++ = '\0';
		if (*end && *end != ':')
			return -EINVAL;
		port = *end ? end + 1 : NULL;
	} else {
		port = strchr(copy, ':');
		/* Two colons or more: an IPv6 address without brackets, which has no port. */
		if (port && strchr(port + 1, ':'))
			port = NULL;
		else if (port)
			*port++ = '\0';
	}
	if (port && number_parse(port, 1, 65535, &number) < 0)
		return -EINVAL;
	rule.port = (uint16_t)number;
	if (host > copy || strchr(host, ':') || strchr(host, '/') || is_numeric(host))
		r = read_network(host, &rule);
	else
		r = read_name(host, &rule);
	if (r == 0)
		*ret_rule = rule;
	return r;
}

bool egress_rule_is_valid(const char *text)
{
	struct egress_rule rule;

	return egress_rule_parse(text, &rule) == 0;
}

bool egress_rule_names(const struct egress_rule *rule, const char *name)
{
	size_t len = strlen(name), tail = strlen(rule->name);

	if (rule->kind == EGRESS_NAME)
		return strcmp(rule->name, name) == 0;
	return rule->kind == EGRESS_NAMES_BELOW && len > tail + 1 && name[len - tail - 1] == '.' &&
	       strcmp(name + len - tail, rule->name) == 0;
}

/* IPv4 is a part of no rule of IPv6, not even of one for all. */
static bool is_v4(const struct egress_rule *rule)
{
	return rule->prefix_len >= ADDRESS_V4_PREFIX && address_is_v4(rule->network);
}

bool egress_rule_holds(const struct egress_rule *rule, struct address address)
{
	return rule->kind == EGRESS_NETWORK && is_v4(rule) == address_is_v4(address) &&
	       address_is_within(address, rule->network, rule->prefix_len);
}

bool egress_rule_is_public(const struct egress_rule *rule)
{
	return rule->kind != EGRESS_NETWORK ||
	       address_network_is_public(rule->network, rule->prefix_len);
}
