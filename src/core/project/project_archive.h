/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole projects as archives: in as tar, tar.gz, tar.zst or zip, out as tar, tar.gz or zip. libarchive runs in the
 * unprivileged daemon and starts no program.
 */
#pragma once

#include "core/project/project_upload.h"

#include <sys/types.h>

struct archive; /* libarchive's */

/* What becomes of so little may be at most so much larger, past the bytes that are free. */
#define PROJECT_ARCHIVE_RATIO_MAX  200
#define PROJECT_ARCHIVE_RATIO_FREE (64 << 20)

/* Where an archive comes from: bytes, 0 at its end, or -errno. */
struct project_archive_source {
	ssize_t (*read)(void *arg, void *data, size_t size);
	void *arg;
};

/*
 * Adds the files of an archive to an upload, below a directory ("": the root). Directories alone are nothing; symbolic
 * links, devices and the like are left out and counted. A name that is not safe refuses all of it.
 */
int project_archive_import(struct project_upload *upload,
	const struct project_archive_source *source, const char *below, uint64_t *ret_skipped,
	struct err *err) must_check;

/* What a project can go out as. */
struct project_archive_format {
	const char *name, *suffix, *media_type;
	int (*choose)(struct archive *archive);
};

/* The row of a name; NULL: there is none. */
const struct project_archive_format *project_archive_format_find(const char *name);

/* Writes all files of a project to a file, of which so much of the disk stays free. */
int project_archive_export(struct projects *projects, const struct project_record *record,
	const struct project_archive_format *format, int fd, struct err *err) must_check;
