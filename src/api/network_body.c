/* SPDX-License-Identifier: Apache-2.0 */
#include "api/network_body.h"

#include "core/network.h"
#include "core/strongbox.h"
#include "model/egress_rule.h"

#include <inttypes.h>

#define ALLOW_ENTRIES 256

static const char *check_allow(const json_t *list)
{
	size_t i;
	json_t *entry;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (!egress_rule_is_valid(json_string_value(entry)))
			return "has an entry that is no name, address or network, with or without "
			       ":port";
	}
	return NULL;
}

static const char *check_secrets(const json_t *list)
{
	size_t i;
	json_t *entry;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (!secret_name_is_valid(json_string_value(entry)))
			return "has an entry that is no name of a secret";
	}
	return NULL;
}

const struct field network_body_rows[NETWORK_BODY_ROWS] = {
	{"mode", FIELD_STRING, offsetof(struct network_body, mode), 1, 16, 0,
		"What may be reached outside: nothing, what `allow` names, or also all public "
		"addresses. allowlist if only `allow` is given; else what the operator has set for "
		"the template.",
		.choices = network_modes},
	{"allow", FIELD_STRING_LIST, offsetof(struct network_body, allow), 0, ALLOW_ENTRIES, 0,
		"Names, *.names, addresses and networks, each with or without :port. Addresses "
		"that are not public are refused unless they are here, whatever name leads "
		"there.",
		.check = check_allow},
	{"secrets", FIELD_STRING_LIST, offsetof(struct network_body, secrets), 0, SECRETS_IN_USE, 0,
		"Names of secrets (PUT /v1/secrets/{secret}) that its requests may be given: their "
		"servers are http://<name>.internal inside, in every mode.",
		.check = check_secrets},
	{"bandwidth", FIELD_SIZE, offsetof(struct network_body, bandwidth), 1024, 1ll << 40, 0,
		"Bytes a second that it may send and receive; what the operator has set, at most."},
	{"connections", FIELD_INTEGER, offsetof(struct network_body, connections), 1, 65536, 0,
		"Connections that it may have open; what the operator has set, at most."},
};

/* Addresses of this machine and of private networks are not everybody's to hand out. */
static int check_reach(const struct request *req, const json_t *allow, struct err *err)
{
	struct egress_rule rule;
	json_t *entry;
	size_t i;

	if (request_principal(req)->scopes & SCOPE_ADMIN)
		return 0;
	json_array_foreach((json_t *)allow, i, entry)
	{
		if (egress_rule_parse(json_string_value(entry), &rule) < 0 ||
			!egress_rule_is_public(&rule))
			return err_explain(err, ERR_DENIED, "private_rule",
				"use a token with the scope admin",
				"the rule %s holds addresses that are not public",
				json_string_value(entry));
	}
	return 0;
}

/* They may be removed later; but one that is not there now is a mistake. */
static int check_secrets_exist(
	const struct api *api, const struct request *req, const json_t *names, struct err *err)
{
	struct owner owner = api_owner(req);
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)names, i, entry)
	{
		const struct vault_secret *secret = vault_find(
			strongbox_vault(api->strongbox), &owner, json_string_value(entry));

		if (!secret)
			return err_explain(err, ERR_INVALID, "secret_not_found",
				"set it with PUT /v1/secrets/{name}, or sandlot secret set",
				"there is no secret %s", json_string_value(entry));
		vault_secret_unref(secret);
	}
	return 0;
}

static int check_limits(const struct api *api, const struct network_body *body, struct err *err)
{
	struct sluice_limits most = network_limits(api->engine);

	if (body->connections > (int64_t)most.connections)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"ask for less, or start sandlotd with a higher --connections",
			"field network.connections is %" PRId64 ", but the operator allows %u",
			body->connections, most.connections);
	if (most.bandwidth > 0 && body->bandwidth > (int64_t)most.bandwidth)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"ask for less, or start sandlotd with a higher --bandwidth",
			"field network.bandwidth is %" PRId64
			" bytes a second, but the operator allows %" PRIu64,
			body->bandwidth, most.bandwidth);
	return 0;
}

int network_body_check(const struct api *api, const struct request *req,
	const struct network_body *body, struct err *err)
{
	int r = check_reach(req, body->allow, err);

	if (r == 0)
		r = check_secrets_exist(api, req, body->secrets, err);
	return r < 0 ? r : check_limits(api, body, err);
}

json_t *network_body_make(
	const struct api *api, const struct network_body *body, const char *template_name)
{
	const struct network_default *settings = &api->default_network;
	/* Who names what is allowed means that alone. */
	const char *mode =
		body->allow ? "allowlist" : network_default_mode(settings, template_name);
	json_t *network = json_pack("{s:s}", "mode", body->mode ? body->mode : mode);
	json_t *allow = body->allow ? json_deep_copy(body->allow)
				    : network_default_rules(settings, template_name);

	if (allow)
		json_object_set_new(network, "allow", allow);
	if (body->secrets)
		json_object_set_new(network, "secrets", json_deep_copy(body->secrets));
	if (body->bandwidth != FIELD_ABSENT)
		json_object_set_new(network, "bandwidth", json_integer(body->bandwidth));
	if (body->connections != FIELD_ABSENT)
		json_object_set_new(network, "connections", json_integer(body->connections));
	return network;
}
