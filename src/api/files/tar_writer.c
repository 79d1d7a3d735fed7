/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files/tar_writer.h"

#include "base/fd.h"
#include "core/files/file_channel.h"
#include "core/files/relative_path.h"
#include "wire/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#define BLOCK_SIZE (256u << 10)
#define READ_SIZE  (128u << 10)

/*
 * Once something has failed, what is still written goes nowhere: a trailer would make a cut archive look
 * whole. The library is told only when it closes, where a refusal also keeps it from filling up the last
 * entry. Before that it would take it for fatal, and then never free its buffers.
 */
struct output {
	int fd;
	int failure; /* -errno */
	bool is_closing;
};

static la_ssize_t write_output(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct output *output = arg;

	(void)archive;
	if (output->failure == 0)
		output->failure = fd_write_full(output->fd, data, len);
	return output->failure < 0 && output->is_closing ? -1 : (la_ssize_t)len;
}

struct item {
	uint8_t kind;
	uint32_t mode, uid, gid;
	uint64_t mtime_ns, size;
	char name[AGENT_PATH_MAX], target[AGENT_PATH_MAX];
};

static int read_item(int fd, struct item *item)
{
	uint8_t raw[29];
	struct unpack in = UNPACK_INIT(raw, sizeof(raw));
	int r = fd_read_full(fd, raw, sizeof(raw));

	if (r < 0)
		return r;
	item->kind = unpack_u8(&in);
	item->mode = unpack_u32(&in);
	item->uid = unpack_u32(&in);
	item->gid = unpack_u32(&in);
	item->mtime_ns = unpack_u64(&in);
	item->size = unpack_u64(&in);
	r = item->kind == AGENT_ITEM_END ? file_channel_read_str(fd, item->name)
					 : file_channel_read_path(fd, item->name);
	if (r < 0)
		return r;
	return item->kind == AGENT_ITEM_HARDLINK ? file_channel_read_path(fd, item->target)
						 : file_channel_read_str(fd, item->target);
}

/* What was packed last, by which the next item is judged. */
struct predecessor {
	char name[AGENT_PATH_MAX];
	bool is_directory;
};

/*
 * Whether an item may follow: its name sorts behind the last one, so none comes twice, and the directory
 * that it is in was packed as one. Else a link could be packed first, and then a file that whoever unpacks
 * it writes through the link.
 */
static bool may_follow(const struct predecessor *last, const char *name)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;

	if (relative_path_compare(last->name, name) >= 0)
		return false;
	if (!slash)
		return true;
	return strncmp(last->name, name, len) == 0 &&
	       (last->name[len] == '/' || (last->name[len] == '\0' && last->is_directory));
}

/* 0, or -EPROTO for what no agent of ours sends. */
static int check_item(const struct item *item, struct predecessor *last)
{
	if (item->kind > AGENT_ITEM_HARDLINK || item->size > INT64_MAX ||
		(item->kind == AGENT_ITEM_SYMLINK && !item->target[0]) ||
		(item->kind == AGENT_ITEM_HARDLINK &&
			relative_path_compare(item->target, item->name) >= 0) ||
		!may_follow(last, item->name))
		return -EPROTO;
	memcpy(last->name, item->name, sizeof(last->name));
	last->is_directory = item->kind == AGENT_ITEM_DIRECTORY;
	return 0;
}

static const unsigned item_types[] = {
	[AGENT_ITEM_FILE] = AE_IFREG,
	[AGENT_ITEM_DIRECTORY] = AE_IFDIR,
	[AGENT_ITEM_SYMLINK] = AE_IFLNK,
	[AGENT_ITEM_HARDLINK] = AE_IFREG,
};

static void fill_entry(struct archive_entry *entry, const struct item *item)
{
	archive_entry_clear(entry);
	archive_entry_copy_pathname(entry, item->name);
	archive_entry_set_filetype(entry, item_types[item->kind]);
	archive_entry_set_perm(entry, item->mode & 07777);
	archive_entry_set_uid(entry, item->uid);
	archive_entry_set_gid(entry, item->gid);
	archive_entry_set_mtime(
		entry, (time_t)(item->mtime_ns / 1000000000), (long)(item->mtime_ns % 1000000000));
	archive_entry_set_size(entry, item->kind == AGENT_ITEM_FILE ? (la_int64_t)item->size : 0);
	if (item->kind == AGENT_ITEM_SYMLINK)
		archive_entry_copy_symlink(entry, item->target);
	if (item->kind == AGENT_ITEM_HARDLINK)
		archive_entry_copy_hardlink(entry, item->target);
}

static int copy_content(int items_fd, struct archive *archive, const struct output *output,
	uint64_t size, uint8_t *buffer)
{
	while (size > 0 && output->failure == 0) {
		size_t n = size < READ_SIZE ? (size_t)size : READ_SIZE;
		int r = fd_read_full(items_fd, buffer, n);

		if (r < 0)
			return r;
		if (archive_write_data(archive, buffer, n) != (la_ssize_t)n)
			return -EPROTO;
		size -= n;
	}
	return output->failure;
}

/* One item after the other until the last. */
static int pack_items(int items_fd, struct archive *archive, const struct output *output)
{
	auto_free struct item *item = mem_new(sizeof(*item));
	auto_free struct predecessor *last = mem_new(sizeof(*last));
	auto_free uint8_t *buffer = mem_new(READ_SIZE);
	struct archive_entry *entry = archive_entry_new();
	int r;

	while ((r = read_item(items_fd, item)) == 0 && item->kind != AGENT_ITEM_END) {
		r = check_item(item, last);
		if (r < 0)
			break;
		fill_entry(entry, item);
		if (archive_write_header(archive, entry) < ARCHIVE_WARN)
			r = -EPROTO;
		else if (item->kind == AGENT_ITEM_FILE)
			r = copy_content(items_fd, archive, output, item->size, buffer);
		if (r < 0 || output->failure < 0)
			break;
	}
	archive_entry_free(entry);
	return r;
}

int tar_writer_run(int items_fd, int out_fd)
{
	struct output output = {.fd = out_fd};
	struct archive *archive = archive_write_new();
	int r;

	if (!archive)
		abort();
	archive_write_set_format_gnutar(archive);
	archive_write_set_options(archive, "hdrcharset=BINARY");
	archive_write_set_bytes_per_block(archive, BLOCK_SIZE);
	archive_write_set_bytes_in_last_block(archive, 512);
	r = archive_write_open(archive, &output, NULL, write_output, NULL) == ARCHIVE_OK ? 0 : -EIO;
	if (r == 0)
		r = pack_items(items_fd, archive, &output);
	if (output.failure == 0)
		output.failure = r;
	output.is_closing = true;
	archive_write_free(archive); /* with the trailer, if all went well */
	return output.failure;
}
