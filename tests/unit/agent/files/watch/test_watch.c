/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_FILE_WATCH, on the files of this machine, with what the kernel does to them. */
#include "test_agent_peer.h"

#include "base/clock.h"
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
	int channel;
	char last[2 * AGENT_PATH_MAX + 64]; /* what was told last */
};

static int start(void **state)
{
	struct fixture *f = mem_new(sizeof(*f));

	peer_start(&f->peer);
	peer_attach(&f->peer, NULL, 0);
	f->dir = peer_make_temp();
	f->channel = -1;
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	fd_close(f->channel);
	peer_stop(&f->peer);
	peer_remove_temp(f->dir);
	free(f);
	return 0;
}

/* A path below the test's directory; the next call but seven overwrites it. */
static const char *in(struct fixture *f, const char *name)
{
	static char paths[8][2 * AGENT_PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", f->dir, name);
	return path;
}

static void run(struct fixture *f, const char *line)
{
	char *command = mem_printf("cd '%s' && %s", f->dir, line);

	assert_int_equal(system(command), 0);
	free(command);
}

static int open_watch(struct fixture *f, const char *path, bool recursive)
{
	struct buf args = BUF_INIT(2 * AGENT_PATH_MAX);
	struct peer_answer answer;
	int errnum;

	pack_str(&args, path);
	pack_u8(&args, recursive);
	f->channel = peer_file(&f->peer, AGENT_FILE_WATCH, &args);
	buf_fini(&args);
	errnum = peer_errnum(f->channel, &answer);
	if (errnum) {
		fd_close(f->channel);
		f->channel = -1;
	}
	return errnum;
}

struct change {
	uint8_t what, kind;
	char path[AGENT_PATH_MAX], to[AGENT_PATH_MAX];
};

static void read_str(int channel, char text[AGENT_PATH_MAX])
{
	uint8_t raw[4];
	uint32_t len;

	assert_true(peer_read(channel, raw, sizeof(raw)));
	len = unpack_u32(&UNPACK_INIT(raw, sizeof(raw)));
	assert_true(len < AGENT_PATH_MAX);
	assert_true(peer_read(channel, text, len));
	text[len] = '\0';
}

static void next_change(struct fixture *f, struct change *change)
{
	assert_true(peer_read(f->channel, &change->what, 1));
	assert_true(peer_read(f->channel, &change->kind, 1));
	read_str(f->channel, change->path);
	read_str(f->channel, change->to);
}

/* "created dir a", as one line. */
static const char *describe(const struct change *change)
{
	static const char *const whats[] = {
		"?", "created", "modified", "deleted", "moved", "lost", "gone"};
	static const char *const kinds[] = {"none", "file", "dir", "link", "other"};
	static char line[2 * AGENT_PATH_MAX + 64];

	assert_true(change->what >= 1 && change->what < array_len(whats));
	assert_true(change->kind < array_len(kinds));
	if (change->what == AGENT_MOVED)
		snprintf(line, sizeof(line), "moved %s %s %s", kinds[change->kind], change->path,
			change->to);
	else if (change->what >= AGENT_CHANGE_LOST)
		snprintf(line, sizeof(line), "%s", whats[change->what]);
	else
		snprintf(line, sizeof(line), "%s %s %s", whats[change->what], kinds[change->kind],
			change->path);
	return line;
}

/* A program that was slow between a write and its close: a file that stays open is told of at intervals. */
static bool is_told_again(const struct fixture *f, const char *line)
{
	return strncmp(line, "modified", strlen("modified")) == 0 && strcmp(line, f->last) == 0;
}

/* The next changes are these, in this order; the list ends with NULL. */
static void expect(struct fixture *f, ...)
{
	const char *line, *told;
	struct change change;
	va_list lines;

	va_start(lines, f);
	while ((line = va_arg(lines, const char *))) {
		do {
			next_change(f, &change);
			told = describe(&change);
		} while (strcmp(told, line) != 0 && is_told_again(f, told));
		assert_string_equal(told, line);
		snprintf(f->last, sizeof(f->last), "%s", line);
	}
	va_end(lines);
}

/* Nothing came for a while that is long to the watcher. */
static void expect_nothing(struct fixture *f)
{
	struct pollfd pollfd = {.fd = f->channel, .events = POLLIN};
	struct change change;

	while (poll(&pollfd, 1, 400) > 0) {
		next_change(f, &change);
		if (!is_told_again(f, describe(&change)))
			fail_msg("unexpected: %s", describe(&change));
	}
}

static void files_are_told_with_what_they_are(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(open_watch(f, f->dir, false), 0);
	run(f, "echo x > a");
	expect(f, "created file a", "modified file a", NULL);
	run(f, "ln -s a l && mkfifo p && mkdir d");
	expect(f, "created link l", "created other p", "created dir d", NULL);
	run(f, "echo y >> a && chmod 600 a");
	expect(f, "modified file a", "modified file a", NULL);
	run(f, "touch d/below && rm a l p");
	expect(f, "deleted file a", "deleted file l", "deleted file p", NULL);
	run(f, "rm -r d");
	expect(f, "deleted dir d", NULL);
	run(f, "chmod 700 .");
	expect(f, "modified dir ", NULL);
	expect_nothing(f);
}

static void renames_are_moves_inside_and_else_come_and_go(void **state)
{
	struct fixture *f = *state;

	run(f, "mkdir -p w/d out && touch w/a w/b out/c");
	assert_int_equal(open_watch(f, in(f, "w"), true), 0);
	run(f, "mv w/a w/a2 && mv w/a2 w/d/a3");
	expect(f, "moved file a a2", "moved file a2 d/a3", NULL);
	run(f, "mv w/b out/ && mv out/c w/");
	expect(f, "deleted file b", "created file c", NULL);
	run(f, "mv w/d w/e && echo x > w/e/new");
	expect(f, "moved dir d e", "created file e/new", "modified file e/new", NULL);
	run(f, "mv w/e out/ && echo x > out/e/more && touch w/z");
	expect(f, "deleted dir e", "created file z", "modified file z", NULL);
	run(f, "mv out/e w/f");
	expect(f, "created dir f", NULL);
	for (int i = 0; i < 3; i++) {
		struct change change;

		next_change(f, &change); /* a3, new, more in some order */
		assert_memory_equal(change.path, "f/", 2);
		assert_int_equal(change.what, AGENT_CREATED);
	}
	run(f, "echo x >> w/f/more");
	expect(f, "modified file f/more", NULL);
	expect_nothing(f);
}

static void new_directories_are_watched_with_what_is_in_them(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(open_watch(f, f->dir, true), 0);
	for (int round = 0; round < 20; round++) {
		bool seen[4] = {false};
		char paths[4][64];
		struct change change;
		char line[256];

		snprintf(line, sizeof(line),
			"mkdir -p r%d/b/c && echo x > r%d/b/c/f && echo y > r%d/g && rm r%d/g",
			round, round, round, round);
		snprintf(paths[0], 64, "r%d", round);
		snprintf(paths[1], 64, "r%d/b", round);
		snprintf(paths[2], 64, "r%d/b/c", round);
		snprintf(paths[3], 64, "r%d/b/c/f", round);
		run(f, line);
		while (!seen[0] || !seen[1] || !seen[2] || !seen[3]) {
			next_change(f, &change);
			for (int i = 0; i < 4; i++) {
				if (change.what != AGENT_CREATED || strcmp(change.path, paths[i]))
					continue;
				assert_false(seen[i]); /* told once */
				assert_true(i == 0 || seen[i - 1]);
				seen[i] = true;
			}
		}
	}
}

static void a_file_that_stays_open_is_told_of_at_intervals(void **state)
{
	struct fixture *f = *state;
	int fd = open(in(f, "log"), O_CREAT | O_WRONLY | O_APPEND, 0644);
	uint64_t end_ms = clock_steady_ms() + DEADLINE_MS;
	unsigned writes = 0, told = 0;
	struct pollfd pollfd;
	struct change change;

	assert_true(fd >= 0);
	assert_int_equal(open_watch(f, f->dir, false), 0);
	pollfd = (struct pollfd){.fd = f->channel, .events = POLLIN};
	while (told < 5 && clock_steady_ms() < end_ms) {
		for (int i = 0; i < 10; i++, writes++)
			assert_int_equal(write(fd, "line\n", 5), 5);
		if (poll(&pollfd, 1, 1) > 0) {
			next_change(f, &change);
			assert_string_equal(describe(&change), "modified file log");
			told++;
		}
	}
	assert_int_equal(told, 5);
	assert_true(writes >= 10 * told); /* not of each one */
	close(fd);
	expect(f, "modified file log", NULL);
	expect_nothing(f);
}

/* In one go: what is missing for half a second counts as gone. */
static void put_new(struct fixture *f, const char *name)
{
	int fd = open(in(f, name), O_CREAT | O_EXCL | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
}

static void a_watched_file_survives_being_replaced(void **state)
{
	struct fixture *f = *state;

	run(f, "echo 1 > file");
	assert_int_equal(open_watch(f, in(f, "file"), false), 0);
	run(f, "touch other && rm other && echo 2 >> file");
	expect(f, "modified file ", NULL);
	run(f, "sed -i s/1/one/ file");
	expect(f, "modified file ", NULL);
	assert_int_equal(unlink(in(f, "file")), 0); /* as git and some editors do */
	put_new(f, "file");
	expect(f, "modified file ", NULL);
	assert_int_equal(rename(in(f, "file"), in(f, "file~")), 0);
	put_new(f, "file");
	assert_int_equal(unlink(in(f, "file~")), 0);
	expect(f, "modified file ", NULL);
	run(f, "echo 5 > file");
	expect(f, "modified file ", NULL);
	expect_nothing(f);
	run(f, "rm file");
	expect(f, "gone", NULL);
	assert_true(peer_at_end(f->channel));
}

static void a_directory_that_goes_is_told_at_once(void **state)
{
	static const char *const ends[] = {"rm -r w", "mv w v", "mkdir v && mv -T v w"};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_len(ends); i++) {
		auto_fd int user = -1;
		struct change change;

		run(f, "rm -rf v w && mkdir w");
		/* Somebody keeps it open: the kernel then says nothing of its deletion. */
		user = open(in(f, "w"), O_RDONLY | O_DIRECTORY);
		assert_true(user >= 0);
		assert_int_equal(open_watch(f, in(f, "w"), true), 0);
		run(f, ends[i]);
		do
			next_change(f, &change);
		while (change.what != AGENT_CHANGE_GONE);
		assert_true(peer_at_end(f->channel));
		fd_close(f->channel);
		f->channel = -1;
	}
}

static void links_are_followed_at_the_beginning_and_not_below(void **state)
{
	struct fixture *f = *state;

	run(f, "mkdir real real/d out && ln -s real way && ln -s ../out real/link");
	assert_int_equal(open_watch(f, in(f, "way"), true), 0);
	run(f, "touch out/unseen && mkdir real/d/e && ln -s ../out real/more && touch out/unseen2");
	expect(f, "created dir d/e", "created link more", NULL);
	expect_nothing(f);
}

static void what_cannot_be_watched_is_refused(void **state)
{
	struct fixture *f = *state;

	run(f, "touch file && ln -s nowhere dangling");
	assert_int_equal(open_watch(f, in(f, "none"), true), ENOENT);
	assert_int_equal(open_watch(f, in(f, "none/below"), true), ENOENT);
	assert_int_equal(open_watch(f, in(f, "file/below"), true), ENOTDIR);
	assert_int_equal(open_watch(f, in(f, "dangling"), true), ENOENT);
	assert_int_equal(open_watch(f, "relative", true), EINVAL);
	assert_int_equal(open_watch(f, "/proc/self/fd/0", true), ELOOP);
}

/* A chain of directories that is renamed and moved about while it is followed. */
static void directories_that_move_fast_are_followed(void **state)
{
	struct fixture *f = *state;
	struct change change;

	run(f, "mkdir w");
	assert_int_equal(open_watch(f, in(f, "w"), true), 0);
	run(f, "cd w && for i in $(seq 200); do"
	       " mkdir a; mv a b; mkdir a a/x; mv b a/x/y; mv a c; mkdir a; mv a c/z; mv c d$i; "
	       "done");
	/* Everything is watched in the end, wherever it is. */
	run(f, "for i in $(seq 200); do touch w/d$i/x/y/mark w/d$i/z/mark; done");
	for (unsigned marks = 0; marks < 400;) {
		size_t len;

		next_change(f, &change);
		assert_int_not_equal(change.what, AGENT_CHANGE_LOST);
		len = strlen(change.path);
		marks += change.what == AGENT_CREATED && len > 5 &&
			 strcmp(change.path + len - 5, "/mark") == 0;
	}
}

static void a_path_that_is_too_long_is_left_out(void **state)
{
	struct fixture *f = *state;

	auto_fd int dir = open(f->dir, O_RDONLY | O_DIRECTORY);
	char name[251];

	memset(name, 'n', 250);
	name[250] = '\0';
	assert_int_equal(open_watch(f, f->dir, true), 0);
	for (int i = 0; i < 20; i++) {
		int below;

		assert_int_equal(mkdirat(dir, name, 0700), 0);
		below = openat(dir, name, O_RDONLY | O_DIRECTORY);
		assert_true(below >= 0);
		close(dir);
		dir = below;
	}
	close(openat(dir, "deep", O_CREAT | O_WRONLY, 0600));
	run(f, "echo x > last");
	for (;;) {
		struct change change;

		next_change(f, &change);
		assert_int_not_equal(change.what, AGENT_CHANGE_LOST);
		if (change.what == AGENT_MODIFIED && strcmp(change.path, "last") == 0)
			break;
	}
}

/* Nobody reads: the kernel's queue overflows, the helper does not grow, and it says so. */
static void an_overflow_is_told_and_survived(void **state)
{
	struct fixture *f = *state;
	struct change change;

	run(f, "mkdir w && cd w && mkdir $(seq 40)");
	assert_int_equal(open_watch(f, in(f, "w"), true), 0);
	run(f, "for d in $(seq 40); do (cd w/$d && seq 1000 | xargs touch); done; mkdir w/41");
	do
		next_change(f, &change);
	while (change.what != AGENT_CHANGE_LOST);
	/* All directories are watched by then, whether their making was seen or not. */
	run(f, "for d in $(seq 41); do echo x > w/$d/mark; done");
	for (unsigned marks = 0; marks < 41;) {
		next_change(f, &change);
		marks += change.what == AGENT_CREATED && strstr(change.path, "/mark") != NULL;
	}
}

static void watches_are_bounded_and_leave_room_for_other_requests(void **state)
{
	struct fixture *f = *state;
	int channels[33];
	size_t count = 0;
	int errnum = 0;

	while (count < array_len(channels) && (errnum = open_watch(f, f->dir, false)) == 0)
		channels[count++] = take_fd(&f->channel);
	assert_int_equal(errnum, EMFILE);
	assert_int_equal(count, 32);
	for (int i = 0; i < 8; i++) {
		struct peer_answer answer;
		int channel = peer_file_path(&f->peer, AGENT_FILE_STAT, f->dir);

		assert_int_equal(peer_errnum(channel, &answer), 0);
		close(channel);
	}
	for (size_t i = 0; i < count; i++)
		close(channels[i]);
	/* Closing is noticed while nothing happens, and makes room again. */
	for (int waited_ms = 0; open_watch(f, f->dir, false) != 0; waited_ms += 5) {
		assert_true(waited_ms < DEADLINE_MS);
		poll(NULL, 0, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_told_with_what_they_are, start, stop),
		cmocka_unit_test_setup_teardown(
			renames_are_moves_inside_and_else_come_and_go, start, stop),
		cmocka_unit_test_setup_teardown(
			new_directories_are_watched_with_what_is_in_them, start, stop),
		cmocka_unit_test_setup_teardown(
			a_file_that_stays_open_is_told_of_at_intervals, start, stop),
		cmocka_unit_test_setup_teardown(
			a_watched_file_survives_being_replaced, start, stop),
		cmocka_unit_test_setup_teardown(a_directory_that_goes_is_told_at_once, start, stop),
		cmocka_unit_test_setup_teardown(
			links_are_followed_at_the_beginning_and_not_below, start, stop),
		cmocka_unit_test_setup_teardown(what_cannot_be_watched_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(
			directories_that_move_fast_are_followed, start, stop),
		cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_left_out, start, stop),
		cmocka_unit_test_setup_teardown(an_overflow_is_told_and_survived, start, stop),
		cmocka_unit_test_setup_teardown(
			watches_are_bounded_and_leave_room_for_other_requests, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
