/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tar or tar.gz of a stranger as plain items for a helper in the sandbox (wire/agent.h, UNPACK), which
 * checks every name again. libarchive runs here, in the unprivileged daemon; no filter program is ever
 * started: tar and gzip are read in-process, and nothing else is.
 *
 * Refused: names and links that lead out, devices, FIFOs and sockets; more entries than
 * TAR_READER_ENTRIES_MAX, more bytes than the caller allows, and past TAR_READER_RATIO_FREE bytes whatever
 * has been compressed by more than TAR_READER_RATIO_MAX.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define TAR_READER_ENTRIES_MAX 1000000
#define TAR_READER_RATIO_MAX   200
#define TAR_READER_RATIO_FREE  (64 << 20)

/* Where the archive comes from: bytes, 0 at its end, or -errno. */
struct tar_reader_source {
	ssize_t (*read)(void *arg, void *data, size_t size);
	void *arg;
};

struct tar_reader_result {
	uint64_t entries, bytes;
	bool is_broken; /* the helper gave up; its answer says why */
};

/* Writes the items to items_fd, the last one among them if all went well. *ret_result is set in any case. */
int tar_reader_run(const struct tar_reader_source *source, int items_fd, uint64_t bytes_max,
	struct tar_reader_result *ret_result, struct err *err) must_check;
