/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories as archives. The archive that is unpacked is an attacker's: whatever it holds, the
 * canary beside the target directory must be as it was, and nothing else may be there.
 */
#include "base/fd.h"
#include "cli/copy/archive_library.h"
#include "cli/copy/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char base_dir[] = "/tmp/sandlot-tree-XXXXXX";
static struct archive_library lib;
static struct err err;

static char *at(const char *name)
{
	return mem_printf("%s/%s", base_dir, name);
}

static void write_text(const char *name, const char *text, mode_t mode)
{
	auto_free char *path = at(name);
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void expect_text(const char *name, const char *expected)
{
	auto_free char *path = at(name);
	char text[256];

	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof(text)) >= 0);
	assert_string_equal(text, expected);
}

static size_t count_entries(const char *name)
{
	auto_free char *path = at(name);
	DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* A tar archive in memory, and reading it in small pieces. */
struct memory {
	struct buf bytes;
	size_t taken;
};

static la_ssize_t append(struct archive *a, void *arg, const void *data, size_t len)
{
	struct memory *memory = arg;

	(void)a;
	return buf_append(&memory->bytes, data, len) < 0 ? -1 : (la_ssize_t)len;
}

static ssize_t take(void *arg, void *data, size_t size, struct err *e)
{
	struct memory *memory = arg;
	size_t len = memory->bytes.len - memory->taken;

	(void)e;
	if (len > 700)
		len = 700;
	if (len > size)
		len = size;
	memcpy(data, memory->bytes.data + memory->taken, len);
	memory->taken += len;
	return (ssize_t)len;
}

/* One entry of a hostile archive. */
struct evil {
	const char *name;
	mode_t type; /* 0: a hard link */
	const char *target;
	const char *text;
	mode_t mode;
};

/* The names that only making archives needs are looked up here. */
static void build(struct memory *memory, const struct evil *entries, size_t count)
{
	struct archive *tar = lib.archive_write_new();

	memory->bytes = BUF_INIT(1 << 20);
	memory->taken = 0;
	lib.archive_write_set_format_pax_restricted(tar);
	assert_int_equal(lib.archive_write_open(tar, memory, NULL, append, NULL), ARCHIVE_OK);
	for (size_t i = 0; i < count; i++) {
		const struct evil *e = &entries[i];
		struct archive_entry *entry = archive_entry_new();
		size_t len = e->text ? strlen(e->text) : 0;

		archive_entry_set_pathname(entry, e->name);
		archive_entry_set_filetype(entry, e->type ? e->type : S_IFREG);
		archive_entry_set_perm(entry, e->mode ? e->mode : 0644);
		archive_entry_set_size(entry, (la_int64_t)len);
		if (e->type == S_IFLNK)
			archive_entry_set_symlink(entry, e->target);
		if (e->type == 0)
			archive_entry_set_hardlink(entry, e->target);
		assert_true(lib.archive_write_header(tar, entry) >= ARCHIVE_WARN);
		if (len > 0)
			assert_int_equal(lib.archive_write_data(tar, e->text, len), (int)len);
		archive_entry_free(entry);
	}
	assert_int_equal(lib.archive_write_close(tar), ARCHIVE_OK);
	lib.archive_write_free(tar);
}

static int unpack(const struct evil *entries, size_t count)
{
	auto_free char *path = at("target");
	auto_fd int dir_fd = -1;
	struct memory memory;
	struct tree_input input = {take, &memory};
	int r;

	(void)mkdir(path, 0755);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	build(&memory, entries, count);
	r = tree_receive(dir_fd, &input, &err);
	buf_fini(&memory.bytes);
	return r;
}

#define REFUSED(...)                                                                               \
	do {                                                                                       \
		const struct evil entries[] = {__VA_ARGS__};                                       \
		assert_true(unpack(entries, array_len(entries)) < 0);                              \
		expect_text("canary", "safe");                                                     \
		assert_int_equal(count_entries("outside"), 0);                                     \
	} while (0)

static void no_archive_writes_outside_its_directory(void **state)
{
	auto_free char *outside = at("outside");
	auto_free char *canary = at("canary");
	auto_free char *escaped = at("outside/x");

	(void)state;
	REFUSED({"../outside/x", S_IFREG, NULL, "evil"});
	REFUSED({"a/../../outside/x", S_IFREG, NULL, "evil"});
	REFUSED({escaped, S_IFREG, NULL, "evil"});
	REFUSED({"link", S_IFLNK, outside}, {"link/x", S_IFREG, NULL, "evil"});
	REFUSED({"link2", S_IFLNK, "../outside"}, {"link2/x", S_IFDIR});
	REFUSED({"up", S_IFLNK, ".."}, {"up/outside/x", S_IFREG, NULL, "evil"});
	REFUSED({"hard", 0, canary}, {"hard", S_IFREG, NULL, "evil"});
	REFUSED({"hard2", 0, "../canary"}, {"hard2", S_IFREG, NULL, "evil"});
	REFUSED({"dir", S_IFLNK, outside}, {"h", 0, "dir/../../canary"});
}

static void expect_link(const char *name, const char *target)
{
	auto_free char *path = at(name);
	char text[256] = "";

	assert_true(readlink(path, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, target);
}

static void writing_over_a_link_replaces_the_link(void **state)
{
	auto_free char *canary = at("canary");
	const struct evil entries[] = {{"soft", S_IFLNK, canary}, {"soft", S_IFREG, NULL, "evil"}};

	(void)state;
	assert_int_equal(unpack(entries, array_len(entries)), 0);
	expect_text("canary", "safe");
	expect_text("target/soft", "evil");
}

/* The first archive leaves links; the second has files and directories of their names. */
static void links_of_an_earlier_archive_are_replaced_and_not_followed(void **state)
{
	auto_free char *outside = at("outside");
	auto_free char *canary = at("canary");
	const struct evil first[] = {{"run/", S_IFDIR}, {"run/dir", S_IFLNK, outside},
		{"run/file", S_IFLNK, canary}, {"run/up", S_IFLNK, "../../outside"}};
	const struct evil second[] = {{"run/", S_IFDIR}, {"run/dir/", S_IFDIR},
		{"run/dir/x", S_IFREG, NULL, "evil"}, {"run/file", S_IFREG, NULL, "evil"},
		{"run/up/", S_IFDIR}, {"run/up/x", S_IFREG, NULL, "evil"}};
	const struct evil through[] = {{"run/dir/x", S_IFREG, NULL, "evil"}};

	(void)state;
	assert_int_equal(unpack(first, array_len(first)), 0);
	expect_link("target/run/dir", outside);
	expect_link("target/run/up", "../../outside");
	assert_true(unpack(through, array_len(through)) < 0);
	assert_non_null(strstr(err.message, "symbolic link"));
	assert_int_equal(unpack(second, array_len(second)), 0);
	assert_int_equal(unpack(second, array_len(second)), 0);
	expect_text("target/run/dir/x", "evil");
	expect_text("target/run/file", "evil");
	expect_text("target/run/up/x", "evil");
	expect_text("canary", "safe");
	assert_int_equal(count_entries("outside"), 0);
}

static void a_directory_that_becomes_a_link_within_an_archive_is_not_left_by_it(void **state)
{
	auto_free char *outside = at("outside");

	(void)state;
	REFUSED({"turn/", S_IFDIR}, {"turn/a", S_IFREG, NULL, "x"}, {"turn", S_IFLNK, outside},
		{"turn/b", S_IFREG, NULL, "evil"});
	REFUSED({"full/", S_IFDIR}, {"full/a", S_IFREG, NULL, "x"}, {"full", S_IFREG, NULL, "x"});
}

static void a_hard_link_is_one_to_a_file_of_the_tree(void **state)
{
	auto_free char *canary = at("canary");
	auto_free char *path = at("target/hard/two");
	const struct evil good[] = {{"hard/", S_IFDIR}, {"hard/one", S_IFREG, NULL, "text"},
		{"hard/two", S_IFLNK, canary}, {"hard/two", 0, "hard/one"},
		{"hard/two", 0, "hard/one"}, {"hard/one", S_IFREG, NULL, "new"}};
	struct stat st;

	(void)state;
	assert_int_equal(unpack(good, array_len(good)), 0);
	expect_text("target/hard/one", "new");
	expect_text("target/hard/two", "text");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(count_entries("target/hard"), 2);
	REFUSED({"hard/link", S_IFLNK, canary}, {"hard/x", 0, "hard/link"});
	REFUSED({"hard/y", 0, "hard"});
}

/* Over a link to one, over the thing itself: what is in a tree is replaced and never written into. */
static void a_pipe_in_the_tree_is_replaced(void **state)
{
	auto_free char *path = at("target/fifo");
	const struct evil entries[] = {{"fifo", S_IFREG, NULL, "text"}};

	(void)state;
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(unpack(entries, array_len(entries)), 0);
	expect_text("target/fifo", "text");
}

static void directories_that_nobody_may_write_are_filled_all_the_same(void **state)
{
	auto_free char *path = at("target/locked");
	const struct evil entries[] = {{"locked/", S_IFDIR, NULL, NULL, 07555},
		{"locked/in/", S_IFDIR, NULL, NULL, 0500},
		{"locked/in/x", S_IFREG, NULL, "text", 0400}, {"locked/y", S_IFREG, NULL, "text"}};
	struct stat st;

	(void)state;
	assert_int_equal(unpack(entries, array_len(entries)), 0);
	expect_text("target/locked/in/x", "text");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(chmod(path, 0755), 0);
}

static void privileges_and_devices_do_not_come_along(void **state)
{
	const struct evil entries[] = {
		{"suid", S_IFREG, NULL, "x", 06777},
		{"device", S_IFCHR, NULL, NULL, 0666},
		{"pipe", S_IFIFO, NULL, NULL, 0666},
		{"./", S_IFDIR, NULL, NULL, 0700},
	};
	auto_free char *suid = at("target/suid");
	auto_free char *device = at("target/device");
	auto_free char *pipe_path = at("target/pipe");
	struct stat st;

	(void)state;
	assert_int_equal(unpack(entries, array_len(entries)), 0);
	assert_int_equal(stat(suid, &st), 0);
	assert_int_equal(st.st_mode & 07000, 0);
	assert_int_equal(lstat(device, &st), -1);
	assert_int_equal(lstat(pipe_path, &st), -1);
}

static void an_archive_that_breaks_off_is_an_error(void **state)
{
	const struct evil entries[] = {{"whole", S_IFREG, NULL, "some text"}};
	auto_free char *path = at("target");
	auto_fd int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct memory memory;
	struct tree_input input = {take, &memory};

	(void)state;
	build(&memory, entries, 1);
	memory.bytes.len = 515;
	assert_true(tree_receive(dir_fd, &input, &err) < 0);
	buf_fini(&memory.bytes);
}

static void a_directory_arrives_as_it_was_sent(void **state)
{
	auto_free char *source = at("source");
	auto_free char *sub = at("source/sub");
	auto_free char *link = at("source/sub/link");
	auto_free char *target = at("copy");
	auto_free char *copied_link = at("copy/sub/link");
	auto_free char *copied_tool = at("copy/tool");
	struct memory memory = {.bytes = BUF_INIT(1 << 20)};
	struct tree_sender *sender;
	auto_fd int dir_fd = -1;
	char text[64] = "";
	char chunk[100];
	ssize_t n;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(source, 0755), 0);
	assert_int_equal(mkdir(sub, 0755), 0);
	assert_int_equal(symlink("../tool", link), 0);
	write_text("source/tool", "#!/bin/sh\n", 0755);
	write_text("source/sub/\xc3\xbc \xff", "odd name", 0644);
	write_text("source/empty", "", 0644);
	assert_int_equal(mkdir(target, 0755), 0);
	assert_int_equal(tree_sender_new(source, &sender, &err), 0);
	while ((n = tree_sender_read(sender, chunk, sizeof(chunk), &err)) > 0)
		assert_int_equal(buf_append(&memory.bytes, chunk, (size_t)n), 0);
	assert_int_equal(n, 0);
	tree_sender_free(sender);
	dir_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_receive(dir_fd, &(struct tree_input){take, &memory}, &err), 0);
	buf_fini(&memory.bytes);
	expect_text("copy/tool", "#!/bin/sh\n");
	expect_text("copy/empty", "");
	expect_text("copy/sub/\xc3\xbc \xff", "odd name");
	assert_int_equal(count_entries("copy"), 3);
	assert_int_equal(count_entries("copy/sub"), 2);
	assert_int_equal(stat(copied_tool, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_true(readlink(copied_link, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "../tool");
}

static void a_missing_directory_is_an_error(void **state)
{
	struct tree_sender *sender = NULL;
	char chunk[1024];
	int r = tree_sender_new("/nonexistent/sandlot", &sender, &err);

	(void)state;
	if (r == 0)
		r = (int)tree_sender_read(sender, chunk, sizeof(chunk), &err);
	assert_true(r < 0);
	tree_sender_free(sender);
}

static int set_up(void **state)
{
	auto_free char *outside = NULL;

	(void)state;
	umask(022);
	if (!mkdtemp(base_dir) || archive_library_load(&lib, &err) < 0)
		return -1;
	outside = at("outside");
	write_text("canary", "safe", 0644);
	return mkdir(outside, 0755);
}

static int tear_down(void **state)
{
	auto_free char *command = mem_printf("rm -rf '%s'", base_dir);

	(void)state;
	return chdir("/") < 0 ? -1 : system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_archive_writes_outside_its_directory),
		cmocka_unit_test(writing_over_a_link_replaces_the_link),
		cmocka_unit_test(links_of_an_earlier_archive_are_replaced_and_not_followed),
		cmocka_unit_test(
			a_directory_that_becomes_a_link_within_an_archive_is_not_left_by_it),
		cmocka_unit_test(a_hard_link_is_one_to_a_file_of_the_tree),
		cmocka_unit_test(a_pipe_in_the_tree_is_replaced),
		cmocka_unit_test(directories_that_nobody_may_write_are_filled_all_the_same),
		cmocka_unit_test(privileges_and_devices_do_not_come_along),
		cmocka_unit_test(an_archive_that_breaks_off_is_an_error),
		cmocka_unit_test(a_directory_arrives_as_it_was_sent),
		cmocka_unit_test(a_missing_directory_is_an_error),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
