/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in memory, for the secret proxy. core/secret/secret_store.c fills it and keeps them
 * sealed on disk. Each secret is immutable and counted: a change replaces it, and requests under
 * way go on with the one that they hold.
 */
#pragma once

#include "model/access/secret_record.h"

struct secret_cache;

struct secret_cache_secret {
	struct secret_record record;
	struct secret_server server;
	char *value; /* erased with the last reference */
};

struct secret_cache *secret_cache_new(void);
void secret_cache_free(
	struct secret_cache *cache); /* secrets in use stay until they are released */

/* Adds a secret, or replaces the one of its owner and name. server: what the record's URL says. */
void secret_cache_put(struct secret_cache *cache, const struct secret_record *record,
	const struct secret_server *server, const char *value);
void secret_cache_remove(struct secret_cache *cache, const struct owner *owner, const char *name);

/* A reference to the secret of an owner; NULL if there is none. Does not block for long. */
const struct secret_cache_secret *secret_cache_find(
	struct secret_cache *cache, const struct owner *owner, const char *name);
void secret_cache_secret_unref(const struct secret_cache_secret *secret);
