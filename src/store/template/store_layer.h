/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store of layers has: layers and stacks of them, by name (64 hexadecimal digits), with what they take and
 * when they were used last; and which layers an owner has proved to have (core/template/image/image_pull.h). Who uses
 * what is one list, LAYER_USERS in sql.c.
 *
 * A row comes before its files, and goes after them. In between it may be marked as gone: then nothing new uses it,
 * and its files are being removed, also after a crash. Files without a row are of another database: they stay.
 */
#pragma once

#include "model/access/owner.h"
#include "store/store.h"

#define STORE_LAYER_NAME_LEN 64
#define STORE_IMAGE_MISSING  "image_missing" /* the code of an error */

struct layer_file {
	char name[STORE_LAYER_NAME_LEN + 1];
	bool is_stack;
	int64_t bytes; /* of its files; -1: not measured yet */
	int64_t used_at_ms;
};

/*
 * Notes that a layer or stack is about to be made, or used if it is there. One that is marked as gone is not any more:
 * as long as its files are there they are whole. Not while they are being removed.
 */
int store_layer_begin(struct store *store, const char *name, bool is_stack, struct err *err)
	must_check;

/* What a layer may have of Python. */
#define STORE_LAYER_PYTHON	    1 /* the library */
#define STORE_LAYER_PYTHON_BYTECODE 2 /* and what it compiles to */

/* Notes that an owner has proved to have a layer, which takes so many bytes and has STORE_LAYER_PYTHON*; -1 as bytes: it
 * was there before, and all that is known. */
int store_layer_note(struct store *store, const struct owner *owner, const char *name,
	int64_t bytes, unsigned python, struct err *err) must_check;

/* What a layer has of Python: a sum of the above. */
int store_layer_python(struct store *store, const char *name, struct err *err) must_check;

/* Whether an owner has proved that, and the layer is there: then it counts as used now. 1 or 0. */
int store_layer_has(struct store *store, const struct owner *owner, const char *name,
	struct err *err) must_check;

/* Whether there is a row of that name: 1 or 0. */
int store_layer_is_known(struct store *store, const char *name, struct err *err) must_check;

/* ERR_CONFLICT, image_missing: an image (sandbox_record.image) has a stack that is not there, or is being removed. */
int store_layer_check_image(struct store *store, const json_t *image, struct err *err) must_check;

/* --- for core/template/image/layer_collect.c --- */

/* What counts as unused. */
struct layer_expiry {
	int64_t before_ms; /* layers that nothing used since then */
	int64_t cache_before_ms; /* the same of what steps of builds have made; such a layer is in use until then */
};

/*
 * Notes that all that is in use is used now. Forgets what has expired: the references of images that no sandbox has,
 * steps of builds, and that an owner has proved to have a layer that it does not use.
 */
int store_layer_expire(struct store *store, const struct layer_expiry *expiry, struct err *err)
	must_check;

/*
 * Lists what nothing uses, and nothing used since expiry.before_ms, stacks or layers, after a name in order: how many.
 * With is_ahead as it would be after store_layer_expire().
 */
int store_layer_list_unused(struct store *store, const struct layer_expiry *expiry, bool is_ahead,
	bool stacks, const char *after, struct layer_file files[], size_t max, struct err *err)
	must_check;

/* The same of what is marked as gone; and of layers whose bytes are not known. */
int store_layer_list_marked(struct store *store, const char *after, struct layer_file files[],
	size_t max, struct err *err) must_check;
int store_layer_list_unmeasured(struct store *store, const char *after, struct layer_file files[],
	size_t max, struct err *err) must_check;

int store_layer_is_marked(struct store *store, const char *name, struct err *err) must_check;

/* Marks one as gone, if that is still so: 1 or 0. */
int store_layer_mark(struct store *store, const char *name, int64_t before_ms, struct err *err)
	must_check;
/* It stays after all, and was used now. */
int store_layer_unmark(struct store *store, const char *name, struct err *err) must_check;
/* Its files are gone: forgets all about it. */
int store_layer_forget(struct store *store, const char *name, struct err *err) must_check;

int store_layer_set_bytes(struct store *store, const char *name, int64_t bytes, struct err *err)
	must_check;

/* How many layers there are and what they take, and of those which somebody uses. */
struct layer_totals {
	uint64_t layers, bytes, used_layers, used_bytes;
};

int store_layer_totals(struct store *store, struct layer_totals *ret_totals, struct err *err)
	must_check;
