/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer_reader.h"
#include "base/format.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE	(256u << 10)
#define TAR_BLOCK	512
#define WHITEOUT_PREFIX ".wh."
#define OPAQUE_NAME	".wh..wh..opq"
#define RESERVED_PREFIX ".wh..wh." /* notes of old storage drivers; mean nothing here */

/*
 * Two readers of libarchive, one behind the other: the first unwraps the compression, the second
 * understands the tar. Between them the plain bytes are hashed.
 */
struct layer_reader {
	int fd;
	struct archive *unwrap;
	struct archive *tar;
	struct digest_stream *hash;
	const struct layer_sink *sink;
	uint64_t bytes_max;
	struct layer_result result;
	int64_t plain; /* bytes that came out of the compression */
	int64_t holes; /* bytes that cost no input */
	bool is_bomb;
	bool is_ended; /* the end of the tar was given out */
	uint8_t input[READ_SIZE];
};

static int refuse(struct err *err, const char *name, const char *why)
{
	return err_explain(err, ERR_INVALID, "invalid_layer",
		"the image is damaged, or made to do harm", "the layer's entry %.160s %s", name,
		why);
}

static la_ssize_t read_file(struct archive *archive, void *arg, const void **data)
{
	struct layer_reader *reader = arg;
	ssize_t n = read(reader->fd, reader->input, sizeof(reader->input));

	if (n < 0)
		archive_set_error(archive, errno, "read the layer");
	*data = reader->input;
	return n;
}

static bool swells(const struct layer_reader *reader)
{
	int64_t in = archive_filter_bytes(reader->unwrap, -1), out = reader->plain + reader->holes;

	return out > LAYER_RATIO_FREE && out / LAYER_RATIO_MAX > in;
}

/*
 * Some programs write layers that end with their last byte of content, without the zeros that pad it
 * and end a tar. They get them here, past the hash.
 */
static la_ssize_t end_tar(struct layer_reader *reader, const void **data)
{
	static const uint8_t zeros[3 * TAR_BLOCK];

	if (reader->is_ended)
		return 0;
	reader->is_ended = true;
	*data = zeros;
	return 2 * TAR_BLOCK + (TAR_BLOCK - reader->plain % TAR_BLOCK) % TAR_BLOCK;
}

/* Plain bytes for the tar, hashed on their way. */
static la_ssize_t read_plain(struct archive *archive, void *arg, const void **data)
{
	struct layer_reader *reader = arg;
	la_int64_t offset;
	size_t len = 0;
	int code;

	if (swells(reader)) {
		reader->is_bomb = true;
		archive_set_error(archive, E2BIG, "it swells too much");
		return -1;
	}
	/* A block without bytes is no end. */
	do {
		code = archive_read_data_block(reader->unwrap, data, &len, &offset);
	} while (code == ARCHIVE_OK && len == 0);
	if (code == ARCHIVE_EOF)
		return end_tar(reader, data);
	if (code != ARCHIVE_OK) {
		archive_set_error(archive, EINVAL, "%s", archive_error_string(reader->unwrap));
		return -1;
	}
	digest_stream_add(reader->hash, *data, len);
	reader->plain += (int64_t)len;
	return (la_ssize_t)len;
}

