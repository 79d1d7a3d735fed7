/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "blob/blob_store.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ABC "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

struct fixture {
	char path[64];
	int dir_fd;
	struct blob_store *store;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_new(sizeof(*fixture));
	struct err err;

	snprintf(fixture->path, sizeof(fixture->path), "/tmp/sandlot-blobs-XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	fixture->dir_fd = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(blob_store_open(fixture->dir_fd, &fixture->store, &err), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	blob_store_close(fixture->store);
	fd_close(fixture->dir_fd);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->path);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static struct blob_writer *begin(struct fixture *fixture, const char *digest, uint64_t max)
{
	struct blob_writer *writer;
	struct digest expected;
	struct err err;

	if (digest)
		assert_int_equal(digest_parse(digest, &expected, &err), 0);
	assert_int_equal(
		blob_writer_open(fixture->store, digest ? &expected : NULL, max, &writer, &err), 0);
	return writer;
}

static void add(struct blob_writer *writer, const char *text)
{
	struct err err;

	assert_int_equal(blob_writer_add(writer, text, strlen(text), &err), 0);
}

static int count_blob(void *arg, const struct digest *digest, uint64_t size)
{
	assert_string_equal(digest->text, ABC);
	assert_int_equal(size, 3);
	(*(int *)arg)++;
	return 0;
}

static void a_blob_is_there_once_it_is_whole(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *writer = begin(fixture, ABC, 3);
	struct digest digest, abc;
	struct err err;
	char *data;
	size_t len;
	int found = 0;

	assert_int_equal(digest_parse(ABC, &abc, &err), 0);
	add(writer, "ab");
	assert_false(blob_store_has(fixture->store, &abc));
	add(writer, "c");
	assert_int_equal(blob_writer_commit(writer, &digest, &err), 0);
	blob_writer_close(writer);
	assert_true(blob_store_has(fixture->store, &abc));
	assert_int_equal(blob_store_load(fixture->store, &abc, 3, &data, &len, &err), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(data, "abc", 3);
	free(data);
	assert_true(blob_store_load(fixture->store, &abc, 2, &data, &len, &err) < 0);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
	assert_int_equal(blob_store_walk(fixture->store, count_blob, &found, &err), 0);
	assert_int_equal(found, 1);
	assert_int_equal(blob_store_remove(fixture->store, &abc, &err), 0);
	assert_int_equal(blob_store_remove(fixture->store, &abc, &err), 0);
	assert_false(blob_store_has(fixture->store, &abc));
}

static void a_part_is_continued(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *writer = begin(fixture, ABC, 3);
	struct digest digest;
	struct err err;

	add(writer, "ab");
	blob_writer_close(writer);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 2);
	add(writer, "c");
	assert_int_equal(blob_writer_commit(writer, &digest, &err), 0);
	blob_writer_close(writer);
}

static void other_content_than_announced_is_refused_and_forgotten(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *writer = begin(fixture, ABC, 3);
	struct digest digest;
	struct err err;

	add(writer, "abd");
	assert_true(blob_writer_commit(writer, &digest, &err) < 0);
	assert_string_equal(err.code, "digest_mismatch");
	blob_writer_close(writer);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 0);
	blob_writer_close(writer);
}

static void more_than_announced_is_refused(void **state)
{
	struct blob_writer *writer = begin(*state, ABC, 3);
	struct err err;

	add(writer, "ab");
	assert_true(blob_writer_add(writer, "cd", 2, &err) < 0);
	assert_int_equal(err.kind, ERR_TOO_LARGE);
	blob_writer_close(writer);
}

static void nothing_is_written_into_the_reserve_and_no_part_stays(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *writer = begin(fixture, ABC, 3);
	struct digest digest;
	struct err err;

	add(writer, "a");
	blob_writer_close(writer);
	blob_store_set_reserve(fixture->store, UINT64_MAX / 2);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 1);
	assert_true(blob_writer_add(writer, "bc", 2, &err) < 0);
	assert_int_equal(err.kind, ERR_NO_SPACE);
	blob_writer_close(writer);
	blob_store_set_reserve(fixture->store, 0);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 0);
	add(writer, "abc");
	assert_int_equal(blob_writer_commit(writer, &digest, &err), 0);
	blob_writer_close(writer);
}

static void two_writers_of_one_blob_do_not_meet(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *first = begin(fixture, ABC, 3), *second = begin(fixture, ABC, 3);
	struct digest digest;
	struct err err;

	add(first, "ab");
	assert_int_equal(blob_writer_length(second), 0);
	add(second, "abc");
	add(first, "c");
	assert_int_equal(blob_writer_commit(second, &digest, &err), 0);
	assert_int_equal(blob_writer_commit(first, &digest, &err), 0);
	blob_writer_close(first);
	blob_writer_close(second);
	assert_true(blob_store_has(fixture->store, &digest));
}

static void parts_that_nobody_writes_are_swept(void **state)
{
	struct fixture *fixture = *state;
	struct blob_writer *writer = begin(fixture, ABC, 3);

	add(writer, "ab");
	blob_store_sweep(fixture->store, time(NULL) + 10);
	add(writer, "c");
	blob_writer_close(writer);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 3);
	blob_writer_close(writer);
	blob_store_sweep(fixture->store, time(NULL) - 100);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 3);
	blob_writer_close(writer);
	blob_store_sweep(fixture->store, time(NULL) + 10);
	writer = begin(fixture, ABC, 3);
	assert_int_equal(blob_writer_length(writer), 0);
	blob_writer_close(writer);
}

/* As a crash leaves them. */
static void of_what_nobody_writes_only_what_can_be_continued_stays(void **state)
{
	static const char *const names[] = {"0123456789abcdef.part",
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.part"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++)
		close(openat(fixture->dir_fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	blob_store_sweep(fixture->store, time(NULL) - 3600);
	assert_int_equal(faccessat(fixture->dir_fd, names[0], F_OK, 0), -1);
	assert_int_equal(faccessat(fixture->dir_fd, names[1], F_OK, 0), 0);
}

static void a_digest_has_one_spelling(void **state)
{
	static const char *const bad[] = {"", "sha256:", "sha512:00", "SHA256:00", ABC "0",
		"sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"sha256:../../../../../../../../../../../../../../../../../../../../etc"};
	struct digest digest;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_true(digest_parse(bad[i], &digest, &err) < 0);
	digest_of("abc", 3, &digest);
	assert_string_equal(digest.text, ABC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_blob_is_there_once_it_is_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_is_continued, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			other_content_than_announced_is_refused_and_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_is_written_into_the_reserve_and_no_part_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_than_announced_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			two_writers_of_one_blob_do_not_meet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			parts_that_nobody_writes_are_swept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_what_nobody_writes_only_what_can_be_continued_stays, set_up, tear_down),
		cmocka_unit_test(a_digest_has_one_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
