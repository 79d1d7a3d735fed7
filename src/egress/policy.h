/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may reach. A name is judged as a name, and then each address that it stands for as an
 * address: one that is private, of this machine or of the machine's provider is refused whatever name
 * leads to it, unless a rule holds that very address.
 */
#pragma once

#include "model/egress_rule.h"

#include <jansson.h>

struct policy;

/* From the member `network` of a sandbox: {"mode", "allow", "secrets"}. What it does not understand, it denies. */
struct policy *policy_new(const json_t *network);
void policy_free(struct policy *policy);

/* The names of the secrets that it may use, one after the other; NULL after the last. */
const char *policy_secret(const struct policy *policy, size_t i);
bool policy_uses_secret(const struct policy *policy, const char *name);

/* Whether the name may be asked for, with some port. */
bool policy_knows_name(const struct policy *policy, const char *name);
bool policy_allows_name(const struct policy *policy, const char *name, uint16_t port);

/* An address that the sandbox itself named, or one behind a name that is allowed. */
bool policy_allows_address(const struct policy *policy, struct address address, uint16_t port);
bool policy_allows_behind_name(const struct policy *policy, struct address address, uint16_t port);

/* One of the server of a secret that it may use, in whatever mode. */
bool policy_allows_server(const struct policy *policy, struct address address, uint16_t port);
