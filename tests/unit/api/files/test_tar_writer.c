/* SPDX-License-Identifier: Apache-2.0 */
#include "api/files/tar_writer.h"

#include "base/fd.h"
#include "core/files/file_channel.h"
#include "wire/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct item {
	enum agent_item kind;
	const char *name, *target;
};

static void put_item(struct buf *out, const struct item *item)
{
	pack_u8(out, (uint8_t)item->kind);
	pack_u32(out, 0644);
	pack_u32(out, 1000);
	pack_u32(out, 1000);
	pack_u64(out, 0);
	pack_u64(out, 0);
	pack_str(out, item->name);
	pack_str(out, item->target ? item->target : "");
}

static int file_of(const struct buf *bytes)
{
	int fd = memfd_create("channel", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes->data, bytes->len, 0), bytes->len);
	return fd;
}

/* What becomes of an archive of these items, which a whole end follows; and how long it is. */
static int pack(const struct item *items, size_t count, off_t *ret_size)
{
	struct buf bytes = BUF_INIT(1 << 16);
	auto_fd int out = memfd_create("archive", MFD_CLOEXEC);
	auto_fd int channel = -1;
	struct stat stat;
	int r;

	for (size_t i = 0; i < count; i++)
		put_item(&bytes, &items[i]);
	put_item(&bytes, &(struct item){AGENT_ITEM_END, "", ""});
	channel = file_of(&bytes);
	buf_fini(&bytes);
	r = tar_writer_run(channel, out);
	assert_int_equal(fstat(out, &stat), 0);
	*ret_size = stat.st_size;
	return r;
}

static void a_tree_in_its_order_is_packed(void **state)
{
	static const struct item tree[] = {
		{AGENT_ITEM_DIRECTORY, "a", NULL},
		{AGENT_ITEM_DIRECTORY, "a/b", NULL},
		{AGENT_ITEM_FILE, "a/b/..c", NULL},
		{AGENT_ITEM_HARDLINK, "a/c", "a/b/..c"},
		{AGENT_ITEM_FILE, "a.b", NULL},
		{AGENT_ITEM_SYMLINK, "b", "../../anywhere"},
	};
	off_t size;

	(void)state;
	assert_int_equal(pack(tree, array_len(tree), &size), 0);
	assert_int_equal(size, 512 * (array_len(tree) + 2));
	assert_int_equal(pack(tree, 0, &size), 0);
}

static void names_that_lead_elsewhere_end_the_archive(void **state)
{
	static const struct item bad[] = {
		{AGENT_ITEM_FILE, "../escape", NULL},
		{AGENT_ITEM_FILE, "..", NULL},
		{AGENT_ITEM_DIRECTORY, ".", NULL},
		{AGENT_ITEM_FILE, "/etc/passwd", NULL},
		{AGENT_ITEM_FILE, "a/", NULL},
		{AGENT_ITEM_FILE, "", NULL},
		{AGENT_ITEM_FILE, "a/../../b", NULL},
		{AGENT_ITEM_FILE, "a//b", NULL},
		{AGENT_ITEM_FILE, "in/a/directory/that/was/not/packed", NULL},
		{AGENT_ITEM_HARDLINK, "name", "../../etc/passwd"},
		{AGENT_ITEM_HARDLINK, "name", "/etc/passwd"},
		{AGENT_ITEM_HARDLINK, "name", "name"},
		{AGENT_ITEM_HARDLINK, "name", ""},
		{AGENT_ITEM_SYMLINK, "name", ""},
	};
	off_t size;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (pack(&bad[i], 1, &size) != -EPROTO || size > 0)
			fail_msg("%s passed, with %lld bytes", bad[i].name, (long long)size);
	}
}

static void nothing_is_packed_below_a_link_or_twice(void **state)
{
	static const struct item trees[][3] = {
		{{AGENT_ITEM_SYMLINK, "a", "/etc"}, {AGENT_ITEM_FILE, "a/passwd", NULL}},
		{{AGENT_ITEM_FILE, "a", NULL}, {AGENT_ITEM_FILE, "a/b", NULL}},
		{{AGENT_ITEM_DIRECTORY, "a", NULL}, {AGENT_ITEM_SYMLINK, "a", "/etc"}},
		{{AGENT_ITEM_DIRECTORY, "ab", NULL}, {AGENT_ITEM_FILE, "a/b", NULL}},
		{{AGENT_ITEM_FILE, "b", NULL}, {AGENT_ITEM_FILE, "a", NULL}},
	};
	off_t size;

	(void)state;
	for (size_t i = 0; i < array_len(trees); i++)
		assert_int_equal(pack(trees[i], 2, &size), -EPROTO);
}

static void a_listed_path_is_plain_or_refused(void **state)
{
	static const char *const bad[] = {
		"", "..", "../x", "x/..", ".", "x/./y", "/x", "x//y", "x/"};
	char path[AGENT_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct buf bytes = BUF_INIT(64);
		auto_fd int channel = -1;

		pack_str(&bytes, bad[i]);
		channel = file_of(&bytes);
		buf_fini(&bytes);
		assert_int_equal(file_channel_read_path(channel, path), -EPROTO);
	}
}

static void a_listed_path_with_a_nul_byte_is_refused(void **state)
{
	struct buf bytes = BUF_INIT(64);
	char path[AGENT_PATH_MAX];
	auto_fd int channel = -1;

	(void)state;
	pack_str(&bytes, "x/y...");
	bytes.data[bytes.len - 4] = '\0';
	channel = file_of(&bytes);
	buf_fini(&bytes);
	assert_int_equal(file_channel_read_path(channel, path), -EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_in_its_order_is_packed),
		cmocka_unit_test(names_that_lead_elsewhere_end_the_archive),
		cmocka_unit_test(nothing_is_packed_below_a_link_or_twice),
		cmocka_unit_test(a_listed_path_is_plain_or_refused),
		cmocka_unit_test(a_listed_path_with_a_nul_byte_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
