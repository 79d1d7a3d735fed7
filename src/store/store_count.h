/* SPDX-License-Identifier: Apache-2.0 */
/* How many there are of what, in all, for whoever measures the daemon. */
#pragma once

#include "store/store.h"

enum store_count_kind { STORE_COUNT_SANDBOXES, STORE_COUNT_JOBS };

/* Calls each with a state, and how many are in it. */
int store_count_read(struct store *store, enum store_count_kind kind,
	void (*each)(const char *state, int64_t count, void *arg), void *arg, struct err *err)
	must_check;
