/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds of templates: the sandboxes in which their steps run, and which layer came of a step. A builder
 * is noted before its sandbox is made: one that a daemon leaves behind is removed by the next.
 */
#pragma once

#include "store/store.h"

int store_builder_add(struct store *store, const char *id, struct err *err) must_check;
int store_builder_delete(struct store *store, const char *id, struct err *err) must_check;
int store_builder_has(struct store *store, const char *id, bool *ret_has, struct err *err)
	must_check;

/* Forgets those of which no sandbox is left. */
int store_builder_sweep(struct store *store, struct err *err) must_check;

#define STORE_DIFF_ID_LEN 71

struct build_cache_entry {
	char diff_id[STORE_DIFF_ID_LEN + 1]; /* empty: the step changed nothing */
	uint64_t bytes;
	json_t *note; /* object: what else is to be known of it; NULL: nothing */
};

/* The layer of an owner's step, by the key that names all that went into it; ERR_NOT_FOUND. Notes its use. The caller
 * ends the entry's note with json_decref(). */
int store_build_cache_get(struct store *store, const struct owner *owner, const char *key,
	struct build_cache_entry *ret_entry, struct err *err) must_check;
int store_build_cache_put(struct store *store, const struct owner *owner, const char *key,
	const struct build_cache_entry *entry, struct err *err) must_check;
int store_build_cache_delete(struct store *store, const struct owner *owner, const char *key,
	struct err *err) must_check;

/* Forgets all of an owner, or of all if owner is NULL: how many. */
int store_build_cache_clear(struct store *store, const struct owner *owner, struct err *err)
	must_check;
