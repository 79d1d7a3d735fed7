/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may reach. A name is judged as a name, then each of its addresses as an address. A
 * private address, one of this machine, or one of its provider is refused whatever name has it,
 * unless a rule holds that very address.
 */
#pragma once

#include "model/sandbox/egress_rule.h"

#include <jansson.h>

struct policy;

/*
 * Reads the member `network` of a sandbox: {"mode", "allow", "secrets"}. It denies what it does not
 * understand.
 */
struct policy *policy_new(const json_t *network);
void policy_free(struct policy *policy);

/* The i-th name of the secrets that the sandbox may use; NULL after the last. */
const char *policy_secret(const struct policy *policy, size_t i);
bool policy_uses_secret(const struct policy *policy, const char *name);

/* Whether the name is allowed with some port. */
bool policy_knows_name(const struct policy *policy, const char *name);
bool policy_allows_name(const struct policy *policy, const char *name, uint16_t port);

/* Whether the address is allowed: one that the sandbox named, or one of an allowed name. */
bool policy_allows_address(const struct policy *policy, struct address address, uint16_t port);
bool policy_allows_behind_name(const struct policy *policy, struct address address, uint16_t port);

/* Whether an address needs no rule of its own where its name is allowed: it is public, and not this machine's. */
bool policy_is_open(struct address address);

/* Whether an address of a secret's server is allowed; the mode does not matter. */
bool policy_allows_server(const struct policy *policy, struct address address, uint16_t port);
