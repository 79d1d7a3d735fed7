/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which an older database is known. The database has a number that grows with each sandbox and workspace
 * that comes or goes (triggers, schema.c) and with each start of the daemon. A stamp in the directory of the
 * workspaces says which number they have seen; a database with a lower one does not know all of them.
 *
 * A commit survives the death of any process, but not a failure of power, before it was synced. So the stamp
 * has two numbers: what was written, which holds as long as the host is up, and what is surely on the disk,
 * which holds for ever. The boot id tells which of them counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct generation {
	uint64_t written;
	uint64_t durable;
	char boot[37]; /* of the host that is up now */
};

void generation_init(struct generation *generation);

/* What the workspaces have seen at least; 0 if there is no stamp, or none that can be read. */
uint64_t generation_floor(const struct generation *generation, int fd);

/* Writes the stamp in place; with is_synced it is on the disk when this returns. 0 or -errno. */
int generation_write(const struct generation *generation, int fd, bool is_synced);
