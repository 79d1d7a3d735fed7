/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may reach that does not say so itself: settings of the operator, which may differ by
 * template. Both are lists with commas between; an entry is for all templates, or `template=entry` for one.
 * What is said for a template weighs more than what is said for all.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>

/* The values of network.mode; NULL after the last. */
extern const char *const network_modes[];

struct network_default {
	const char *modes; /* "internet,browser=none" */
	const char *
		rules; /* of an allowlist: "mirror.example.org:80,browser=*.example.com"; may be empty */
};

/* Whether both can be read: modes has one for all, and every entry is a mode, or a rule, of a template. */
int network_default_check(const struct network_default *settings, struct err *err) must_check;

/* The mode of a sandbox of a template, one of network_modes. */
const char *network_default_mode(const struct network_default *settings, const char *template_name);

/* The rules, a new array; NULL if there are none. */
json_t *network_default_rules(const struct network_default *settings, const char *template_name);

/* Whether a sandbox with such a `network` (sandbox_record.network) has egress. */
bool network_leads_out(const json_t *network);
