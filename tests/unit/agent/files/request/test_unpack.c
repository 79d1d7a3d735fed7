/* SPDX-License-Identifier: Apache-2.0 */
/* PACK and UNPACK. */
#include "test_agent_peer.h"

#include "base/fd.h"
#include "wire/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MTIME_NS 1700000000123456789u

struct fixture {
	struct peer peer;
	char *dir;
	char *canary; /* outside of what is unpacked into */
};

struct item {
	enum agent_item kind;
	const char *name;
	const char *content; /* or the target */
	uint32_t mode;
};

static int start(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	peer_start(&f->peer);
	peer_attach(&f->peer, NULL, 0);
	f->dir = peer_make_temp();
	f->canary = peer_make_temp();
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	peer_stop(&f->peer);
	peer_remove_temp(f->dir);
	peer_remove_temp(f->canary);
	free(f);
	return 0;
}

static void put_item(struct buf *out, const struct item *item)
{
	bool is_file = item->kind == AGENT_ITEM_FILE;
	const char *content = item->content ? item->content : "";

	pack_u8(out, (uint8_t)item->kind);
	pack_u32(out, item->mode ? item->mode : 0644);
	pack_u32(out, 0);
	pack_u32(out, 0);
	pack_u64(out, MTIME_NS);
	pack_u64(out, is_file ? strlen(content) : 0);
	pack_str(out, item->name);
	pack_str(out, is_file ? "" : content);
	if (is_file)
		buf_append_str(out, content);
}

/* Unpacks items into dir/out; the errnum of the second answer. */
static int unpack(
	struct fixture *f, const struct item *items, size_t count, struct peer_answer *answer)
{
	struct buf out = BUF_INIT(16 * 1024 * 1024);
	char *path = mem_printf("%s/out", f->dir);
	int channel = peer_file_path(&f->peer, AGENT_FILE_UNPACK, path);

	free(path);
	assert_int_equal(peer_errnum(channel, answer), 0);
	assert_int_equal(answer->answer.kind, AGENT_FILE_DIRECTORY);
	for (size_t i = 0; i < count; i++)
		put_item(&out, &items[i]);
	put_item(&out, &(struct item){AGENT_ITEM_END, "", NULL, 0});
	assert_int_equal(fd_write_full(channel, out.data, out.len), 0);
	buf_fini(&out);
	assert_true(peer_answer(channel, answer));
	close(channel);
	return (int)answer->answer.errnum;
}

static void assert_content(const char *dir, const char *name, const char *content)
{
	char *path = mem_printf("%s/%s", dir, name);
	char text[4096];

	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof(text)) >= 0);
	assert_string_equal(text, content);
	free(path);
}

static struct stat stat_of(const char *dir, const char *name)
{
	char *path = mem_printf("%s/%s", dir, name);
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	free(path);
	return st;
}

