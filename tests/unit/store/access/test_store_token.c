/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: known by the hash of their secret, seen and revoked by their owner. */
#include "store_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_token_is_known_by_its_hash_and_replaced_by_its_id(void **state)
{
	struct fixture *fixture = *state;
	struct token_record in = {.id = "admin",
				    .owner = alice,
				    .scopes = SCOPE_ADMIN,
				    .created_at_ms = 7},
			    out;
	unsigned char hash[32] = {1, 0, 2}, other[32] = {1, 0, 3};
	struct err err;

	assert_int_equal(store_token_find(fixture->store, hash, 1, &out, &err), -EACCES);
	assert_int_equal(store_token_put(fixture->store, &in, hash, &err), 0);
	reopen(fixture);
	assert_int_equal(store_token_find(fixture->store, hash, 1, &out, &err), 0);
	assert_string_equal(out.id, "admin");
	assert_string_equal(out.owner.organization, alice.organization);
	assert_string_equal(out.owner.user, alice.user);
	assert_int_equal(out.scopes, SCOPE_ADMIN);
	assert_int_equal(store_token_find(fixture->store, other, 1, &out, &err), -EACCES);
	assert_int_equal(store_token_touch(fixture->store, "admin", 9, &err), 0);
	in.created_at_ms = 8;
	assert_int_equal(store_token_put(fixture->store, &in, other, &err), 0);
	assert_int_equal(store_token_find(fixture->store, other, 1, &out, &err), 0);
	assert_int_equal(
		store_token_find(fixture->store, hash, 1, &out, &err), -EACCES); /* the old one */
	assert_int_equal(store_token_get(fixture->store, NULL, "admin", &out, &err), 0);
	assert_int_equal(out.created_at_ms, 7);
	assert_int_equal(out.last_used_at_ms, 9);
}

static void put_token(
	struct store *store, const char *id, const struct owner *owner, unsigned char first)
{
	struct token_record token = {
		.id = "", .name = "ci", .owner = *owner, .scopes = SCOPE_READ | SCOPE_RUN};
	unsigned char hash[32] = {first};
	struct err err;

	snprintf(token.id, sizeof(token.id), "%s", id);
	token.expires_at_ms = 1000;
	assert_int_equal(store_token_put(store, &token, hash, &err), 0);
}

static void a_token_is_good_until_it_expires(void **state)
{
	struct fixture *fixture = *state;
	unsigned char hash[32] = {1};
	struct token_record out;
	struct err err;

	put_token(fixture->store, "a", &alice, 1);
	assert_int_equal(store_token_find(fixture->store, hash, 999, &out, &err), 0);
	assert_string_equal(out.name, "ci");
	assert_int_equal(out.scopes, SCOPE_READ | SCOPE_RUN);
	assert_int_equal(out.expires_at_ms, 1000);
	assert_int_equal(store_token_find(fixture->store, hash, 1000, &out, &err), -EACCES);
	assert_int_equal(err.kind, ERR_UNAUTHENTICATED);
}

/* The next request with it does not ask the database, unless something has changed there. */
static void a_token_that_was_found_is_unknown_once_it_is_revoked(void **state)
{
	struct fixture *fixture = *state;
	unsigned char hash[32] = {1}, alike[32] = {1, 1};
	struct token_record out;
	struct err err;

	put_token(fixture->store, "a", &alice, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_token_find(fixture->store, hash, 1, &out, &err), 0);
		assert_string_equal(out.id, "a");
		assert_int_equal(store_token_find(fixture->store, alike, 1, &out, &err), -EACCES);
	}
	assert_int_equal(store_token_touch(fixture->store, "a", 9, &err), 0);
	assert_int_equal(store_token_find(fixture->store, hash, 1, &out, &err), 0);
	assert_int_equal(out.last_used_at_ms, 9);
	assert_int_equal(store_token_delete(fixture->store, &alice, "a", &err), 0);
	assert_int_equal(store_token_find(fixture->store, hash, 1, &out, &err), -EACCES);
}

static void append_id(const struct token_record *token, void *arg)
{
	strcat(arg, token->id);
}

static void tokens_of_another_are_neither_seen_nor_revoked(void **state)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->store;
	char ids[16] = "";
	struct token_record out;
	struct err err;

	put_token(store, "a", &alice, 1);
	put_token(store, "b", &bob, 2);
	put_token(store, "c", &other_alice, 3);
	put_token(store, "d", &alice, 4);
	assert_int_equal(store_token_list(store, &alice, "", 9, append_id, ids, &err), 0);
	assert_string_equal(ids, "ad");
	ids[0] = '\0';
	assert_int_equal(store_token_list(store, NULL, "a", 2, append_id, ids, &err), 0);
	assert_string_equal(ids, "bc");
	assert_int_equal(store_token_get(store, &alice, "b", &out, &err), -ENOENT);
	assert_int_equal(store_token_delete(store, &alice, "c", &err), -ENOENT);
	assert_int_equal(store_token_get(store, NULL, "c", &out, &err), 0);
	assert_int_equal(store_token_delete(store, &alice, "a", &err), 0);
	assert_int_equal(store_token_delete(store, &alice, "a", &err), -ENOENT);
	assert_int_equal(store_token_get(store, NULL, "a", &out, &err), -ENOENT);
}

#define OPENED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPENED(a_token_is_known_by_its_hash_and_replaced_by_its_id),
		OPENED(a_token_is_good_until_it_expires),
		OPENED(a_token_that_was_found_is_unknown_once_it_is_revoked),
		OPENED(tokens_of_another_are_neither_seen_nor_revoked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
