/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates in the database. An owner sees its own templates and the operator's, and of two with the same name its own.
 */
#pragma once

#include "model/template/template_record.h"
#include "store/store.h"

#define STORE_TEMPLATES_MAX 1000 /* of an owner */

/*
 * Changes the owner's template of a name, or adds it. `change` is given the row as it is, or a new one of version 0, and
 * what it makes of it is written if it returns 0. If the row became another one meanwhile, `change` is called again with
 * that one, so it must not build on what it did before. ERR_RATE if there are too many.
 */
int store_template_change(struct store *store, const struct owner *owner, const char *name,
	int (*change)(struct template_record *record, bool is_new, void *arg, struct err *err),
	void *arg, struct err *err) must_check;

/* The template of a name that the owner sees; ERR_NOT_FOUND if there is none. The caller ends the record. */
int store_template_find(struct store *store, const struct owner *owner, const char *name,
	struct template_record *ret_record, struct err *err) must_check;

/* Calls each for the templates that an owner sees, in order of their names, after a name, until it says false; at most
 * limit. The record is borrowed; the callback may use the store. */
int store_template_list(struct store *store, const struct owner *owner, const char *after,
	unsigned limit, bool (*each)(const struct template_record *record, void *arg), void *arg,
	struct err *err) must_check;

/* Calls each for the templates of all owners that may have a pool, at most 64; the record is borrowed. */
int store_template_pools(struct store *store,
	bool (*each)(const struct template_record *record, void *arg), void *arg, struct err *err)
	must_check;

/* Removes an owner's own template. ERR_NOT_FOUND; ERR_CONFLICT (template_in_use) names some of the
 * sandboxes that were made from it. */
int store_template_delete(struct store *store, const struct owner *owner, const char *name,
	struct err *err) must_check;

/* Notes that it was used. */
int store_template_touch(struct store *store, const struct template_record *record, int64_t at_ms,
	struct err *err) must_check;
