/* SPDX-License-Identifier: Apache-2.0 */
/* Who passes the gate, over a store of its own. */
#include "auth/gate.h"

#include "base/clock.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define STREAM "/v1/sandboxes/x/events"

struct world {
	struct gate gate;
	char dir[64];
};

static const struct route read_route = {.method = "GET", .path = "/r", .scope = SCOPE_READ};
static const struct route run_route = {.method = "POST", .path = "/x", .scope = SCOPE_RUN};
static const struct route admin_route = {.method = "POST", .path = "/a", .scope = SCOPE_ADMIN};
static const struct route forgotten_route = {.method = "GET", .path = "/f"};

static int setup(void **state)
{
	struct world *world = mem_new(sizeof(*world));
	struct err err = {0};
	char path[96];

	snprintf(world->dir, sizeof(world->dir), "/tmp/sandlot-gate-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	snprintf(path, sizeof(path), "%s/state.db", world->dir);
	assert_int_equal(store_open(path, &world->gate.store, &err), 0);
	world->gate.tickets = ticket_table_new();
	*state = world;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int teardown(void **state)
{
	struct world *world = *state;

	store_close(world->gate.store);
	ticket_table_free(world->gate.tickets);
	nftw(world->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(world);
	return 0;
}

static void put(struct world *world, const char *id, const char *text, unsigned scopes,
	int64_t expires_at_ms)
{
	struct token_record token = {
		.owner = {"acme", "alice"}, .scopes = scopes, .expires_at_ms = expires_at_ms};
	unsigned char hash[SECRET_HASH_LEN];
	struct err err;

	snprintf(token.id, sizeof(token.id), "%s", id);
	secret_hash(text, hash);
	assert_int_equal(store_token_put(world->gate.store, &token, hash, &err), 0);
}

/* The HTTP status that a credential gets. */
static int status_of(struct world *world, const struct credential *credential,
	const struct route *route, struct principal *ret)
{
	struct err err = {0};

	return gate_admit(&world->gate, credential, route, ret, &err) < 0
		       ? err_class((enum err_kind)err.kind)->http_status
		       : 200;
}

static int ask(struct world *world, const char *token, const struct route *route)
{
	struct principal ignored;

	return status_of(world, &(struct credential){.token = token}, route, &ignored);
}

static void a_token_reaches_what_its_scopes_reach(void **state)
{
	struct world *world = *state;

	put(world, "a", "slt_a", SCOPE_READ, 0);
	put(world, "b", "slt_b", SCOPE_ADMIN, 0);
	put(world, "c", "slt_c", 0, 0);
	assert_int_equal(ask(world, "slt_a", &read_route), 200);
	assert_int_equal(ask(world, "slt_a", &run_route), 403);
	assert_int_equal(ask(world, "slt_a", &admin_route), 403);
	assert_int_equal(ask(world, "slt_b", &read_route), 200);
	assert_int_equal(ask(world, "slt_b", &admin_route), 200);
	assert_int_equal(ask(world, "slt_c", &read_route), 403);
	assert_int_equal(ask(world, "slt_x", &read_route), 401);
	assert_int_equal(ask(world, "", &read_route), 401);
}

static void a_route_that_names_no_scope_is_closed_to_all(void **state)
{
	struct world *world = *state;

	put(world, "b", "slt_b", SCOPE_ADMIN, 0);
	assert_int_equal(ask(world, "slt_b", &forgotten_route), 403);
}

static void a_token_says_who_it_belongs_to_and_when_it_ends(void **state)
{
	int64_t end = clock_wall_ms() + 100000;
	struct world *world = *state;
	struct principal who;

	put(world, "a", "slt_a", SCOPE_READ, end);
	assert_int_equal(
		status_of(world, &(struct credential){.token = "slt_a"}, &read_route, &who), 200);
	assert_string_equal(who.token_id, "a");
	assert_string_equal(who.organization, "acme");
	assert_string_equal(who.user, "alice");
	assert_int_equal(who.expires_at_ms, end);
	put(world, "a", "slt_a", SCOPE_READ, 1);
	assert_int_equal(ask(world, "slt_a", &read_route), 401);
}

static void the_use_of_a_token_is_noted(void **state)
{
	int64_t before = clock_wall_ms();
	struct world *world = *state;
	struct token_record token;
	struct err err;

	put(world, "a", "slt_a", SCOPE_READ, 0);
	assert_int_equal(ask(world, "slt_a", &read_route), 200);
	assert_int_equal(store_token_get(world->gate.store, NULL, "a", &token, &err), 0);
	assert_true(token.last_used_at_ms >= before);
}

/* Without an issuer nothing is taken apart, whatever it looks like. */
static void a_signed_token_without_an_issuer_is_an_unknown_token(void **state)
{
	assert_int_equal(ask(*state, "eyJhbGciOiJub25lIn0.e30.", &read_route), 401);
}

static void issue(struct world *world, const char *token_id, char ticket[SECRET_TEXT_MAX])
{
	struct principal who = {.organization = "acme", .user = "alice", .scopes = SCOPE_READ};
	struct err err;

	snprintf(who.token_id, sizeof(who.token_id), "%s", token_id);
	assert_int_equal(ticket_table_issue(world->gate.tickets, &who, STREAM, clock_steady_ms(),
				 TICKET_LIFE_MS, ticket, &err),
		0);
}

static int show(struct world *world, const char *ticket, const struct route *route)
{
	struct credential credential = {.ticket = ticket, .path = STREAM};
	struct principal ignored;

	return status_of(world, &credential, route, &ignored);
}

static void a_ticket_is_as_good_as_the_token_behind_it(void **state)
{
	struct world *world = *state;
	char ticket[SECRET_TEXT_MAX];
	struct err err;

	put(world, "a", "slt_a", SCOPE_READ, 0);
	issue(world, "a", ticket);
	assert_int_equal(show(world, ticket, &read_route), 200);
	assert_int_equal(show(world, ticket, &read_route), 401);
	issue(world, "a", ticket);
	assert_int_equal(show(world, ticket, &run_route), 403);
	issue(world, "a", ticket);
	assert_int_equal(store_token_delete(world->gate.store, NULL, "a", &err), 0);
	assert_int_equal(show(world, ticket, &read_route), 401);
	issue(world, "", ticket); /* of a signed token */
	assert_int_equal(show(world, ticket, &read_route), 200);
}

static int enter(struct world *world, const char *token, const char *path)
{
	struct credential credential = {.token = token, .path = path};
	struct principal ignored;

	return status_of(world, &credential, &read_route, &ignored);
}

static void a_bound_token_opens_its_path_while_its_token_is_good(void **state)
{
	struct world *world = *state;
	char bound[SECRET_TEXT_MAX];
	struct err err;

	put(world, "a", "slt_a", SCOPE_READ, 0);
	assert_int_equal(bound_token_make(world->gate.store, world->gate.bound_key, "a",
				 "/e2b/data/one", bound, &err),
		0);
	assert_int_equal(enter(world, bound, "/e2b/data/one/files"), 200);
	assert_int_equal(enter(world, bound, "/e2b/data/two/files"), 401);
	assert_int_equal(enter(world, bound, "/e2b/data/oneself"), 401);
	assert_int_equal(enter(world, bound, "/v1/sandboxes"), 401);
	assert_int_equal(enter(world, bound, NULL), 401);
	assert_int_equal(ask(world, bound, &run_route), 401);
	world->gate.bound_key[0] ^= 1; /* a copy of the database elsewhere */
	assert_int_equal(enter(world, bound, "/e2b/data/one/files"), 401);
	world->gate.bound_key[0] ^= 1;
	bound[strlen(bound) - 1] ^= 1;
	assert_int_equal(enter(world, bound, "/e2b/data/one/files"), 401);
	bound[strlen(bound) - 1] ^= 1;
	assert_int_equal(store_token_delete(world->gate.store, NULL, "a", &err), 0);
	assert_int_equal(enter(world, bound, "/e2b/data/one/files"), 401);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(a_token_reaches_what_its_scopes_reach),
		TEST(a_route_that_names_no_scope_is_closed_to_all),
		TEST(a_token_says_who_it_belongs_to_and_when_it_ends),
		TEST(the_use_of_a_token_is_noted),
		TEST(a_signed_token_without_an_issuer_is_an_unknown_token),
		TEST(a_ticket_is_as_good_as_the_token_behind_it),
		TEST(a_bound_token_opens_its_path_while_its_token_is_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
