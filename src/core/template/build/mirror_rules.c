/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/mirror_rules.h"

#include "base/mem.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HOST_MAX 256

static void add_rule(json_t *rules, const struct addrinfo *one, const char *port)
{
	char host[64];

	if (getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof(host), NULL, 0,
		    NI_NUMERICHOST) == 0)
		json_array_append_new(rules,
			json_sprintf(one->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port));
}

json_t *mirror_rules_of(const char *url)
{
	const char *after = url ? strstr(url, "://") : NULL, *colon;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char host[HOST_MAX], port[8] = "80";
	json_t *rules;
	size_t len;

	if (!after)
		return NULL;
	rules = json_array();
	after += 3;
	len = strcspn(after, "/");
	if (strncmp(url, "https", 5) == 0)
		strcpy(port, "443");
	colon = memchr(after, ':', len);
	if (colon)
		snprintf(port, sizeof(port), "%.*s", (int)(after + len - colon - 1), colon + 1);
	snprintf(host, sizeof(host), "%.*s", (int)(colon ? colon - after : (ssize_t)len), after);
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return rules;
	for (const struct addrinfo *one = found; one; one = one->ai_next)
		add_rule(rules, one, port);
	freeaddrinfo(found);
	return rules;
}

static bool has(const json_t *rules, const json_t *rule)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)rules, i, one)
	{
		if (json_equal(one, rule))
			return true;
	}
	return false;
}

json_t *mirror_rules_of_sources(const json_t *lines)
{
	/* Most lines are of one host. */
	json_t *rules = json_array(), *rule;
	size_t at;
	const json_t *line;
	size_t i;

	json_array_foreach((json_t *)lines, i, line)
	{
		const char *text = json_string_value(line);
		const char *url = text + strcspn(text, " ") + 1;
		auto_free char *one = mem_printf("%.*s", (int)strcspn(url, " "), url);
		json_auto_t *some = mirror_rules_of(one);

		json_array_foreach(some, at, rule)
		{
			if (!has(rules, rule))
				json_array_append(rules, rule);
		}
	}
	return rules;
}
