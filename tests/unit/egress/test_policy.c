/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/policy.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct policy *make(const char *text)
{
	json_t *network = json_loads(text, 0, NULL);
	struct policy *policy;

	assert_non_null(network);
	policy = policy_new(network);
	json_decref(network);
	return policy;
}

static struct address address(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(text, &address), 0);
	return address;
}

static void what_is_not_understood_is_denied(void **state)
{
	static const char *const networks[] = {"{}", "{\"mode\":\"none\",\"allow\":[\"a.test\"]}",
		"{\"mode\":\"Internet\"}", "{\"mode\":5}", "{\"mode\":\"allowlist\"}",
		"{\"mode\":\"allowlist\",\"allow\":[]}",
		"{\"mode\":\"allowlist\",\"allow\":[\"*\",\"a.test:0\",7]}"};

	(void)state;
	for (size_t i = 0; i < array_len(networks); i++) {
		struct policy *policy = make(networks[i]);

		assert_false(policy_knows_name(policy, "a.test"));
		assert_false(policy_allows_name(policy, "a.test", 80));
		assert_false(policy_allows_address(policy, address("93.184.216.34"), 80));
		policy_free(policy);
	}
}

static void secrets_are_named_and_their_servers_judged_in_every_mode(void **state)
{
	struct policy *policy = make("{\"mode\":\"none\",\"allow\":[\"10.0.0.5:80\"],\"secrets\":["
				     "\"a\",\"B\",7,\"c\"]}");

	(void)state;
	assert_string_equal(policy_secret(policy, 0), "a");
	assert_string_equal(policy_secret(policy, 1), "c");
	assert_null(policy_secret(policy, 2));
	assert_true(policy_uses_secret(policy, "c"));
	assert_false(policy_uses_secret(policy, "B"));
	assert_true(policy_allows_server(policy, address("93.184.216.34"), 1));
	assert_true(policy_allows_server(policy, address("10.0.0.5"), 80));
	assert_false(policy_allows_server(policy, address("10.0.0.5"), 81));
	assert_false(policy_allows_address(policy, address("10.0.0.5"), 80));
	policy_free(policy);
}

static void an_allowlist_is_about_names_ports_and_addresses(void **state)
{
	struct policy *policy = make("{\"mode\":\"allowlist\",\"allow\":"
				     "[\"a.test:443\",\"*.b.test\",\"10.0.0.5:80\"]}");

	(void)state;
	assert_true(policy_knows_name(policy, "a.test"));
	assert_true(policy_allows_name(policy, "a.test", 443));
	assert_false(policy_allows_name(policy, "a.test", 80));
	assert_true(policy_allows_name(policy, "x.b.test", 1));
	assert_false(policy_allows_name(policy, "b.test", 1));
	/* An address that the sandbox names must be in a rule; one behind a name must be public. */
	assert_true(policy_allows_address(policy, address("10.0.0.5"), 80));
	assert_false(policy_allows_address(policy, address("10.0.0.5"), 81));
	assert_false(policy_allows_address(policy, address("93.184.216.34"), 80));
	assert_true(policy_allows_behind_name(policy, address("93.184.216.34"), 80));
	assert_true(policy_allows_behind_name(policy, address("10.0.0.5"), 80));
	assert_false(policy_allows_behind_name(policy, address("10.0.0.6"), 80));
	policy_free(policy);
}

static void the_internet_has_no_private_addresses(void **state)
{
	static const char *const private[] = {"0.0.0.0", "0.1.2.3", "10.255.0.1", "100.64.0.1",
		"100.127.255.255", "127.0.0.1", "127.255.255.254", "168.63.129.16",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.0.1",
		"198.18.0.1", "198.19.255.255", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1",
		"::", "::ffff:127.0.0.1", "fe80::1", "fd00::1", "fc00::1", "ff02::1", "2001:db8::1",
		"2002:7f00:1::", "2002:808:808::1", "2001::1",
		"2001:0:4136:e378:8000:63bf:f5ff:fffa", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.5",
		"64:ff9b::169.254.169.254", "64:ff9b::100.100.100.200", "64:ff9b:1::10.0.0.5",
		"64:ff9b:1:a00:5::", "::10.0.0.5", "::ffff:0:10.0.0.5", "::ffff:169.254.169.254",
		"fd00:ec2::254"};
	static const char *const public[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
		"169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1",
		"2001:200::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"};
	struct policy *policy = make("{\"mode\":\"internet\"}");

	(void)state;
	for (size_t i = 0; i < array_len(private); i++) {
		if (policy_allows_address(policy, address(private[i]), 80) ||
			policy_allows_behind_name(policy, address(private[i]), 80))
			fail_msg("%s is allowed", private[i]);
	}
	for (size_t i = 0; i < array_len(public); i++) {
		if (!policy_allows_address(policy, address(public[i]), 80))
			fail_msg("%s is denied", public[i]);
	}
	assert_true(policy_allows_name(policy, "any.test", 1));
	policy_free(policy);
	policy = make("{\"mode\":\"internet\",\"allow\":[\"192.168.0.0/16:5432\"]}");
	assert_true(policy_allows_behind_name(policy, address("192.168.7.7"), 5432));
	assert_false(policy_allows_behind_name(policy, address("192.168.7.7"), 80));
	policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_understood_is_denied),
		cmocka_unit_test(secrets_are_named_and_their_servers_judged_in_every_mode),
		cmocka_unit_test(an_allowlist_is_about_names_ports_and_addresses),
		cmocka_unit_test(the_internet_has_no_private_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
