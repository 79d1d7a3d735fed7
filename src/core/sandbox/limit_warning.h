/* SPDX-License-Identifier: Apache-2.0 */
/* What is odd about the limits of a sandbox, for whoever asked for them. */
#pragma once

#include "model/sandbox/sandbox_record.h"

#define LIMIT_WARNING_MAX 2   /* how many there can be */
#define LIMIT_WARNING_LEN 128 /* of each, with NUL */

/* A limit that the machine cannot reach is no limit: that is told, because it may be a slip of the hand.
 * Returns how many sentences there are. */
size_t limit_warning_list(
	const struct resources *resources, char ret_texts[LIMIT_WARNING_MAX][LIMIT_WARNING_LEN]);
