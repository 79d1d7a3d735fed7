/* SPDX-License-Identifier: Apache-2.0 */
/* The audit writer: what was put is written in its order, survives a death, and a stranger cannot flood it. */
#include "core/audit/audit_ring.h"
#include "core/audit/audit_writer.h"
#include "store/access/store_audit.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The disk can be told to be full. */
static atomic_int failures;

int __real_store_audit_append(struct store *store, const struct audit_entry *const entries[],
	size_t count, struct err *err);
int __wrap_store_audit_append(struct store *store, const struct audit_entry *const entries[],
	size_t count, struct err *err);

int __wrap_store_audit_append(struct store *store, const struct audit_entry *const entries[],
	size_t count, struct err *err)
{
	if (atomic_load(&failures) > 0) {
		atomic_fetch_sub(&failures, 1);
		return err_set(err, ERR_NO_SPACE, "full");
	}
	return __real_store_audit_append(store, entries, count, err);
}

static void ring_path(const struct fixture *fixture, char path[128])
{
	snprintf(path, 128, "%s/ring", fixture->dir);
}

static struct audit_writer *open_audit_writer(struct fixture *fixture, uint64_t keep)
{
	struct audit_writer *writer;
	struct err err = {0};
	char path[128];

	ring_path(fixture, path);
	if (audit_writer_open(fixture->store, path, keep, &writer, &err) < 0)
		fail_msg("%s", err.message);
	return writer;
}

static int remove_ring(void **state)
{
	char path[128];

	ring_path(*state, path);
	unlink(path);
	return teardown(state);
}

static void put(struct audit_writer *writer, unsigned n)
{
	struct audit_entry entry = {.action = "test"};

	snprintf(entry.object, sizeof(entry.object), "%u", n);
	audit_writer_put(writer, &entry);
}

struct listing {
	unsigned count;
	char last[AUDIT_DETAIL_MAX];
	char actions[4][48]; /* of the newest */
	bool is_ordered;
	unsigned long next;
};

static void take(const struct audit_entry *entry, const uint8_t *hash, void *arg)
{
	struct listing *listing = arg;
	unsigned long n = strtoul(entry->object, NULL, 10);

	(void)hash;
	if (listing->count < array_len(listing->actions))
		memcpy(listing->actions[listing->count], entry->action, sizeof(entry->action));
	if (listing->count == 0)
		memcpy(listing->last, entry->detail, sizeof(listing->last));
	listing->is_ordered &= listing->count == 0 || n + 1 == listing->next;
	listing->next = n;
	listing->count++;
}

static struct listing list(struct fixture *fixture)
{
	struct store_audit_filter filter = {.limit = 100000};
	struct listing listing = {.is_ordered = true};
	struct audit_report report;
	struct err err = {0};

	assert_int_equal(store_audit_list(fixture->store, &filter, take, &listing, &err), 0);
	assert_int_equal(store_audit_verify(fixture->store, NULL, &report, &err), 0);
	assert_int_equal(report.flaw, AUDIT_WHOLE);
	return listing;
}

static void what_was_put_is_there_after_a_flush(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);

	for (unsigned i = 0; i < 10; i++)
		put(writer, i);
	audit_writer_flush(writer);
	assert_int_equal(list(fixture).count, 10);
	assert_true(list(fixture).is_ordered);
	audit_writer_flush(writer); /* with nothing to do */
	audit_writer_close(writer);
}

static void closing_writes_what_is_left(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);

	for (unsigned i = 0; i < 700; i++)
		put(writer, i);
	audit_writer_close(writer);
	assert_int_equal(list(fixture).count, 700);
	assert_true(list(fixture).is_ordered);
}

static void *put_many(void *arg)
{
	for (unsigned i = 0; i < 2000; i++)
		put(arg, i);
	return NULL;
}

static void a_full_ring_loses_nothing_while_the_database_works(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);
	pthread_t threads[4];

	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_many, writer), 0);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	audit_writer_flush(writer);
	assert_int_equal(list(fixture).count, 8000);
	audit_writer_close(writer);
}

