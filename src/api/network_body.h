/* SPDX-License-Identifier: Apache-2.0 */
/* The object `network` in the bodies of sandboxes: what one may reach outside. */
#pragma once

#include "api/api.h"
#include "api/fields.h"

struct network_body {
	const char *mode;
	const json_t *allow, *secrets;
	int64_t bandwidth, connections;
};

#define NETWORK_BODY_ROWS 5
extern const struct field network_body_rows[NETWORK_BODY_ROWS];

/* What only the daemon can tell: whether who asks may have these rules, and whether there are such secrets and
 * such limits. */
int network_body_check(const struct api *api, const struct request *req,
	const struct network_body *body, struct err *err) must_check;

/* The object as it is kept. What is not said is as the operator says for the template. */
json_t *network_body_make(
	const struct api *api, const struct network_body *body, const char *template_name);
