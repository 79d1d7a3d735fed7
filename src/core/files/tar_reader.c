/* SPDX-License-Identifier: Apache-2.0 */
#include "core/files/tar_reader.h"

#include "base/buf.h"
#include "base/fd.h"
#include "core/files/paths.h"
#include "wire/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BATCH_SIZE (256u << 10)
#define READ_SIZE  (128u << 10)

struct tar_reader {
	const struct tar_reader_source *source;
	int fd;
	struct buf batch; /* items on their way to the helper */
	uint64_t bytes_max;
	struct tar_reader_result result;
	int64_t sent; /* bytes of contents */
	bool is_bomb;
	uint8_t input[READ_SIZE];
};

/*
 * Whether so much has come out of so little that it can only be meant to do harm. What one block of input
 * can swell to is bounded (gzip: a thousandfold), so this is asked before each; only holes cost no input.
 */
static bool is_bomb(const struct tar_reader *tar_reader, struct archive *archive, int64_t hole)
{
	int64_t in = archive_filter_bytes(archive, -1), out = archive_filter_bytes(archive, 0);

	if (out < tar_reader->sent + hole)
		out = tar_reader->sent + hole;
	return out > TAR_READER_RATIO_FREE && out / TAR_READER_RATIO_MAX > in;
}

static la_ssize_t read_input(struct archive *archive, void *arg, const void **data)
{
	struct tar_reader *tar_reader = arg;
	ssize_t n;

	if (is_bomb(tar_reader, archive, 0)) {
		tar_reader->is_bomb = true;
		archive_set_error(archive, E2BIG, "it swells too much");
		return -1;
	}
	n = tar_reader->source->read(
		tar_reader->source->arg, tar_reader->input, sizeof(tar_reader->input));
	if (n < 0)
		archive_set_error(archive, (int)-n, "the upload ended early");
	*data = tar_reader->input;
	return n;
}

static int flush(struct tar_reader *tar_reader, struct err *err)
{
	int r = fd_write_full(tar_reader->fd, tar_reader->batch.data, tar_reader->batch.len);

	tar_reader->batch.len = 0;
	if (r < 0) {
		tar_reader->result.is_broken = true;
		return err_set(err, ERR_CONFLICT, "the sandbox gave up during the request");
	}
	return 0;
}

static int send_bytes(struct tar_reader *tar_reader, const void *data, size_t len, struct err *err)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t room = BATCH_SIZE - tar_reader->batch.len;
		size_t n = len < room ? len : room;

		buf_append(&tar_reader->batch, at, n);
		at += n;
		len -= n;
		if (tar_reader->batch.len == BATCH_SIZE) {
			int r = flush(tar_reader, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int send_item(struct tar_reader *tar_reader, enum agent_item kind,
	struct archive_entry *entry, const char *name, const char *target, struct err *err)
{
	struct buf item = BUF_INIT(3 * AGENT_PATH_MAX);
	int64_t seconds = entry ? archive_entry_mtime(entry) : 0;
	int r;

	pack_u8(&item, (uint8_t)kind);
	pack_u32(&item, entry ? (uint32_t)archive_entry_perm(entry) & 0777 : 0);
	pack_u32(&item, 0);
	pack_u32(&item, 0);
	pack_u64(&item, seconds > 0 ? (uint64_t)seconds * 1000000000u : 0);
	pack_u64(&item, kind == AGENT_ITEM_FILE ? (uint64_t)archive_entry_size(entry) : 0);
	pack_str(&item, name);
	pack_str(&item, target);
	r = item.failed ? err_set(err, ERR_INVALID, "the archive has a name that is too long")
			: send_bytes(tar_reader, item.data, item.len, err);
	buf_fini(&item);
	return r;
}

static int bad_entry(struct err *err, const char *name, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
		"the archive's entry %.160s %s", name, what);
}

/* Contents, with holes as zeros, exactly as many bytes as announced. */
static int send_content(struct tar_reader *tar_reader, struct archive *archive, int64_t size,
	const char *name, struct err *err)
{
	static const uint8_t zeros[4096];
	int64_t at = 0;

	while (at < size) {
		const void *data = NULL;
		size_t len = 0;
		la_int64_t offset = size;
		int code = archive_read_data_block(archive, &data, &len, &offset), r = 0;

		if (code != ARCHIVE_OK && code != ARCHIVE_EOF)
			return bad_entry(err, name, "is damaged");
		if (offset < at || offset > size || (int64_t)len > size - offset)
			return bad_entry(err, name, "is damaged");
		tar_reader->is_bomb = is_bomb(tar_reader, archive, offset - at);
		if (tar_reader->is_bomb)
			return -E2BIG;
		tar_reader->sent += offset - at + (int64_t)len;
		while (at < offset && r == 0) {
			size_t n = (size_t)(offset - at) < sizeof(zeros) ? (size_t)(offset - at)
									 : sizeof(zeros);

			r = send_bytes(tar_reader, zeros, n, err);
			at += (int64_t)n;
		}
		if (r == 0 && code == ARCHIVE_OK)
			r = send_bytes(tar_reader, data, len, err);
		if (r < 0)
			return r;
		at += code == ARCHIVE_OK ? (int64_t)len : 0;
	}
	return 0;
}

static int send_file(struct tar_reader *tar_reader, struct archive *archive,
	struct archive_entry *entry, const char *name, struct err *err)
{
	int64_t size = archive_entry_size(entry);
	int r;

	if (size < 0 || !archive_entry_size_is_set(entry))
		return bad_entry(err, name, "has no size");
	if ((uint64_t)size > tar_reader->bytes_max - tar_reader->result.bytes)
		return err_explain(err, ERR_TOO_LARGE, "archive_too_large",
			"give the sandbox more disk",
			"the archive unpacks to more than the sandbox's disk holds");
	tar_reader->result.bytes += (uint64_t)size;
	r = send_item(tar_reader, AGENT_ITEM_FILE, entry, name, "", err);
	return r < 0 ? r : send_content(tar_reader, archive, size, name, err);
}

static int send_entry(struct tar_reader *tar_reader, struct archive *archive,
	struct archive_entry *entry, struct err *err)
{
	const char *raw = archive_entry_pathname(entry), *hardlink = archive_entry_hardlink(entry);
	const char *target = archive_entry_symlink(entry);
	char name[AGENT_PATH_MAX], link_name[AGENT_PATH_MAX];
	int r;

	if (!raw)
		return bad_entry(err, "?", "has a name that cannot be read");
	if ((r = paths_clean_entry(raw, name, err)) < 0)
		return r;
	if (!name[0])
		return 0; /* "./": the directory itself */
	tar_reader->result.entries++;
	if (hardlink) {
		r = paths_clean_entry(hardlink, link_name, err);
		return r < 0 ? r
			     : send_item(tar_reader, AGENT_ITEM_HARDLINK, entry, name, link_name,
				       err);
	}
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return send_file(tar_reader, archive, entry, name, err);
	case AE_IFDIR:
		return send_item(tar_reader, AGENT_ITEM_DIRECTORY, entry, name, "", err);
	case AE_IFLNK:
		/* Wherever it leads: nothing is unpacked through it, and it leads nowhere but into the sandbox. */
		if (!target || !target[0])
			return bad_entry(err, name, "is a symbolic link to nothing");
		return send_item(tar_reader, AGENT_ITEM_SYMLINK, entry, name, target, err);
	default:
		return bad_entry(err, name, "is a device, FIFO or socket");
	}
}