static void more_than_is_kept_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100);

	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 100; i++)
			put(writer, i);
		audit_writer_flush(writer);
	}
	audit_writer_close(writer);
	assert_in_range(list(fixture).count, 100, 400);
}

/* A child puts entries and says so; it is killed before it can write them to the database. */
static void what_was_put_survives_the_death_of_the_process(void **state)
{
	struct fixture *fixture = *state;
	int pipe_fds[2], status;
	struct audit_writer *writer;
	unsigned said = 0;
	uint8_t byte;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		atomic_store(&failures, 1 << 30);
		open_store(fixture);
		writer = open_audit_writer(fixture, 100000);
		for (unsigned i = 0; i < 300; i++) {
			put(writer, i);
			if (write(pipe_fds[1], "x", 1) != 1)
				_exit(1);
		}
		pause();
	}
	close(pipe_fds[1]);
	while (said < 300 && read(pipe_fds[0], &byte, 1) == 1)
		said++;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(pipe_fds[0]);
	assert_int_equal(said, 300);
	open_store(fixture);
	assert_int_equal(list(fixture).count, 0);
	writer = open_audit_writer(fixture, 100000);
	audit_writer_flush(writer);
	assert_int_equal(list(fixture).count, 300);
	assert_true(list(fixture).is_ordered);
	put(writer, 300);
	audit_writer_close(writer);
	assert_int_equal(list(fixture).count, 301);
	/* Nothing is taken up twice. */
	audit_writer_close(open_audit_writer(fixture, 100000));
	assert_int_equal(list(fixture).count, 301);
}

static void a_ring_of_another_format_is_begun_anew(void **state)
{
	struct fixture *fixture = *state;
	char path[128];
	int fd;

	audit_writer_close(open_audit_writer(fixture, 100000));
	ring_path(fixture, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, 0), 4);
	close(fd);
	audit_writer_close(open_audit_writer(fixture, 100000));
	assert_int_equal(list(fixture).count, 0);
}

static void what_could_not_be_written_is_tried_again(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);

	atomic_store(&failures, 1);
	put(writer, 0);
	audit_writer_flush(writer); /* gives up: it fails */
	assert_int_equal(list(fixture).count, 0);
	audit_writer_close(writer); /* tries once more */
	assert_int_equal(list(fixture).count, 1);
}

static void what_is_lost_for_want_of_room_is_counted(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);
	struct listing listing;

	atomic_store(&failures, 1 << 30);
	put(writer, 0);
	audit_writer_flush(writer);
	for (unsigned i = 1; i < AUDIT_RING_SLOTS + 7; i++)
		put(writer, i);
	atomic_store(&failures, 0);
	audit_writer_close(writer);
	listing = list(fixture);
	assert_int_equal(listing.count, AUDIT_RING_SLOTS + 1);
	assert_string_equal(listing.last, "7 entries could not be written");
}

static void a_stranger_cannot_fill_the_log(void **state)
{
	struct fixture *fixture = *state;
	struct audit_writer *writer = open_audit_writer(fixture, 100000);
	struct audit_entry entry = {.action = "authenticate"};

	for (unsigned i = 0; i < 10000; i++)
		audit_writer_put_bounded(writer, &entry);
	put(writer, 0); /* others are not held up by that */
	audit_writer_close(writer);
	/* The burst, and a second or more that may have passed on a slow machine. */
	assert_in_range(list(fixture).count, 65, 120);
	assert_string_equal(list(fixture).actions[0], "test");
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, remove_ring)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(what_was_put_is_there_after_a_flush),
		OPENED(closing_writes_what_is_left),
		OPENED(a_full_ring_loses_nothing_while_the_database_works),
		OPENED(more_than_is_kept_is_dropped),
		cmocka_unit_test_setup_teardown(
			what_was_put_survives_the_death_of_the_process, setup_empty, remove_ring),
		OPENED(a_ring_of_another_format_is_begun_anew),
		OPENED(what_could_not_be_written_is_tried_again),
		OPENED(what_is_lost_for_want_of_room_is_counted),
		OPENED(a_stranger_cannot_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
