/* SPDX-License-Identifier: Apache-2.0 */
/* Links that open previews. */
#include "base/clock.h"
#include "core/engine/sandbox_handle.h"
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct preview_link make(unsigned sandbox, const char *id, uint16_t port, int64_t lasts_ms)
{
	struct preview_link link = {.port = port, .created_at_ms = clock_wall_ms()};

	link.expires_at_ms = link.created_at_ms + lasts_ms;
	snprintf(link.id, sizeof(link.id), "%s", id);
	snprintf(link.sandbox_id, sizeof(link.sandbox_id), "%s", id_of(sandbox));
	return link;
}

static void must_add(struct fixture *fixture, const struct preview_link *link, unsigned char secret)
{
	unsigned char hash[32] = {secret};
	struct err err;

	assert_int_equal(store_preview_link_add(fixture->store, link, hash, &err), 0);
}

static int get(struct fixture *fixture, unsigned char secret, struct preview_link *link)
{
	unsigned char hash[32] = {secret};
	struct err err;

	return store_preview_link_get(fixture->store, hash, link, &err);
}

static int count(struct fixture *fixture, unsigned sandbox, uint16_t port)
{
	struct preview_link links[4];
	struct err err;

	return store_preview_link_list(fixture->store, id_of(sandbox), port, links, 4, &err);
}

static void a_link_is_found_by_its_hash_until_it_expires(void **state)
{
	struct fixture *fixture = *state;
	struct preview_link good = make(1, "good", 3000, 60000), gone = make(1, "gone", 3000, -1),
			    got;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_add(fixture, &good, 1);
	must_add(fixture, &gone, 2);
	assert_int_equal(get(fixture, 1, &got), 0);
	assert_string_equal(got.id, "good");
	assert_string_equal(got.sandbox_id, id_of(1));
	assert_int_equal(got.port, 3000);
	assert_int_equal(got.expires_at_ms, good.expires_at_ms);
	assert_true(get(fixture, 2, &got) < 0);
	assert_true(get(fixture, 3, &got) < 0);
	assert_int_equal(count(fixture, 1, 3000), 1);
	assert_int_equal(count(fixture, 1, 3001), 0);
}

static void a_link_is_revoked_by_its_own_sandbox_and_port_alone(void **state)
{
	struct fixture *fixture = *state;
	struct preview_link link = make(1, "one", 3000, 60000), got;
	struct err err;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_insert(fixture->store, &bob, id_of(2), "");
	must_add(fixture, &link, 1);
	assert_int_equal(
		store_preview_link_delete(fixture->store, id_of(2), 3000, "one", &err), -ENOENT);
	assert_int_equal(
		store_preview_link_delete(fixture->store, id_of(1), 3001, "one", &err), -ENOENT);
	assert_int_equal(get(fixture, 1, &got), 0);
	assert_int_equal(store_preview_link_delete(fixture->store, id_of(1), 3000, "one", &err), 0);
	assert_true(get(fixture, 1, &got) < 0);
	assert_int_equal(
		store_preview_link_delete(fixture->store, id_of(1), 3000, "one", &err), -ENOENT);
}

static void links_are_bounded_and_expired_ones_make_room(void **state)
{
	struct fixture *fixture = *state;
	struct preview_link link;
	unsigned char hash[32] = {0};
	struct err err;
	char id[8];

	must_insert(fixture->store, &alice, id_of(1), "");
	for (unsigned i = 0; i < STORE_PREVIEW_LINKS_MAX; i++) {
		snprintf(id, sizeof(id), "%u", i);
		link = make(1, id, 3000, 60000);
		must_add(fixture, &link, (unsigned char)(i + 1));
	}
	link = make(1, "more", 3000, 60000);
	assert_int_equal(store_preview_link_add(fixture->store, &link, hash, &err), -EAGAIN);
	assert_string_equal(err.code, "too_many_links");
	link = make(1, "other", 3001, 60000);
	assert_int_equal(store_preview_link_add(fixture->store, &link, hash, &err), 0);
}

static void links_go_with_their_workspace(void **state)
{
	struct fixture *fixture = *state;
	struct preview_link link = make(1, "one", 3000, 60000), got;

	must_insert(fixture->store, &alice, id_of(1), "");
	must_add(fixture, &link, 1);
	execute(fixture->path,
		"PRAGMA foreign_keys = ON; DELETE FROM sandboxes; DELETE FROM workspaces");
	assert_true(get(fixture, 1, &got) < 0);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_link_is_found_by_its_hash_until_it_expires),
		WITH_STORE(a_link_is_revoked_by_its_own_sandbox_and_port_alone),
		WITH_STORE(links_are_bounded_and_expired_ones_make_room),
		WITH_STORE(links_go_with_their_workspace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
