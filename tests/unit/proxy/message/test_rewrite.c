/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/message/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct rewrite by_name = {.scheme = "http",
	.host = "s-x-3000.p.test:9091",
	.client = "10.0.0.1",
	.port = 3000,
	.is_for_all = true};
static const struct rewrite private = {
	.scheme = "http", .host = "s-x-3000.p.test:9091", .client = "10.0.0.1", .port = 3000};
static const struct rewrite by_path = {.scheme = "http",
	.host = "p.test:9091",
	.client = "10.0.0.1",
	.port = 3000,
	.prefix = {"/p", 2},
	.is_confined = true};

/* The head of a request as the app gets it. */
static char *request(const struct rewrite *rewrite, const char *text)
{
	struct message message = {0};
	struct buf out = BUF_INIT(65536);

	message_begin(&message, MESSAGE_REQUEST);
	assert_true(message_feed(&message, (const uint8_t *)text, strlen(text)) > 0);
	rewrite_request(&message, rewrite, false, &out);
	message_fini(&message);
	return buf_take_str(&out);
}

static char *response(const struct rewrite *rewrite, const char *text)
{
	struct message message = {0};
	struct buf out = BUF_INIT(65536);

	message_begin(&message, MESSAGE_RESPONSE);
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
		"Cookie: a=1;sandlot_preview=secret;  b=2",
		"Cookie: a=1; __Host-sandlot_preview=secret"};

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
		"Set-Cookie: __Host-sandlot_preview=evil; Secure; Path=/\r\n"
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

static void a_redirect_gets_back_the_prefix_that_its_app_does_not_know(void **state)
{
	static const char *const locations[][2] = {{"/a", "/p/a"}, {"/", "/p/"}, {"/p", "/p"},
		{"/p/a", "/p/a"}, {"/p?a", "/p?a"}, {"/pp", "/p/pp"},
		{"http://localhost:3000/a", "http://p.test:9091/p/a"},
		{"http://localhost:3000", "http://p.test:9091/p"},
		{"http://127.0.0.1:3000/p/a", "http://p.test:9091/p/a"},
		{"//evil.test/", "//evil.test/"}, {"next", "next"}, {"", ""},
		{"https://evil.test/p", "https://evil.test/p"}};

	(void)state;
	for (size_t i = 0; i < array_len(locations); i++) {
		char text[160], expected[160];
		auto_free char *answer = NULL;

		snprintf(text, sizeof(text),
			"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
			locations[i][0]);
		snprintf(expected, sizeof(expected), "\r\nLocation: %s\r\n", locations[i][1]);
		answer = response(&by_path, text);
		if (!strstr(answer, expected))
			fail_msg("%s became %s", locations[i][0], answer);
	}
}

static void a_signed_token_of_ours_stays_with_us_and_one_of_the_app_passes(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nX-API-Key: eyJa\r\n"
				   "Authorization: Bearer eyJb\r\n\r\n";
	struct rewrite rewrite = by_name;
	auto_free char *both = request(&rewrite, text), *key = NULL, *authorization = NULL;

	(void)state;
	assert_non_null(strstr(both, "eyJa"));
	assert_non_null(strstr(both, "eyJb"));
	rewrite.hides_authorization = true;
	key = request(&rewrite, text);
	assert_non_null(strstr(key, "eyJa"));
	assert_null(strstr(key, "eyJb"));
	rewrite.hides_authorization = false;
	rewrite.hides_api_key = true;
	authorization = request(&rewrite, text);
	assert_null(strstr(authorization, "eyJa"));
	assert_non_null(strstr(authorization, "eyJb"));
}

