/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers that sandlotd can be told to use (--driver). A new driver is a row in driver_table.c. */
#pragma once

#include "driver/driver_kind.h"

#define DRIVER_TABLE_DEFAULT "native"

/* All of them, in alphabetic order. */
const struct driver_kind *driver_table_list(size_t *ret_count);

/* ERR_INVALID, with the names that there are. */
int driver_table_find(const char *name, const struct driver_kind **ret_kind, struct err *err)
	must_check;
