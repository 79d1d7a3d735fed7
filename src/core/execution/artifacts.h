/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts of an execution: the files that were written to the directory for outputs while it ran. */
#pragma once

#include "core/engine/sandbox_handle.h"

#include <jansson.h>

#define ARTIFACTS_DIR "/workspace/outputs"

/*
 * Lists the files that changed since a time of the wall clock: an array of path, size and sha256, which is null of one
 * that is too large to be read. *ret_is_cut if there are more than it lists. Blocks on the sandbox, and does not
 * wake it: of one that does not run the list is empty.
 */
json_t *artifacts_list(struct sandbox *sandbox, int64_t since_ms, bool *ret_is_cut);
