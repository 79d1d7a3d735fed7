/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/tree_stream.h"

#include "base/buf.h"
#include "base/fd.h"
#include "wire/layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (256u << 10)
#define SILENCE_MS  60000 /* how long the reader may need for the next bytes */
#define END_ITEM    41	  /* bytes of the last item (wire/layer.h) */

/* What follows each entry. */
enum form { CONTENT, NAMES, CHANGES };

/* A buffered reader of the stream, and what the current entry consists of. */
struct tree_stream {
	int fd;
	enum form form;
	uint64_t count;
	struct layer_entry entry;
	uint8_t *buffer;
	size_t at, len;
	char path[LAYER_PATH_MAX];
	char target[LAYER_PATH_MAX];
	char *attributes; /* names and values, one after the other */
	uint8_t *piece;
};

#define ATTRIBUTES_MAX (LAYER_XATTRS_MAX * (LAYER_XATTR_NAME_MAX + LAYER_VALUE_MAX))

static int read_bytes(struct tree_stream *stream, void *data, size_t len)
{
	uint8_t *to = data;

	while (len > 0) {
		size_t n = stream->len - stream->at;

		if (n == 0) {
			ssize_t got = read(stream->fd, stream->buffer, BUFFER_SIZE);

			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				return got < 0 ? -errno : -ENODATA;
			stream->at = 0;
			stream->len = (size_t)got;
			continue;
		}
		n = n < len ? n : len;
		memcpy(to, stream->buffer + stream->at, n);
		stream->at += n;
		to += n;
		len -= n;
	}
	return 0;
}

static int read_u32(struct tree_stream *stream, uint32_t *ret_value)
{
	return read_bytes(stream, ret_value, sizeof(*ret_value));
}

static int read_u64(struct tree_stream *stream, uint64_t *ret_value)
{
	return read_bytes(stream, ret_value, sizeof(*ret_value));
}

static int read_str(struct tree_stream *stream, char *text, size_t size)
{
	uint32_t len;
	int r = read_u32(stream, &len);

	if (r < 0)
		return r;
	if (len >= size)
		return -EPROTO;
	r = read_bytes(stream, text, len);
	text[r < 0 ? 0 : len] = '\0';
	return r < 0 ? r : (strlen(text) == len ? 0 : -EPROTO);
}

/* Relative, without empty parts, "." and "..". */
static bool is_plain(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') ||
			(len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
		if (*path == '/' && !*++path)
			return false;
	}
	return true;
}

static int read_attributes(struct tree_stream *stream, struct layer_entry *entry)
{
	char *at = stream->attributes;
	uint32_t count;
	int r = read_u32(stream, &count);

	if (r < 0)
		return r;
	if (count > LAYER_XATTRS_MAX)
		return -EPROTO;
	entry->xattr_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t len;

		if ((r = read_str(stream, at, LAYER_XATTR_NAME_MAX)) < 0 ||
			(r = read_u32(stream, &len)) < 0)
			return r;
		if (len > LAYER_VALUE_MAX || strncmp(at, "user.", 5) != 0)
			return -EPROTO;
		entry->xattrs[i].name = at;
		at += strlen(at) + 1;
		r = read_bytes(stream, at, len);
		if (r < 0)
			return r;
		entry->xattrs[i].value = at;
		entry->xattrs[i].len = len;
		at += len;
	}
	return 0;
}

static int read_item(struct tree_stream *stream, uint8_t *ret_kind, struct layer_entry *entry)
{
	uint32_t mode;
	uint64_t mtime_ns;
	int r;

	if ((r = read_bytes(stream, ret_kind, 1)) < 0 || (r = read_u32(stream, &mode)) < 0 ||
		(r = read_u32(stream, &entry->uid)) < 0 ||
		(r = read_u32(stream, &entry->gid)) < 0 || (r = read_u64(stream, &mtime_ns)) < 0 ||
		(r = read_u64(stream, &entry->size)) < 0 ||
		(r = read_str(stream, stream->path, sizeof(stream->path))) < 0 ||
		(r = read_str(stream, stream->target, sizeof(stream->target))) < 0 ||
		(r = read_attributes(stream, entry)) < 0)
		return r;
	entry->path = stream->path;
	entry->target = stream->target;
	entry->mode = mode & 07777;
	entry->mtime_ns = (int64_t)mtime_ns;
	entry->inode = entry->changed_ns = 0;
	entry->below = 0;
	return is_plain(entry->path) ? 0 : -EPROTO;
}