static int send_entries(struct tar_reader *tar_reader, struct archive *archive, struct err *err)
{
	/* All are counted, also those that unpack to nothing. */
	for (uint64_t seen = 0;; seen++) {
		struct archive_entry *entry;
		int code = archive_read_next_header(archive, &entry), r;

		if (code == ARCHIVE_EOF)
			break;
		if (seen == TAR_READER_ENTRIES_MAX)
			return err_explain(err, ERR_TOO_LARGE, "archive_too_large", NULL,
				"the archive has more than %d entries", TAR_READER_ENTRIES_MAX);
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return err_explain(err, ERR_INVALID, "invalid_archive",
				"send a tar or a tar.gz", "the archive cannot be read: %.160s",
				archive_error_string(archive));
		r = send_entry(tar_reader, archive, entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int unpack(struct tar_reader *tar_reader, struct err *err)
{
	struct archive *archive = archive_read_new();
	int r;

	if (!archive)
		abort();
	archive_read_support_filter_gzip(archive);
	archive_read_support_format_tar(archive);
	archive_read_support_format_empty(archive);
	/* Names are bytes: without this, libarchive would refuse what its locale cannot say. */
	archive_read_set_options(archive, "hdrcharset=BINARY");
	if (archive_read_open(archive, tar_reader, NULL, read_input, NULL) != ARCHIVE_OK)
		r = err_explain(err, ERR_INVALID, "invalid_archive", "send a tar or a tar.gz",
			"the archive cannot be read: %.160s", archive_error_string(archive));
	else
		r = send_entries(tar_reader, archive, err);
	if (r == 0)
		r = send_item(tar_reader, AGENT_ITEM_END, NULL, "", "", err);
	if (r == 0)
		r = flush(tar_reader, err);
	archive_read_free(archive);
	return r;
}

int tar_reader_run(const struct tar_reader_source *source, int items_fd, uint64_t bytes_max,
	struct tar_reader_result *ret_result, struct err *err)
{
	auto_free struct tar_reader *tar_reader = mem_new(sizeof(*tar_reader));
	int r;

	tar_reader->source = source;
	tar_reader->fd = items_fd;
	tar_reader->bytes_max = bytes_max;
	tar_reader->batch = BUF_INIT(BATCH_SIZE);
	r = unpack(tar_reader, err);
	if (r < 0 && tar_reader->is_bomb)
		r = err_explain(err, ERR_TOO_LARGE, "archive_too_large",
			"send it without compression, or compressed less",
			"the archive unpacks to more than %d times its size", TAR_READER_RATIO_MAX);
	buf_fini(&tar_reader->batch);
	*ret_result = tar_reader->result;
	return r;
}
