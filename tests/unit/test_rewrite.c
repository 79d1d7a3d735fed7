/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct rewrite by_name = {
	.scheme = "http", .host = "s-x-3000.p.test:9091", .client = "10.0.0.1", .port = 3000};
static const struct rewrite by_path = {.scheme = "http",
	.host = "p.test:9091",
	.client = "10.0.0.1",
	.port = 3000,
	.prefix_len = 2,
	.is_confined = true};

/* The head of a request as the app gets it. */
static char *request(const struct rewrite *rewrite, const char *text)
{
	struct message message = {0};
	struct buf out = BUF_INIT(65536);

	message_begin(&message, HTTP_REQUEST);
	assert_true(message_feed(&message, (const uint8_t *)text, strlen(text)) > 0);
	rewrite_request(&message, rewrite, false, &out);
	message_fini(&message);
	return buf_take_str(&out);
}

static char *response(const struct rewrite *rewrite, const char *text)
{
	struct message message = {0};
	struct buf out = BUF_INIT(65536);

	message_begin(&message, HTTP_RESPONSE);
	assert_true(message_feed(&message, (const uint8_t *)text, strlen(text)) > 0);
	rewrite_response(&message, rewrite, false, false, &out);
	message_fini(&message);
	return buf_take_str(&out);
}

static void an_app_sees_itself_and_no_claim_of_the_client(void **state)
{
	auto_free char *head = request(&by_name,
		"GET /a HTTP/1.1\r\nHost: s-x-3000.p.test:9091\r\nX-Forwarded-For: 6.6.6.6\r\n"
		"Origin: http://s-x-3000.p.test:9091\r\nReferer: http://s-x-3000.p.test:9091/b\r\n"
		"Connection: X-One\r\nConnection: X-Two\r\nX-One: 1\r\nX-Two: 2\r\nTE: "
		"gzip\r\n\r\n");

	(void)state;
	assert_string_equal(head,
		"GET /a HTTP/1.1\r\nHost: localhost:3000\r\nOrigin: http://localhost:3000\r\n"
		"Referer: http://localhost:3000/b\r\nX-Forwarded-For: 10.0.0.1\r\n"
		"X-Forwarded-Host: s-x-3000.p.test:9091\r\nX-Forwarded-Proto: http\r\n\r\n");
}

static void an_origin_that_only_begins_like_ours_is_another(void **state)
{
	auto_free char *head =
		request(&by_name, "GET / HTTP/1.1\r\nOrigin: http://s-x-3000.p.test:90911\r\n\r\n");

	(void)state;
	assert_non_null(strstr(head, "Origin: http://s-x-3000.p.test:90911\r\n"));
}

static void our_credentials_stay_with_us(void **state)
{
	static const char *const ours[] = {"X-API-Key: slt_secret",
		"Authorization: Bearer slt_secret", "Authorization: BEARER slt_secret",
		"Authorization: bearer   slt_secret", "Cookie: sandlot_preview=secret",
		"Cookie: a=1;sandlot_preview=secret;  b=2"};

	(void)state;
	for (size_t i = 0; i < array_len(ours); i++) {
		struct buf text = BUF_INIT(1024);
		auto_free char *head = NULL;

		buf_printf(&text, "GET / HTTP/1.1\r\n%s\r\n\r\n%c", ours[i], '\0');
		head = request(&by_name, (char *)text.data);
		if (strstr(head, "secret"))
			fail_msg("passed on: %s", head);
		buf_fini(&text);
	}
}

static void credentials_of_the_app_pass(void **state)
{
	auto_free char *head =
		request(&by_name, "GET / HTTP/1.1\r\nX-API-Key: k\r\nAuthorization: Basic dTpw\r\n"
				  "Cookie: a=1; sandlot_preview=x; b=2\r\n\r\n");

	(void)state;
	assert_non_null(strstr(head, "X-API-Key: k\r\n"));
	assert_non_null(strstr(head, "Authorization: Basic dTpw\r\n"));
	assert_non_null(strstr(head, "Cookie: a=1; b=2\r\n"));
}

static void a_shared_origin_has_no_cookies(void **state)
{
	auto_free char *head = request(&by_path, "GET /p/x HTTP/1.1\r\nCookie: session=1\r\n\r\n");
	auto_free char *answer = response(
		&by_path, "HTTP/1.1 200 OK\r\nSet-Cookie: session=2\r\nContent-Length: 0\r\n\r\n");

	(void)state;
	assert_null(strstr(head, "session"));
	assert_non_null(strstr(head, "GET /x HTTP"));
	assert_null(strstr(answer, "session"));
	assert_non_null(strstr(answer, "Content-Security-Policy: sandbox "));
}

static void no_app_sets_our_cookie_or_one_of_a_domain(void **state)
{
	auto_free char *answer = response(&by_name,
		"HTTP/1.1 200 OK\r\nSet-Cookie: sandlot_preview=evil\r\n"
		"Set-Cookie: ;sandlot_preview=evil\r\nSet-Cookie: =sandlot_preview=evil\r\n"
		"Set-Cookie: ; ;\r\nSet-Cookie: Domain=1; domain=p.test; DOMAIN =p.test; Path=/; "
		"Domain\r\n"
		"Content-Length: 0\r\n\r\n");

	(void)state;
	assert_string_equal(answer,
		"HTTP/1.1 200 OK\r\nSet-Cookie: Domain=1; Path=/\r\nContent-Length: 0\r\n\r\n");
}

static void addresses_of_the_app_become_those_of_the_preview(void **state)
{
	auto_free char *answer = response(&by_name,
		"HTTP/1.1 302 Found\r\nLocation: http://localhost:3000/a\r\nLocation: "
		"http://localhost:30000/a\r\n"
		"Location: //evil.test/\r\nAlt-Svc: h3\r\nClear-Site-Data: *\r\nContent-Length: "
		"0\r\n\r\n");

	(void)state;
	assert_string_equal(answer,
		"HTTP/1.1 302 Found\r\nLocation: http://s-x-3000.p.test:9091/a\r\n"
		"Location: http://localhost:30000/a\r\nLocation: //evil.test/\r\nContent-Length: "
		"0\r\n\r\n");
}

static void an_answer_without_a_body_claims_no_length(void **state)
{
	auto_free char *answer =
		response(&by_name, "HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n");

	(void)state;
	assert_string_equal(answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void each_cookie_of_a_name_is_found(void **state)
{
	struct slice rest = {"a=1; k=one;k=; kk=2; k=two", 26}, value;

	(void)state;
	assert_true(rewrite_cookie(&rest, "k", &value));
	assert_true(slice_is(value, "one"));
	assert_true(rewrite_cookie(&rest, "k", &value));
	assert_true(slice_is(value, ""));
	assert_true(rewrite_cookie(&rest, "k", &value));
	assert_true(slice_is(value, "two"));
	assert_false(rewrite_cookie(&rest, "k", &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_app_sees_itself_and_no_claim_of_the_client),
		cmocka_unit_test(an_origin_that_only_begins_like_ours_is_another),
		cmocka_unit_test(our_credentials_stay_with_us),
		cmocka_unit_test(credentials_of_the_app_pass),
		cmocka_unit_test(a_shared_origin_has_no_cookies),
		cmocka_unit_test(no_app_sets_our_cookie_or_one_of_a_domain),
		cmocka_unit_test(addresses_of_the_app_become_those_of_the_preview),
		cmocka_unit_test(an_answer_without_a_body_claims_no_length),
		cmocka_unit_test(each_cookie_of_a_name_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
