/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer_tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_SIZE (256u << 10)
#define ZEROS	   65536

struct layer_tar {
	struct archive *archive;
	struct archive_entry *entry;
	struct layer_tar_output output;
	int failure; /* of the output */
	struct err err;
	bool is_closing;
	uint64_t count;
	uint64_t size, offset; /* of the file that is being written */
};

/*
 * After a failure bytes go nowhere: a trailer would make a cut tar look whole. The library is told only
 * when it closes; before that it would take it for fatal, and then never free its buffers.
 */
static la_ssize_t write_output(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct layer_tar *tar = arg;

	(void)archive;
	if (tar->failure == 0)
		tar->failure = tar->output.write(tar->output.arg, data, len, &tar->err);
	return tar->failure < 0 && tar->is_closing ? -1 : (la_ssize_t)len;
}

static int failed(struct layer_tar *tar, struct err *err)
{
	if (tar->failure < 0) {
		*err = tar->err;
		return tar->failure;
	}
	return err_set(err, ERR_INVALID, "a layer cannot be written: %s",
		archive_error_string(tar->archive) ? archive_error_string(tar->archive)
						   : "out of order");
}

int layer_tar_open(const struct layer_tar_output *output, bool is_compressed,
	struct layer_tar **ret_tar, struct err *err)
{
	struct layer_tar *tar = mem_new(sizeof(*tar));

	tar->output = *output;
	tar->archive = archive_write_new();
	tar->entry = archive_entry_new();
	if (!tar->archive || !tar->entry)
		abort();
	archive_write_set_format_pax_restricted(tar->archive);
	archive_write_set_options(tar->archive, "hdrcharset=BINARY,xattrheader=SCHILY");
	if (is_compressed) {
		archive_write_add_filter_gzip(tar->archive);
		/* The same layer gives the same bytes. */
		archive_write_set_options(tar->archive, "gzip:!timestamp");
	}
	archive_write_set_bytes_per_block(tar->archive, BLOCK_SIZE);
	/* Zeros behind the end of what is compressed are an error to some. */
	archive_write_set_bytes_in_last_block(tar->archive, is_compressed ? 1 : 512);
	if (archive_write_open(tar->archive, tar, NULL, write_output, NULL) != ARCHIVE_OK) {
		int r = failed(tar, err);

		layer_tar_close(tar);
		return r;
	}
	*ret_tar = tar;
	return 0;
}

/* What was not sent of the last file is a hole at its end. */
static int fill_up(struct layer_tar *tar, uint64_t until, struct err *err)
{
	static const char zeros[ZEROS];

	while (tar->offset < until) {
		uint64_t left = until - tar->offset;
		size_t n = left < ZEROS ? (size_t)left : ZEROS;

		if (archive_write_data(tar->archive, zeros, n) != (la_ssize_t)n || tar->failure < 0)
			return failed(tar, err);
		tar->offset += n;
	}
	return 0;
}

static const mode_t types[] = {
	[LAYER_FILE] = AE_IFREG,
	[LAYER_DIRECTORY] = AE_IFDIR,
	[LAYER_SYMLINK] = AE_IFLNK,
	[LAYER_HARDLINK] = AE_IFREG,
	[LAYER_FIFO] = AE_IFIFO,
	[LAYER_WHITEOUT] = AE_IFREG,
	[LAYER_OPAQUE] = AE_IFREG,
};

static char *name_of(const struct layer_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	const char *name = slash ? slash + 1 : entry->path;

	if (entry->kind == LAYER_OPAQUE)
		return mem_printf("%s%s.wh..wh..opq", entry->path, entry->path[0] ? "/" : "");
	if (entry->kind == LAYER_WHITEOUT)
		return mem_printf("%.*s.wh.%s", (int)(name - entry->path), entry->path, name);
	if (entry->kind == LAYER_DIRECTORY)
		return mem_printf("%s/", entry->path[0] ? entry->path : ".");
	return mem_strdup(entry->path);
}

static void fill_entry(struct archive_entry *to, const struct layer_entry *from)
{
	auto_free char *name = name_of(from);

	archive_entry_clear(to);
	archive_entry_copy_pathname(to, name);
	archive_entry_set_filetype(to, types[from->kind]);
	archive_entry_set_perm(to, from->mode & 07777);
	archive_entry_set_uid(to, from->uid);
	archive_entry_set_gid(to, from->gid);
	archive_entry_set_mtime(
		to, (time_t)(from->mtime_ns / 1000000000), (long)(from->mtime_ns % 1000000000));
	archive_entry_set_size(to, from->kind == LAYER_FILE ? (la_int64_t)from->size : 0);
	if (from->kind == LAYER_SYMLINK)
		archive_entry_copy_symlink(to, from->target);
	if (from->kind == LAYER_HARDLINK)
		archive_entry_copy_hardlink(to, from->target);
	for (size_t i = 0; i < from->xattr_count; i++)
		archive_entry_xattr_add_entry(
			to, from->xattrs[i].name, from->xattrs[i].value, from->xattrs[i].len);
}

int layer_tar_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	struct layer_tar *tar = arg;
	int r = fill_up(tar, tar->size, err);

	if (r < 0)
		return r;
	if (entry->size > INT64_MAX)
		return err_set(err, ERR_TOO_LARGE, "a file of the layer is too large");
	fill_entry(tar->entry, entry);
	if (archive_write_header(tar->archive, tar->entry) < ARCHIVE_WARN || tar->failure < 0)
		return failed(tar, err);
	tar->size = entry->kind == LAYER_FILE ? entry->size : 0;
	tar->offset = 0;
	tar->count++;
	return 0;
}

int layer_tar_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct layer_tar *tar = arg;
	int r;

	if (offset < tar->offset || offset > tar->size || len > tar->size - offset)
		return err_set(err, ERR_INVALID, "a file of the layer has changed meanwhile");
	r = fill_up(tar, offset, err);
	if (r < 0)
		return r;
	if (archive_write_data(tar->archive, data, len) != (la_ssize_t)len || tar->failure < 0)
		return failed(tar, err);
	tar->offset += len;
	return 0;
}

uint64_t layer_tar_count(const struct layer_tar *tar)
{
	return tar->count;
}

int layer_tar_finish(struct layer_tar *tar, struct err *err)
{
	int r = fill_up(tar, tar->size, err);

	if (r < 0)
		return r;
	tar->is_closing = true;
	if (archive_write_close(tar->archive) != ARCHIVE_OK || tar->failure < 0)
		return failed(tar, err);
	return 0;
}

void layer_tar_close(struct layer_tar *tar)
{
	if (!tar)
		return;
	/* One that is not finished gets no trailer. */
	if (!tar->is_closing) {
		tar->failure = tar->failure < 0 ? tar->failure : -ECANCELED;
		tar->is_closing = true;
	}
	archive_entry_free(tar->entry);
	archive_write_free(tar->archive);
	free(tar);
}

void layer_tar_closep(struct layer_tar **tar)
{
	layer_tar_close(*tar);
}
