/* SPDX-License-Identifier: Apache-2.0 */
/* The migrations, in order; db_read_version() says how many a database has had. */
#pragma once

#include <stddef.h>

struct db;
struct err;

/*
 * Brings a database up to date, each step in a transaction of its own. A database that is newer than
 * this program is refused: it may hold what we do not know to keep.
 */
int schema_migrate(struct db *db, struct err *err);

size_t schema_version(void);

#define SCHEMA_WITH_GENERATION 12