/* Pieces in order, within the size of the file. */
static int read_content(struct tree_stream *stream, uint64_t size, const struct layer_sink *sink,
	int *ret_refused, struct err *err)
{
	uint64_t reached = 0;

	while (true) {
		uint64_t offset;
		uint32_t len;
		int r;

		if ((r = read_u64(stream, &offset)) < 0 || (r = read_u32(stream, &len)) < 0)
			return r;
		if (len == 0)
			return 0;
		if (len > LAYER_PIECE_MAX || offset < reached || offset > size ||
			len > size - offset)
			return -EPROTO;
		r = read_bytes(stream, stream->piece, len);
		if (r < 0)
			return r;
		*ret_refused = sink->content(sink->arg, offset, stream->piece, len, err);
		if (*ret_refused < 0)
			return *ret_refused;
		reached = offset + len;
	}
}

static int to_entry_kind(uint8_t kind, enum layer_entry_kind *ret_kind)
{
	static const struct {
		enum layer_item item;
		enum layer_entry_kind kind;
	} kinds[] = {
		{LAYER_ITEM_FILE, LAYER_FILE},
		{LAYER_ITEM_DIRECTORY, LAYER_DIRECTORY},
		{LAYER_ITEM_SYMLINK, LAYER_SYMLINK},
		{LAYER_ITEM_HARDLINK, LAYER_HARDLINK},
		{LAYER_ITEM_FIFO, LAYER_FIFO},
		{LAYER_ITEM_WHITEOUT, LAYER_WHITEOUT},
		{LAYER_ITEM_OPAQUE, LAYER_OPAQUE},
	};

	for (size_t i = 0; i < array_len(kinds); i++) {
		if (kinds[i].item == kind) {
			*ret_kind = kinds[i].kind;
			return 0;
		}
	}
	return -EPROTO;
}

static int read_names(struct tree_stream *stream, struct layer_entry *entry)
{
	int r;

	if (stream->form == CONTENT)
		return 0;
	if ((r = read_u64(stream, &entry->inode)) < 0 ||
		(r = read_u64(stream, &entry->changed_ns)) < 0 || stream->form == NAMES)
		return r;
	r = read_bytes(stream, &entry->below, 1);
	return r == 0 && entry->below >= LAYER_BELOW_COUNT ? -EPROTO : r;
}

/* 1 and an entry; 0 at the end. What the reader could not read is in *ret_refused, and err. */
static int read_entry(struct tree_stream *stream, int *ret_refused, struct err *err)
{
	struct layer_entry *entry = &stream->entry;
	uint8_t kind;
	int r = read_item(stream, &kind, entry);

	if (r < 0 || kind == LAYER_ITEM_END)
		return r;
	if (kind == LAYER_ITEM_FAILED) {
		*ret_refused = err_set(err, ERR_CONFLICT, "%.200s cannot be read: %s",
			entry->path[0] ? entry->path : "the tree", strerror((int)entry->size));
		return *ret_refused;
	}
	if ((r = to_entry_kind(kind, &entry->kind)) < 0 || (r = read_names(stream, entry)) < 0)
		return r;
	if ((entry->kind == LAYER_HARDLINK && !is_plain(entry->target)) ||
		++stream->count >= LAYER_ENTRIES_MAX)
		return -EPROTO;
	return 1;
}

/* Gives sink the entry that was read, with its content. */
static int give_entry(struct tree_stream *stream, const struct layer_sink *sink, int *ret_refused,
	struct err *err)
{
	*ret_refused = sink->entry(sink->arg, &stream->entry, err);
	if (*ret_refused < 0)
		return *ret_refused;
	return stream->form == CONTENT && stream->entry.kind == LAYER_FILE
		       ? read_content(stream, stream->entry.size, sink, ret_refused, err)
		       : 0;
}

static int explain(int r, struct err *err)
{
	if (r == -EAGAIN)
		return err_set(err, ERR_UNAVAILABLE, "the reader of files does not answer");
	return err_set(err, ERR_INTERNAL, "the reader of files %s",
		r == -EPROTO ? "says nonsense" : "ended early");
}

static struct tree_stream *stream_new(int fd, enum form form)
{
	struct tree_stream *stream = mem_new(sizeof(*stream));

	stream->fd = fd;
	stream->form = form;
	stream->buffer = mem_new(BUFFER_SIZE);
	stream->attributes = mem_new(ATTRIBUTES_MAX);
	stream->piece = form == CONTENT ? mem_new(LAYER_PIECE_MAX) : NULL;
	return stream;
}

static void stream_free(struct tree_stream *stream)
{
	free(stream->buffer);
	free(stream->attributes);
	free(stream->piece);
	free(stream);
}

