/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of images, which sandboxes stack by overlay, all below the data directory:
 *
 *   layers/<digest>/           a layer, named by the digest of its content; read-only once it is there
 *   layers/.new/<digest>/      one that is being written; what a crash leaves is removed at the start
 *   layers/.stacks/<digest>/   an image as links to its layers: 0 is the uppermost. Names this short
 *                              let a whole stack fit into one option of the mount, which has 255 bytes
 *   layers/.top, .bottom       what every image has: the files of its network above, and below
 *                              the places of mounts, for images that lack them
 *
 * Uids are those of the image, 0 to 65535; sandboxes see all of `layers` by one mount for each uid
 * range, mapped to it. The daemon decides what is kept; no name of its requests is a path.
 */
#pragma once

#include "keeper/disk/storage.h"

#define LAYER_STORE_STACK_MAX 100 /* layers of an image */
#define LAYER_STORE_OPTION    256

struct layer_store {
	int fd;
	int new_fd;
	int stacks_fd;
};

/* Opens the store, makes what is missing, and discards layers that were not finished. */
int layer_store_open(struct layer_store *store, const struct storage *storage, struct err *err)
	must_check;

/* Whether a text is the name of a layer or a stack: 64 hexadecimal digits. */
bool layer_store_is_name(const char *text);

/*
 * Makes the directory of a new layer, in the place of one that was not finished; -EEXIST
 * (ERR_CONFLICT): the layer is there.
 */
int layer_store_begin(const struct layer_store *store, const struct storage *storage,
	const char *name, int *ret_fd, struct err *err) must_check;

/* Gives a layer its name once it is whole. */
int layer_store_commit(const struct layer_store *store, const char *name, struct err *err)
	must_check;

/* Opens a layer that is whole. */
int layer_store_read(
	const struct layer_store *store, const char *name, int *ret_fd, struct err *err) must_check;

/*
 * Discards a layer, whether it is whole or not; ERR_CONFLICT (KEEPER_LAYER_IN_USE) if a stack has it, so that a stack
 * that is there is whole.
 */
int layer_store_drop(const struct layer_store *store, const struct storage *storage,
	const char *name, struct err *err) must_check;

/* Adds the next layer to a stack that is being made, from the uppermost down. */
int layer_store_stack_add(const struct layer_store *store, const char *stack, const char *layer,
	unsigned index, struct err *err) must_check;
int layer_store_stack_commit(const struct layer_store *store, const char *stack, struct err *err)
	must_check;
int layer_store_stack_drop(const struct layer_store *store, const struct storage *storage,
	const char *stack, struct err *err) must_check;

/* Lists layers that are whole, or stacks, in order after a name; returns how many. */
uint32_t layer_store_list(const struct layer_store *store, bool stacks, const char *after,
	char names[][KEEPER_DIGEST_LEN + 1], uint32_t max);

/*
 * Enters the directory of a stack below a mount of the store (which may be mapped), and writes the
 * option `lowerdir` for it, whose names count from there.
 */
int layer_store_enter_stack(int layers_mount, const char *stack, char option[LAYER_STORE_OPTION],
	struct err *err) must_check;
