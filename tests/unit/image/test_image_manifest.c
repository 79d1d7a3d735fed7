/* SPDX-License-Identifier: Apache-2.0 */
#include "image/bearer_challenge.h"
#include "image/image_manifest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A		   "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B		   "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define BLOB(digest, size) "{\"digest\":\"" digest "\",\"size\":" size "}"

static int read_text(const char *text, enum image_document *kind, struct image_blob *chosen,
	struct image_manifest *manifest, struct err *err)
{
	return image_manifest_read(text, strlen(text), kind, chosen, manifest, err);
}

static void both_families_of_manifests_are_read(void **state)
{
	static const char *const types[] = {
		"\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",",
		"\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\",", ""};

	(void)state;
	for (size_t i = 0; i < array_len(types); i++) {
		struct image_manifest manifest;
		enum image_document kind;
		struct image_blob chosen;
		char text[1024];
		struct err err;

		snprintf(text, sizeof(text),
			"{\"schemaVersion\":2,%s\"config\":" BLOB(A, "7") ",\"layers\":[" BLOB(
				B, "9") "]}",
			types[i]);
		assert_int_equal(read_text(text, &kind, &chosen, &manifest, &err), 0);
		assert_int_equal(kind, IMAGE_MANIFEST);
		assert_string_equal(manifest.config.digest.text, A);
		assert_int_equal(manifest.layer_count, 1);
		assert_string_equal(manifest.layers[0].digest.text, B);
		assert_int_equal(manifest.layers[0].size, 9);
	}
}

static void an_index_gives_the_manifest_for_this_machine(void **state)
{
	struct image_manifest manifest;
	enum image_document kind;
	struct image_blob chosen;
	char text[2048];
	struct err err;

	(void)state;
	snprintf(text, sizeof(text),
		"{\"schemaVersion\":2,\"manifests\":["
		"{\"digest\":\"" A "\",\"size\":1,\"platform\":{\"os\":\"unknown\","
		"\"architecture\":\"unknown\"}},"
		"{\"digest\":\"" B
		"\",\"size\":2,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
		image_architecture());
	assert_int_equal(read_text(text, &kind, &chosen, &manifest, &err), 0);
	assert_int_equal(kind, IMAGE_INDEX);
	assert_string_equal(chosen.digest.text, B);
}

static void an_index_without_this_machine_names_what_there_is(void **state)
{
	static const char text[] = "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"" A
				   "\",\"size\":1,\"platform\":{\"os\":\"linux\","
				   "\"architecture\":\"s390x\"}}]}";
	struct image_manifest manifest;
	enum image_document kind;
	struct image_blob chosen;
	struct err err;

	(void)state;
	assert_true(read_text(text, &kind, &chosen, &manifest, &err) < 0);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(err.code, "image_platform");
	assert_non_null(strstr(err.message, "linux/s390x"));
}

static void documents_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"schemaVersion\":1}",
		"{\"schemaVersion\":2,\"mediaType\":\"text/html\"}",
		"{\"schemaVersion\":2,\"layers\":[]}",
		"{\"schemaVersion\":2,\"config\":" BLOB(A, "-1") ",\"layers\":[]}",
		"{\"schemaVersion\":2,\"config\":" BLOB("sha256:../../x", "1") ",\"layers\":[]}",
		"{\"schemaVersion\":2,\"config\":" BLOB(A, "1") ",\"layers\":{}}",
		"{\"schemaVersion\":2,\"config\":" BLOB(A, "1") ",\"layers\":[1]}",
		"{\"schemaVersion\":2,\"schemaVersion\":2,\"config\":" BLOB(
			A, "1") ",\"layers\":[]}"};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct image_manifest manifest;
		enum image_document kind;
		struct image_blob chosen;
		struct err err;

		if (read_text(bad[i], &kind, &chosen, &manifest, &err) >= 0)
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void more_layers_than_a_stack_has_are_refused(void **state)
{
	struct image_manifest manifest;
	enum image_document kind;
	struct image_blob chosen;
	struct err err;
	size_t len;
	char *text = malloc(1 << 20);

	(void)state;
	len = (size_t)sprintf(
		text, "{\"schemaVersion\":2,\"config\":" BLOB(A, "1") ",\"layers\":[");
	for (size_t i = 0; i <= IMAGE_LAYERS_MAX; i++)
		len += (size_t)sprintf(text + len, "%s" BLOB(B, "1"), i ? "," : "");
	sprintf(text + len, "]}");
	assert_true(read_text(text, &kind, &chosen, &manifest, &err) < 0);
	free(text);
}

