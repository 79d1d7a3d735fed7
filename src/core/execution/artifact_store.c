/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/artifact_store.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/work/store_execution.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct artifact_store {
	struct store *store;
	struct blob_store *blobs;
	pthread_mutex_t lock; /* held while a row and its blob come or go together */
};

int artifact_store_open(int dir_fd, struct store *store, uint64_t disk_reserve,
	struct artifact_store **ret_artifacts, struct err *err)
{
	struct artifact_store *artifacts = mem_new(sizeof(*artifacts));
	int r = blob_store_open(dir_fd, &artifacts->blobs, err);

	if (r < 0) {
		free(artifacts);
		return r;
	}
	artifacts->store = store;
	pthread_mutex_init(&artifacts->lock, NULL);
	blob_store_set_reserve(artifacts->blobs, disk_reserve);
	blob_store_sweep(artifacts->blobs, INT64_MAX);
	artifact_store_collect(artifacts);
	*ret_artifacts = artifacts;
	return 0;
}

void artifact_store_close(struct artifact_store *artifacts)
{
	if (!artifacts)
		return;
	blob_store_close(artifacts->blobs);
	pthread_mutex_destroy(&artifacts->lock);
	free(artifacts);
}

int artifact_store_begin(struct artifact_store *artifacts, uint64_t max,
	struct blob_writer **ret_writer, struct err *err)
{
	return blob_writer_open(artifacts->blobs, NULL, max, ret_writer, err);
}

int artifact_store_keep(struct artifact_store *artifacts, const char *execution,
	const struct digest *digest, struct blob_writer *writer, struct err *err)
{
	struct digest written;
	int r;

	pthread_mutex_lock(&artifacts->lock);
	r = store_artifact_put(artifacts->store, execution, digest_hex(digest), err);
	if (r == 0)
		r = blob_writer_commit(writer, &written, err);
	pthread_mutex_unlock(&artifacts->lock);
	return r;
}

int artifact_store_read(
	struct artifact_store *artifacts, const struct digest *digest, int *ret_fd, struct err *err)
{
	return blob_store_read(artifacts->blobs, digest, ret_fd, err);
}

/* One of a forgotten execution: 1, or 0 if there is none. The lock is held. */
static int collect_one(struct artifact_store *artifacts, struct err *err)
{
	struct store_artifact artifact;
	char text[DIGEST_LEN + 1];
	struct digest digest;
	int r = store_artifact_stale(artifacts->store, &artifact, err);

	if (r != 1)
		return r;
	snprintf(text, sizeof(text), DIGEST_PREFIX "%s", artifact.digest);
	if (!artifact.is_shared && digest_parse(text, &digest, err) == 0)
		r = blob_store_remove(artifacts->blobs, &digest, err);
	if (r >= 0)
		r = store_artifact_delete(artifacts->store, &artifact, err);
	return r < 0 ? r : 1;
}

void artifact_store_collect(struct artifact_store *artifacts)
{
	struct err err;
	int r;

	do {
		pthread_mutex_lock(&artifacts->lock);
		r = collect_one(artifacts, &err);
		pthread_mutex_unlock(&artifacts->lock);
	} while (r == 1);
	if (r < 0)
		log_error("copies of artifacts: %s", err.message);
}
