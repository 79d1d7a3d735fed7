/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tree.h"

#include "cli/copy/archive_library.h"
#include "cli/copy/tree_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK	(64u * 1024)
#define OUT_MAX (1024u * 1024) /* a chunk and the longest header have room many times over */

struct tree_sender {
	struct archive_library lib;
	struct archive *disk;
	struct archive *tar;
	struct archive_entry *entry;
	size_t root_len; /* of the directory's path, which is cut off each name */
	struct buf out;
	size_t taken; /* bytes of out that were sent already */
	bool in_file;
	bool is_done;
	char chunk[CHUNK];
	const char *const *skipped; /* names of directories that are left out; NULL: none */
	bool (*is_left_out)(void *arg, const char *name); /* NULL: nothing is */
	void *arg;
	bool enters; /* directories that are left out */
};

static la_ssize_t on_write(struct archive *tar, void *arg, const void *data, size_t len)
{
	struct tree_sender *sender = arg;

	(void)tar;
	return buf_append(&sender->out, data, len) < 0 ? -1 : (la_ssize_t)len;
}

static int disk_error(struct tree_sender *sender, const char *what, struct err *err)
{
	const char *detail = sender->lib.archive_error_string(sender->disk);

	return err_set(err, ERR_INTERNAL, "%s: %s", what, detail ? detail : "it cannot be read");
}

static int tar_error(struct tree_sender *sender, struct err *err)
{
	const char *detail = sender->lib.archive_error_string(sender->tar);

	return err_set(err, ERR_INTERNAL, "pack: %s", detail ? detail : "failed");
}

int tree_sender_new(const char *dir, struct tree_sender **ret, struct err *err)
{
	struct tree_sender *sender = mem_new(sizeof(*sender));
	struct archive_library *lib = &sender->lib;
	int r = archive_library_load(lib, err);

	if (r < 0)
		goto fail;
	sender->out = BUF_INIT(OUT_MAX);
	sender->root_len = strlen(dir);
	sender->disk = lib->archive_read_disk_new();
	sender->tar = lib->archive_write_new();
	sender->entry = lib->archive_entry_new2(sender->disk);
	if (!sender->disk || !sender->tar || !sender->entry)
		abort();
	/* The directory itself may be reached by a link; those in it are sent as links. */
	lib->archive_read_disk_set_symlink_hybrid(sender->disk);
	lib->archive_read_disk_set_behavior(sender->disk,
		ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_FFLAGS);
	lib->archive_write_set_format_pax_restricted(sender->tar);
	lib->archive_write_set_bytes_per_block(sender->tar, 0);
	if (lib->archive_read_disk_open(sender->disk, dir) != ARCHIVE_OK) {
		r = disk_error(sender, dir, err);
		goto fail;
	}
	if (lib->archive_write_open(sender->tar, sender, NULL, on_write, NULL) != ARCHIVE_OK) {
		r = tar_error(sender, err);
		goto fail;
	}
	*ret = sender;
	return 0;
fail:
	tree_sender_free(sender);
	return r;
}

void tree_sender_free(struct tree_sender *sender)
{
	if (!sender)
		return;
	if (sender->entry)
		sender->lib.archive_entry_free(sender->entry);
	if (sender->tar)
		sender->lib.archive_write_free(sender->tar);
	if (sender->disk)
		sender->lib.archive_read_free(sender->disk);
	/* After the writer, which may still flush into it. */
	buf_fini(&sender->out);
	free(sender);
}

void tree_sender_skip(struct tree_sender *sender, const char *const *names)
{
	sender->skipped = names;
}

void tree_sender_filter(struct tree_sender *sender,
	bool (*is_left_out)(void *arg, const char *name), void *arg, bool enters)
{
	sender->is_left_out = is_left_out;
	sender->arg = arg;
	sender->enters = enters;
}

static bool is_skipped(const struct tree_sender *sender, const char *path)
{
	const char *name = strrchr(path, '/');

	for (size_t i = 0; sender->skipped && sender->skipped[i]; i++) {
		if (strcmp(sender->skipped[i], name ? name + 1 : path) == 0)
			return true;
	}
	return false;
}

