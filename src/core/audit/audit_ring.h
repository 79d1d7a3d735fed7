/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the audit log on their way to the database, in a file that is mapped. Adding one is a
 * copy of a kilobyte: no system call, no wait for a disk. Yet what was added survives the death of the
 * process, because the kernel has it; the next daemon finds it and writes it on. The same way what was
 * cut off the end of the log comes back, as long as its slots have not been used again.
 *
 * Not locked: the audit writer's lock guards it. One party may read entries that it was shown while others
 * are added.
 */
#pragma once

#include "base/err.h"
#include "model/access/audit_entry.h"

#include <stdbool.h>
#include <stddef.h>

#define AUDIT_RING_SLOTS 1024

struct audit_ring;

/*
 * Opens the file, or makes it. `written` is the last entry in the database: those that follow it and
 * that a daemon before us left in the file are in the ring.
 */
int audit_ring_open(const char *path, int64_t written, struct audit_ring **ret_ring,
	struct err *err) must_check;
void audit_ring_close(struct audit_ring *ring);

/* Adds a copy that gets the next sequence; false if the ring is full. */
bool audit_ring_put(struct audit_ring *ring, const struct audit_entry *entry) must_check;

/* The oldest, up to max: how many. They stay as they are until they are dropped. */
size_t audit_ring_peek(
	const struct audit_ring *ring, const struct audit_entry *ret_entries[], size_t max);
void audit_ring_drop(struct audit_ring *ring, size_t count);

size_t audit_ring_count(const struct audit_ring *ring);

/* The sequence of the entry that was added last. */
int64_t audit_ring_last(const struct audit_ring *ring);
