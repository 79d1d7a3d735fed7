/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files at rest, named by the SHA-256 of their content: layers and documents of images, and what
 * else is large and never changes. A blob is written beside its place, checked, synced and only
 * then moved to its name, so a blob that is there is whole; what a crash leaves is a part, which is
 * continued or removed.
 *
 * Any thread may call these functions. Two writers of the same blob do not disturb each other: the
 * second finds the first one's part locked, and writes one of its own.
 */
#pragma once

#include "blob/digest.h"

struct blob_store;
struct blob_writer;

/* Opens the store that is, or will be, in a directory of the daemon's own, which is borrowed. */
int blob_store_open(int dir_fd, struct blob_store **ret_store, struct err *err) must_check;
void blob_store_close(struct blob_store *store);

/* Its writers fail with ERR_NO_SPACE, and leave no part, before less than so many bytes of the disk are free. */
void blob_store_set_reserve(struct blob_store *store, uint64_t bytes);

bool blob_store_has(const struct blob_store *store, const struct digest *digest);

/* Opens a blob for reading; ERR_NOT_FOUND if there is none. */
int blob_store_read(const struct blob_store *store, const struct digest *digest, int *ret_fd,
	struct err *err) must_check;

/* Reads a small blob whole; ERR_TOO_LARGE past max. The caller frees it. */
int blob_store_load(const struct blob_store *store, const struct digest *digest, size_t max,
	char **ret_data, size_t *ret_len, struct err *err) must_check;

/* Removes a blob; it is no error if there is none. */
int blob_store_remove(const struct blob_store *store, const struct digest *digest, struct err *err)
	must_check;

/* Removes parts that nobody writes: those that can be continued if they are older than a time (seconds since the epoch). */
void blob_store_sweep(const struct blob_store *store, int64_t before_s);

/* Calls back for each blob; a result other than 0 ends the walk and is returned. */
int blob_store_walk(const struct blob_store *store,
	int (*found)(void *arg, const struct digest *digest, uint64_t size), void *arg,
	struct err *err) must_check;

/*
 * Begins a blob, or continues the part of one whose digest is known. NULL as digest: it comes out
 * at the end. A blob of more than max bytes is refused with ERR_TOO_LARGE.
 */
int blob_writer_open(struct blob_store *store, const struct digest *digest, uint64_t max,
	struct blob_writer **ret_writer, struct err *err) must_check;

/* How many bytes are there already. */
uint64_t blob_writer_length(const struct blob_writer *writer);

/* Forgets what is there, because the source begins anew. */
int blob_writer_restart(struct blob_writer *writer, struct err *err) must_check;

int blob_writer_add(struct blob_writer *writer, const void *data, size_t len, struct err *err)
	must_check;

/*
 * Checks, syncs and names the blob. ERR_INVALID (digest_mismatch): the content is another one than
 * was announced; it is removed.
 */
int blob_writer_commit(struct blob_writer *writer, struct digest *ret_digest, struct err *err)
	must_check;

/*
 * For many blobs that come together: closes the content of a blob, which gets its name later by blob_store_name_parts().
 * Until then, also after a crash, it is a part that blob_store_drop_ready() removes.
 */
#define BLOB_PART_NAME 32
struct blob_part {
	struct digest digest;
	char name[BLOB_PART_NAME]; /* "": it has its name already */
};
int blob_writer_set_aside(struct blob_writer *writer, struct blob_part *ret_part, struct err *err)
	must_check;

/* Syncs and names parts; one whose blob is there already goes. On failure some may have their names. */
int blob_store_name_parts(const struct blob_store *store, struct blob_part *const parts[],
	size_t count, struct err *err) must_check;
void blob_store_drop_part(const struct blob_store *store, struct blob_part *part);

/* When nobody writes: removes all parts that were set aside. */
void blob_store_drop_ready(const struct blob_store *store);

/*
 * Gives a blob another name: the same file, which all may read from then on, and execute once it was executable for
 * one of its names. Nobody may write it.
 */
int blob_store_link(const struct blob_store *store, const struct digest *digest, bool is_executable,
	int dir_fd, const char *name, struct err *err) must_check;

/* Whether that name is one of the blob. */
bool blob_store_is_link(
	const struct blob_store *store, const struct digest *digest, int dir_fd, const char *name);

/* Ends a writer. What was not committed stays as a part if its digest is known, else it goes. */
void blob_writer_close(struct blob_writer *writer);
void blob_writer_closep(struct blob_writer **writer);
