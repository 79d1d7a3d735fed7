/* SPDX-License-Identifier: Apache-2.0 */
#include "core_fixture.h"

#include "base/buf.h"
#include "base/fd.h"
#include "core/files/file_changes.h"
#include "wire/pack.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A sink that takes `room` changes and then none, until it is given more. */
struct sink {
	struct file_changes *feed;
	int peer; /* the helper's end */
	atomic_int room, taken, refused, ends;
	pthread_mutex_t lock;
	struct file_changes_change last;
	sem_t ended;
};

static int take(void *arg, const struct file_changes_change *change)
{
	struct sink *sink = arg;

	assert_int_equal(atomic_load(&sink->ends), 0);
	if (atomic_load(&sink->room) == 0) {
		atomic_fetch_add(&sink->refused, 1);
		return -EAGAIN;
	}
	pthread_mutex_lock(&sink->lock);
	sink->last = *change;
	pthread_mutex_unlock(&sink->lock);
	atomic_fetch_sub(&sink->room, 1);
	atomic_fetch_add(&sink->taken, 1);
	return 0;
}

static void ended(void *arg)
{
	struct sink *sink = arg;

	atomic_fetch_add(&sink->ends, 1);
	sem_post(&sink->ended);
}

static const struct file_changes_sink sink_functions = {.change = take, .ended = ended};

static void open_sink(struct world *world, struct sink *sink, int room)
{
	struct err err;
	int pair[2];

	memset(sink, 0, sizeof(*sink));
	atomic_store(&sink->room, room);
	sem_init(&sink->ended, 0, 0);
	pthread_mutex_init(&sink->lock, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	sink->peer = pair[1];
	assert_int_equal(
		file_changes_open(world->engine, pair[0], &sink_functions, sink, &sink->feed, &err),
		0);
}

static void await_end(struct sink *sink)
{
	world_await(&sink->ended);
	assert_int_equal(atomic_load(&sink->ends), 1);
}

static void close_sink(struct sink *sink)
{
	file_changes_unref(sink->feed);
	fd_close(sink->peer);
	pthread_mutex_destroy(&sink->lock);
	sem_destroy(&sink->ended);
}

static void await_count(atomic_int *counter, int count)
{
	for (int waited_ms = 0; atomic_load(counter) < count; waited_ms++) {
		assert_true(waited_ms < DEADLINE_MS);
		poll(NULL, 0, 1);
	}
}

static void pack_change(
	struct buf *out, uint8_t what, uint8_t kind, const char *path, const char *to)
{
	pack_u8(out, what);
	pack_u8(out, kind);
	pack_str(out, path);
	pack_str(out, to);
}

static void send_change(struct sink *sink, uint8_t what, const char *path, const char *to)
{
	struct buf out = BUF_INIT(65536);

	pack_change(&out, what, AGENT_FILE_REGULAR, path, to);
	assert_int_equal(fd_write_full(sink->peer, out.data, out.len), 0);
	buf_fini(&out);
}

static int parse(uint8_t what, uint8_t kind, const char *path, const char *to)
{
	struct file_changes_change change;
	struct buf out = BUF_INIT(65536);
	int r;

	pack_change(&out, what, kind, path, to);
	for (size_t len = 0; len < out.len; len++) {
		r = file_changes_parse(out.data, len, &change);
		assert_true(r == 0 || r == -EPROTO);
	}
	r = file_changes_parse(out.data, out.len, &change);
	if (r > 0) {
		assert_int_equal(r, out.len);
		assert_string_equal(change.path, path);
		assert_string_equal(change.to, to);
	}
	buf_fini(&out);
	return r;
}

static void only_plain_paths_and_known_kinds_are_taken(void **state)
{
	static const char *const bad[] = {
		"/", "/etc", "..", "../x", "a/..", "a/../b", ".", "./a", "a//b", "a/", "a/."};
	char *longest = mem_new(AGENT_PATH_MAX + 1);

	(void)state;
	memset(longest, 'x', AGENT_PATH_MAX - 1);
	assert_true(parse(AGENT_CREATED, AGENT_FILE_OTHER, "a/b", "") > 0);
	assert_true(parse(AGENT_MOVED, AGENT_FILE_DIRECTORY, "a/b", "..c/.d") > 0);
	assert_true(parse(AGENT_MODIFIED, AGENT_FILE_NONE, "", "") > 0);
	assert_true(parse(AGENT_CREATED, AGENT_FILE_REGULAR, longest, longest) > 0);
	longest[AGENT_PATH_MAX - 1] = 'x';
	assert_int_equal(parse(AGENT_CREATED, AGENT_FILE_REGULAR, longest, ""), -EPROTO);
	assert_int_equal(parse(0, AGENT_FILE_REGULAR, "a", ""), -EPROTO);
	assert_int_equal(parse(AGENT_CHANGE_GONE + 1, AGENT_FILE_REGULAR, "a", ""), -EPROTO);
	assert_int_equal(parse(AGENT_CREATED, AGENT_FILE_OTHER + 1, "a", ""), -EPROTO);
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_int_equal(parse(AGENT_CREATED, AGENT_FILE_REGULAR, bad[i], ""), -EPROTO);
		assert_int_equal(parse(AGENT_MOVED, AGENT_FILE_REGULAR, "a", bad[i]), -EPROTO);
	}
	free(longest);
}

