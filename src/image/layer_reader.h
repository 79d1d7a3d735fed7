/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a layer of an image: a tar, plain or compressed with gzip or zstd, as a sequence of entries
 * with whiteouts told apart. Runs in the unprivileged daemon; no program is started for it. What is
 * read is hashed while it passes, so that the layer is known to be the one that the image's config
 * names before anything of it is used.
 *
 * An entry leads nowhere but below the layer's root: names with ".." are refused. Devices are left
 * out, as are attributes other than user.*: a sandbox could not use them. Bounds: entries, bytes,
 * and how much a compressed layer may swell.
 */
#pragma once

#include "blob/digest.h"

#include <sys/types.h>

#define LAYER_PATH_MAX	  4096
#define LAYER_ENTRIES_MAX 2000000
#define LAYER_RATIO_MAX	  1000
#define LAYER_RATIO_FREE  (256ll << 20)
#define LAYER_XATTRS_MAX  64
#define LAYER_XATTR_MAX	  65536 /* bytes of one value */

enum layer_entry_kind {
	LAYER_FILE,
	LAYER_DIRECTORY,
	LAYER_SYMLINK,
	LAYER_HARDLINK, /* target: the path of an earlier entry */
	LAYER_FIFO,
	LAYER_WHITEOUT, /* the path is gone from the layers below */
	LAYER_OPAQUE,	/* all of the directory is gone from the layers below */
};

struct layer_xattr {
	const char *name;
	const void *value;
	size_t len;
};

struct layer_entry {
	enum layer_entry_kind kind;
	const char *path; /* relative, plain; "" is the root itself */
	const char *target;
	mode_t mode; /* permissions, with the set-uid, set-gid and sticky bits */
	uint32_t uid;
	uint32_t gid;
	int64_t mtime_ns;
	uint64_t size;
	struct layer_xattr xattrs[LAYER_XATTRS_MAX];
	size_t xattr_count;
	/* Of a file in a tree that is read without content (core/template/image/tree_stream.h); else 0. */
	uint64_t inode;
	uint64_t changed_ns;
	uint8_t below; /* enum layer_below, if it is read beside what is below it; else 0 */
};

/* Who gets the entries, in the layer's order. A negative result ends the reading and is returned. */
struct layer_sink {
	int (*entry)(void *arg, const struct layer_entry *entry, struct err *err);
	/* Content of the last entry, a file. What is between two pieces is a hole. */
	int (*content)(void *arg, uint64_t offset, const void *data, size_t len, struct err *err);
	void *arg;
};

struct layer_result {
	uint64_t entries;
	uint64_t bytes;	   /* of files */
	uint64_t devices;  /* that were left out */
	uint64_t stripped; /* entries that lost attributes, among them file capabilities */
};

/*
 * Reads a layer from a descriptor. ERR_INVALID: invalid_layer, or digest_mismatch if its content
 * unpacks to another diff id than that; ERR_TOO_LARGE past bytes_max or the other bounds.
 */
int layer_reader_run(int fd, const struct digest *diff_id, uint64_t bytes_max,
	const struct layer_sink *sink, struct layer_result *ret_result, struct err *err) must_check;
