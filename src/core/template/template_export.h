/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a template as an image that other programs take: an OCI layout in a tar. Its layers are read
 * where they are unpacked and packed anew, so their digests are not those that they came with.
 */
#pragma once

#include "core/engine/engine.h"

/* Takes long. *ret_fd is a file without a name that holds the whole tar, and *ret_size its size. */
int template_export_run(struct engine *engine, const struct owner *owner, const char *name,
	int *ret_fd, uint64_t *ret_size, struct err *err) must_check;
