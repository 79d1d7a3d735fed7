/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that lies there for clients: an owner has a share of it, and who has none is served. */
#include "http/owner_memory.h"
#include "http/principal.h"
#include "http/server/server_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MAX (64u << 20)
#define MI  (1u << 20)

static uint64_t key_of(const char *organization, const char *user)
{
	static const struct server server = {.id_seed = 12345};
	struct principal principal = {0};

	snprintf(principal.organization, sizeof(principal.organization), "%s", organization);
	snprintf(principal.user, sizeof(principal.user), "%s", user);
	return server_owner_key(&server, &principal);
}

static void owners_are_told_apart(void **state)
{
	(void)state;
	assert_true(key_of("a", "b") != key_of("ab", ""));
	assert_true(key_of("a", "b") != key_of("b", "a"));
	assert_true(key_of("a", "b") == key_of("a", "b"));
}

static void an_owner_has_a_quarter_and_what_is_given_back_again(void **state)
{
	struct owner_memory *memory = owner_memory_new(MAX);
	uint64_t ann = key_of("o", "ann"), bob = key_of("o", "bob");

	(void)state;
	for (int i = 0; i < 15; i++)
		assert_true(owner_memory_take(memory, ann, MI));
	assert_true(owner_memory_has_room(memory, ann));
	assert_true(owner_memory_take(memory, ann, MI));
	assert_false(owner_memory_has_room(memory, ann));
	assert_true(owner_memory_has_room(memory, bob));
	owner_memory_give_back(memory, ann, MI);
	assert_true(owner_memory_has_room(memory, ann));
	owner_memory_give_back(memory, ann, 15 * MI);
	owner_memory_free(memory);
}

static void what_is_begun_may_exceed_the_share_but_not_twice_of_it(void **state)
{
	struct owner_memory *memory = owner_memory_new(MAX);
	uint64_t ann = key_of("o", "ann");

	(void)state;
	assert_true(owner_memory_take(memory, ann, 20 * MI));
	assert_true(owner_memory_take(memory, ann, 12 * MI));
	assert_false(owner_memory_take(memory, ann, 1));
	assert_false(owner_memory_take(memory, ann, UINT64_MAX));
	owner_memory_give_back(memory, ann, 32 * MI);
	/* One answer alone is given, however large: it could never be otherwise. */
	assert_true(owner_memory_take(memory, ann, 40 * MI));
	owner_memory_give_back(memory, ann, 40 * MI);
	owner_memory_free(memory);
}

static void when_all_is_taken_who_has_nothing_is_served(void **state)
{
	struct owner_memory *memory = owner_memory_new(MAX);
	uint64_t operator= key_of("default", "admin");
	uint64_t keys[1000];

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "u%zu", i);
		keys[i] = key_of("o", name);
		assert_true(owner_memory_has_room(memory, keys[i]));
		assert_true(owner_memory_take(memory, keys[i], MI / 8));
	}
	assert_false(owner_memory_has_room(memory, keys[0]));
	assert_true(owner_memory_has_room(memory, operator));
	for (size_t i = 0; i < 1000; i++)
		owner_memory_give_back(memory, keys[i], MI / 8);
	assert_true(owner_memory_has_room(memory, keys[0]));
	owner_memory_free(memory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_told_apart),
		cmocka_unit_test(an_owner_has_a_quarter_and_what_is_given_back_again),
		cmocka_unit_test(what_is_begun_may_exceed_the_share_but_not_twice_of_it),
		cmocka_unit_test(when_all_is_taken_who_has_nothing_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