/* Names joined by single slashes, without "." parts. A leading slash means the layer's root. */
static int clean_path(const char *text, char path[LAYER_PATH_MAX], struct err *err)
{
	size_t len = 0;

	for (const char *at = text; *at;) {
		size_t part = strcspn(at, "/");

		if (part == 2 && at[0] == '.' && at[1] == '.')
			return refuse(err, text, "leaves the layer");
		if (part > NAME_MAX || len + part + 2 > LAYER_PATH_MAX)
			return refuse(err, text, "has too long a name");
		if (part > 0 && !(part == 1 && at[0] == '.')) {
			if (len > 0)
				path[len++] = '/';
			memcpy(path + len, at, part);
			len += part;
		}
		at += part;
		at += *at == '/';
	}
	path[len] = '\0';
	return 0;
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * A whiteout is a file named after what it hides: the path becomes that of the hidden thing, or of the
 * directory that is opaque. 1: it was one; 0: it was none.
 */
static int read_whiteout(char path[LAYER_PATH_MAX], struct layer_entry *entry, struct err *err)
{
	char *slash = strrchr(path, '/');
	char *name = slash ? slash + 1 : path;

	if (strcmp(name, OPAQUE_NAME) == 0) {
		(slash ? slash : path)[0] = '\0';
		entry->kind = LAYER_OPAQUE;
		return 1;
	}
	if (!begins_with(name, WHITEOUT_PREFIX) || begins_with(name, RESERVED_PREFIX))
		return 0;
	memmove(name, name + strlen(WHITEOUT_PREFIX), strlen(name) - strlen(WHITEOUT_PREFIX) + 1);
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return refuse(err, path, "hides nothing that can be hidden");
	entry->kind = LAYER_WHITEOUT;
	return 1;
}

/* An archive may have each attribute twice, in the form of two programs. */
static bool has_xattr(const struct layer_entry *entry, const char *name)
{
	for (size_t i = 0; i < entry->xattr_count; i++) {
		if (strcmp(entry->xattrs[i].name, name) == 0)
			return true;
	}
	return false;
}

static void read_xattrs(
	struct layer_reader *reader, struct archive_entry *source, struct layer_entry *entry)
{
	bool is_stripped = false;
	const char *name;
	const void *value;
	size_t len;

	archive_entry_xattr_reset(source);
	while (archive_entry_xattr_next(source, &name, &value, &len) == ARCHIVE_OK) {
		if (!name || !begins_with(name, "user.") || begins_with(name, "user.overlay.") ||
			len > LAYER_XATTR_MAX || entry->xattr_count == LAYER_XATTRS_MAX)
			is_stripped = true;
		else if (!has_xattr(entry, name))
			entry->xattrs[entry->xattr_count++] =
				(struct layer_xattr){name, value, len};
	}
	reader->result.stripped += is_stripped;
}

static int send_content(
	struct layer_reader *reader, const struct layer_entry *entry, struct err *err)
{
	uint64_t at = 0;

	while (true) {
		const void *data = NULL;
		size_t len = 0;
		la_int64_t offset = 0;
		int code = archive_read_data_block(reader->tar, &data, &len, &offset), r;

		if (code == ARCHIVE_EOF)
			return 0;
		if (code != ARCHIVE_OK)
			return refuse(err, entry->path, "is damaged");
		if (offset < 0 || (uint64_t)offset < at || (uint64_t)offset > entry->size ||
			len > entry->size - (uint64_t)offset)
			return refuse(err, entry->path, "is damaged");
		reader->holes += offset - (int64_t)at;
		at = (uint64_t)offset + len;
		if (len == 0)
			continue;
		r = reader->sink->content(reader->sink->arg, (uint64_t)offset, data, len, err);
		if (r < 0)
			return r;
	}
}

static int check_size(struct layer_reader *reader, struct archive_entry *source,
	struct layer_entry *entry, struct err *err)
{
	int64_t size = archive_entry_size(source);

	if (size < 0)
		return refuse(err, entry->path, "has no size");
	if ((uint64_t)size > reader->bytes_max - reader->result.bytes) {
		char most[FORMAT_SIZE_LEN];

		format_size(reader->bytes_max, most);
		return err_explain(err, ERR_TOO_LARGE, "layer_too_large",
			"take a smaller image, or raise the limit of images",
			"the layer unpacks to more than %s", most);
	}
	entry->size = (uint64_t)size;
	reader->result.bytes += entry->size;
	return 0;
}

/* Finds out what an entry is: 1 to send it, 0 to leave it out. */
static int classify(struct layer_reader *reader, struct archive_entry *source,
	struct layer_entry *entry, char target[LAYER_PATH_MAX], struct err *err)
{
	const char *hardlink = archive_entry_hardlink(source);
	const char *symlink = archive_entry_symlink(source);

	if (hardlink) {
		int r = clean_path(hardlink, target, err);

		entry->kind = LAYER_HARDLINK;
		entry->target = target;
		return r < 0 ? r : 1;
	}
	switch (archive_entry_filetype(source)) {
	case AE_IFREG: {
		int r = check_size(reader, source, entry, err);

		entry->kind = LAYER_FILE;
		return r < 0 ? r : 1;
	}
	case AE_IFDIR:
		entry->kind = LAYER_DIRECTORY;
		return 1;
	case AE_IFLNK:
		if (!symlink || !symlink[0] || strlen(symlink) >= LAYER_PATH_MAX)
			return refuse(err, entry->path, "is a symbolic link to nothing");
		entry->kind = LAYER_SYMLINK;
		entry->target = symlink;
		return 1;
	case AE_IFIFO:
		entry->kind = LAYER_FIFO;
		return 1;
	default:
		reader->result.devices++;
		return 0;
	}
}

static int check_owner(int64_t uid, int64_t gid, const char *path, struct err *err)
{
	/* No more ids than a sandbox has. */
	return uid < 0 || uid > 65535 || gid < 0 || gid > 65535
		       ? refuse(err, path, "belongs to a user or group beyond 65535")
		       : 0;
}

static int send_entry(struct layer_reader *reader, struct archive_entry *source, struct err *err)
{
	struct layer_entry entry = {.mode = archive_entry_mode(source) & 07777,
		.uid = (uint32_t)archive_entry_uid(source),
		.gid = (uint32_t)archive_entry_gid(source),
		.mtime_ns = archive_entry_mtime(source) * 1000000000ll +
			    archive_entry_mtime_nsec(source),
		.target = ""};
	char path[LAYER_PATH_MAX], target[LAYER_PATH_MAX];
	const char *name = archive_entry_pathname(source);
	int r;

	if (!name)
		return refuse(err, "?", "has a name that cannot be read");
	r = clean_path(name, path, err);
	entry.path = path;
	if (r < 0 || (r = check_owner(
			      archive_entry_uid(source), archive_entry_gid(source), path, err)) < 0)
		return r;
	r = read_whiteout(path, &entry, err);
	if (r == 0)
		r = classify(reader, source, &entry, target, err);
	if (r <= 0)
		return r;
	if (!path[0] && entry.kind != LAYER_DIRECTORY && entry.kind != LAYER_OPAQUE)
		return refuse(err, name, "would replace the root");
	if (entry.kind == LAYER_FILE || entry.kind == LAYER_DIRECTORY)
		read_xattrs(reader, source, &entry);
	reader->result.entries++;
	r = reader->sink->entry(reader->sink->arg, &entry, err);
	return r == 0 && entry.kind == LAYER_FILE ? send_content(reader, &entry, err) : r;
}

static int explain(struct layer_reader *reader, struct archive *archive, struct err *err)
{
	if (reader->is_bomb)
		return err_explain(err, ERR_TOO_LARGE, "layer_too_large", NULL,
			"the layer unpacks to more than %d times its size", LAYER_RATIO_MAX);
	return err_explain(err, ERR_INVALID, "invalid_layer",
		"a layer is a tar, plain or compressed with gzip or zstd",
		"the layer cannot be read: %.160s", archive_error_string(archive));
}

static int send_entries(struct layer_reader *reader, struct err *err)
{
	for (uint64_t seen = 0;; seen++) {
		struct archive_entry *entry;
		int code = archive_read_next_header(reader->tar, &entry), r;

		if (code == ARCHIVE_EOF)
			return 0;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return explain(reader, reader->tar, err);
		if (seen == LAYER_ENTRIES_MAX)
			return err_explain(err, ERR_TOO_LARGE, "layer_too_large", NULL,
				"the layer has more than %d entries", LAYER_ENTRIES_MAX);
		r = send_entry(reader, entry, err);
		if (r < 0)
			return reader->is_bomb ? explain(reader, reader->tar, err) : r;
	}
}

/* What stands behind the end of the tar belongs to the layer's digest too. */
static int hash_rest(struct layer_reader *reader, struct err *err)
{
	const void *data;
	la_ssize_t n;

	while ((n = read_plain(reader->tar, reader, &data)) > 0)
		;
	return n < 0 ? explain(reader, reader->tar, err) : 0;
}

static int open_readers(struct layer_reader *reader, struct err *err)
{
	struct archive_entry *entry;

	archive_read_support_filter_gzip(reader->unwrap);
	archive_read_support_filter_zstd(reader->unwrap);
	archive_read_support_format_raw(reader->unwrap);
	archive_read_support_format_empty(reader->unwrap);
	archive_read_support_format_tar(reader->tar);
	archive_read_support_format_empty(reader->tar);
	/* Names are bytes, whatever the locale. */
	archive_read_set_options(reader->tar, "hdrcharset=BINARY");
	if (archive_read_open(reader->unwrap, reader, NULL, read_file, NULL) != ARCHIVE_OK)
		return explain(reader, reader->unwrap, err);
	if (archive_read_next_header(reader->unwrap, &entry) != ARCHIVE_OK)
		return explain(reader, reader->unwrap, err);
	if (archive_read_open(reader->tar, reader, NULL, read_plain, NULL) != ARCHIVE_OK)
		return explain(reader, reader->tar, err);
	return 0;
}

static int check_diff_id(struct layer_reader *reader, const struct digest *diff_id, struct err *err)
{
	struct digest found;

	digest_stream_read(reader->hash, &found);
	if (digest_equals(&found, diff_id))
		return 0;
	return err_explain(err, ERR_INVALID, "digest_mismatch",
		"the source is damaged or lies; try another one",
		"a layer unpacks to %s where the image's config says %s", found.text,
		diff_id->text);
}

int layer_reader_run(int fd, const struct digest *diff_id, uint64_t bytes_max,
	const struct layer_sink *sink, struct layer_result *ret_result, struct err *err)
{
	auto_free struct layer_reader *reader = mem_new(sizeof(*reader));
	int r;

	reader->fd = fd;
	reader->sink = sink;
	reader->bytes_max = bytes_max;
	reader->hash = digest_stream_new();
	reader->unwrap = archive_read_new();
	reader->tar = archive_read_new();
	if (!reader->unwrap || !reader->tar)
		abort();
	if ((r = open_readers(reader, err)) == 0 && (r = send_entries(reader, err)) == 0 &&
		(r = hash_rest(reader, err)) == 0)
		r = check_diff_id(reader, diff_id, err);
	archive_read_free(reader->tar);
	archive_read_free(reader->unwrap);
	digest_stream_free(reader->hash);
	if (r == 0)
		*ret_result = reader->result;
	return r;
}