static void unpack_makes_what_it_is_given(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	struct stat st;
	static const struct item items[] = {
		{AGENT_ITEM_DIRECTORY, "d/", NULL, 0750},
		{AGENT_ITEM_FILE, "d/file", "content", 06755},
		{AGENT_ITEM_FILE, "./new/parents/file", "x", 0600},
		{AGENT_ITEM_SYMLINK, "d/link", "file", 0},
		{AGENT_ITEM_HARDLINK, "hard", "d/file", 0},
		{AGENT_ITEM_FILE, "after", "in the root", 0},
		{AGENT_ITEM_DIRECTORY, ".", NULL, 0},
		{AGENT_ITEM_FILE, "empty", "", 0},
	};

	/* Twice: what exists is replaced. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unpack(f, items, array_len(items), &answer), 0);
		assert_content(f->dir, "out/d/file", "content");
		assert_content(f->dir, "out/new/parents/file", "x");
		assert_content(f->dir, "out/d/link", "content");
		assert_content(f->dir, "out/after", "in the root");
		st = stat_of(f->dir, "out/d/file");
		assert_int_equal(st.st_mode & 07777, 0755);
		assert_int_equal(st.st_nlink, 2);
		assert_int_equal(st.st_mtim.tv_sec, MTIME_NS / 1000000000);
		assert_int_equal(st.st_mtim.tv_nsec, MTIME_NS % 1000000000);
		assert_int_equal(stat_of(f->dir, "out/hard").st_ino, st.st_ino);
		assert_int_equal(stat_of(f->dir, "out/d").st_mode & 07777, 0750);
		assert_int_equal(stat_of(f->dir, "out/empty").st_size, 0);
	}
}

static void hostile_names_are_refused(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	static const char *const names[] = {
		"../x", "a/../../x", "/etc/x", "", "..", "a/..", "a/../b"};

	for (size_t i = 0; i < array_len(names); i++) {
		struct item item = {AGENT_ITEM_FILE, names[i], "evil", 0};

		assert_int_equal(unpack(f, &item, 1, &answer), EINVAL);
		assert_string_equal(answer.target, names[i]);
		item.kind = AGENT_ITEM_DIRECTORY;
		assert_int_equal(unpack(f, &item, 1, &answer), EINVAL);
		item = (struct item){AGENT_ITEM_HARDLINK, "innocent", names[i], 0};
		assert_int_equal(unpack(f, &item, 1, &answer), EINVAL);
		assert_string_equal(answer.target, "innocent");
	}
	{
		struct item dot = {AGENT_ITEM_FILE, ".", "evil", 0};
		struct item slash = {AGENT_ITEM_FILE, "x/", "evil", 0};
		struct item kind = {(enum agent_item)9, "x", "evil", 0};

		assert_int_equal(unpack(f, &dot, 1, &answer), EINVAL);
		assert_int_equal(unpack(f, &slash, 1, &answer), EINVAL);
		assert_int_equal(unpack(f, &kind, 1, &answer), EPROTO);
	}
	assert_int_equal(access("/etc/x", F_OK), -1);
}

static void no_item_passes_a_symbolic_link(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	char *victim = mem_printf("%s/victim", f->canary);
	int fd = open(victim, O_CREAT | O_WRONLY, 0600);
	const struct item through[] = {
		{AGENT_ITEM_SYMLINK, "x", f->canary, 0}, {AGENT_ITEM_FILE, "x/victim", "evil", 0}};
	const struct item onto[] = {
		{AGENT_ITEM_SYMLINK, "y", victim, 0}, {AGENT_ITEM_FILE, "y", "evil", 0}};
	const struct item deeper[] = {
		{AGENT_ITEM_SYMLINK, "z", ".", 0}, {AGENT_ITEM_DIRECTORY, "z/sub", NULL, 0755}};
	const struct item directory[] = {
		{AGENT_ITEM_SYMLINK, "w", f->canary, 0}, {AGENT_ITEM_DIRECTORY, "w", NULL, 0777}};
	const struct item hard[] = {{AGENT_ITEM_SYMLINK, "v", f->canary, 0},
		{AGENT_ITEM_HARDLINK, "stolen", "v/victim", 0}};
	const struct item link[] = {
		{AGENT_ITEM_SYMLINK, "u", victim, 0}, {AGENT_ITEM_HARDLINK, "stolen", "u", 0}};

	close(fd);
	assert_int_equal(unpack(f, through, 2, &answer), ELOOP);
	assert_string_equal(answer.target, "x/victim");
	assert_int_equal(unpack(f, onto, 2, &answer), ELOOP);
	assert_int_equal(unpack(f, deeper, 2, &answer), ELOOP);
	assert_int_equal(unpack(f, directory, 2, &answer), ELOOP);
	assert_int_equal(unpack(f, hard, 2, &answer), ELOOP);
	assert_int_equal(unpack(f, link, 2, &answer), ELOOP);
	assert_content(f->canary, "victim", "");
	assert_int_equal(stat_of(f->canary, "victim").st_nlink, 1);
	assert_int_equal(stat_of(f->canary, ".").st_mode & 07777, 0700);
	free(victim);
}

static void a_failure_stops_there_and_keeps_what_was_written(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	static const struct item items[] = {
		{AGENT_ITEM_FILE, "first", "1", 0},
		{AGENT_ITEM_DIRECTORY, "dir", NULL, 0755},
		{AGENT_ITEM_FILE, "dir", "not a directory", 0},
		{AGENT_ITEM_FILE, "never", "3", 0},
	};

	assert_int_equal(unpack(f, items, array_len(items), &answer), EISDIR);
	assert_string_equal(answer.target, "dir");
	assert_content(f->dir, "out/first", "1");
	{
		char *never = mem_printf("%s/out/never", f->dir);

		assert_int_equal(access(never, F_OK), -1);
		free(never);
	}
}

static void unpack_replaces_a_fifo_without_opening_it(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	char *fifo = mem_printf("%s/out/x", f->dir);
	char *out = mem_printf("%s/out", f->dir);
	struct item item = {AGENT_ITEM_FILE, "x", "text", 0};

	assert_int_equal(mkdir(out, 0755), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(unpack(f, &item, 1, &answer), 0);
	assert_content(f->dir, "out/x", "text");
	free(fifo);
	free(out);
}

/* Exchanges two names as fast as it can, until it is killed. */
static pid_t swap_for_ever(const char *a, const char *b)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static void remove_all(struct fixture *f, const char *path)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	struct peer_answer answer;
	int channel;

	pack_str(&args, path);
	pack_u8(&args, 1);
	channel = peer_file(&f->peer, AGENT_FILE_REMOVE, &args);
	buf_fini(&args);
	assert_true(peer_answer(channel, &answer));
	close(channel);
}

