/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/dns_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_question_comes_back_with_its_answer(void **state)
{
	struct address address = address_from_v4((struct in_addr){htonl(0xc6120401)});
	uint8_t out[DNS_MESSAGE_MAX], in[DNS_MESSAGE_MAX];
	struct dns_addresses addresses;
	struct dns_question question;
	size_t len = dns_question_write(0x1234, "a.example.com", DNS_TYPE_A, out);

	(void)state;
	assert_int_equal(dns_question_read(out, len, &question), 0);
	assert_string_equal(question.name, "a.example.com");
	assert_int_equal(question.type, DNS_TYPE_A);
	len = dns_answer_write(&question, DNS_OK, &address, 30, in);
	assert_int_equal(
		dns_answer_read(in, len, 0x1234, "a.example.com", DNS_TYPE_A, &addresses), 0);
	assert_int_equal(addresses.count, 1);
	assert_true(address_equals(addresses.list[0], address));
	assert_int_equal(addresses.ttl_s, 30);
	len = dns_answer_write(&question, DNS_NO_SUCH_NAME, NULL, 0, in);
	assert_int_equal(
		dns_answer_read(in, len, 0x1234, "a.example.com", DNS_TYPE_A, &addresses), -ENOENT);
	len = dns_answer_write(&question, DNS_SERVER_FAILURE, NULL, 0, in);
	assert_int_equal(
		dns_answer_read(in, len, 0x1234, "a.example.com", DNS_TYPE_A, &addresses), -EAGAIN);
}

static void addresses_of_ipv6_come_back_too(void **state)
{
	uint8_t out[DNS_MESSAGE_MAX], in[DNS_MESSAGE_MAX];
	struct dns_addresses addresses;
	struct dns_question question;
	struct address address;
	size_t len = dns_question_write(7, "a.test", DNS_TYPE_AAAA, out);

	(void)state;
	assert_int_equal(address_parse("2001:db8::7", &address), 0);
	assert_int_equal(dns_question_read(out, len, &question), 0);
	assert_int_equal(question.type, DNS_TYPE_AAAA);
	len = dns_answer_write(&question, DNS_OK, &address, 30, in);
	assert_int_equal(dns_answer_read(in, len, 7, "a.test", DNS_TYPE_AAAA, &addresses), 0);
	assert_int_equal(addresses.count, 1);
	assert_true(address_equals(addresses.list[0], address));
	assert_int_equal(dns_answer_read(in, len, 7, "a.test", DNS_TYPE_A, &addresses), -EBADMSG);
	/* IPv4 in the clothes of IPv6 is IPv4. */
	assert_int_equal(address_parse("::ffff:127.0.0.1", &address), 0);
	len = dns_answer_write(&question, DNS_OK, &address, 30, in);
	assert_int_equal(dns_answer_read(in, len, 7, "a.test", DNS_TYPE_AAAA, &addresses), 0);
	assert_true(address_is_v4(addresses.list[0]));
	assert_false(address_is_public(addresses.list[0]));
}

static void an_answer_to_another_question_is_none(void **state)
{
	struct address address = address_from_v4((struct in_addr){1});
	uint8_t out[DNS_MESSAGE_MAX], in[DNS_MESSAGE_MAX];
	struct dns_addresses addresses;
	struct dns_question question;
	size_t len = dns_question_write(1, "a.test", DNS_TYPE_A, out);

	(void)state;
	assert_int_equal(dns_question_read(out, len, &question), 0);
	assert_int_equal(dns_answer_read(out, len, 1, "a.test", DNS_TYPE_A, &addresses), -EBADMSG);
	len = dns_answer_write(&question, DNS_OK, &address, 30, in);
	assert_int_equal(dns_answer_read(in, len, 2, "a.test", DNS_TYPE_A, &addresses), -EBADMSG);
	assert_int_equal(dns_answer_read(in, len, 1, "b.test", DNS_TYPE_A, &addresses), -EBADMSG);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(
			dns_answer_read(in, cut, 1, "a.test", DNS_TYPE_A, &addresses), -EBADMSG);
}

static void the_addresses_behind_other_names_count(void **state)
{
	/* a.test is b.test (60 s), which has two addresses (300 s, 20 s); and a record of another kind. */
	static const uint8_t message[] = "\0\7\x81\x80\0\1\0\4\0\0\0\0"
					 "\1a\4test\0\0\1\0\1"
					 "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\4\1b\xc0\x0e"
					 "\xc0\x24\0\1\0\1\0\0\1\x2c\0\4\1\2\3\4"
					 "\xc0\x24\0\1\0\1\0\0\0\x14\0\4\5\6\7\x08"
					 "\xc0\x24\0\x1c\0\1\0\0\0\1\0\2\0\0";
	struct dns_addresses addresses;

	(void)state;
	assert_int_equal(
		dns_answer_read(message, sizeof(message) - 1, 7, "a.test", DNS_TYPE_A, &addresses),
		0);
	assert_int_equal(addresses.count, 2);
	assert_int_equal(ntohl(address_to_v4(addresses.list[1]).s_addr), 0x05060708);
	assert_int_equal(addresses.ttl_s, 20);
}

static void what_cannot_be_a_name_is_left_empty(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} odd[] = {{"\6evil\0x\2ok\0", 11}, {"\7evil.ok\4test\0", 14}, {"\1\xff\0", 3}, {"\0", 1}};
	struct dns_question question;
	uint8_t message[64] = {0, 7, 1, 0, 0, 1};

	(void)state;
	for (size_t i = 0; i < array_len(odd); i++) {
		memcpy(message + 12, odd[i].bytes, odd[i].len);
		memcpy(message + 12 + odd[i].len, "\0\1\0\1", 4);
		assert_int_equal(dns_question_read(message, 12 + odd[i].len + 4, &question), 0);
		assert_string_equal(question.name, "");
	}
}

static void what_is_no_question_is_refused(void **state)
{
	uint8_t good[DNS_MESSAGE_MAX], bad[DNS_MESSAGE_MAX];
	size_t len = dns_question_write(1, "a.test", DNS_TYPE_A, good);
	struct dns_question question;
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {{2, 0x81}, {2, 0x28}, {5, 0}, {5, 2}, {12, 0xc0}, {12, 60}, {23, 3}};

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(dns_question_read(good, cut, &question), -EBADMSG);
	for (size_t i = 0; i < array_len(changes); i++) {
		memcpy(bad, good, len);
		bad[changes[i].at] = changes[i].value;
		assert_int_equal(dns_question_read(bad, len, &question), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_comes_back_with_its_answer),
		cmocka_unit_test(addresses_of_ipv6_come_back_too),
		cmocka_unit_test(an_answer_to_another_question_is_none),
		cmocka_unit_test(the_addresses_behind_other_names_count),
		cmocka_unit_test(what_cannot_be_a_name_is_left_empty),
		cmocka_unit_test(what_is_no_question_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
