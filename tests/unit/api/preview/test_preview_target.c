/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview/preview_target.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ID     "01k9zzzzzzzzzzzzzzzzzzzzzz"
#define DOMAIN "preview.test"
#define NEW    "/v1/sandboxes/" ID "/preview/3000"
#define OLD    "/api/sandbox/sessions/" ID "/preview"

static int find_at(uint16_t port, struct terminator *terminator, const char *host,
	const char *target, struct preview_target *goal)
{
	struct listener listener = {.host = "127.0.0.1", .port = port, .terminator = terminator};
	struct proxy_visit visit = {.host = host, .target = target};

	return preview_target_find(DOMAIN, &listener, &visit, goal);
}

static int find(const char *host, const char *target, struct preview_target *goal)
{
	return find_at(9091, NULL, host, target, goal);
}

static void a_path_names_a_sandbox_and_its_port(void **state)
{
	static const struct {
		const char *path, *prefix;
		uint16_t port;
	} paths[] = {{NEW, NEW, 3000}, {NEW "/a?b", NEW, 3000}, {NEW "?b=/", NEW, 3000},
		{OLD, OLD, 0}, {OLD "/a", OLD, 0}, {OLD "?_rsc=1", OLD, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct preview_target goal;

		assert_int_equal(find("127.0.0.1:9091", paths[i].path, &goal), 0);
		assert_string_equal(goal.id, ID);
		assert_int_equal(goal.port, paths[i].port);
		assert_true(slice_is(goal.prefix, paths[i].prefix));
	}
}

static void paths_are_exact(void **state)
{
	static const char *const bad[] = {NEW "0x", NEW "x/", "/v1/sandboxes/" ID "/preview/",
		"/v1/sandboxes/" ID "/preview/0", "/v1/sandboxes/" ID "/preview/03000/",
		"/v1/sandboxes/" ID "/preview/65536/", "/v1/sandboxes/" ID "/preview/300000/",
		OLD "s/", OLD "x"};
	static const char *const others[] = {"/", "", "/v1/sandboxes/", "/v1/sandboxes/" ID,
		"/v1/sandboxes/Short/preview/3000/", "/v1/sandboxes//preview/3000/",
		"/api/sandbox/sessions/", "v1", "/v1/sandboxes/" ID "x/preview/3000/",
		"//v1/sandboxes/" ID "/preview/3000/"};
	struct preview_target goal;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (preview_target_parse_path(bad[i], &goal) != -EINVAL)
			fail_msg("%s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (preview_target_parse_path(others[i], &goal) != -ENOENT)
			fail_msg("%s", others[i]);
	}
}

static void a_name_has_no_path_in_front(void **state)
{
	struct preview_target goal;

	(void)state;
	assert_int_equal(find("s-" ID "-80." DOMAIN ":9091", NEW, &goal), 0);
	assert_int_equal(goal.port, 80);
	assert_null(goal.prefix.at);
}

static void paths_lead_somewhere_only_on_the_listeners_own_names(void **state)
{
	static const char *const own[] = {
		"127.0.0.1:9091", "localhost:9091", DOMAIN, DOMAIN ":9091", "LOCALHOST:9091"};
	static const char *const others[] = {"localhost", "localhost:80", "127.0.0.1", "evil.test",
		("x" DOMAIN), "127.0.0.1:90911"};
	struct preview_target goal;

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(find(own[i], NEW, &goal), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(find(others[i], NEW, &goal), -ENOENT);
}

static void a_port_that_browsers_leave_out_may_be_left_out(void **state)
{
	static const char *const own[] = {"127.0.0.1", "localhost"};
	struct terminator *tls =
		(struct terminator *)&own; /* any: only whether there is one counts */
	struct preview_target goal;

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		assert_int_equal(find_at(443, tls, own[i], NEW, &goal), 0);
		assert_int_equal(find_at(80, NULL, own[i], NEW, &goal), 0);
		assert_int_equal(find_at(80, tls, own[i], NEW, &goal), -ENOENT);
		assert_int_equal(find_at(443, NULL, own[i], NEW, &goal), -ENOENT);
	}
	assert_int_equal(find_at(443, tls, "localhost:443", NEW, &goal), 0);
	assert_int_equal(find_at(443, tls, "localhost:80", NEW, &goal), -ENOENT);
}

static void a_stray_request_belongs_below_the_prefix_of_what_asked_for_it(void **state)
{
	static const char own[] = "localhost:9091";
	static const struct {
		const char *target, *host, *referer, *prefix;
	} cases[] = {
		{"/src/a.js", own, "http://localhost:9091" NEW "/main.js", NEW},
		{"/v1", own, "http://LOCALHOST:9091" OLD "?x", OLD},
		{"//evil.test/", own, "http://localhost:9091" NEW, NEW},
		{"/src/a.js", own, "https://localhost:9091" NEW "/", NEW},
		/* Nobody says where it is from, or it is from somewhere else. */
		{"/src/a.js", own, NULL, NULL},
		{"/src/a.js", own, "", NULL},
		{"/src/a.js", own, "http://localhost:9091/", NULL},
		{"/src/a.js", own, "http://localhost:9091", NULL},
		{"/src/a.js", own, "http://127.0.0.1:9091" NEW "/", NULL},
		{"/src/a.js", own, "http://localhost:90911" NEW "/", NULL},
		{"/src/a.js", own, "http://localhost:9091@evil.test" NEW "/", NULL},
		{"/src/a.js", "evil.test", "http://evil.test" NEW "/", NULL},
		{"/src/a.js", own, "http://localhost:9091" NEW "x/", NULL},
		/* It has a place of its own, be it one that is none. */
		{OLD "/", own, "http://localhost:9091" NEW "/", NULL},
		{NEW "x/", own, "http://localhost:9091" NEW "/", NULL},
	};

	const struct listener listener = {.host = "127.0.0.1", .port = 9091};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proxy_visit visit = {.host = cases[i].host,
			.target = cases[i].target,
			.referer = cases[i].referer};
		struct slice prefix = {0};
		int r = preview_target_find_stray(DOMAIN, &listener, &visit, &prefix);

		if (cases[i].prefix ? r < 0 || !slice_is(prefix, cases[i].prefix) : r != -ENOENT)
			fail_msg("%s from %s", cases[i].target,
				cases[i].referer ? cases[i].referer : "nowhere");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_names_a_sandbox_and_its_port),
		cmocka_unit_test(paths_are_exact),
		cmocka_unit_test(a_name_has_no_path_in_front),
		cmocka_unit_test(paths_lead_somewhere_only_on_the_listeners_own_names),
		cmocka_unit_test(a_port_that_browsers_leave_out_may_be_left_out),
		cmocka_unit_test(a_stray_request_belongs_below_the_prefix_of_what_asked_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
