/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules by which a builder reaches a mirror of the operator's, which may be at an address that is not
 * public: the addresses that its name has now, with its port. An owner's own mirrors get none.
 */
#pragma once

#include <jansson.h>

/* A new array of rules (model/sandbox/egress_rule.h), empty if it has no address; NULL for NULL. */
json_t *mirror_rules_of(const char *url);

/* The same for all lines of a sources.list: "deb URL SUITE COMPONENT...". */
json_t *mirror_rules_of_sources(const json_t *lines);
