/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in memory, for those who put them into requests. Filled and changed by core, which keeps them
 * sealed on disk. Each is immutable and counted: a change puts another in its place, and what is under way
 * goes on with the one it has.
 */
#pragma once

#include "model/secret_record.h"

struct vault;

struct vault_secret {
	struct secret_record record;
	struct secret_server server;
	char *value; /* erased when nobody has it any more */
};

struct vault *vault_new(void);
void vault_free(struct vault *vault); /* secrets that are in use stay until they are let go */

/* Adds it or puts it in the place of the one of its owner and name; server: what the record's URL says. */
void vault_put(struct vault *vault, const struct secret_record *record,
	const struct secret_server *server, const char *value);
void vault_remove(struct vault *vault, const struct owner *owner, const char *name);

/* The secret of an owner, to be let go of; NULL if there is none. Does not block for long. */
const struct vault_secret *vault_find(
	struct vault *vault, const struct owner *owner, const char *name);
void vault_secret_unref(const struct vault_secret *secret);
