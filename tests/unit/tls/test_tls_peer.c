/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool allows(const char *server_name, const char *host)
{
	struct tls_peer *tls_peer = tls_peer_new();
	bool is_so;

	if (server_name)
		tls_peer_set_server_name(tls_peer, server_name);
	is_so = tls_peer_allows_host(tls_peer, host);
	tls_peer_unref(tls_peer);
	tls_peer_unref(tls_peer);
	return is_so;
}

static void who_asked_for_no_server_may_name_any(void **state)
{
	(void)state;
	assert_true(allows(NULL, "a.test"));
	assert_true(allows(NULL, "127.0.0.1:9090"));
	assert_true(tls_peer_allows_host(NULL, "a.test"));
}

static void a_host_names_the_server_that_was_asked_for(void **state)
{
	static const char *const same[] = {
		"a.test", "a.test:443", "a.test.", "a.test.:443", "A.Test:9090", "a.test:"};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		if (!allows("a.test", same[i]) || !allows("A.TEST.", same[i]))
			fail_msg("%s", same[i]);
	}
}

static void a_host_names_no_other_server(void **state)
{
	static const char *const others[] = {"", ".", ":443", "b.test", "a.test.evil", "a.tes",
		"a.testa", "xa.test", "a.test..", "127.0.0.1:443", "[::1]", "[::1]:443", "[a.test]",
		"a.test:1:2"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (allows("a.test", others[i]))
			fail_msg("%s", others[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asked_for_no_server_may_name_any),
		cmocka_unit_test(a_host_names_the_server_that_was_asked_for),
		cmocka_unit_test(a_host_names_no_other_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
