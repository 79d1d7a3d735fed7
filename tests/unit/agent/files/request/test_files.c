/* SPDX-License-Identifier: Apache-2.0 */
#include "test_agent_peer.h"

#include "base/fd.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct peer peer;
	char *dir;
};

static int start(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	peer_start(&f->peer);
	peer_attach(&f->peer, NULL, 0);
	f->dir = peer_make_temp();
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	peer_stop(&f->peer);
	peer_remove_temp(f->dir);
	free(f);
	return 0;
}

/* A path below the test's directory; the next call but seven overwrites it. */
static const char *in(struct fixture *f, const char *name)
{
	static char paths[8][AGENT_PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, AGENT_PATH_MAX, "%s/%s", f->dir, name);
	return path;
}

static void make_file(struct fixture *f, const char *name, const char *content)
{
	int fd = open(in(f, name), O_CREAT | O_WRONLY | O_TRUNC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static void assert_content(struct fixture *f, const char *name, const char *content)
{
	char text[4096];

	assert_true(fd_read_file(AT_FDCWD, in(f, name), text, sizeof(text)) >= 0);
	assert_string_equal(text, content);
}

/* The errnum of a request that takes a path and is answered once. */
static int ask(
	struct fixture *f, enum agent_file_op op, const char *path, struct peer_answer *answer)
{
	auto_fd int channel = peer_file_path(&f->peer, op, path);

	return peer_errnum(channel, answer);
}

static void stat_tells_of_the_thing_itself(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	struct stat st;

	make_file(f, "file", "hello");
	assert_int_equal(symlink("file", in(f, "link")), 0);
	assert_int_equal(mkfifo(in(f, "fifo"), 0600), 0);
	assert_int_equal(ask(f, AGENT_FILE_STAT, in(f, "file"), &answer), 0);
	assert_int_equal(stat(in(f, "file"), &st), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_REGULAR);
	assert_int_equal(answer.answer.size, 5);
	assert_int_equal(answer.answer.mode, 0640);
	assert_int_equal(answer.answer.uid, getuid());
	assert_int_equal(answer.answer.inode, st.st_ino);
	assert_int_equal(answer.answer.mtime_ns,
		(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
	assert_int_equal(ask(f, AGENT_FILE_STAT, in(f, "link"), &answer), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_SYMLINK);
	assert_string_equal(answer.target, "file");
	assert_int_equal(ask(f, AGENT_FILE_STAT, f->dir, &answer), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_DIRECTORY);
	assert_int_equal(ask(f, AGENT_FILE_STAT, in(f, "fifo"), &answer), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_OTHER);
	assert_int_equal(ask(f, AGENT_FILE_STAT, in(f, "none"), &answer), ENOENT);
	assert_int_equal(answer.answer.kind, AGENT_FILE_NONE);
	assert_int_equal(ask(f, AGENT_FILE_STAT, in(f, "file/x"), &answer), ENOTDIR);
	assert_int_equal(ask(f, AGENT_FILE_STAT, "relative", &answer), EINVAL);
	assert_int_equal(ask(f, AGENT_FILE_STAT, "", &answer), EINVAL);
	assert_int_equal(ask(f, AGENT_FILE_STAT, "/", &answer), 0);
}

static void magic_links_are_not_followed(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;

	assert_int_equal(ask(f, AGENT_FILE_READ, "/proc/self/fd/3", &answer), ELOOP);
	assert_int_equal(ask(f, AGENT_FILE_READ, "/proc/self/root/etc/passwd", &answer), ELOOP);
	assert_int_equal(ask(f, AGENT_FILE_READ, "/proc/self/exe", &answer), ELOOP);
}

static void ask_range(int channel, uint64_t offset, uint64_t len)
{
	struct buf out = BUF_INIT(64);

	pack_u64(&out, offset);
	pack_u64(&out, len);
	assert_int_equal(fd_write_full(channel, out.data, out.len), 0);
	buf_fini(&out);
}

static void read_gives_the_asked_range(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	char text[16] = "";
	int channel;

	make_file(f, "file", "0123456789");
	assert_int_equal(symlink("file", in(f, "link")), 0);
	channel = peer_file_path(&f->peer, AGENT_FILE_READ, in(f, "link"));
	assert_int_equal(peer_errnum(channel, &answer), 0);
	assert_int_equal(answer.answer.size, 10);
	ask_range(channel, 3, 4);
	assert_true(peer_read(channel, text, 4));
	assert_string_equal(text, "3456");
	assert_true(peer_at_end(channel));
	close(channel);

	/* A file that is shorter than asked for ends the channel early. */
	channel = peer_file_path(&f->peer, AGENT_FILE_READ, in(f, "file"));
	assert_int_equal(peer_errnum(channel, &answer), 0);
	ask_range(channel, 8, 100);
	assert_true(peer_read(channel, text, 2));
	assert_true(peer_at_end(channel));
	close(channel);
	channel = peer_file_path(&f->peer, AGENT_FILE_READ, in(f, "file"));
	assert_int_equal(peer_errnum(channel, &answer), 0);
	ask_range(channel, UINT64_MAX, 1);
	assert_true(peer_at_end(channel));
	close(channel);
}

static void read_of_a_large_file_is_exact(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	const size_t size = 40 * 1024 * 1024 + 13;
	uint32_t *sent = mem_new(size + 4), *received = mem_new(size + 4);
	int fd = open(in(f, "large"), O_CREAT | O_WRONLY, 0600);
	int channel;

	for (size_t i = 0; i < size / 4 + 1; i++)
		sent[i] = (uint32_t)(i * 2654435761u);
	assert_int_equal(fd_write_full(fd, sent, size), 0);
	close(fd);
	channel = peer_file_path(&f->peer, AGENT_FILE_READ, in(f, "large"));
	assert_int_equal(peer_errnum(channel, &answer), 0);
	ask_range(channel, 5, size - 5);
	assert_true(peer_read(channel, received, size - 5));
	assert_memory_equal(received, (char *)sent + 5, size - 5);
	assert_true(peer_at_end(channel));
	close(channel);
	free(sent);
	free(received);
}

static void only_regular_files_are_read(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;

	assert_int_equal(mkfifo(in(f, "fifo"), 0600), 0);
	assert_int_equal(ask(f, AGENT_FILE_READ, in(f, "fifo"), &answer), EINVAL);
	assert_int_equal(ask(f, AGENT_FILE_READ, "/dev/zero", &answer), EINVAL);
	assert_int_equal(ask(f, AGENT_FILE_READ, "/dev/tty", &answer), EINVAL);
	assert_int_equal(ask(f, AGENT_FILE_READ, f->dir, &answer), EISDIR);
	assert_int_equal(ask(f, AGENT_FILE_READ, in(f, "none"), &answer), ENOENT);
	assert_int_equal(symlink("loop", in(f, "loop")), 0);
	assert_int_equal(ask(f, AGENT_FILE_READ, in(f, "loop"), &answer), ELOOP);
}

/* Write */

static int begin_write(struct fixture *f, const char *path, uint32_t mode, uint64_t size,
	struct peer_answer *answer)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	int channel;

	pack_str(&args, path);
	pack_u32(&args, mode);
	pack_u64(&args, size);
	channel = peer_file(&f->peer, AGENT_FILE_WRITE, &args);
	buf_fini(&args);
	assert_true(peer_answer(channel, answer));
	return channel;
}

static void send_chunk(int channel, const void *data, uint32_t len)
{
	uint8_t head[4] = {
		(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};

	assert_int_equal(fd_write_full(channel, head, 4), 0);
	assert_int_equal(fd_write_full(channel, data, len), 0);
}

static int write_text(struct fixture *f, const char *path, uint32_t mode, const char *text,
	struct peer_answer *answer)
{
	int channel = begin_write(f, path, mode, AGENT_SIZE_UNKNOWN, answer);

	if (answer->answer.errnum == 0) {
		if (text[0])
			send_chunk(channel, text, (uint32_t)strlen(text));
		send_chunk(channel, "", 0);
		assert_true(peer_answer(channel, answer));
	}
	close(channel);
	return (int)answer->answer.errnum;
}

static void write_creates_with_parents_and_replaces(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	struct stat st;

	assert_int_equal(write_text(f, in(f, "a/b/c/new"), AGENT_MODE_KEEP, "one", &answer), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_REGULAR);
	assert_int_equal(answer.answer.flags, 0);
	assert_int_equal(answer.answer.mode, 0644);
	assert_int_equal(answer.answer.size, 3);
	assert_content(f, "a/b/c/new", "one");
	assert_int_equal(stat(in(f, "a/b"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);

	assert_int_equal(chmod(in(f, "a/b/c/new"), 0751), 0);
	assert_int_equal(write_text(f, in(f, "a/b/c/new"), AGENT_MODE_KEEP, "twotwo", &answer), 0);
	assert_int_equal(answer.answer.flags, AGENT_FILE_EXISTED);
	assert_int_equal(answer.answer.mode, 0751);
	assert_content(f, "a/b/c/new", "twotwo");
	assert_int_equal(write_text(f, in(f, "a/b/c/new"), 0600, "", &answer), 0);
	assert_int_equal(answer.answer.mode, 0600);
	assert_content(f, "a/b/c/new", "");
}

static void what_is_created_belongs_to_the_owner_of_the_parent(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	struct stat st;
	uid_t uid = peer_has_other_users() ? 4321 : getuid();
	gid_t gid = peer_has_other_users() ? 1234 : getgid();

	assert_int_equal(mkdir(in(f, "home"), 0700), 0);
	assert_int_equal(chown(in(f, "home"), uid, gid), 0);
	assert_int_equal(write_text(f, in(f, "home/x/y"), AGENT_MODE_KEEP, "1", &answer), 0);
	assert_int_equal(answer.answer.uid, uid);
	assert_int_equal(answer.answer.gid, gid);
	assert_int_equal(stat(in(f, "home/x"), &st), 0);
	assert_int_equal(st.st_uid, uid);
	/* One that is replaced keeps its own. */
	make_file(f, "home/mine", "");
	assert_int_equal(write_text(f, in(f, "home/mine"), AGENT_MODE_KEEP, "1", &answer), 0);
	assert_int_equal(answer.answer.uid, getuid());
}

static void write_follows_a_link_and_replaces_its_target(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	struct stat st;

	assert_int_equal(mkdir(in(f, "d"), 0755), 0);
	make_file(f, "d/target", "old");
	assert_int_equal(symlink("d/hop", in(f, "link")), 0);
	assert_int_equal(symlink("../d/target", in(f, "d/hop")), 0);
	assert_int_equal(write_text(f, in(f, "link"), AGENT_MODE_KEEP, "new", &answer), 0);
	assert_content(f, "d/target", "new");
	assert_int_equal(lstat(in(f, "link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	/* Also one that leads to nothing yet. */
	assert_int_equal(symlink("e/f/g", in(f, "dangling")), 0);
	assert_int_equal(write_text(f, in(f, "dangling"), AGENT_MODE_KEEP, "made", &answer), 0);
	assert_content(f, "e/f/g", "made");
	assert_int_equal(symlink("loop", in(f, "loop")), 0);
	assert_int_equal(write_text(f, in(f, "loop"), AGENT_MODE_KEEP, "x", &answer), ELOOP);
}

static void write_refuses_what_is_no_file(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;

	assert_int_equal(mkfifo(in(f, "fifo"), 0600), 0);
	make_file(f, "file", "");
	assert_int_equal(write_text(f, f->dir, AGENT_MODE_KEEP, "x", &answer), EISDIR);
	assert_int_equal(write_text(f, in(f, "new/"), AGENT_MODE_KEEP, "x", &answer), EISDIR);
	assert_int_equal(write_text(f, in(f, "fifo"), AGENT_MODE_KEEP, "x", &answer), EINVAL);
	assert_int_equal(write_text(f, in(f, "file/x"), AGENT_MODE_KEEP, "x", &answer), ENOTDIR);
	assert_int_equal(write_text(f, "/", AGENT_MODE_KEEP, "x", &answer), EISDIR);
	close(begin_write(f, in(f, "huge"), AGENT_MODE_KEEP, (uint64_t)1 << 60, &answer));
	assert_int_equal(answer.answer.errnum, ENOSPC);
}

static size_t count_entries(const char *dir)
{
	auto_free char *line = mem_printf("find '%s' | wc -l", dir);

	return peer_number_of(line);
}

static void a_write_that_breaks_off_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	int channel;

	make_file(f, "file", "old");
	channel = begin_write(f, in(f, "file"), AGENT_MODE_KEEP, AGENT_SIZE_UNKNOWN, &answer);
	assert_int_equal(answer.answer.size, 3);
	send_chunk(channel, "new", 3);
	assert_int_equal(shutdown(channel, SHUT_WR), 0);
	assert_true(peer_at_end(channel));
	close(channel);
	channel = begin_write(f, in(f, "p/q/r"), AGENT_MODE_KEEP, AGENT_SIZE_UNKNOWN, &answer);
	assert_int_equal(answer.answer.kind, AGENT_FILE_NONE);
	send_chunk(channel, "new", 3);
	assert_int_equal(shutdown(channel, SHUT_WR), 0);
	assert_true(peer_at_end(channel));
	close(channel);
	/* Fewer bytes than announced are no file either. */
	channel = begin_write(f, in(f, "file"), AGENT_MODE_KEEP, 10, &answer);
	send_chunk(channel, "new", 3);
	send_chunk(channel, "", 0);
	assert_int_equal(peer_errnum(channel, &answer), EINVAL);
	close(channel);
	assert_content(f, "file", "old");
	assert_int_equal(count_entries(f->dir), 2);
}

static void a_write_in_many_chunks_is_exact(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	const size_t size = 20 * 1024 * 1024;
	uint8_t *data = mem_new(size), *back = mem_new(size);
	uint32_t seed = 1;
	size_t at = 0;
	int channel, fd;

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + i / 1000);
	channel = begin_write(f, in(f, "big"), 0600, size, &answer);
	while (at < size) {
		size_t n;

		seed = seed * 1664525 + 1013904223;
		n = (seed >> 8) % (seed & 1024 ? 700000 : 50) + 1;
		if (n > size - at)
			n = size - at;
		send_chunk(channel, data + at, (uint32_t)n);
		at += n;
	}
	send_chunk(channel, "", 0);
	assert_int_equal(peer_errnum(channel, &answer), 0);
	assert_int_equal(answer.answer.size, size);
	close(channel);
	fd = open(in(f, "big"), O_RDONLY);
	assert_int_equal(fd_read_full(fd, back, size), 0);
	assert_memory_equal(data, back, size);
	close(fd);
	free(data);
	free(back);
}

/* List */

struct page {
	char names[4096][64];
	size_t count;
	bool has_more;
	uint32_t errnum;
};

static void list(struct fixture *f, const char *path, uint32_t depth, uint32_t limit,
	const char *after, struct page *page)
{
	struct buf args = BUF_INIT(4 * AGENT_PATH_MAX);
	struct peer_answer answer;
	uint8_t more, is_entry;
	int channel;

	pack_str(&args, path);
	pack_u32(&args, depth);
	pack_u32(&args, limit);
	pack_str(&args, after);
	channel = peer_file(&f->peer, AGENT_FILE_LIST, &args);
	buf_fini(&args);
	page->count = 0;
	page->errnum = (uint32_t)peer_errnum(channel, &answer);
	while (page->errnum == 0) {
		uint8_t raw[4];
		uint32_t len;

		assert_true(peer_read(channel, &is_entry, 1));
		if (!is_entry)
			break;
		assert_true(page->count < array_len(page->names));
		assert_true(peer_read(channel, raw, 4));
		len = unpack_u32(&UNPACK_INIT(raw, 4));
		assert_true(len < sizeof(page->names[0]));
		assert_true(peer_read(channel, page->names[page->count], len));
		page->names[page->count][len] = '\0';
		assert_true(peer_answer(channel, &answer));
		page->count++;
	}
	if (page->errnum == 0) {
		assert_true(peer_read(channel, &more, 1));
		page->has_more = more;
		assert_true(peer_at_end(channel));
	}
	close(channel);
}

static void assert_names(const struct page *page, const char *const *names)
{
	for (size_t i = 0; i < page->count; i++) {
		assert_non_null(names[i]);
		assert_string_equal(page->names[i], names[i]);
	}
	assert_null(names[page->count]);
}

static void list_goes_by_components_in_byte_order(void **state)
{
	struct fixture *f = *state;
	struct page *page = mem_new(sizeof(*page));
	static const char *const all[] = {"a", "a/x", "a/x/deep", "a/y", "a.b", "b", "link", NULL};

	assert_int_equal(mkdir(in(f, "a"), 0755), 0);
	assert_int_equal(mkdir(in(f, "a/x"), 0755), 0);
	make_file(f, "a/x/deep", "");
	make_file(f, "a/y", "");
	make_file(f, "a.b", "");
	make_file(f, "b", "");
	assert_int_equal(symlink("a", in(f, "link")), 0);
	list(f, f->dir, 1, 100, "", page);
	assert_names(page, (const char *[]){"a", "a.b", "b", "link", NULL});
	assert_false(page->has_more);
	list(f, f->dir, 2, 100, "", page);
	assert_names(page, (const char *[]){"a", "a/x", "a/y", "a.b", "b", "link", NULL});
	list(f, f->dir, 99, 100, "", page);
	assert_names(page, all);
	/* Every page size gives the same whole. */
	for (uint32_t limit = 1; limit < 8; limit++) {
		char after[64] = "";
		size_t seen = 0;

		do {
			list(f, f->dir, 99, limit, after, page);
			for (size_t i = 0; i < page->count; i++)
				assert_string_equal(page->names[i], all[seen++]);
			assert_true(page->count == limit || !page->has_more);
			strcpy(after, page->names[page->count - 1]);
		} while (page->has_more);
		assert_int_equal(seen, 7);
	}
	/* After something that is gone by now. */
	list(f, f->dir, 99, 100, "a/w/gone", page);
	assert_names(page, (const char *[]){"a/x", "a/x/deep", "a/y", "a.b", "b", "link", NULL});
	list(f, f->dir, 99, 100, "zzz", page);
	assert_int_equal(page->count, 0);
	list(f, in(f, "b"), 1, 100, "", page);
	assert_int_equal(page->errnum, ENOTDIR);
	list(f, in(f, "none"), 1, 100, "", page);
	assert_int_equal(page->errnum, ENOENT);
	list(f, f->dir, 0, 100, "", page);
	assert_int_equal(page->errnum, EINVAL);
	free(page);
}

static void list_pages_through_three_thousand_entries(void **state)
{
	struct fixture *f = *state;
	struct page *page = mem_new(sizeof(*page));
	char after[64] = "", name[64];
	int expected = 0;

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%05d", i * 7919 % 3000);
		make_file(f, name, "");
	}
	do {
		list(f, f->dir, 3, 256, after, page);
		for (size_t i = 0; i < page->count; i++) {
			snprintf(name, sizeof(name), "f%05d", expected++);
			assert_string_equal(page->names[i], name);
		}
		strcpy(after, page->names[page->count - 1]);
	} while (page->has_more);
	assert_int_equal(expected, 3000);
	list(f, f->dir, 1, 4000, "", page);
	assert_int_equal(page->count, 3000);
	free(page);
}

static void list_rereads_outer_levels_that_it_had_to_forget(void **state)
{
	struct fixture *f = *state;
	struct page *page = mem_new(sizeof(*page));
	char after[64] = "", name[64];
	size_t seen = 0;

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%02d", i);
		assert_int_equal(mkdir(in(f, name), 0755), 0);
		for (int j = 0; j < 10; j++) {
			snprintf(name, sizeof(name), "d%02d/e%02d", i, j);
			make_file(f, name, "");
		}
	}
	do {
		list(f, f->dir, 5, 3, after, page);
		for (size_t i = 0; i < page->count; i++, seen++) {
			if (seen % 11 == 0)
				snprintf(name, sizeof(name), "d%02d", (int)seen / 11);
			else
				snprintf(name, sizeof(name), "d%02d/e%02d", (int)seen / 11,
					(int)(seen % 11) - 1);
			assert_string_equal(page->names[i], name);
		}
		strcpy(after, page->names[page->count - 1]);
	} while (page->has_more);
	assert_int_equal(seen, 220);
	free(page);
}

/* Directories, moving, removing */

static int make_dir(struct fixture *f, const char *path, uint32_t mode, struct peer_answer *answer)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	int channel, errnum;

	pack_str(&args, path);
	pack_u32(&args, mode);
	channel = peer_file(&f->peer, AGENT_FILE_MKDIR, &args);
	buf_fini(&args);
	errnum = peer_errnum(channel, answer);
	close(channel);
	return errnum;
}

static void mkdir_makes_parents_and_accepts_what_exists(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;

	assert_int_equal(make_dir(f, in(f, "x/y/z"), 0711, &answer), 0);
	assert_int_equal(answer.answer.kind, AGENT_FILE_DIRECTORY);
	assert_int_equal(answer.answer.mode, 0711);
	assert_int_equal(answer.answer.flags, 0);
	assert_int_equal(make_dir(f, in(f, "x/y/z/"), 0700, &answer), 0);
	assert_int_equal(answer.answer.flags, AGENT_FILE_EXISTED);
	assert_int_equal(answer.answer.mode, 0711);
	assert_int_equal(make_dir(f, "/", 0700, &answer), 0);
	make_file(f, "file", "");
	assert_int_equal(symlink("nowhere", in(f, "dangling")), 0);
	assert_int_equal(make_dir(f, in(f, "file"), 0700, &answer), EEXIST);
	assert_int_equal(make_dir(f, in(f, "dangling"), 0700, &answer), EEXIST);
	assert_int_equal(make_dir(f, in(f, "file/x"), 0700, &answer), ENOTDIR);
}

static int move(struct fixture *f, const char *from, const char *to, bool replace)
{
	struct buf args = BUF_INIT(4 * AGENT_PATH_MAX);
	struct peer_answer answer;
	int channel, errnum;

	pack_str(&args, from);
	pack_str(&args, to);
	pack_u8(&args, replace);
	channel = peer_file(&f->peer, AGENT_FILE_MOVE, &args);
	buf_fini(&args);
	errnum = peer_errnum(channel, &answer);
	close(channel);
	return errnum;
}

static void move_makes_directories_and_replaces_only_when_told(void **state)
{
	struct fixture *f = *state;

	make_file(f, "a", "A");
	make_file(f, "b", "B");
	assert_int_equal(mkdir(in(f, "d"), 0755), 0);
	assert_int_equal(move(f, in(f, "a"), in(f, "b"), false), EEXIST);
	assert_content(f, "b", "B");
	assert_int_equal(move(f, in(f, "a"), in(f, "b"), true), 0);
	assert_content(f, "b", "A");
	assert_int_equal(move(f, in(f, "a"), in(f, "c"), true), ENOENT);
	assert_int_equal(move(f, in(f, "b"), in(f, "d/e"), false), 0);
	assert_content(f, "d/e", "A");
	assert_int_equal(move(f, in(f, "d"), in(f, "d/inside"), false), EINVAL);
	assert_int_equal(move(f, in(f, "missing"), in(f, "no/parent"), false), ENOENT);
	assert_int_equal(access(in(f, "no"), F_OK), -1);
	assert_int_equal(move(f, in(f, "d"), in(f, "no/parent"), false), 0);
	assert_content(f, "no/parent/e", "A");
	assert_int_equal(move(f, in(f, "no/parent"), in(f, "d"), false), 0);
	assert_int_equal(move(f, "/", in(f, "root"), false), EBUSY);
	assert_int_equal(move(f, in(f, "d"), "relative", false), EINVAL);
}

static int delete (struct fixture *f, const char *path, bool recursive)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	struct peer_answer answer;
	int channel, errnum;

	pack_str(&args, path);
	pack_u8(&args, recursive);
	channel = peer_file(&f->peer, AGENT_FILE_REMOVE, &args);
	buf_fini(&args);
	errnum = peer_errnum(channel, &answer);
	close(channel);
	return errnum;
}

static void remove_never_follows_links(void **state)
{
	struct fixture *f = *state;
	char *canary = peer_make_temp();
	char *kept = mem_printf("%s/kept", canary);
	int fd = open(kept, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkdir(in(f, "t"), 0755), 0);
	assert_int_equal(symlink(canary, in(f, "t/out")), 0);
	assert_int_equal(symlink(canary, in(f, "out")), 0);
	assert_int_equal(delete (f, in(f, "t"), false), EISDIR);
	assert_int_equal(delete (f, in(f, "t"), true), 0);
	assert_int_equal(delete (f, in(f, "out"), true), 0);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(count_entries(f->dir), 1);
	assert_int_equal(mkdir(in(f, "empty"), 0755), 0);
	assert_int_equal(delete (f, in(f, "empty"), false), 0);
	assert_int_equal(delete (f, in(f, "empty"), false), ENOENT);
	assert_int_equal(delete (f, "/", true), EBUSY);
	assert_int_equal(delete (f, "//", true), EBUSY);
	assert_int_equal(delete (f, in(f, "."), true), EINVAL);
	assert_int_equal(delete (f, in(f, ".."), true), EINVAL);
	/* A mount point, with or without the right to unmount it. */
	assert_int_equal(delete (f, "/proc", true), EBUSY);
	assert_int_equal(access("/proc/self/stat", F_OK), 0);
	peer_remove_temp(canary);
	free(kept);
}

/* Far deeper than any path could name. */
static void make_deep(const char *dir, int levels)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "deep", 0755), 0);
		next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		close(openat(next, "file", O_CREAT | O_WRONLY, 0600));
		close(fd);
		fd = next;
	}
	close(fd);
}

