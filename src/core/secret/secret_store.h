/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets, kept. On disk they are rows of the database, sealed (seal.h) with a key that is in a file of its
 * own: a copy of the database tells none, and a row that was changed or moved to another owner, name or
 * server does not open. In memory they are in a secret cache, from which egress takes them.
 */
#pragma once

#include "egress/secret/secret_cache.h"
#include "store/store.h"

struct secret_store;

/*
 * Reads the key from a file, which is made if there is none, and opens all secrets. One that does not open
 * is reported and left out.
 */
int secret_store_open(struct store *store, const char *key_path, struct secret_store **ret_secrets,
	struct err *err) must_check;
void secret_store_close(struct secret_store *secrets);

/* A key for another use, which tells nothing of the one that secrets are sealed with. */
void secret_store_derive_key(
	const struct secret_store *secrets, const char *use, unsigned char ret_key[32]);

struct secret_cache *secret_store_cache(struct secret_store *secrets);

/* From its return on, new requests get this value. The record and value were checked before. */
int secret_store_put(struct secret_store *secrets, const struct secret_record *record,
	const char *value, struct err *err) must_check;
int secret_store_remove(struct secret_store *secrets, const struct owner *owner, const char *name,
	struct err *err) must_check;
