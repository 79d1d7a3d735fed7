/* SPDX-License-Identifier: Apache-2.0 */
/* Removes directories with all that is in them, also while others write there. */
#pragma once

#include "agent/files/helper_io.h"

#include <stdbool.h>

/* -EISDIR if it has entries and is_recursive is not set, -EBUSY at a mount, -EPIPE when nobody waits any more. */
int tree_remove(const struct helper_io *helper_io, int dir, const char *name, bool is_recursive)
	must_check;