static void changes_arrive_however_they_are_cut(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct sink sink;

	open_sink(*state, &sink, 1000);
	for (int i = 0; i < 20; i++)
		pack_change(&out, AGENT_MOVED, AGENT_FILE_REGULAR, "from/here", "to/there");
	for (size_t at = 0; at < out.len; at++)
		assert_int_equal(fd_write_full(sink.peer, out.data + at, 1), 0);
	await_count(&sink.taken, 20);
	pthread_mutex_lock(&sink.lock);
	assert_string_equal(sink.last.path, "from/here");
	assert_string_equal(sink.last.to, "to/there");
	pthread_mutex_unlock(&sink.lock);
	buf_fini(&out);
	file_changes_close(sink.feed);
	file_changes_close(sink.feed);
	await_end(&sink);
	assert_true(read(sink.peer, &(char){0}, 1) == 0); /* the helper sees it */
	close_sink(&sink);
}

static void the_end_of_what_is_watched_is_the_end(void **state)
{
	struct sink sink;

	open_sink(*state, &sink, 1000);
	send_change(&sink, AGENT_DELETED, "a", "");
	send_change(&sink, AGENT_CHANGE_GONE, "", "");
	await_end(&sink);
	assert_int_equal(atomic_load(&sink.taken), 1);
	close_sink(&sink);
}

static void a_helper_that_lies_is_ended(void **state)
{
	struct sink sink;

	open_sink(*state, &sink, 1000);
	send_change(&sink, AGENT_CREATED, "../../etc/passwd", "");
	await_end(&sink);
	assert_int_equal(atomic_load(&sink.taken), 0);
	close_sink(&sink);
	open_sink(*state, &sink, 1000);
	assert_int_equal(fd_write_full(sink.peer, "\x01\x01\xff\xff\xff\xff", 6), 0);
	await_end(&sink);
	close_sink(&sink);
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Also when the helper has ended meanwhile: nothing spins, and nothing that it said is lost. */
static void a_full_sink_stops_the_reading_until_it_has_room(void **state)
{
	struct sink sink;
	double before;
	int refused;

	open_sink(*state, &sink, 3);
	for (int i = 0; i < 10; i++)
		send_change(&sink, AGENT_CREATED, "a", "");
	await_count(&sink.refused, 1);
	assert_int_equal(atomic_load(&sink.taken), 3);
	atomic_store(&sink.room, 2);
	file_changes_resume(sink.feed);
	await_count(&sink.taken, 5);
	await_count(&sink.refused, 3);
	fd_close(sink.peer);
	sink.peer = -1;
	before = cpu_seconds();
	refused = atomic_load(&sink.refused);
	poll(NULL, 0, 300);
	assert_true(atomic_load(&sink.refused) - refused <= 4);
	assert_true(cpu_seconds() - before < 0.2);
	assert_int_equal(atomic_load(&sink.ends), 0);
	atomic_store(&sink.room, 100);
	file_changes_resume(sink.feed);
	await_end(&sink);
	assert_int_equal(atomic_load(&sink.taken), 10);
	file_changes_resume(sink.feed); /* after its end it is nothing */
	close_sink(&sink);
}

static void *give_room(void *arg)
{
	struct sink *sink = arg;

	while (atomic_load(&sink->ends) == 0) {
		if (atomic_load(&sink->room) == 0) {
			atomic_store(&sink->room, 1);
			file_changes_resume(sink->feed);
		}
	}
	return NULL;
}

static void no_wake_up_is_lost_between_threads(void **state)
{
	struct sink sink;
	pthread_t thread;

	open_sink(*state, &sink, 1);
	assert_int_equal(pthread_create(&thread, NULL, give_room, &sink), 0);
	for (int i = 0; i < 5000; i++)
		send_change(&sink, AGENT_MODIFIED, "a", "");
	await_count(&sink.taken, 5000);
	send_change(&sink, AGENT_CHANGE_GONE, "", "");
	await_end(&sink);
	pthread_join(thread, NULL);
	close_sink(&sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_plain_paths_and_known_kinds_are_taken),
		cmocka_unit_test_setup_teardown(
			changes_arrive_however_they_are_cut, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			the_end_of_what_is_watched_is_the_end, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			a_helper_that_lies_is_ended, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(a_full_sink_stops_the_reading_until_it_has_room,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			no_wake_up_is_lost_between_threads, world_setup, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