static void a_tree_of_five_thousand_levels_can_be_listed_and_removed(void **state)
{
	struct fixture *f = *state;
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	struct peer_answer answer;
	uint8_t is_entry = 1, more;
	size_t count = 0;
	int channel;

	assert_int_equal(mkdir(in(f, "top"), 0755), 0);
	make_deep(in(f, "top"), 5000);
	pack_str(&args, in(f, "top"));
	pack_u32(&args, UINT32_MAX);
	pack_u32(&args, 1000000);
	pack_str(&args, "");
	channel = peer_file(&f->peer, AGENT_FILE_LIST, &args);
	buf_fini(&args);
	assert_int_equal(peer_errnum(channel, &answer), 0);
	while (peer_read(channel, &is_entry, 1) && is_entry) {
		char path[AGENT_PATH_MAX];
		uint8_t raw[4];
		uint32_t len;

		assert_true(peer_read(channel, raw, 4));
		len = unpack_u32(&UNPACK_INIT(raw, 4));
		assert_true(len < sizeof(path));
		assert_true(peer_read(channel, path, len));
		assert_true(peer_answer(channel, &answer));
		count++;
	}
	assert_true(peer_read(channel, &more, 1));
	assert_int_equal(more, 0);
	close(channel);
	assert_true(count > 1600 && count < 1700);
	assert_int_equal(delete (f, in(f, "top"), true), 0);
	assert_int_equal(count_entries(f->dir), 1);
}

