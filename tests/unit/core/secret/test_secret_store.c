/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets on disk and in memory: what is kept, what opens again, and whose it is. */
#include "core/secret/seal.h"
#include "core/secret/secret_store.h"
#include "store/access/store_secret.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct secret_record make(const struct owner *owner, const char *name)
{
	struct secret_record record = {.owner = *owner,
		.url = "https://api.test/v1",
		.header = "Authorization",
		.prefix = "Bearer ",
		.changed_at_ms = 5};

	snprintf(record.name, sizeof(record.name), "%s", name);
	return record;
}

static void key_path(const struct fixture *fixture, char path[128])
{
	snprintf(path, 128, "%s/key", fixture->dir);
}

static int try_open(struct fixture *fixture, struct secret_store **ret_box, struct err *err)
{
	char path[128];

	key_path(fixture, path);
	return secret_store_open(fixture->store, path, ret_box, err);
}

static struct secret_store *must_open(struct fixture *fixture)
{
	struct secret_store *box;
	struct err err = {0};

	if (try_open(fixture, &box, &err) < 0)
		fail_msg("%s", err.message);
	return box;
}

static void must_put(
	struct secret_store *box, const struct owner *owner, const char *name, const char *value)
{
	struct secret_record record = make(owner, name);
	struct err err = {0};

	if (secret_store_put(box, &record, value, &err) < 0)
		fail_msg("%s", err.message);
}

/* The value that whoever asks would get. */
static void expect(
	struct secret_store *box, const struct owner *owner, const char *name, const char *value)
{
	const struct secret_cache_secret *secret =
		secret_cache_find(secret_store_cache(box), owner, name);

	if (value) {
		assert_non_null(secret);
		assert_string_equal(secret->value, value);
		assert_string_equal(secret->server.path, "/v1");
	} else {
		assert_null(secret);
	}
	secret_cache_secret_unref(secret);
}

static int end(void **state)
{
	char path[128];

	key_path(*state, path);
	unlink(path);
	return teardown(state);
}

static void a_secret_is_its_owners_and_is_there_again_after_a_restart(void **state)
{
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);

	must_put(box, &alice, "model", "one");
	must_put(box, &bob, "model", "two");
	secret_store_close(box);
	reopen(fixture);
	box = must_open(fixture);
	expect(box, &alice, "model", "one");
	expect(box, &bob, "model", "two");
	expect(box, &other_alice, "model", NULL);
	expect(box, &alice, "mode", NULL);
	secret_store_close(box);
}

static void another_value_takes_the_place_and_who_has_the_old_one_keeps_it(void **state)
{
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);
	const struct secret_cache_secret *held;
	struct err err;

	must_put(box, &alice, "model", "old");
	held = secret_cache_find(secret_store_cache(box), &alice, "model");
	must_put(box, &alice, "model", "new");
	expect(box, &alice, "model", "new");
	assert_string_equal(held->value, "old");
	assert_int_equal(secret_store_remove(box, &bob, "model", &err), -ENOENT);
	assert_int_equal(secret_store_remove(box, &alice, "model", &err), 0);
	expect(box, &alice, "model", NULL);
	assert_string_equal(held->value, "old");
	secret_store_close(box);
	secret_cache_secret_unref(held);
}

static void the_value_is_nowhere_in_the_files(void **state)
{
	static const char value[] = "a-value-that-can-be-found";
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);
	static const char *const suffixes[] = {"", "-wal"};

	must_put(box, &alice, "model", value);
	for (size_t i = 0; i < array_len(suffixes); i++) {
		auto_free char *path = mem_printf("%s%s", fixture->path, suffixes[i]);
		auto_free char *content = mem_new(4 << 20);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, content, 4 << 20);

		close(fd);
		assert_null(memmem(content, (size_t)(n > 0 ? n : 0), value, strlen(value)));
	}
	secret_store_close(box);
}

static void a_row_that_was_changed_or_moved_does_not_open(void **state)
{
	static const char *const changes[] = {"UPDATE secrets SET url = 'https://evil.test'",
		"UPDATE secrets SET user = 'bob'", "UPDATE secrets SET organization = 'other'",
		"UPDATE secrets SET name = 'elsewhere'", "UPDATE secrets SET header = 'x-other'",
		"UPDATE secrets SET prefix = ''", "UPDATE secrets SET trusted = 1"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < array_len(changes); i++) {
		struct secret_store *box = must_open(fixture);

		execute(fixture->path, "DELETE FROM secrets");
		must_put(box, &alice, "model", "one");
		secret_store_close(box);
		execute(fixture->path, changes[i]);
		box = must_open(fixture);
		expect(box, &alice, "model", NULL);
		expect(box, &alice, "elsewhere", NULL);
		expect(box, &bob, "model", NULL);
		expect(box, &other_alice, "model", NULL);
		secret_store_close(box);
	}
}