/* The next entry of the walk goes into the archive, unless it is of a kind that is not copied. */
static int next_entry(struct tree_sender *sender, struct err *err)
{
	const struct archive_library *lib = &sender->lib;
	auto_free char *name = NULL;
	const char *below;
	bool is_left_out;
	mode_t type;
	int r = lib->archive_read_next_header2(sender->disk, sender->entry);

	if (r == ARCHIVE_EOF) {
		sender->is_done = true;
		return lib->archive_write_close(sender->tar) == ARCHIVE_OK ? 0
									   : tar_error(sender, err);
	}
	if (r != ARCHIVE_OK)
		return disk_error(sender, "walk", err);
	name = mem_strdup(lib->archive_entry_pathname(sender->entry));
	type = lib->archive_entry_filetype(sender->entry);
	if (type == S_IFDIR && strlen(name) > sender->root_len && is_skipped(sender, name))
		return 0;
	below = strlen(name) <= sender->root_len
			? ""
			: name + sender->root_len + strspn(name + sender->root_len, "/");
	is_left_out = *below && sender->is_left_out && sender->is_left_out(sender->arg, below);
	if (is_left_out && !sender->enters)
		return 0;
	if (lib->archive_read_disk_can_descend(sender->disk))
		lib->archive_read_disk_descend(sender->disk);
	if (!*below || is_left_out || (type != S_IFREG && type != S_IFDIR && type != S_IFLNK))
		return 0;
	lib->archive_entry_set_pathname(sender->entry, below);
	lib->archive_entry_set_uname(sender->entry, NULL);
	lib->archive_entry_set_gname(sender->entry, NULL);
	/* A name that is not UTF-8 is a warning: it goes as the bytes it has. */
	if (lib->archive_write_header(sender->tar, sender->entry) < ARCHIVE_WARN)
		return tar_error(sender, err);
	sender->in_file = type == S_IFREG && lib->archive_entry_size(sender->entry) > 0;
	return 0;
}

static int next_block(struct tree_sender *sender, struct err *err)
{
	const struct archive_library *lib = &sender->lib;
	la_ssize_t n = lib->archive_read_data(sender->disk, sender->chunk, sizeof(sender->chunk));

	if (n < 0)
		return disk_error(sender, lib->archive_entry_pathname(sender->entry), err);
	if (n == 0)
		sender->in_file = false;
	else if (lib->archive_write_data(sender->tar, sender->chunk, (size_t)n) < 0)
		return tar_error(sender, err);
	return 0;
}

ssize_t tree_sender_read(void *arg, void *data, size_t size, struct err *err)
{
	struct tree_sender *sender = arg;
	size_t len;

	while (sender->out.len == sender->taken && !sender->is_done) {
		int r;

		sender->out.len = 0;
		sender->taken = 0;
		r = sender->in_file ? next_block(sender, err) : next_entry(sender, err);
		if (r < 0)
			return r;
	}
	len = sender->out.len - sender->taken;
	if (len > size)
		len = size;
	if (len > 0)
		memcpy(data, sender->out.data + sender->taken, len);
	sender->taken += len;
	return (ssize_t)len;
}

struct receiver {
	struct archive_library lib;
	struct archive *tar;
	struct tree_writer writer;
	const struct tree_input *input;
	struct err input_err;
	char chunk[CHUNK];
};

static la_ssize_t on_read(struct archive *tar, void *arg, const void **ret)
{
	struct receiver *receiver = arg;
	ssize_t n = receiver->input->read(receiver->input->arg, receiver->chunk,
		sizeof(receiver->chunk), &receiver->input_err);

	(void)tar;
	*ret = receiver->chunk;
	return n < 0 ? ARCHIVE_FATAL : n;
}

static int unpack_error(struct receiver *receiver, const char *name, struct err *err)
{
	const char *detail = receiver->lib.archive_error_string(receiver->tar);

	if (receiver->input_err.kind != ERR_NONE) {
		*err = receiver->input_err;
		return -err_class((enum err_kind)err->kind)->errnum;
	}
	return err_set(err, ERR_INTERNAL, "unpack%s%s: %s", name ? " " : "", name ? name : "",
		detail ? detail : "failed");
}

static int write_at(int fd, const char *data, size_t len, off_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
		offset += n;
	}
	return 0;
}

