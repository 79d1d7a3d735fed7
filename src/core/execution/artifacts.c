/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/artifacts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "blob/digest.h"
#include "core/files/file_channel.h"
#include "wire/pack.h"

#include <unistd.h>

#define COUNT_MAX   64
#define DEPTH	    8
#define ENTRIES_MAX 1024
#define HASH_MAX    (64u << 20) /* bytes that are read of all of them, */
#define HASH_MS	    5000	/* and for how long */
#define SLACK_MS    20		/* the kernel's clock of files is behind by a tick */
#define CHUNK	    (256u * 1024)

struct artifact_list {
	struct sandbox *sandbox;
	json_t *items;
	int64_t since_ns;
	uint64_t left;	   /* bytes that may still be read */
	uint64_t until_ms; /* of the steady clock */
	bool is_cut;
};

/* Reads a file and names its content; false if it cannot be read as a whole. */
static bool hash_file(
	struct artifact_list *list, const char *path, uint64_t size, struct digest *ret_digest)
{
	auto_(digest_stream_freep) struct digest_stream *stream = digest_stream_new();
	auto_free uint8_t *data = mem_new(CHUNK);
	struct file_channel_answer answer;
	struct buf range = BUF_INIT(16);
	auto_fd int fd = -1;
	struct err ignored;
	uint64_t done = 0;
	int r;

	if (size > list->left || clock_steady_ms() > list->until_ms ||
		file_channel_ask(
			list->sandbox, AGENT_FILE_READ, path, NULL, &answer, &fd, &ignored) < 0)
		return false;
	pack_u64(&range, 0);
	pack_u64(&range, size);
	r = answer.file.size == size ? fd_write_full(fd, range.data, range.len) : -1;
	buf_fini(&range);
	list->left -= size;
	while (r == 0 && done < size) {
		size_t part = size - done < CHUNK ? (size_t)(size - done) : CHUNK;

		r = fd_read_full(fd, data, part);
		if (r == 0)
			digest_stream_add(stream, data, part);
		done += part;
	}
	digest_stream_read(stream, ret_digest);
	return r == 0;
}

static void add_file(
	struct artifact_list *list, const char *name, const struct agent_file_answer *file)
{
	auto_free char *path = mem_printf("%s/%s", ARTIFACTS_DIR, name);
	struct digest digest;
	json_t *text = json_string(path);

	if (!text) /* its name is not UTF-8 */
		return;
	if (json_array_size(list->items) == COUNT_MAX) {
		list->is_cut = true;
		json_decref(text);
		return;
	}
	json_array_append_new(list->items,
		json_pack("{s:o, s:I, s:o}", "path", text, "size", (json_int_t)file->size, "sha256",
			hash_file(list, path, file->size, &digest)
				? json_string(digest_hex(&digest))
				: json_null()));
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
		if (answer.file.kind == AGENT_FILE_REGULAR &&
			(int64_t)answer.file.mtime_ns >= list->since_ns)
			add_file(list, name, &answer.file);
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

json_t *artifacts_list(struct sandbox *sandbox, int64_t since_ms, bool *ret_is_cut)
{
	struct artifact_list list = {.sandbox = sandbox,
		.items = json_array(),
		.since_ns = (since_ms - SLACK_MS) * 1000000,
		.left = HASH_MAX,
		.until_ms = clock_steady_ms() + HASH_MS};
	struct file_channel_answer answer;
	struct buf more = BUF_INIT(64);
	auto_fd int fd = -1;
	struct err ignored;

	pack_u32(&more, DEPTH);
	pack_u32(&more, ENTRIES_MAX);
	pack_str(&more, "");
	if (is_running(sandbox) && file_channel_ask(sandbox, AGENT_FILE_LIST, ARTIFACTS_DIR, &more,
					   &answer, &fd, &ignored) == 0)
		read_list(&list, fd);
	buf_fini(&more);
	*ret_is_cut = list.is_cut;
	return list.items;
}
