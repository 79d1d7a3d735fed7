/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/fd.h"
#include "image/layer_tar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct layer_entry entries[] = {
	{.kind = LAYER_DIRECTORY, .path = "etc", .target = "", .mode = 0750, .uid = 7, .gid = 8},
	{.kind = LAYER_OPAQUE, .path = "etc", .target = ""},
	{.kind = LAYER_FILE,
		.path = "etc/a",
		.target = "",
		.mode = 04755,
		.uid = 65535,
		.gid = 1,
		.mtime_ns = 1500000000123456789,
		.size = 10,
		.xattrs = {{"user.note", "yes", 3}},
		.xattr_count = 1},
	{.kind = LAYER_HARDLINK, .path = "etc/b", .target = "etc/a", .mode = 04755},
	{.kind = LAYER_SYMLINK, .path = "etc/c", .target = "../x", .mode = 0777},
	{.kind = LAYER_WHITEOUT, .path = "etc/gone", .target = ""},
	{.kind = LAYER_FIFO, .path = "pipe", .target = "", .mode = 0600},
	{.kind = LAYER_WHITEOUT, .path = "top", .target = ""},
};

static int collect(void *arg, const void *data, size_t len, struct err *err)
{
	(void)err;
	return buf_append(arg, data, len);
}

static void write_layer(struct buf *bytes, bool is_compressed)
{
	const struct layer_tar_output output = {.write = collect, .arg = bytes};
	auto_(layer_tar_closep) struct layer_tar *tar = NULL;
	struct err err;

	assert_int_equal(layer_tar_open(&output, is_compressed, &tar, &err), 0);
	for (size_t i = 0; i < array_len(entries); i++) {
		assert_int_equal(layer_tar_entry(tar, &entries[i], &err), 0);
		/* With a hole before and behind. */
		if (entries[i].kind == LAYER_FILE)
			assert_int_equal(layer_tar_content(tar, 2, "hello", 5, &err), 0);
	}
	assert_int_equal(layer_tar_count(tar), array_len(entries));
	assert_int_equal(layer_tar_finish(tar, &err), 0);
}

struct seen {
	size_t count;
	char content[32];
};

static int see_entry(void *arg, const struct layer_entry *entry, struct err *err)
{
	struct seen *seen = arg;
	const struct layer_entry *expected = &entries[seen->count++];

	(void)err;
	assert_int_equal(entry->kind, expected->kind);
	assert_string_equal(entry->path, expected->path);
	if (entry->kind == LAYER_SYMLINK || entry->kind == LAYER_HARDLINK)
		assert_string_equal(entry->target, expected->target);
	if (entry->kind == LAYER_FILE || entry->kind == LAYER_DIRECTORY) {
		assert_int_equal(entry->mode, expected->mode);
		assert_int_equal(entry->uid, expected->uid);
		assert_int_equal(entry->gid, expected->gid);
		assert_int_equal(entry->size, expected->size);
		assert_true(entry->mtime_ns == expected->mtime_ns);
		assert_int_equal(entry->xattr_count, expected->xattr_count);
	}
	return 0;
}

static int see_content(void *arg, uint64_t offset, const void *data, size_t len, struct err *err)
{
	struct seen *seen = arg;

	(void)err;
	assert_true(offset + len <= sizeof(seen->content));
	memcpy(seen->content + offset, data, len);
	return 0;
}

static void what_is_written_is_read_again(void **state)
{
	(void)state;
	for (int is_compressed = 0; is_compressed < 2; is_compressed++) {
		struct buf bytes = BUF_INIT(1 << 20), plain = BUF_INIT(1 << 20);
		struct seen seen = {0};
		const struct layer_sink sink = {see_entry, see_content, &seen};
		auto_fd int fd = memfd_create("layer", MFD_CLOEXEC);
		struct layer_result result;
		struct digest diff_id;
		struct err err;

		write_layer(&plain, false);
		write_layer(&bytes, is_compressed);
		assert_int_equal(is_compressed, bytes.data[0] == 0x1f);
		digest_of(plain.data, plain.len, &diff_id);
		assert_int_equal(fd_write_full(fd, bytes.data, bytes.len), 0);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(layer_reader_run(fd, &diff_id, 1 << 20, &sink, &result, &err), 0);
		assert_int_equal(seen.count, array_len(entries));
		assert_memory_equal(seen.content, "\0\0hello\0\0\0", 10);
		buf_fini(&bytes);
		buf_fini(&plain);
	}
}

static void a_file_that_grows_is_refused(void **state)
{
	struct buf bytes = BUF_INIT(1 << 20);
	const struct layer_tar_output output = {.write = collect, .arg = &bytes};
	auto_(layer_tar_closep) struct layer_tar *tar = NULL;
	struct err err;

	(void)state;
	assert_int_equal(layer_tar_open(&output, false, &tar, &err), 0);
	assert_int_equal(layer_tar_entry(tar, &entries[2], &err), 0);
	assert_true(layer_tar_content(tar, 6, "hello", 5, &err) < 0);
	buf_fini(&bytes);
}

static int fill_disk(void *arg, const void *data, size_t len, struct err *err)
{
	(void)arg;
	(void)data;
	(void)len;
	return err_set(err, ERR_NO_SPACE, "full");
}

static void a_failure_of_the_output_is_told(void **state)
{
	const struct layer_tar_output output = {.write = fill_disk};
	auto_(layer_tar_closep) struct layer_tar *tar = NULL;
	struct err err;

	(void)state;
	assert_int_equal(layer_tar_open(&output, false, &tar, &err), 0);
	assert_int_equal(layer_tar_entry(tar, &entries[0], &err), 0);
	assert_int_equal(layer_tar_finish(tar, &err), -ENOSPC);
	assert_string_equal(err.message, "full");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_file_that_grows_is_refused),
		cmocka_unit_test(a_failure_of_the_output_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
