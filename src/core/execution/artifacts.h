/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts of an execution: the files that were written to the directory for outputs while it ran. */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/execution/artifact_store.h"

#include <jansson.h>

#define ARTIFACTS_DIR "/workspace/outputs"

struct artifacts_request {
	struct sandbox *sandbox;
	int64_t since_ms;	     /* of the wall clock */
	struct artifact_store *copy; /* where copies are to be kept, for */
	const char *execution;	     /* this one; NULL: they are not copied */
};

/*
 * Lists the files that changed since a time: an array of path, size and sha256, which is null of one that is too large
 * to be read, or that could not be copied. *ret_is_cut if there are more than it lists, or than were copied. Blocks on
 * the sandbox, and does not wake it: of one that does not run the list is empty.
 */
json_t *artifacts_list(const struct artifacts_request *request, bool *ret_is_cut);

/* Opens one in a running sandbox for reading: *ret_fd brings *ret_size bytes. */
int artifacts_open(struct sandbox *sandbox, const char *path, uint64_t *ret_size, int *ret_fd,
	struct err *err) must_check;
