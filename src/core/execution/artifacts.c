/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/artifacts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "blob/digest.h"
#include "core/files/file_channel.h"
#include "wire/pack.h"

#include <unistd.h>

#define COUNT_MAX   64
#define DEPTH	    32
#define ENTRIES_MAX 1024
#define HASH_MAX    (64u << 20) /* bytes that are read of all of them, */
#define HASH_MS	    5000	/* and for how long */
#define SLACK_MS    20		/* the kernel's clock of files is behind by a tick */
#define CHUNK	    (256u * 1024)

struct artifact_list {
	const struct artifacts_request *request;
	json_t *items;
	int64_t since_ns;
	uint64_t left;	   /* bytes that may still be read */
	uint64_t until_ms; /* of the steady clock */
	bool is_cut;
};

int artifacts_open(
	struct sandbox *sandbox, const char *path, uint64_t *ret_size, int *ret_fd, struct err *err)
{
	struct file_channel_answer answer;
	struct buf range = BUF_INIT(16);
	auto_fd int fd = -1;
	int r = file_channel_ask(sandbox, AGENT_FILE_READ, path, NULL, &answer, &fd, err);

	if (r < 0)
		return r;
	pack_u64(&range, 0);
	pack_u64(&range, answer.file.size);
	r = fd_write_full(fd, range.data, range.len);
	buf_fini(&range);
	if (r < 0)
		return file_channel_broken(r, err);
	*ret_size = answer.file.size;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Reads all of it; what comes goes to both. */
static int read_content(int fd, uint64_t size, struct digest_stream *hash,
	struct blob_writer *writer, struct err *err)
{
	auto_free uint8_t *data = mem_new(CHUNK);
	int r = 0;

	for (uint64_t done = 0; r == 0 && done < size;) {
		size_t part = size - done < CHUNK ? (size_t)(size - done) : CHUNK;

		r = fd_read_full(fd, data, part);
		if (r == 0)
			digest_stream_add(hash, data, part);
		if (r == 0 && writer)
			r = blob_writer_add(writer, data, part, err);
		done += part;
	}
	return r;
}

/* Reads a file, names its content, and keeps a copy if one is asked for; false if that cannot be. */
static bool take_file(
	struct artifact_list *list, const char *path, uint64_t size, struct digest *ret_digest)
{
	auto_(digest_stream_freep) struct digest_stream *hash = digest_stream_new();
	auto_(blob_writer_closep) struct blob_writer *writer = NULL;
	const struct artifacts_request *request = list->request;
	uint64_t now_size;
	auto_fd int fd = -1;
	struct err err;
	int r;

	if (size > list->left || clock_steady_ms() > list->until_ms ||
		artifacts_open(request->sandbox, path, &now_size, &fd, &err) < 0 ||
		now_size != size)
		return false;
	list->left -= size;
	r = request->execution ? artifact_store_begin(request->copy, HASH_MAX, &writer, &err) : 0;
	if (r == 0)
		r = read_content(fd, size, hash, writer, &err);
	digest_stream_read(hash, ret_digest);
	if (r == 0 && writer)
		r = artifact_store_keep(
			request->copy, request->execution, ret_digest, writer, &err);
	return r == 0;
}

static void add_file(
	struct artifact_list *list, const char *name, const struct agent_file_answer *file)
{
	auto_free char *path = mem_printf("%s/%s", ARTIFACTS_DIR, name);
	struct digest digest;
	json_t *text = json_string(path);
	bool is_read;

	if (!text) /* its name is not UTF-8 */
		return;
	if (json_array_size(list->items) == COUNT_MAX) {
		list->is_cut = true;
		json_decref(text);
		return;
	}
	is_read = take_file(list, path, file->size, &digest);
	list->is_cut |= !is_read && list->request->execution;
	json_array_append_new(list->items,
		json_pack("{s:o, s:I, s:o}", "path", text, "size", (json_int_t)file->size, "sha256",
			is_read ? json_string(digest_hex(&digest)) : json_null()));
}

static unsigned levels_of(const char *name)
{
	unsigned levels = 1;

	for (; *name; name++)
		levels += *name == '/';
	return levels;
}

static void read_list(struct artifact_list *list, int fd)
{
	char name[AGENT_PATH_MAX];
	uint8_t more = 0;

	while (fd_read_full(fd, &more, 1) == 0 && more) {
		struct file_channel_answer answer;
		struct err ignored;

		if (file_channel_read_path(fd, name) < 0 ||
			file_channel_read_answer(fd, name, &answer, &ignored) < 0)
			return;
		/* Not by the time of its content: what is moved there, copied or unpacked with its times is new there. */
		if (answer.file.kind == AGENT_FILE_REGULAR &&
			(int64_t)answer.file.ctime_ns >= list->since_ns)
			add_file(list, name, &answer.file);
		else if (answer.file.kind == AGENT_FILE_DIRECTORY && levels_of(name) == DEPTH)
			list->is_cut = true; /* there may be some in it */
	}
	if (fd_read_full(fd, &more, 1) == 0 && more)
		list->is_cut = true;
}

static bool is_running(struct sandbox *sandbox)
{
	struct sandbox_record record;
	bool runs;

	sandbox_read(sandbox, &record);
	runs = record.status == SANDBOX_RUNNING;
	sandbox_record_fini(&record);
	return runs;
}

json_t *artifacts_list(const struct artifacts_request *request, bool *ret_is_cut)
{
	struct artifact_list list = {.request = request,
		.items = json_array(),
		.since_ns = (request->since_ms - SLACK_MS) * 1000000,
		.left = HASH_MAX,
		.until_ms = clock_steady_ms() + HASH_MS};
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(64);
	auto_fd int fd = -1;
	struct err ignored;

	pack_u32(&more, DEPTH);
	pack_u32(&more, ENTRIES_MAX);
	pack_str(&more, "");
	if (is_running(request->sandbox) &&
		file_channel_ask(request->sandbox, AGENT_FILE_LIST, ARTIFACTS_DIR, &more, &answer,
			&fd, &ignored) == 0)
		read_list(&list, fd);
	buf_fini(&more);
	*ret_is_cut = list.is_cut;
	return list.items;
}