int tree_stream_read(int fd, bool has_content, const struct layer_sink *sink, struct err *err)
{
	struct tree_stream *stream = stream_new(fd, has_content ? CONTENT : NAMES);
	int refused = 0, r = fd_set_timeout(fd, SILENCE_MS);

	while (r == 0 && (r = read_entry(stream, &refused, err)) > 0)
		r = give_entry(stream, sink, &refused, err);
	stream_free(stream);
	if (refused < 0)
		return refused;
	return r < 0 ? explain(r, err) : 0;
}

/* Opens a tree of a driver; a sandbox may need its disk checked first. */
static int open_tree(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, bool has_content, int *ret_fd, struct err *err)
{
	return tree == DRIVER_TREE_CHANGES || tree == DRIVER_TREE_SNAPSHOT_CHANGES
		       ? driver->ops->read_changes(driver, tree, name, stack, ret_fd, err)
		       : driver->ops->read_tree(driver, tree, name, has_content, ret_fd, err);
}

static int open_checked(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, bool has_content, int *ret_fd, struct err *err)
{
	int r = open_tree(driver, tree, name, stack, has_content, ret_fd, err);

	if (r == 0 || strcmp(err->code, DRIVER_UNCHECKED) != 0 || !driver->ops->check_disk)
		return r;
	r = driver->ops->check_disk(driver, name, err);
	return r < 0 ? r : open_tree(driver, tree, name, stack, has_content, ret_fd, err);
}

int tree_stream_run(struct driver *driver, enum driver_tree tree, const char *name,
	bool has_content, const struct layer_sink *sink, struct err *err)
{
	auto_fd int stream = -1;
	int r = open_checked(driver, tree, name, "", has_content, &stream, err);

	return r < 0 ? r : tree_stream_read(stream, has_content, sink, err);
}

/* --- one entry after the other --- */

int tree_stream_open(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, struct tree_stream **ret_stream, struct err *err)
{
	bool has_changes = tree == DRIVER_TREE_CHANGES || tree == DRIVER_TREE_SNAPSHOT_CHANGES;
	auto_fd int fd = -1;
	int r = open_checked(driver, tree, name, stack, false, &fd, err);

	if (r == 0 && (r = fd_set_timeout(fd, SILENCE_MS)) < 0)
		err_from(err, r, "read files");
	if (r < 0)
		return r;
	*ret_stream = stream_new(take_fd(&fd), has_changes ? CHANGES : NAMES);
	return 0;
}

static int save(int from, int file, int64_t bytes_max)
{
	auto_free uint8_t *buffer = mem_new(BUFFER_SIZE);
	int64_t bytes = 0;

	while (true) {
		ssize_t n = read(from, buffer, BUFFER_SIZE);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		bytes += n;
		if (bytes > bytes_max)
			return -EFBIG;
		r = fd_write_full(file, buffer, (size_t)n);
		if (r < 0)
			return r;
	}
}

int tree_stream_save(struct driver *driver, enum driver_tree tree, const char *name,
	const char *stack, int file, int64_t bytes_max, struct err *err)
{
	auto_fd int fd = -1;
	int r = open_checked(driver, tree, name, stack, false, &fd, err);

	if (r < 0)
		return r;
	r = fd_set_timeout(fd, SILENCE_MS);
	if (r == 0)
		r = save(fd, file, bytes_max);
	if (r < 0)
		return err_from(err, r, "keep a list of files");
	return tree_stream_is_whole(file)
		       ? 0
		       : err_set(err, ERR_INTERNAL, "the reader of files ended early");
}

/* The item at the end of a tree, of no name, is all zero. */
bool tree_stream_is_whole(int file)
{
	static const uint8_t zero[END_ITEM];
	uint8_t last[END_ITEM];
	off_t size = lseek(file, 0, SEEK_END);

	return size >= END_ITEM && lseek(file, 0, SEEK_SET) == 0 &&
	       pread(file, last, END_ITEM, size - END_ITEM) == END_ITEM &&
	       memcmp(last, zero, END_ITEM) == 0;
}

struct tree_stream *tree_stream_open_saved(int file, bool has_changes)
{
	return stream_new(file, has_changes ? CHANGES : NAMES);
}

void tree_stream_close(struct tree_stream *stream)
{
	if (!stream)
		return;
	close(stream->fd);
	stream_free(stream);
}

int tree_stream_next(
	struct tree_stream *stream, const struct layer_entry **ret_entry, struct err *err)
{
	int refused = 0, r = read_entry(stream, &refused, err);

	if (refused < 0)
		return refused;
	if (r < 0)
		return explain(r, err);
	*ret_entry = r > 0 ? &stream->entry : NULL;
	return r;
}
