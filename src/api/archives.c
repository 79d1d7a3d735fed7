/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees as tar archives. libarchive runs here, in the unprivileged daemon; the sandbox only sees
 * plain items (wire/agent.h) and checks every name again. No filter program is ever started: tar and
 * gzip are read in-process, and nothing else is.
 */
#include "api/handlers.h"
#include "api/paths.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/channel.h"
#include "wire/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define BATCH_SIZE	(256u << 10)
#define READ_SIZE	(128u << 10)
#define ENTRIES_MAX	1000000
#define PACKERS_MAX	16
#define PACK_TIMEOUT_MS 60000
#define PACK_BUFFER	(1 << 20)

/* --- in --- */

struct unpacking {
	struct request *req;
	int fd;
	struct buf batch; /* items on their way to the helper */
	uint64_t entries, bytes, bytes_max;
	bool broken; /* the helper gave up; its answer says why */
	uint8_t input[READ_SIZE];
};

static la_ssize_t read_input(struct archive *archive, void *arg, const void **data)
{
	struct unpacking *unpacking = arg;
	ssize_t n = request_read(unpacking->req, unpacking->input, sizeof(unpacking->input));

	if (n < 0)
		archive_set_error(archive, (int)-n, "the upload ended early");
	*data = unpacking->input;
	return n;
}

static int flush(struct unpacking *unpacking, struct err *err)
{
	int r = fd_write_full(unpacking->fd, unpacking->batch.data, unpacking->batch.len);

	unpacking->batch.len = 0;
	if (r < 0) {
		unpacking->broken = true;
		return err_set(err, ERR_CONFLICT, "the sandbox gave up during the request");
	}
	return 0;
}

static int send_bytes(struct unpacking *unpacking, const void *data, size_t len, struct err *err)
{
	const uint8_t *at = data;

	while (len > 0) {
		size_t room = BATCH_SIZE - unpacking->batch.len;
		size_t n = len < room ? len : room;

		buf_append(&unpacking->batch, at, n);
		at += n;
		len -= n;
		if (unpacking->batch.len == BATCH_SIZE) {
			int r = flush(unpacking, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int send_item(struct unpacking *unpacking, enum agent_item kind, struct archive_entry *entry,
	const char *name, const char *target, struct err *err)
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
			: send_bytes(unpacking, item.data, item.len, err);
	buf_fini(&item);
	return r;
}

static int bad_entry(struct err *err, const char *name, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_archive", NULL,
		"the archive's entry %.160s %s", name, what);
}

/* Contents, with holes as zeros, exactly as many bytes as announced. */
static int send_content(struct unpacking *unpacking, struct archive *archive, int64_t size,
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
		while (at < offset && r == 0) {
			size_t n = (size_t)(offset - at) < sizeof(zeros) ? (size_t)(offset - at)
									 : sizeof(zeros);

			r = send_bytes(unpacking, zeros, n, err);
			at += (int64_t)n;
		}
		if (r == 0 && code == ARCHIVE_OK)
			r = send_bytes(unpacking, data, len, err);
		if (r < 0)
			return r;
		at += code == ARCHIVE_OK ? (int64_t)len : 0;
	}
	return 0;
}

static int send_file(struct unpacking *unpacking, struct archive *archive,
	struct archive_entry *entry, const char *name, struct err *err)
{
	int64_t size = archive_entry_size(entry);
	int r;

	if (size < 0 || !archive_entry_size_is_set(entry))
		return bad_entry(err, name, "has no size");
	unpacking->bytes += (uint64_t)size;
	if (unpacking->bytes > unpacking->bytes_max)
		return err_explain(err, ERR_TOO_LARGE, "archive_too_large",
			"give the sandbox more disk",
			"the archive unpacks to more than the sandbox's disk holds");
	r = send_item(unpacking, AGENT_ITEM_FILE, entry, name, "", err);
	return r < 0 ? r : send_content(unpacking, archive, size, name, err);
}

static int send_entry(struct unpacking *unpacking, struct archive *archive,
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
	if (++unpacking->entries > ENTRIES_MAX)
		return err_explain(err, ERR_TOO_LARGE, "archive_too_large", NULL,
			"the archive has more than %d entries", ENTRIES_MAX);
	if (hardlink) {
		r = paths_clean_entry(hardlink, link_name, err);
		return r < 0 ? r
			     : send_item(
				       unpacking, AGENT_ITEM_HARDLINK, entry, name, link_name, err);
	}
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return send_file(unpacking, archive, entry, name, err);
	case AE_IFDIR:
		return send_item(unpacking, AGENT_ITEM_DIRECTORY, entry, name, "", err);
	case AE_IFLNK:
		if (!target || !paths_link_stays(name, target))
			return bad_entry(
				err, name, "is a symbolic link that leads out of the archive");
		return send_item(unpacking, AGENT_ITEM_SYMLINK, entry, name, target, err);
	default:
		return bad_entry(err, name, "is a device, FIFO or socket");
	}
}

