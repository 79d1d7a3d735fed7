/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a layer of an image unpacked where sandboxes find it. The layer is read here, in the
 * unprivileged daemon, and told item by item (wire/layer.h) to a process that the driver started in
 * a directory of its own. The layer counts only once all of it was read, hashed and written.
 */
#pragma once

#include "blob/blob_store.h"
#include "driver/driver.h"
#include "image/layer_reader.h"
#include "model/access/owner.h"

#include <pthread.h>

/* How much a layer may unpack to. */
#define LAYER_INSTALL_BYTES_MAX (64ull << 30)
#define LAYER_INSTALL_AHEAD	(8u << 20) /* what may be written before may_grow is asked again */

/*
 * How many are written at a time. Each takes one of the 64 children of the keeper that serve whatever takes long
 * (keeper/process/helpers.h), and most of these are to be there for resets and purges.
 */
#define LAYER_INSTALL_WRITERS 16

struct share_pool;

/* The layers that are being installed now, so that two threads do not write the same one, and no owner all of them. */
struct layer_installs {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_mutex_t stacking; /* one stack is made at a time */
	struct layer_installing *first;
	struct layer_bringing *bringing;
	struct share_pool *writers;
};

void layer_installs_init(struct layer_installs *installs);
void layer_installs_fini(struct layer_installs *installs);

struct layer_order {
	const struct owner *owner; /* who brings it */
	const struct digest *blob, *diff_id;
	/* Notes that the layer is about to be there; may be NULL. */
	int (*begin)(void *arg, const char *name, bool is_stack, struct err *err);
	/* Asked now and then whether it may take so many bytes more: 0, or an error that ends it. What a layer was given
	 * that then failed is given back, as a negative number. May be NULL. */
	int (*may_grow)(void *arg, int64_t bytes, struct err *err);
	void *arg;
};

struct layer_installed {
	struct layer_result result;
	uint64_t bytes; /* that may_grow was asked for: of files, and of entries by themselves */
	bool has_python, has_python_bytecode;
};

/*
 * Installs a layer from its blob, unless it is there: 1 if it was. Waits for another thread that
 * installs the same, and for others of its owner that have the owner's share of the writers.
 */
int layer_install(struct layer_installs *installs, struct driver *driver,
	const struct blob_store *blobs, const struct layer_order *order,
	struct layer_installed *ret_installed, struct err *err) must_check;

/* A layer that a thread fetches for an owner, and installs. */
struct layer_bringing {
	uint64_t owner;
	struct digest diff_id;
	struct layer_bringing *next;
};

/*
 * Before a layer is fetched, so that what an owner wants under several names is fetched once: false if another thread
 * is still at it after a moment. Who has it fetches none that is there by then, and gives it up again in any case.
 */
bool layer_installs_claim(struct layer_installs *installs, const struct owner *owner,
	const struct digest *diff_id, struct layer_bringing *ret_claim) must_check;
void layer_installs_give_up(struct layer_installs *installs, struct layer_bringing *claim);

/* Keeps others from installing a layer while it is removed; NULL if one is at it. */
struct layer_installing *layer_installs_hold(
	struct layer_installs *installs, const struct digest *diff_id) must_check;
void layer_installs_release(struct layer_installs *installs, struct layer_installing *held);