/* Its page has an origin of its own there, which no app could know to allow. */
static void by_path_all_may_read_what_all_may_see_and_nothing_else(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\n"
				   "Access-Control-Allow-Origin: http://localhost:3000\r\n"
				   "Content-Length: 0\r\n\r\n";
	struct rewrite open = by_path;
	auto_free char *named = response(&by_name, text), *closed = response(&by_path, text),
		       *opened = NULL;

	(void)state;
	open.is_for_all = true;
	opened = response(&open, text);
	assert_non_null(
		strstr(named, "Access-Control-Allow-Origin: http://s-x-3000.p.test:9091\r\n"));
	assert_null(strstr(closed, "Access-Control-Allow-Origin"));
	assert_non_null(strstr(opened, "Access-Control-Allow-Origin: *\r\n"));
}

static void by_path_what_all_may_see_says_where_it_lies_unless_its_app_minds(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct rewrite open = by_path;
	auto_free char *named = response(&by_name, text), *closed = response(&by_path, text),
		       *opened = NULL, *minded = NULL;

	(void)state;
	open.is_for_all = true;
	opened = response(&open, text);
	minded = response(&open, "HTTP/1.1 200 OK\r\nReferrer-Policy: no-referrer\r\n"
				 "Content-Length: 0\r\n\r\n");
	assert_null(strstr(named, "Referrer-Policy"));
	assert_null(strstr(closed, "Referrer-Policy"));
	assert_non_null(strstr(opened, "Referrer-Policy: no-referrer-when-downgrade\r\n"));
	assert_non_null(strstr(minded, "Referrer-Policy: no-referrer\r\n"));
	assert_null(strstr(minded, "downgrade"));
}