static int send_entries(struct unpacking *unpacking, struct archive *archive, struct err *err)
{
	for (;;) {
		struct archive_entry *entry;
		int code = archive_read_next_header(archive, &entry), r;

		if (code == ARCHIVE_EOF)
			break;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return err_explain(err, ERR_INVALID, "invalid_archive",
				"send a tar or a tar.gz", "the archive cannot be read: %.160s",
				archive_error_string(archive));
		r = send_entry(unpacking, archive, entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int unpack(struct unpacking *unpacking, struct err *err)
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
	if (archive_read_open(archive, unpacking, NULL, read_input, NULL) != ARCHIVE_OK)
		r = err_explain(err, ERR_INVALID, "invalid_archive", "send a tar or a tar.gz",
			"the archive cannot be read: %.160s", archive_error_string(archive));
	else
		r = send_entries(unpacking, archive, err);
	if (r == 0)
		r = send_item(unpacking, AGENT_ITEM_END, NULL, "", "", err);
	if (r == 0)
		r = flush(unpacking, err);
	archive_read_free(archive);
	return r;
}

HANDLER(archives_unpack)
{
	struct api *api = context;
	auto_free struct unpacking *unpacking = mem_new(sizeof(*unpacking));
	struct sandbox_record record;
	struct channel_answer answer;
	char path[AGENT_PATH_MAX];
	auto_fd int fd = -1;
	struct sandbox *sandbox;
	int r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0 ||
		(r = channel_ask(sandbox, AGENT_FILE_UNPACK, path, NULL, &answer, &fd, err)) < 0)
		return r;
	sandbox_read(sandbox, &record);
	unpacking->bytes_max = record.resources.disk_bytes;
	sandbox_record_fini(&record);
	unpacking->req = req;
	unpacking->fd = fd;
	unpacking->batch = BUF_INIT(BATCH_SIZE);
	r = unpack(unpacking, err);
	buf_fini(&unpacking->batch);
	if (r == 0 || unpacking->broken)
		r = channel_read_answer(fd, path, &answer, err);
	/* A link to nothing, say: the directory is there, so the fault is in the archive. */
	if (r < 0 && err->kind == ERR_NOT_FOUND && err->message[0] != '/')
		r = err_explain(err, ERR_INVALID, "invalid_archive", NULL,
			"the archive has a link to something that is not in it");
	if (r == 0)
		request_answer_json(req, 200,
			json_pack("{s:I, s:I}", "entries", (json_int_t)unpacking->entries, "bytes",
				(json_int_t)unpacking->bytes));
	return r;
}

/* --- out --- */

/*
 * A thread of its own turns items into tar and writes them to a socket that the connection pumps. The
 * connection must tell a whole archive from one that was cut, so before all else it sends one byte:
 * if the thread fails it closes its end with that byte unread, and the kernel makes that a reset.
 */
struct packing {
	int items_fd;
	int out_fd;
	atomic_int *running;
};

static la_ssize_t write_output(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct packing *packing = arg;
	int r = fd_write_full(packing->out_fd, data, len);

	if (r < 0) {
		archive_set_error(archive, -r, "the client is gone");
		return -1;
	}
	return (la_ssize_t)len;
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
	r = channel_read_str(fd, item->name);
	return r < 0 ? r : channel_read_str(fd, item->target);
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

static int copy_content(
	struct packing *packing, struct archive *archive, uint64_t size, uint8_t *buffer)
{
	while (size > 0) {
		size_t n = size < READ_SIZE ? (size_t)size : READ_SIZE;
		int r = fd_read_full(packing->items_fd, buffer, n);

		if (r < 0)
			return r;
		if (archive_write_data(archive, buffer, n) != (la_ssize_t)n)
			return -EPIPE;
		size -= n;
	}
	return 0;
}

static int pack_items(struct packing *packing, struct archive *archive)
{
	auto_free struct item *item = mem_new(sizeof(*item));
	auto_free uint8_t *buffer = mem_new(READ_SIZE);
	struct archive_entry *entry = archive_entry_new();
	int r;

	while ((r = read_item(packing->items_fd, item)) == 0 && item->kind != AGENT_ITEM_END) {
		if (item->kind > AGENT_ITEM_HARDLINK || !item->name[0]) {
			r = -EPROTO;
			break;
		}
		fill_entry(entry, item);
		if (archive_write_header(archive, entry) < ARCHIVE_WARN) {
			r = -EPIPE;
			break;
		}
		if (item->kind == AGENT_ITEM_FILE)
			r = copy_content(packing, archive, item->size, buffer);
		if (r < 0)
			break;
	}
	archive_entry_free(entry);
	return r;
}

static void *run_packing(void *arg)
{
	struct packing *packing = arg;
	struct archive *archive = archive_write_new();
	uint8_t mark;
	int r;

	if (!archive)
		abort();
	archive_write_set_format_gnutar(archive);
	archive_write_set_options(archive, "hdrcharset=BINARY");
	archive_write_set_bytes_per_block(archive, BATCH_SIZE);
	archive_write_set_bytes_in_last_block(archive, 512);
	r = archive_write_open(archive, packing, NULL, write_output, NULL) == ARCHIVE_OK ? 0 : -EIO;
	if (r == 0)
		r = pack_items(packing, archive);
	if (r == 0 && archive_write_close(archive) != ARCHIVE_OK)
		r = -EPIPE;
	if (r < 0)
		archive_write_fail(
			archive); /* no trailer: it would make a cut archive look whole */
	archive_write_free(archive);
	if (r == 0)
		r = fd_read_full(packing->out_fd, &mark, 1);
	if (r < 0)
		log_info("an archive download was cut: %s", strerror(-r));
	fd_close(packing->items_fd);
	fd_close(packing->out_fd);
	atomic_fetch_sub(packing->running, 1);
	free(packing);
	return NULL;
}

static int start_packing(int items_fd, atomic_int *running, int *ret_fd, struct err *err)
{
	struct packing *packing;
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], size = PACK_BUFFER, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "make a socket pair");
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	packing = mem_new(sizeof(*packing));
	*packing = (struct packing){.items_fd = items_fd, .out_fd = pair[1], .running = running};
	r = fd_write_full(pair[0], "", 1);
	if (r == 0)
		r = fd_set_timeout(pair[1], PACK_TIMEOUT_MS);
	if (r == 0)
		r = fd_set_nonblocking(pair[0]);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (r == 0)
		r = -pthread_create(&thread, &attr, run_packing, packing);
	pthread_attr_destroy(&attr);
	if (r < 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		free(packing);
		return err_from(err, r, "start packing");
	}
	*ret_fd = pair[0];
	return 0;
}

HANDLER(archives_pack)
{
	struct api *api = context;
	struct channel_answer answer;
	char path[AGENT_PATH_MAX];
	auto_fd int items_fd = -1;
	struct sandbox *sandbox;
	int out_fd, r;

	if ((r = api_sandbox(req, api, &sandbox, err)) < 0 ||
		(r = api_query_path(req, path, err)) < 0)
		return r;
	if (atomic_fetch_add(&api->packers, 1) >= PACKERS_MAX)
		r = err_set(err, ERR_RATE, "%d archives are being downloaded already", PACKERS_MAX);
	if (r == 0)
		r = channel_ask(sandbox, AGENT_FILE_PACK, path, NULL, &answer, &items_fd, err);
	if (r == 0)
		r = start_packing(items_fd, &api->packers, &out_fd, err);
	if (r < 0) {
		atomic_fetch_sub(&api->packers, 1);
		return r;
	}
	take_fd(&items_fd);
	request_answer_fd(req, 200, "application/x-tar", out_fd, UINT64_MAX);
	return 0;
}
