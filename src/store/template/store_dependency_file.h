/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that name the packages of sandboxes (core/dependency/dependency_files.h), of each owner by their SHA-256.
 * Records of sandboxes and snapshots have the hash; what none of them has is dropped a while after it was put
 * (store_layer_expire(), and when there is no room).
 */
#pragma once

#include "store/store.h"

#define STORE_DEPENDENCY_FILES_MAX (64u << 20) /* bytes, of an owner */

/* ERR_TOO_LARGE (too_many_files): the owner's sandboxes have so many already. */
int store_dependency_file_put(struct store *store, const struct owner *owner, const char *sha256,
	const void *content, size_t len, struct err *err) must_check;

/* ERR_NOT_FOUND. The caller frees it. */
int store_dependency_file_get(struct store *store, const struct owner *owner, const char *sha256,
	char **ret_content, size_t *ret_len, struct err *err) must_check;
