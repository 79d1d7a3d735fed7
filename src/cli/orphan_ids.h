/* SPDX-License-Identifier: Apache-2.0 */
/* Orphans of the daemon: what has files, but no row in its database. For administrators. */
#pragma once

#include "cli/remote/client.h"
#include "cli/remote/resolve.h"

#define ORPHAN_ID_LEN	 RESOLVE_ID_LEN /* of sandboxes and snapshots */
#define ORPHAN_LAYER_LEN 64

/* All of them, as a JSON array of objects with an id. */
int orphan_ids_fetch(struct client *client, json_t **ret_orphans, struct err *err) must_check;

/* Whether a text is the name of a layer of an image, or of a stack of them. */
bool orphan_ids_is_layer(const char *text);

/* An id as a person types it: whole, or the beginning of exactly one orphan's. */
int orphan_ids_resolve(struct client *client, const char *text, char ret_id[ORPHAN_ID_LEN + 1],
	struct err *err) must_check;
