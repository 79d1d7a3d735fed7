/* SPDX-License-Identifier: Apache-2.0 */
#include "model/egress_rule.h"

#include "base/number.h"

#include <arpa/inet.h>
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
	char name[EGRESS_NAME_MAX];
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
	uint64_t prefix_len, longest;

	if (slash)
		*slash = '\0';
	rule->kind = EGRESS_NETWORK;
	rule->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(rule->family, text, &rule->network) != 1)
		return -EINVAL;
	prefix_len = longest = rule->family == AF_INET ? 32 : 128;
	if (slash && number_parse(slash + 1, 0, longest, &prefix_len) < 0)
		return -EINVAL;
	rule->prefix_len = (unsigned)prefix_len;
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

bool egress_rule_holds(const struct egress_rule *rule, struct in_addr address)
{
	struct in_addr network;
	uint32_t mask;

	if (rule->kind != EGRESS_NETWORK || rule->family != AF_INET)
		return false;
	memcpy(&network, &rule->network, sizeof(network));
	mask = rule->prefix_len == 0 ? 0 : htonl(~0u << (32 - rule->prefix_len));
	return ((address.s_addr ^ network.s_addr) & mask) == 0;
}

/* --- what is everybody's --- */

/* All that is not the internet, after the registry of special addresses of IANA. */
static const struct {
	uint32_t network, mask;
} special[] = {
	{0x00000000, 0xff000000}, /* 0/8: this host */
	{0x0a000000, 0xff000000}, /* 10/8 */
	{0x64400000, 0xffc00000}, /* 100.64/10: behind a provider's NAT, and metadata of some */
	{0x7f000000, 0xff000000}, /* 127/8 */
	{0xa83f8110, 0xffffffff}, /* 168.63.129.16: the host of a virtual machine, on Azure */
	{0xa9fe0000, 0xffff0000}, /* 169.254/16: link-local, metadata of clouds */
	{0xac100000, 0xfff00000}, /* 172.16/12 */
	{0xc0000000, 0xffffff00}, /* 192.0.0/24 */
	{0xc0000200, 0xffffff00}, /* 192.0.2/24: documentation */
	{0xc0586300, 0xffffff00}, /* 192.88.99/24 */
	{0xc0a80000, 0xffff0000}, /* 192.168/16 */
	{0xc6120000, 0xfffe0000}, /* 198.18/15: stands for names inside */
	{0xc6336400, 0xffffff00}, /* 198.51.100/24 */
	{0xcb007100, 0xffffff00}, /* 203.0.113/24 */
	{0xe0000000, 0xe0000000}, /* 224/3: multicast, reserved, broadcast */
};

bool egress_address_is_public(struct in_addr address)
{
	uint32_t host = ntohl(address.s_addr);

	for (size_t i = 0; i < array_len(special); i++) {
		if ((host & special[i].mask) == special[i].network)
			return false;
	}
	return true;
}

bool egress_rule_is_public(const struct egress_rule *rule)
{
	struct in_addr network;
	uint32_t mask;

	if (rule->kind != EGRESS_NETWORK)
		return true;
	if (rule->family != AF_INET)
		return false;
	memcpy(&network, &rule->network, sizeof(network));
	mask = rule->prefix_len == 0 ? 0 : ~0u << (32 - rule->prefix_len);
	/* Two networks overlap if they agree in what both fix. */
	for (size_t i = 0; i < array_len(special); i++) {
		if (((ntohl(network.s_addr) ^ special[i].network) & mask & special[i].mask) == 0)
			return false;
	}
	return true;
}