/* Content, with its holes. */
static int unpack_data(
	struct receiver *receiver, int fd, int64_t size, const char *name, struct err *err)
{
	const struct archive_library *lib = &receiver->lib;

	for (;;) {
		const void *data;
		size_t len;
		la_int64_t offset;
		int r = lib->archive_read_data_block(receiver->tar, &data, &len, &offset);

		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK || offset < 0 || offset > size || (int64_t)len > size - offset)
			return unpack_error(receiver, name, err);
		r = write_at(fd, data, len, (off_t)offset);
		if (r < 0)
			return err_from(err, r, "write %s", name);
	}
	return ftruncate(fd, (off_t)size) < 0 ? err_sys(err, "write %s", name) : 0;
}

static int unpack_file(struct receiver *receiver, struct archive_entry *entry, const char *name,
	const struct timespec *mtime, struct err *err)
{
	const struct archive_library *lib = &receiver->lib;
	auto_(new_file_fini) struct new_file file = NEW_FILE_INIT;
	const char *leaf;
	int r = tree_writer_add_file(&receiver->writer, name, &file, &leaf, err);

	if (r == 0)
		r = unpack_data(receiver, file.fd, lib->archive_entry_size(entry), name, err);
	if (r == 0)
		r = new_file_commit(&file, leaf, lib->archive_entry_perm(entry), mtime, err);
	return r;
}

static int unpack_entry(struct receiver *receiver, struct archive_entry *entry, struct err *err)
{
	const struct archive_library *lib = &receiver->lib;
	const char *raw = lib->archive_entry_pathname(entry);
	const char *hardlink = lib->archive_entry_hardlink(entry);
	const char *target = lib->archive_entry_symlink(entry);
	auto_free char *name = mem_strdup(raw ? raw : "");
	struct timespec mtime = {.tv_sec = lib->archive_entry_mtime(entry),
		.tv_nsec = lib->archive_entry_mtime_nsec(entry)};

	if (!name[0])
		return err_set(err, ERR_INTERNAL, "unpack: an entry has no name");
	if (strspn(name, "./") == strlen(name) && !strstr(name, ".."))
		return 0;
	if (hardlink)
		return tree_writer_add_hardlink(&receiver->writer, name, hardlink, err);
	switch (lib->archive_entry_filetype(entry)) {
	case AE_IFREG:
		return unpack_file(receiver, entry, name, &mtime, err);
	case AE_IFDIR:
		return tree_writer_add_dir(
			&receiver->writer, name, lib->archive_entry_perm(entry), &mtime, err);
	case AE_IFLNK:
		return tree_writer_add_symlink(
			&receiver->writer, name, target ? target : "", &mtime, err);
	default:
		return 0; /* devices, pipes and sockets are not copied */
	}
}

static int unpack_all(struct receiver *receiver, struct err *err)
{
	const struct archive_library *lib = &receiver->lib;

	if (lib->archive_read_open(receiver->tar, receiver, NULL, on_read, NULL) != ARCHIVE_OK)
		return unpack_error(receiver, NULL, err);
	for (;;) {
		struct archive_entry *entry;
		int r = lib->archive_read_next_header(receiver->tar, &entry);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r < ARCHIVE_WARN)
			return unpack_error(receiver, NULL, err);
		r = unpack_entry(receiver, entry, err);
		if (r < 0)
			return r;
	}
}

int tree_receive(int dir_fd, const struct tree_input *input, struct err *err)
{
	auto_free struct receiver *receiver = mem_new(sizeof(*receiver));
	struct archive_library *lib = &receiver->lib;
	int r = archive_library_load(lib, err);

	if (r < 0)
		return r;
	receiver->input = input;
	receiver->tar = lib->archive_read_new();
	if (!receiver->tar)
		abort();
	lib->archive_read_support_format_tar(receiver->tar);
	/* Names are bytes: without this, libarchive would refuse what its locale cannot say. */
	lib->archive_read_set_options(receiver->tar, "hdrcharset=BINARY");
	tree_writer_init(&receiver->writer, dir_fd);
	r = unpack_all(receiver, err);
	tree_writer_fini(&receiver->writer);
	lib->archive_read_free(receiver->tar);
	return r;
}