static void a_wide_tree_is_removed(void **state)
{
	struct fixture *f = *state;
	char name[64];

	assert_int_equal(mkdir(in(f, "t"), 0755), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "t/%d", i);
		assert_int_equal(mkdir(in(f, name), 0755), 0);
		snprintf(name, sizeof(name), "t/%d/x", i);
		make_file(f, name, "");
		snprintf(name, sizeof(name), "t/f%d", i);
		make_file(f, name, "");
	}
	assert_int_equal(delete (f, in(f, "t"), true), 0);
	assert_int_equal(count_entries(f->dir), 1);
}

static void too_many_requests_at_once_are_told_to_come_again(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	int channels[80];
	int refused = 0;

	make_file(f, "file", "x");
	for (size_t i = 0; i < array_len(channels); i++)
		channels[i] = peer_file_path(&f->peer, AGENT_FILE_READ, in(f, "file"));
	for (size_t i = 0; i < array_len(channels); i++) {
		int errnum = peer_errnum(channels[i], &answer);

		assert_true(errnum == 0 || errnum == EAGAIN);
		refused += errnum == EAGAIN;
	}
	assert_int_equal(refused, 80 - 64);
	for (size_t i = 0; i < array_len(channels); i++)
		close(channels[i]);
	/* Those that were left alone ended with their channels. */
	for (int i = 0; i < 1000 && ask(f, AGENT_FILE_STAT, "/", &answer) == EAGAIN; i++)
		poll(NULL, 0, 5);
	assert_int_equal(answer.answer.errnum, 0);
}

#define with_agent(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(stat_tells_of_the_thing_itself),
		with_agent(magic_links_are_not_followed),
		with_agent(read_gives_the_asked_range),
		with_agent(read_of_a_large_file_is_exact),
		with_agent(only_regular_files_are_read),
		with_agent(write_creates_with_parents_and_replaces),
		with_agent(what_is_created_belongs_to_the_owner_of_the_parent),
		with_agent(write_follows_a_link_and_replaces_its_target),
		with_agent(write_refuses_what_is_no_file),
		with_agent(a_write_that_breaks_off_changes_nothing),
		with_agent(a_write_in_many_chunks_is_exact),
		with_agent(list_goes_by_components_in_byte_order),
		with_agent(list_pages_through_three_thousand_entries),
		with_agent(list_rereads_outer_levels_that_it_had_to_forget),
		with_agent(mkdir_makes_parents_and_accepts_what_exists),
		with_agent(move_makes_directories_and_replaces_only_when_told),
		with_agent(remove_never_follows_links),
		with_agent(a_tree_of_five_thousand_levels_can_be_listed_and_removed),
		with_agent(a_wide_tree_is_removed),
		with_agent(too_many_requests_at_once_are_told_to_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
