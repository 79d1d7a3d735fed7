/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/policy.h"

#include "egress/own_address.h"
#include "model/access/secret_record.h"

#include <stdio.h>
#include <string.h>

enum mode { MODE_NONE, MODE_ALLOWLIST, MODE_INTERNET };

struct policy {
	enum mode mode;
	size_t secret_count;
	char secrets[SECRETS_IN_USE][SECRET_NAME_MAX];
	size_t count;
	struct egress_rule rules[];
};

static enum mode read_mode(const json_t *network)
{
	const char *mode = json_string_value(json_object_get(network, "mode"));

	if (mode && strcmp(mode, "internet") == 0)
		return MODE_INTERNET;
	return mode && strcmp(mode, "allowlist") == 0 ? MODE_ALLOWLIST : MODE_NONE;
}

static void read_secrets(struct policy *policy, const json_t *list)
{
	const json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		const char *name = json_string_value(entry);

		if (name && secret_name_is_valid(name) && policy->secret_count < SECRETS_IN_USE)
			snprintf(policy->secrets[policy->secret_count++], SECRET_NAME_MAX, "%s",
				name);
	}
}

struct policy *policy_new(const json_t *network)
{
	const json_t *allow = json_object_get(network, "allow");
	size_t size = json_array_size(allow);
	struct policy *policy = mem_new(sizeof(*policy) + size * sizeof(policy->rules[0]));

	policy->mode = read_mode(network);
	read_secrets(policy, json_object_get(network, "secrets"));
	for (size_t i = 0; i < size; i++) {
		const char *text = json_string_value(json_array_get(allow, i));

		if (text && egress_rule_parse(text, &policy->rules[policy->count]) == 0)
			policy->count++;
	}
	return policy;
}

void policy_free(struct policy *policy)
{
	free(policy);
}

const char *policy_secret(const struct policy *policy, size_t i)
{
	return i < policy->secret_count ? policy->secrets[i] : NULL;
}

bool policy_uses_secret(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->secret_count; i++) {
		if (strcmp(policy->secrets[i], name) == 0)
			return true;
	}
	return false;
}

static bool has_port(const struct egress_rule *rule, uint16_t port)
{
	return rule->port == 0 || rule->port == port;
}

static bool holds(const struct policy *policy, struct address address, uint16_t port)
{
	for (size_t i = 0; i < policy->count; i++) {
		const struct egress_rule *rule = &policy->rules[i];

		if (has_port(rule, port) && egress_rule_holds(rule, address))
			return true;
	}
	return false;
}

bool policy_knows_name(const struct policy *policy, const char *name)
{
	for (size_t i = 0; policy->mode == MODE_ALLOWLIST && i < policy->count; i++) {
		if (egress_rule_names(&policy->rules[i], name))
			return true;
	}
	return policy->mode == MODE_INTERNET;
}

bool policy_allows_name(const struct policy *policy, const char *name, uint16_t port)
{
	for (size_t i = 0; policy->mode == MODE_ALLOWLIST && i < policy->count; i++) {
		const struct egress_rule *rule = &policy->rules[i];

		if (has_port(rule, port) && egress_rule_names(rule, name))
			return true;
	}
	return policy->mode == MODE_INTERNET;
}

bool policy_is_open(struct address address)
{
	return address_is_public(address) && !own_address_is(address);
}

bool policy_allows_server(const struct policy *policy, struct address address, uint16_t port)
{
	return policy_is_open(address) || holds(policy, address, port);
}

bool policy_allows_behind_name(const struct policy *policy, struct address address, uint16_t port)
{
	return policy->mode != MODE_NONE && policy_allows_server(policy, address, port);
}

bool policy_allows_address(const struct policy *policy, struct address address, uint16_t port)
{
	if (policy->mode == MODE_INTERNET)
		return policy_allows_behind_name(policy, address, port);
	return policy->mode == MODE_ALLOWLIST && holds(policy, address, port);
}
