/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit writer: takes entries of the audit log from any thread, and has a thread of its own that writes
 * them to the database in their order, many at a time.
 *
 * The promise: when audit_writer_put() returns, the entry survives the death of the daemon (audit_ring.h);
 * against a failure of power it is as safe as the rest of the database. While the database cannot be
 * written (the disk is full), entries are kept and tried again; when there are too many, the newest are
 * lost, because what they tell of has happened, and the log says how many as soon as it can.
 */
#pragma once

#include "model/access/audit_entry.h"
#include "store/store.h"

struct audit_writer;

/* Entries beyond `keep` are dropped, the oldest first. The ring is kept at `path`. */
int audit_writer_open(struct store *store, const char *path, uint64_t keep,
	struct audit_writer **ret_auditor, struct err *err) must_check;

/* Writes all that was given, and ends. */
void audit_writer_close(struct audit_writer *writer);

/* Its sequence and its time are set here. */
void audit_writer_put(struct audit_writer *writer, const struct audit_entry *entry);

/*
 * The same for what a stranger can cause without end, a refused token: past a short burst one a second
 * is kept, and says how many before it were not.
 */
void audit_writer_put_bounded(struct audit_writer *writer, const struct audit_entry *entry);

/* Waits until all that was put before is in the database, unless that cannot be written. */
void audit_writer_flush(struct audit_writer *writer);