/* As a release would have kept it that took other URLs. */
static void keep_sealed(struct fixture *fixture, const struct secret_record *record)
{
	const char *const texts[] = {"sandlot secret 1", record->owner.organization,
		record->owner.user, record->name, record->url, record->header, record->prefix, ""};
	auto_(buf_fini) struct buf label = BUF_INIT(2048), sealed = BUF_INIT(2048);
	uint8_t key[SEAL_KEY_LEN];
	struct err err;
	char path[128];
	int fd;

	key_path(fixture, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, key, sizeof(key)), sizeof(key));
	close(fd);
	for (size_t i = 0; i < array_len(texts); i++)
		buf_append(&label, texts[i], strlen(texts[i]) + 1);
	assert_int_equal(seal_close(key, &label, "value", 5, &sealed), 0);
	assert_int_equal(
		store_secret_put(fixture->store, record, sealed.data, sealed.len, &err), 0);
}

static void one_that_leads_nowhere_is_refused_and_keeps_no_other_from_being_there(void **state)
{
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);
	struct secret_record record = make(&alice, "nowhere"), good = make(&bob, "model");
	struct err err;

	snprintf(record.url, sizeof(record.url), "gopher://api.test");
	assert_int_equal(secret_store_put(box, &record, "v", &err), -EINVAL);
	assert_non_null(strstr(err.message, "gopher://api.test"));
	secret_store_close(box);
	keep_sealed(fixture, &record);
	keep_sealed(fixture, &good);
	box = must_open(fixture);
	expect(box, &alice, "nowhere", NULL);
	expect(box, &bob, "model", "value");
	secret_store_close(box);
}

static void a_key_that_others_may_read_or_that_is_none_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);
	struct stat status;
	struct err err;
	char path[128];

	secret_store_close(box);
	key_path(fixture, path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_true(try_open(fixture, &box, &err) < 0);
	assert_non_null(strstr(err.message, "others may read"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_true(try_open(fixture, &box, &err) < 0);
	assert_non_null(strstr(err.message, "is no key"));
}

/* As on a disk that is full. */
static void a_key_that_could_not_be_written_is_made_the_next_time(void **state)
{
	struct rlimit limit, nothing;
	struct secret_store *box;
	struct err err;
	int r;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	nothing = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &nothing), 0);
	r = try_open(*state, &box, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(r, -EFBIG);
	secret_store_close(must_open(*state));
}

static void an_owner_has_a_share_and_may_change_what_is_in_it(void **state)
{
	struct fixture *fixture = *state;
	struct secret_store *box = must_open(fixture);
	struct secret_record record = make(&alice, "one-more");
	struct err err;

	for (int i = 0; i < STORE_SECRETS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%d", i);
		must_put(box, &alice, name, "v");
	}
	assert_true(secret_store_put(box, &record, "v", &err) < 0);
	assert_int_equal(err.kind, ERR_RATE);
	expect(box, &alice, "one-more", NULL);
	must_put(box, &alice, "s5", "changed");
	must_put(box, &bob, "one-more", "v");
	secret_store_close(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_secret_is_its_owners_and_is_there_again_after_a_restart, setup, end),
		cmocka_unit_test_setup_teardown(
			another_value_takes_the_place_and_who_has_the_old_one_keeps_it, setup, end),
		cmocka_unit_test_setup_teardown(the_value_is_nowhere_in_the_files, setup, end),
		cmocka_unit_test_setup_teardown(
			a_row_that_was_changed_or_moved_does_not_open, setup, end),
		cmocka_unit_test_setup_teardown(
			one_that_leads_nowhere_is_refused_and_keeps_no_other_from_being_there,
			setup, end),
		cmocka_unit_test_setup_teardown(
			a_key_that_others_may_read_or_that_is_none_is_refused, setup, end),
		cmocka_unit_test_setup_teardown(
			a_key_that_could_not_be_written_is_made_the_next_time, setup, end),
		cmocka_unit_test_setup_teardown(
			an_owner_has_a_share_and_may_change_what_is_in_it, setup, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