static void a_config_says_how_programs_are_run(void **state)
{
	static const char text[] =
		"{\"config\":{\"User\":\"1000:1000\",\"WorkingDir\":\"/"
		"srv\",\"Env\":[\"A=1\",\"B=\"],"
		"\"Entrypoint\":[\"/bin/x\"],\"Cmd\":null,\"ExposedPorts\":{\"80/tcp\":{}},"
		"\"Volumes\":{\"/data\":{}}},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" A
		"\"]}}";
	struct image_config config;
	struct err err;

	(void)state;
	assert_int_equal(image_config_read(text, strlen(text), 1, &config, &err), 0);
	assert_string_equal(config.user, "1000:1000");
	assert_string_equal(config.workdir, "/srv");
	assert_int_equal(config.env.count, 2);
	assert_string_equal(config.env.list[1], "B=");
	assert_string_equal(config.entrypoint.list[0], "/bin/x");
	assert_int_equal(config.command.count, 0);
	assert_string_equal(config.ports.list[0], "80/tcp");
	assert_string_equal(config.volumes.list[0], "/data");
	assert_string_equal(config.diff_ids[0].text, A);
	image_config_fini(&config);
	assert_true(image_config_read(text, strlen(text), 2, &config, &err) < 0);
}

static void configs_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {"{}", "{\"rootfs\":{\"diff_ids\":[\"x\"]}}",
		"{\"config\":{\"Env\":[1]},\"rootfs\":{\"diff_ids\":[\"" A "\"]}}",
		"{\"config\":{\"Env\":[\"A=\\u0000\"]},\"rootfs\":{\"diff_ids\":[\"" A "\"]}}",
		"{\"config\":{\"User\":[]},\"rootfs\":{\"diff_ids\":[\"" A "\"]}}",
		"{\"config\":{\"Cmd\":\"sh\"},\"rootfs\":{\"diff_ids\":[\"" A "\"]}}"};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct image_config config;
		struct err err;

		if (image_config_read(bad[i], strlen(bad[i]), 1, &config, &err) >= 0)
			fail_msg("%s was taken", bad[i]);
	}
}

static void a_challenge_names_the_token_server(void **state)
{
	struct bearer_challenge challenge;

	(void)state;
	assert_int_equal(bearer_challenge_parse(" Bearer realm=\"https://auth.example/token\","
						"service=\"r.example\",scope=\"repository:a:pull\"",
				 &challenge),
		0);
	assert_string_equal(challenge.realm, "https://auth.example/token");
	assert_string_equal(challenge.service, "r.example");
	assert_string_equal(challenge.scope, "repository:a:pull");
	assert_int_equal(
		bearer_challenge_parse("bearer error=invalid, realm=\"a\\\"b\"", &challenge), 0);
	assert_string_equal(challenge.realm, "a\"b");
	assert_int_equal(bearer_challenge_parse("Basic realm=\"x\"", &challenge), -ENOENT);
	assert_int_equal(bearer_challenge_parse("", &challenge), -ENOENT);
	assert_int_equal(bearer_challenge_parse("Bearer realm=\"x", &challenge), -EINVAL);
	assert_int_equal(bearer_challenge_parse("Bearer service=x", &challenge), -EINVAL);
	assert_int_equal(bearer_challenge_parse("Bearer =x", &challenge), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_families_of_manifests_are_read),
		cmocka_unit_test(an_index_gives_the_manifest_for_this_machine),
		cmocka_unit_test(an_index_without_this_machine_names_what_there_is),
		cmocka_unit_test(documents_that_are_none_are_refused),
		cmocka_unit_test(more_layers_than_a_stack_has_are_refused),
		cmocka_unit_test(a_config_says_how_programs_are_run),
		cmocka_unit_test(configs_that_are_none_are_refused),
		cmocka_unit_test(a_challenge_names_the_token_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