static void only_pages_of_its_own_origin_frame_what_is_private(void **state)
{
	static const char policy[] = "default-src 'self'; frame-ancestors *";
	static const char ours[] = "Content-Security-Policy: frame-ancestors 'self'\r\n"
				   "X-Frame-Options: SAMEORIGIN\r\n";
	static const char *const weak[] = {"SAMEORIGIN", "ALLOWALL", "ALLOW-FROM http://evil.test"};
	struct rewrite for_console = private;
	auto_free char *with_policy = NULL, *for_all = NULL, *denied = NULL, *framed = NULL;

	(void)state;
	with_policy = response(&private,
		"HTTP/1.1 200 OK\r\nContent-Security-Policy: default-src 'self'; frame-ancestors "
		"*\r\nContent-Length: 0\r\n\r\n");
	assert_non_null(strstr(with_policy, policy));
	assert_non_null(strstr(with_policy, ours));
	for (size_t i = 0; i < array_len(weak); i++) {
		struct buf text = BUF_INIT(1024);
		auto_free char *line = NULL, *head = NULL;

		buf_printf(&text,
			"HTTP/1.1 200 OK\r\nX-Frame-Options: %s\r\nContent-Length: 0\r\n\r\n",
			weak[i]);
		line = buf_take_str(&text);
		head = response(&private, line);
		assert_string_equal(strstr(head, "\r\n") + 2,
			"Content-Security-Policy: frame-ancestors 'self'\r\n"
			"X-Frame-Options: SAMEORIGIN\r\nContent-Length: 0\r\n\r\n");
	}
	denied = response(
		&private, "HTTP/1.1 200 OK\r\nX-Frame-Options: deny\r\nContent-Length: 0\r\n\r\n");
	assert_string_equal(denied,
		"HTTP/1.1 200 OK\r\nX-Frame-Options: deny\r\n"
		"Content-Security-Policy: frame-ancestors 'none'\r\nContent-Length: 0\r\n\r\n");
	for_console.frame_ancestor = "https://console.test";
	framed = response(&for_console,
		"HTTP/1.1 200 OK\r\nX-Frame-Options: SAMEORIGIN\r\nContent-Length: 0\r\n\r\n");
	assert_string_equal(framed,
		"HTTP/1.1 200 OK\r\nReferrer-Policy: same-origin\r\n"
		"Content-Security-Policy: frame-ancestors 'self' https://console.test\r\n"
		"Content-Length: 0\r\n\r\n");
	for_all = response(&by_name, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_null(strstr(for_all, "rame"));
}

static void a_frame_has_cookies_of_its_own_and_tells_nobody_its_name(void **state)
{
	struct rewrite frame = by_name;
	auto_free char *local = NULL, *plain = NULL;

	(void)state;
	frame.is_for_all = false;
	frame.frame_ancestor = "https://console.test";
	frame.host = "f-x.preview.localhost:9091";
	local = response(&frame,
		"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/; SameSite=Lax; Secure\r\n"
		"X-Frame-Options: DENY\r\nReferrer-Policy: unsafe-url\r\n"
		"Content-Security-Policy: default-src 'self'; frame-ancestors 'none'; img-src *\r\n"
		"Content-Length: 0\r\n\r\n");
	assert_string_equal(local,
		"HTTP/1.1 200 OK\r\n"
		"Set-Cookie: a=b; Path=/; SameSite=None; Secure; Partitioned\r\n"
		"Content-Security-Policy: default-src 'self'; img-src *;\r\n"
		"Referrer-Policy: same-origin\r\n"
		"Content-Security-Policy: frame-ancestors 'self' https://console.test\r\n"
		"Content-Length: 0\r\n\r\n");
	frame.host = "f-x.preview.test:9091";
	plain = response(
		&frame, "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Secure\r\nContent-Length: 0\r\n\r\n");
	assert_non_null(strstr(plain, "Set-Cookie: a=b; Secure\r\n"));
}

static void an_answer_without_a_body_claims_no_length(void **state)
{
	auto_free char *answer =
		response(&by_name, "HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n");

	(void)state;
	assert_string_equal(answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void the_secret_of_a_link_never_reaches_the_app(void **state)
{
	static const struct {
		const char *address, *left;
	} cases[] = {
		{"/", "/"},
		{"/?", "/?"},
		{"/?&a&&b=", "/?&a&&b="},
		{"/sandlot_link=x", "/sandlot_link=x"},
		{"/?sandlot_link=x", "/"},
		{"/a?sandlot_link=x&b=1", "/a?b=1"},
		{"/a?b=1&sandlot_link=x", "/a?b=1"},
		{"/a?b=1&sandlot_link=x&c", "/a?b=1&c"},
		{"/a?sandlot_link=x&sandlot_link=&b&sandlot_link=?y", "/a?b"},
		{"/a?xsandlot_link=x", "/a?xsandlot_link=x"},
		{"http://a/?sandlot_link=x", "http://a/"},
	};
	auto_free char *whole = NULL;

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct buf out = BUF_INIT(256);
		auto_free char *left = NULL;

		rewrite_put_without_links(
			&out, (struct slice){cases[i].address, strlen(cases[i].address)});
		left = buf_take_str(&out);
		assert_string_equal(left, cases[i].left);
	}
	whole = request(&by_name,
		"GET /a?b&sandlot_link=secret HTTP/1.1\r\nHost: x\r\n"
		"Referer: http://s-x-3000.p.test:9091/?sandlot_link=secret\r\n\r\n");
	assert_non_null(strstr(whole, "GET /a?b HTTP/1.1\r\n"));
	assert_non_null(strstr(whole, "Referer: http://localhost:3000/\r\n"));
	assert_null(strstr(whole, "secret"));
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
		cmocka_unit_test(a_redirect_gets_back_the_prefix_that_its_app_does_not_know),
		cmocka_unit_test(a_signed_token_of_ours_stays_with_us_and_one_of_the_app_passes),
		cmocka_unit_test(by_path_all_may_read_what_all_may_see_and_nothing_else),
		cmocka_unit_test(by_path_what_all_may_see_says_where_it_lies_unless_its_app_minds),
		cmocka_unit_test(only_pages_of_its_own_origin_frame_what_is_private),
		cmocka_unit_test(a_frame_has_cookies_of_its_own_and_tells_nobody_its_name),
		cmocka_unit_test(an_answer_without_a_body_claims_no_length),
		cmocka_unit_test(the_secret_of_a_link_never_reaches_the_app),
		cmocka_unit_test(each_cookie_of_a_name_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
