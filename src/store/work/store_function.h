/* SPDX-License-Identifier: Apache-2.0 */
/* Functions in the database: a row for each version. */
#pragma once

#include "model/work/function_record.h"
#include "store/store.h"

#define STORE_FUNCTIONS_MAX	    100 /* of an owner */
#define STORE_FUNCTION_VERSIONS_MAX 100 /* of a function: the oldest go */

/* Adds the next version; record->version and created_at_ms are set. ERR_RATE if the owner has too many functions. */
int store_function_put(struct store *store, struct function_record *record, struct err *err)
	must_check;

/* A version, or the last for 0. The caller ends the record. */
int store_function_get(struct store *store, const struct owner *owner, const char *name,
	uint32_t version, struct function_record *ret_record, struct err *err) must_check;

/* Calls each for the last version of each function after a name, in order, until it says false. The record is borrowed. */
int store_function_list(struct store *store, const struct owner *owner, const char *after,
	bool (*each)(const struct function_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* The same for all versions of one, the last first. */
int store_function_versions(struct store *store, const struct owner *owner, const char *name,
	bool (*each)(const struct function_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* All versions of one; ERR_NOT_FOUND. */
int store_function_delete(struct store *store, const struct owner *owner, const char *name,
	struct err *err) must_check;
