/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/registry_auth.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What a file of that content says of a registry. */
static int read_text(
	const char *text, const char *registry, struct registry_auth *ret_auth, struct err *err)
{
	char path[] = "/tmp/registry-auth-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	*ret_auth = (struct registry_auth){0};
	r = registry_auth_read(path, registry, ret_auth, err);
	unlink(path);
	return r;
}

static void expect(const char *text, const char *registry, const char *user, const char *password)
{
	struct registry_auth auth;
	struct err err = {0};

	if (read_text(text, registry, &auth, &err) < 0)
		fail_msg("%s", err.message);
	if (user) {
		assert_string_equal(auth.user, user);
		assert_string_equal(auth.password, password);
	} else {
		assert_null(auth.user);
	}
	registry_auth_fini(&auth);
}

/* base64 of me:secret */
#define ME "{\"auth\": \"bWU6c2VjcmV0\"}"

static void a_registry_is_found_with_its_port_and_however_it_is_written(void **state)
{
	(void)state;
	expect("{\"auths\": {\"r.example:5000\": " ME "}}", "r.example:5000", "me", "secret");
	expect("{\"auths\": {\"r.example\": " ME "}}", "r.example:5000", NULL, NULL);
	expect("{\"auths\": {\"r.example:5000\": " ME "}}", "r.example", NULL, NULL);
	expect("{\"auths\": {\"https://r.example/v1/\": " ME "}}", "r.example", "me", "secret");
	expect("{\"auths\": {\"other.example\": " ME "}}", "r.example", NULL, NULL);
}

static void a_name_and_a_password_may_stand_apart(void **state)
{
	(void)state;
	expect("{\"auths\": {\"r\": {\"username\": \"me\", \"password\": \"a:b\"}}}", "r", "me",
		"a:b");
}

static void what_another_program_keeps_is_not_there(void **state)
{
	(void)state;
	expect("{\"auths\": {\"r\": {}}, \"credsStore\": \"desktop\"}", "r", NULL, NULL);
	expect("{\"auths\": {\"r\": {\"auth\": \"\"}}}", "r", NULL, NULL);
	expect("{}", "r", NULL, NULL);
}

static void what_cannot_be_used_is_said(void **state)
{
	static const char *const texts[] = {
		"{\"auths\": {\"r\": {\"auth\": \"bWU6c2VjcmV0\", \"identitytoken\": \"x\"}}}",
		"{\"auths\": {\"r\": {\"auth\": \"no base64\"}}}",
		"{\"auths\": {\"r\": {\"auth\": \"bWU=\"}}}",
		"no JSON",
	};

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++) {
		struct registry_auth auth;
		struct err err = {0};

		assert_true(read_text(texts[i], "r", &auth, &err) < 0);
		assert_string_equal(err.code, "invalid_auth_file");
		assert_null(strstr(err.message, "secret"));
		registry_auth_fini(&auth);
	}
	/* Of another registry it does not matter. */
	expect(texts[0], "s", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registry_is_found_with_its_port_and_however_it_is_written),
		cmocka_unit_test(a_name_and_a_password_may_stand_apart),
		cmocka_unit_test(what_another_program_keeps_is_not_there),
		cmocka_unit_test(what_cannot_be_used_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
