/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allowlist may hold: a host name, one with `*.` before it, an address or a network, each
 * with `:port` behind it if only that port is meant (an IPv6 address then stands in brackets).
 */
#pragma once

#include <stdbool.h>

bool egress_rule_is_valid(const char *text);
