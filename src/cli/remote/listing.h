/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that come in pages, whole. */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"

#include <jansson.h>
#include <stdbool.h>

/* NULL means no filter. */
struct listing_filter {
	const char *status;
	const char *label; /* "k=v" */
	const char *project;
};

/* All that is under `name` on the pages of a target such as "/v1/tokens"; *ret is a new array. */
int listing_fetch_all(struct client *client, const char *target, const char *name, json_t **ret,
	struct err *err) must_check;

/* All workspaces that removed sandboxes left; *ret is a new array. */
int listing_fetch_removed(struct client *client, json_t **ret, struct err *err) must_check;

/* All sandboxes that match a filter; *ret is a new array. */
int listing_fetch(struct client *client, const struct listing_filter *filter, json_t **ret,
	struct err *err) must_check;

/* Whether a limit of a sandbox is enforced: a daemon tells a wall that it cannot build as null, and none of a sandbox that does
 * not run. */
bool listing_limit_holds(const json_t *sandbox, const char *wall);
