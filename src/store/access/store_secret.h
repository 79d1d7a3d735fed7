/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in the database: what they are for, and their values as core has sealed them. */
#pragma once

#include "model/access/secret_record.h"
#include "store/store.h"

#define STORE_SECRETS_MAX 100 /* of an owner */

/* Adds one or replaces the owner's of that name. ERR_RATE if there are too many. */
int store_secret_put(struct store *store, const struct secret_record *record, const void *sealed,
	size_t len, struct err *err) must_check;

/* Calls each for those of an owner in order of their names, of all (NULL) in order of owner and name. The
 * record and sealed are borrowed; the callback may use the store. */
int store_secret_list(struct store *store, const struct owner *owner,
	void (*each)(const struct secret_record *record, const void *sealed, size_t len, void *arg),
	void *arg, struct err *err) must_check;

/* ERR_NOT_FOUND if the owner has none of that name. */
int store_secret_delete(struct store *store, const struct owner *owner, const char *name,
	struct err *err) must_check;
