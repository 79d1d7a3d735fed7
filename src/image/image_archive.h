/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image in one file: an OCI layout as a tar, or what `docker save` writes. All files of the archive
 * go into the blob store under their digests; then the documents among them say which of them are
 * the image. So the source is read once, front to back, and may be a stream. Of an OCI layout that is a directory, only
 * the files of the image are read, each under the name that its digest gives it.
 */
#pragma once

#include "blob/blob_store.h"
#include "image/image_manifest.h"

#define IMAGE_ARCHIVE_FILES_MAX 4096
#define IMAGE_ARCHIVE_NAME_MAX	512

/* Where the archive comes from: bytes, 0 at its end, or -errno. */
struct image_source {
	ssize_t (*read)(void *arg, void *data, size_t size);
	/* Of a directory: what is read next is the ordinary file of that name in it, "index.json" or "blobs/sha256/...". */
	int (*open)(void *arg, const char *name, struct err *err);
	void *arg;
};

/*
 * Reads an archive of at most bytes_max bytes. Of several images the one with that tag or name is
 * taken; NULL: there must be only one. The manifest's blobs are in the store afterwards, as is what
 * else was in the archive; the caller removes blobs when images are unpacked.
 */
int image_archive_read(const struct image_source *source, const char *tag, uint64_t bytes_max,
	struct blob_store *store, struct image_manifest *ret_manifest, struct err *err) must_check;