static void a_link_swapped_in_under_way_never_leads_out(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	char *out = mem_printf("%s/out", f->dir);
	char *dir = mem_printf("%s/out/x", f->dir);
	char *link = mem_printf("%s/out/y", f->dir);
	char *victim = mem_printf("%s/victim", f->canary);
	char *planted = mem_printf("%s/planted", f->canary);
	static const struct item items[] = {{AGENT_ITEM_FILE, "x/planted", "evil", 0},
		{AGENT_ITEM_FILE, "x/sub/planted", "evil", 0},
		{AGENT_ITEM_FILE, "y/planted", "evil", 0}};

	close(open(victim, O_CREAT | O_WRONLY, 0600));
	for (int round = 0; round < 20; round++) {
		pid_t swapper;

		assert_true(mkdir(out, 0755) == 0 || errno == EEXIST);
		assert_true(mkdir(dir, 0755) == 0 || errno == EEXIST);
		assert_true(symlink(f->canary, link) == 0 || errno == EEXIST);
		swapper = swap_for_ever(dir, link);
		for (int i = 0; i < 20; i++)
			unpack(f, &items[i % 3], 1, &answer);
		remove_all(f, out);
		assert_int_equal(kill(swapper, SIGKILL), 0);
		assert_int_equal(waitpid(swapper, NULL, 0), swapper);
		remove_all(f, out);
		assert_int_equal(access(victim, F_OK), 0);
		assert_int_equal(access(planted, F_OK), -1);
	}
	free(out);
	free(dir);
	free(link);
	free(victim);
	free(planted);
}

