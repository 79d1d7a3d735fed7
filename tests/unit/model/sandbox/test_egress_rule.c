/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/egress_rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct egress_rule parse(const char *text)
{
	struct egress_rule rule;

	if (egress_rule_parse(text, &rule) < 0)
		fail_msg("%s is refused", text);
	return rule;
}

static struct address address(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(text, &address), 0);
	return address;
}

static void a_name_means_itself_alone(void **state)
{
	struct egress_rule rule = parse("Registry.Example.COM:443");

	(void)state;
	assert_int_equal(rule.kind, EGRESS_NAME);
	assert_int_equal(rule.port, 443);
	assert_true(egress_rule_names(&rule, "registry.example.com"));
	assert_false(egress_rule_names(&rule, "x.registry.example.com"));
	assert_false(egress_rule_names(&rule, "example.com"));
	assert_false(egress_rule_names(&rule, "registry.example.com.evil.test"));
	assert_false(egress_rule_names(&rule, "evilregistry.example.com"));
	assert_false(egress_rule_holds(&rule, address("0.0.0.0")));
}

static void a_star_means_all_names_below_and_not_itself(void **state)
{
	struct egress_rule rule = parse("*.example.com");

	(void)state;
	assert_int_equal(rule.port, 0);
	assert_true(egress_rule_names(&rule, "a.example.com"));
	assert_true(egress_rule_names(&rule, "a.b.example.com"));
	assert_false(egress_rule_names(&rule, "example.com"));
	assert_false(egress_rule_names(&rule, "badexample.com"));
	assert_false(egress_rule_names(&rule, ".example.com"));
}

static void a_network_holds_its_addresses(void **state)
{
	struct egress_rule net = parse("10.1.0.0/16:80"), all = parse("0.0.0.0/0");
	struct egress_rule one = parse("192.0.2.7"), six = parse("[2001:db8::/32]:443");

	(void)state;
	assert_int_equal(net.port, 80);
	assert_true(egress_rule_holds(&net, address("10.1.255.1")));
	assert_false(egress_rule_holds(&net, address("10.2.0.0")));
	assert_true(egress_rule_holds(&all, address("255.1.2.3")));
	assert_true(egress_rule_holds(&one, address("192.0.2.7")));
	assert_false(egress_rule_holds(&one, address("192.0.2.6")));
	assert_int_equal(six.port, 443);
	assert_false(egress_rule_holds(&six, address("32.1.13.184")));
	assert_true(egress_rule_holds(&six, address("2001:db8:ffff::1")));
	assert_false(egress_rule_holds(&six, address("2001:db9::")));
	assert_true(egress_rule_holds(
		&net, address("::ffff:10.1.0.1"))); /* IPv4, in another spelling */
	six = parse("::/0");
	assert_true(egress_rule_holds(&six, address("fe80::1")));
	assert_false(egress_rule_holds(&six, address("10.1.0.1")));
	assert_false(egress_rule_holds(&all, address("2001:db8::1")));
	six = parse("2001:db8:8000::/33");
	assert_true(egress_rule_holds(&six, address("2001:db8:8001::")));
	assert_false(egress_rule_holds(&six, address("2001:db8:7fff::")));
	assert_false(egress_rule_names(&net, ""));
}

static void a_rule_is_public_if_all_that_it_holds_is(void **state)
{
	static const char *const public[] = {"a.test", "*.a.test:80", "93.184.216.34", "8.0.0.0/7",
		"11.0.0.0/8", "172.32.0.0/11:443", "2606:4700::/32", "[2a00::1]:443", "2400::/6",
		"64:ff9b::93.184.216.34", "64:ff9b::800:0/103"};
	static const char *const private[] = {"0.0.0.0/0", "10.0.0.5", "10.0.0.5:80", "8.0.0.0/5",
		"127.0.0.1:9090", "169.254.169.254", "172.0.0.0/8", "168.63.129.16/31",
		"192.168.0.0/24", "198.18.0.1", "255.255.255.255", "::1", "::/0", "2000::/3",
		"2001::/16", "2001:db8::/32", "2001:db8::1", "2002:a00:5::1", "3fff::1",
		"64:ff9b::a00:5", "64:ff9b::/96", "64:ff9b::/32", "64:ff9b:1::8.8.8.8",
		"64:ff9b::1:808:808", "::8.8.8.8", "::ffff:0:8.8.8.8", "::ffff:10.0.0.5", "fc00::1",
		"fd00::/8", "fe80::1", "ff02::1", "::", "4000::1"};
	struct egress_rule rule;

	(void)state;
	for (size_t i = 0; i < array_len(public); i++) {
		rule = parse(public[i]);
		if (!egress_rule_is_public(&rule))
			fail_msg("%s is said to be private", public[i]);
	}
	for (size_t i = 0; i < array_len(private); i++) {
		rule = parse(private[i]);
		if (egress_rule_is_public(&rule))
			fail_msg("%s is said to be public", private[i]);
	}
}

static void everything_else_is_no_rule(void **state)
{
	static const char *const bad[] = {"", ":80", "*", "*.", "**.a", "a.*", "*a.b", "a..b", ".a",
		"-a.b", "a-.b", "a b", "a:0", "a:65536", "a:", "a:+1", "user@a", "http://a", "a/b",
		"1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4.5", "0x7f.1", "127.1", "[::1", "[a]:80",
		"[::1]80", "::1/129", "exa\x80mple", "1.2.3.4:80:90", "a.1"};
	struct egress_rule rule;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		if (egress_rule_parse(bad[i], &rule) >= 0)
			fail_msg("%s is accepted", bad[i]);
	}
}

static void names_have_one_form(void **state)
{
	char name[EGRESS_NAME_MAX] = "untouched", longest[256];

	(void)state;
	assert_int_equal(egress_name_read("OK.Com.", 7, name), 0);
	assert_string_equal(name, "ok.com");
	assert_int_equal(egress_name_read("xn--bcher-kva.example_1", 23, name), 0);
	assert_int_equal(egress_name_read("evil\0.ok.com", 12, name), -EINVAL);
	assert_int_equal(egress_name_read("ok.com..", 8, name), -EINVAL);
	assert_int_equal(egress_name_read(".", 1, name), -EINVAL);
	assert_int_equal(egress_name_read("", 0, name), -EINVAL);
	assert_int_equal(egress_name_read("2130706433", 10, name), -EINVAL);
	assert_int_equal(egress_name_read("0x7f000001", 10, name), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	for (size_t i = 60; i < sizeof(longest); i += 61)
		longest[i] = '.';
	assert_int_equal(egress_name_read(longest, 253, name), 0);
	assert_int_equal(egress_name_read(longest, 254, name), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_means_itself_alone),
		cmocka_unit_test(a_star_means_all_names_below_and_not_itself),
		cmocka_unit_test(a_network_holds_its_addresses),
		cmocka_unit_test(a_rule_is_public_if_all_that_it_holds_is),
		cmocka_unit_test(everything_else_is_no_rule),
		cmocka_unit_test(names_have_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
