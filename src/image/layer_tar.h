/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a layer of an image as a tar, the reverse of image/layer_reader.h: owners, modes, times, links
 * and user.* attributes as they are, what is gone as .wh. files. Holes become zeros.
 */
#pragma once

#include "image/layer_reader.h"

struct layer_tar;

/* Where the bytes of the tar go, in order. A negative result ends it. */
struct layer_tar_output {
	int (*write)(void *arg, const void *data, size_t len, struct err *err);
	void *arg;
};

/* Begins one; compressed with gzip, or plain, whose digest is then the diff id of the layer. */
int layer_tar_open(const struct layer_tar_output *output, bool is_compressed,
	struct layer_tar **ret_tar, struct err *err) must_check;

/* The functions of a layer_sink whose arg is a struct layer_tar. */
int layer_tar_entry(void *tar, const struct layer_entry *entry, struct err *err) must_check;
int layer_tar_content(void *tar, uint64_t offset, const void *data, size_t len, struct err *err)
	must_check;

/* How many entries it has. */
uint64_t layer_tar_count(const struct layer_tar *tar);

/* Writes the end of the tar: it is whole only if this returned 0. */
int layer_tar_finish(struct layer_tar *tar, struct err *err) must_check;
void layer_tar_close(struct layer_tar *tar);
void layer_tar_closep(struct layer_tar **tar);