/* The stream of PACK as text: kind, name, target or content, one a line. */
static char *pack(struct fixture *f, const char *name, int *ret_errnum)
{
	char *path = mem_printf("%s/%s", f->dir, name);
	int channel = peer_file_path(&f->peer, AGENT_FILE_PACK, path);
	struct buf text = BUF_INIT(1024 * 1024);
	struct peer_answer answer;

	free(path);
	*ret_errnum = peer_errnum(channel, &answer);
	while (*ret_errnum == 0) {
		uint8_t head[1 + 4 + 4 + 4 + 8 + 8 + 4], raw[4];
		char names[2][AGENT_PATH_MAX];
		struct unpack in = UNPACK_INIT(head, sizeof(head));
		uint8_t kind;
		uint32_t len, mode;
		uint64_t size;
		char *content;

		assert_true(peer_read(channel, head, sizeof(head)));
		kind = unpack_u8(&in);
		mode = unpack_u32(&in);
		(void)unpack_u32(&in);
		(void)unpack_u32(&in);
		(void)unpack_u64(&in);
		size = unpack_u64(&in);
		len = unpack_u32(&in);
		assert_true(len < AGENT_PATH_MAX && peer_read(channel, names[0], len));
		names[0][len] = '\0';
		assert_true(peer_read(channel, raw, 4));
		len = unpack_u32(&UNPACK_INIT(raw, 4));
		assert_true(len < AGENT_PATH_MAX && peer_read(channel, names[1], len));
		names[1][len] = '\0';
		content = mem_new(size + 1);
		assert_true(peer_read(channel, content, size));
		if (kind == AGENT_ITEM_END) {
			free(content);
			break;
		}
		buf_printf(&text, "%u %o %s %s%.20s\n", kind, mode, names[0], names[1], content);
		free(content);
	}
	assert_true(peer_at_end(channel));
	close(channel);
	return buf_take_str(&text);
}

static void pack_gives_the_tree_in_order(void **state)
{
	struct fixture *f = *state;
	char *line = mem_printf("cd %s && umask 022 && mkdir -p t/b/c && printf hi >t/b/c/f && "
				"ln t/b/c/f t/z && ln -s nowhere t/l && mkfifo t/fifo && "
				"printf one >t/a && chmod 4755 t/a",
		f->dir);
	char *text;
	int errnum;

	assert_int_equal(system(line), 0);
	free(line);
	text = pack(f, "t", &errnum);
	assert_int_equal(errnum, 0);
	assert_string_equal(text, "1 4755 a one\n2 755 b \n2 755 b/c \n1 644 b/c/f hi\n"
				  "3 777 l nowhere\n4 644 z b/c/f\n");
	free(text);
	text = pack(f, "t/a", &errnum);
	assert_int_equal(errnum, 0);
	assert_string_equal(text, "1 4755 a one\n");
	free(text);
	text = pack(f, "t/fifo", &errnum);
	assert_int_equal(errnum, EINVAL);
	free(text);
	text = pack(f, "none", &errnum);
	assert_int_equal(errnum, ENOENT);
	free(text);
}

static void relay(int from, int to)
{
	char data[65536];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) > 0)
		assert_int_equal(fd_write_full(to, data, (size_t)n), 0);
}

static void what_was_packed_unpacks_to_the_same(void **state)
{
	struct fixture *f = *state;
	struct peer_answer answer;
	char *source = mem_printf("%s/s", f->dir);
	char *target = mem_printf("%s/o", f->dir);
	char *make = mem_printf(
		"mkdir %s && cd %s && for d in a b c; do mkdir $d; for i in 1 2 3 4 5 6 7 8; "
		"do seq 1 $((i * 9000)) >$d/$i; done; done; ln -s ../a b/up",
		source, source);
	char *compare = mem_printf("diff -r %s %s", source, target);
	int from, to;

	assert_int_equal(system(make), 0);
	from = peer_file_path(&f->peer, AGENT_FILE_PACK, source);
	to = peer_file_path(&f->peer, AGENT_FILE_UNPACK, target);
	assert_int_equal(peer_errnum(from, &answer), 0);
	assert_int_equal(peer_errnum(to, &answer), 0);
	relay(from, to);
	assert_int_equal(peer_errnum(to, &answer), 0);
	close(from);
	close(to);
	assert_int_equal(system(compare), 0);
	free(source);
	free(target);
	free(make);
	free(compare);
}

#define with_agent(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(unpack_makes_what_it_is_given),
		with_agent(hostile_names_are_refused),
		with_agent(no_item_passes_a_symbolic_link),
		with_agent(a_failure_stops_there_and_keeps_what_was_written),
		with_agent(unpack_replaces_a_fifo_without_opening_it),
		with_agent(a_link_swapped_in_under_way_never_leads_out),
		with_agent(pack_gives_the_tree_in_order),
		with_agent(what_was_packed_unpacks_to_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
