/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite, in a file. */
#pragma once

struct db;
struct db_ops;
struct sqlite3;

extern const struct db_ops db_sqlite_ops;

/* For tests, which make SQLite fail: the connection of the library. The daemon does not use this. */
struct sqlite3 *db_sqlite_handle(struct db *db);
