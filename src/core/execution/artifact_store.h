/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of artifacts of executions whose sandbox goes with them: blobs (blob/blob_store.h) of a directory of
 * their own, and rows that say which execution has which. The row comes before its blob and goes after it, so
 * nothing is left that no row tells of. What several have is there once.
 */
#pragma once

#include "blob/blob_store.h"

struct artifact_store;
struct store;

/* Both are borrowed. Its writers leave so many bytes of the disk free. */
int artifact_store_open(int dir_fd, struct store *store, uint64_t disk_reserve,
	struct artifact_store **ret_artifacts, struct err *err) must_check;
void artifact_store_close(struct artifact_store *artifacts);

/* Begins a copy of at most max bytes. */
int artifact_store_begin(struct artifact_store *artifacts, uint64_t max,
	struct blob_writer **ret_writer, struct err *err) must_check;

/* Keeps what was written for as long as the execution's row; its digest was counted meanwhile. The writer stays the
 * caller's to be closed. */
int artifact_store_keep(struct artifact_store *artifacts, const char *execution,
	const struct digest *digest, struct blob_writer *writer, struct err *err) must_check;

/* ERR_NOT_FOUND. */
int artifact_store_read(struct artifact_store *artifacts, const struct digest *digest, int *ret_fd,
	struct err *err) must_check;

/* Removes what belongs to executions that are forgotten. */
void artifact_store_collect(struct artifact_store *artifacts);
