/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets, kept. On disk they are rows of the database, sealed (seal.h) with a key that is in a file of its
 * own: a copy of the database tells none, and a row that was changed or moved to another owner, name or
 * server does not open. In memory they are in a vault, from which egress takes them.
 */
#pragma once

#include "egress/vault.h"
#include "store/store.h"

struct strongbox;

/*
 * Reads the key from a file, which is made if there is none, and opens all secrets. One that does not open
 * is reported and left out.
 */
int strongbox_open(struct store *store, const char *key_path, struct strongbox **ret_box,
	struct err *err) must_check;
void strongbox_close(struct strongbox *box);

struct vault *strongbox_vault(struct strongbox *box);

/* From its return on, new requests get this value. The record and value were checked before. */
int strongbox_put(struct strongbox *box, const struct secret_record *record, const char *value,
	struct err *err) must_check;
int strongbox_remove(struct strongbox *box, const struct owner *owner, const char *name,
	struct err *err) must_check;
