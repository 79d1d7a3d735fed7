/* SPDX-License-Identifier: Apache-2.0 */
/* All sandboxes that match a filter, page after page. */
#pragma once

#include "base/err.h"
#include "cli/client.h"

#include <jansson.h>

/* NULL means no filter. */
struct listing_filter {
	const char *status;
	const char *label; /* "k=v" */
	const char *project;
};

/* *ret is a new array. */
int listing_fetch(struct client *client, const struct listing_filter *filter, json_t **ret,
	struct err *err) must_check;
