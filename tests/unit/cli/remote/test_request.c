/* SPDX-License-Identifier: Apache-2.0 */
/* What the client makes of its arguments and of the daemon's answers, without a daemon. */
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/create_spec.h"
#include "cli/exec_spec.h"
#include "cli/remote/credential.h"
#include "cli/remote/peer.h"
#include "cli/remote/resolve.h"
#include "cli/terminal/process/live_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;

static json_t *sandboxes(const char *const *ids)
{
	json_t *list = json_array();

	for (; *ids; ids++)
		json_array_append_new(list, json_pack("{s:s}", "id", *ids));
	return list;
}

static const char *const three_ids[] = {"01k9aaaaaaaaaaaaaaaaaaaaaa", "01k9abbbbbbbbbbbbbbbbbbbbb",
	"01k8aaaaaaaaaaaaaaaaaaaaaa", NULL};

static void a_beginning_finds_the_one_id_it_fits(void **state)
{
	json_t *list = sandboxes(three_ids);
	char id[RESOLVE_ID_LEN + 1];

	(void)state;
	assert_int_equal(resolve_among(list, "01k8", id, &err), 0);
	assert_string_equal(id, three_ids[2]);
	assert_int_equal(resolve_among(list, "01k9ab", id, &err), 0);
	assert_string_equal(id, three_ids[1]);
	json_decref(list);
}

static void a_name_comes_before_a_beginning_and_that_before_an_end(void **state)
{
	static const char *const ids[] = {"web00000000000000000000000",
		"01k9aaaaaaaaaaaaaaaaaaaweb", "01k9bbbbbbbbbbbbbbbbbbbbbb", NULL};
	json_t *list = sandboxes(ids);
	char id[RESOLVE_ID_LEN + 1];

	(void)state;
	assert_int_equal(resolve_among(list, "web", id, &err), 0);
	assert_string_equal(id, ids[0]);
	assert_int_equal(resolve_among(list, "aweb", id, &err), 0);
	assert_string_equal(id, ids[1]);
	json_object_set_new(json_array_get(list, 2), "name", json_string("web"));
	assert_int_equal(resolve_among(list, "web", id, &err), 0);
	assert_string_equal(id, ids[2]);
	json_decref(list);
}

static void an_ambiguous_beginning_lists_the_candidates(void **state)
{
	json_t *list = sandboxes(three_ids);
	char id[RESOLVE_ID_LEN + 1] = "untouched";

	(void)state;
	assert_true(resolve_among(list, "01k9", id, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.message, three_ids[0]));
	assert_non_null(strstr(err.message, three_ids[1]));
	assert_null(strstr(err.message, three_ids[2]));
	assert_true(resolve_among(list, "02", id, &err) < 0);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(id, "untouched");
	json_decref(list);
}

static void what_is_no_id_never_reaches_the_daemon(void **state)
{
	static const char *const bad[] = {
		"", "../x", "01K9", "a/b", "a?b", "a b", "01k9aaaaaaaaaaaaaaaaaaaaaaa"};
	static const char *const hostile[] = {"01k9/../../tokens", "01k9", NULL};
	json_t *list = sandboxes(hostile);
	char id[RESOLVE_ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_true(resolve_id(NULL, bad[i], id, &err) < 0);
	assert_int_equal(resolve_id(NULL, three_ids[0], id, &err), 0);
	assert_true(resolve_among(list, "01k9", id, &err) < 0);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	json_decref(list);
}

static char *dump(json_t *document)
{
	char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);

	json_decref(document);
	return text;
}

static void an_empty_spec_leaves_all_defaults_to_the_daemon(void **state)
{
	json_t *body;
	char *text;

	(void)state;
	assert_int_equal(create_spec_body(&(struct create_spec){0}, &body, &err), 0);
	text = dump(body);
	assert_string_equal(text, "{}");
	free(text);
}

static void a_full_spec_becomes_the_documented_body(void **state)
{
	const char *env[] = {"A=1", "B=x=y"};
	const char *ports[] = {"3000", "65535"};
	const char *labels[] = {"team=web"};
	const char *allow[] = {"*.example.org"};
	struct create_spec spec = {
		.template = "node",
		.project = "p",
		.cpu = "0.5",
		.memory = "512Mi",
		.disk = "1048576",
		.pids = {.is_set = true, .value = 64},
		.env = {env, 2},
		.ports = {ports, 2},
		.labels = {labels, 1},
		.allow = {allow, 1},
		.idle_timeout = {.is_set = true, .value = 60000},
		.lifetime = {.is_set = true, .value = 3600000},
		.has_start_env = true,
		.is_public = true,
	};
	json_t *body;
	char *text;

	(void)state;
	assert_int_equal(create_spec_body(&spec, &body, &err), 0);
	text = dump(body);
	assert_string_equal(text,
		"{\"env\":{\"A\":\"1\",\"B\":\"x=y\"},\"idle_timeout_s\":60,\"labels\":{\"team\":"
		"\"web\"},"
		"\"lifetime_s\":3600,\"network\":{\"allow\":[\"*.example.org\"],\"mode\":"
		"\"allowlist\"},"
		"\"ports\":[3000,65535],\"private\":false,\"project\":\"p\",\"resources\":{\"cpu\":"
		"0.5,"
		"\"disk\":1048576,\"memory\":\"512Mi\",\"pids\":64},\"start_env\":true,"
		"\"template\":\"node\"}");
	free(text);
}

static void a_port_may_have_words_behind_it(void **state)
{
	const char *ports[] = {"1:public", "2:private,keep", "3:strip"};
	struct create_spec spec = {.ports = {ports, 3}};
	json_t *body;
	char *text;

	(void)state;
	assert_int_equal(create_spec_body(&spec, &body, &err), 0);
	text = dump(body);
	assert_string_equal(text, "{\"ports\":[{\"port\":1,\"public\":true},"
				  "{\"port\":2,\"prefix\":\"keep\",\"public\":false},"
				  "{\"port\":3,\"prefix\":\"strip\"}]}");
	free(text);
}

static void a_bad_spec_is_refused_before_anything_is_sent(void **state)
{
	const char *no_equals[] = {"A"};
	const char *no_name[] = {"=1"};
	const char *not_utf8[] = {"A=\xff"};
	const char *ports[] = {"0", "80:", "80:open", "80:public,", ":public", "80,public"};
	const char *allow[] = {"x"};
	const struct create_spec bad[] = {
		{.id = "short"},
		{.cpu = "inf"},
		{.cpu = "0x1"},
		{.cpu = "0"},
		{.cpu = "1.2.3"},
		{.cpu = "."},
		{.memory = "1x"},
		{.env = {no_equals, 1}},
		{.env = {no_name, 1}},
		{.env = {not_utf8, 1}},
		{.ports = {ports, 1}},
		{.ports = {ports + 1, 1}},
		{.ports = {ports + 2, 1}},
		{.ports = {ports + 3, 1}},
		{.ports = {ports + 4, 1}},
		{.ports = {ports + 5, 1}},
		{.network = "none", .allow = {allow, 1}},
		{.lifetime = {.is_set = true, .value = 1500}},
	};
	json_t *body = NULL;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_true(create_spec_body(&bad[i], &body, &err) < 0);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_null(body);
	}
}

static void a_command_is_a_list_or_a_line(void **state)
{
	char *argv[] = {(char *)"echo", (char *)"a b"};
	json_t *body;
	char *text;

	(void)state;
	assert_int_equal(
		exec_spec_body(
			&(struct exec_spec){
				.timeout = {.is_set = true, .value = 500}, .cwd = "/", .user = "u"},
			NULL, 2, argv, false, &body, &err),
		0);
	text = dump(body);
	assert_string_equal(text,
		"{\"argv\":[\"echo\",\"a b\"],\"cwd\":\"/\",\"timeout_ms\":500,\"user\":\"u\"}");
	free(text);
	assert_int_equal(exec_spec_body(&(struct exec_spec){.line = "ls | wc"}, NULL, 0, NULL,
				 false, &body, &err),
		0);
	text = dump(body);
	assert_string_equal(text, "{\"command\":\"ls | wc\"}");
	free(text);
	assert_true(exec_spec_body(&(struct exec_spec){.line = "ls"}, NULL, 2, argv, false, &body,
			    &err) < 0);
	assert_true(exec_spec_body(&(struct exec_spec){0}, NULL, 0, NULL, false, &body, &err) < 0);
}

static void expect_exit(const char *text, int code, const char *note_part)
{
	json_t *result = json_loads(text, 0, NULL);
	char note[256];

	assert_non_null(result);
	assert_int_equal(live_exec_exit_code(result, note, sizeof(note)), code);
	if (note_part)
		assert_non_null(strstr(note, note_part));
	else
		assert_string_equal(note, "");
	json_decref(result);
}

static void the_exit_code_is_what_a_shell_would_say(void **state)
{
	(void)state;
	expect_exit("{\"exit_code\":0,\"termination\":{\"reason\":\"exited\",\"signal\":null}}", 0,
		NULL);
	expect_exit("{\"exit_code\":7}", 7, NULL);
	expect_exit("{\"exit_code\":null,\"termination\":{\"reason\":\"signal\",\"signal\":"
		    "\"SIGTERM\"}}",
		143, NULL);
	expect_exit("{\"exit_code\":137,\"termination\":{\"reason\":\"signal\",\"signal\":9}}", 137,
		NULL);
	expect_exit("{\"exit_code\":1,\"termination\":{\"reason\":\"signal\",\"signal\":\"INT\"}}",
		130, NULL);
	expect_exit("{\"exit_code\":124,\"termination\":{\"reason\":\"timeout\",\"signal\":"
		    "\"SIGKILL\"}}",
		124, "timeout");
	expect_exit("{\"exit_code\":137,\"termination\":{\"reason\":\"oom\",\"signal\":\"SIGKILL\","
		    "\"detail\":\"1Gi\"}}",
		137, "oom: 1Gi");
	expect_exit("{}", -EINVAL, NULL);
	expect_exit("{\"exit_code\":\"0\"}", -EINVAL, NULL);
}

static char scratch[] = "/tmp/sandlot-test-XXXXXX";

static void write_token(const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/token", scratch);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void the_token_is_found_and_its_origin_named(void **state)
{
	struct credential credential;

	(void)state;
	assert_non_null(mkdtemp(scratch));
	setenv("SANDLOT_DATA_DIR", scratch, 1);
	unsetenv("SANDLOT_TOKEN");
	write_token("from-file\n");
	assert_int_equal(credential_find(NULL, scratch, &credential, &err), 0);
	assert_string_equal(credential.token, "from-file");
	assert_non_null(strstr(credential.origin, scratch));
	assert_int_equal(credential_find("given", scratch, &credential, &err), 0);
	assert_string_equal(credential.token, "given");
	setenv("SANDLOT_TOKEN", "from-env", 1);
	assert_int_equal(credential_find(NULL, NULL, &credential, &err), 0);
	assert_string_equal(credential.token, "from-env");
	unsetenv("SANDLOT_TOKEN");
}

static void a_token_file_is_offered_to_no_address(void **state)
{
	struct credential credential;

	(void)state;
	assert_int_equal(credential_find(NULL, NULL, &credential, &err), 0);
	assert_string_equal(credential.token, "");
}

/* The variable names another one, which has a token too. */
static void a_token_file_is_offered_to_the_daemon_of_its_directory_alone(void **state)
{
	char other[64];
	struct credential credential;

	(void)state;
	snprintf(other, sizeof(other), "%s/other", scratch);
	write_token("secret\n");
	assert_int_equal(credential_find(NULL, scratch, &credential, &err), 0);
	assert_string_equal(credential.token, "secret");
	assert_int_equal(credential_find(NULL, other, &credential, &err), 0);
	assert_string_equal(credential.token, "");
	assert_non_null(strstr(credential.origin, other));
}

/* Without an address it is the socket in the data directory, and no port that anybody may have. */
static void a_daemon_without_an_address_is_reached_by_its_socket(void **state)
{
	char dir[64], path[96];
	struct cli cli = {0};
	struct client *client;

	(void)state;
	snprintf(dir, sizeof(dir), "%s/run", scratch);
	snprintf(path, sizeof(path), "%s/api.sock", dir);
	unsetenv("SANDLOT_URL");
	assert_int_equal(cli_connect(&cli, &client, &err), 0);
	assert_string_equal(client_peer(client)->socket, path);
	assert_true(peer_check(client_peer(client), &err) < 0);
	assert_string_equal(err.code, "unreachable");
	assert_int_equal(mkdir(dir, 0750), 0);
	assert_true(peer_check(client_peer(client), &err) < 0);
	assert_string_equal(err.code, "unreachable");
	assert_int_equal(mknod(path, S_IFREG | 0660, 0), 0);
	assert_true(peer_check(client_peer(client), &err) < 0);
	assert_string_equal(err.code, "untrusted_socket");
	unlink(path);
	assert_int_equal(mknod(path, S_IFSOCK | 0660, 0), 0);
	assert_int_equal(peer_check(client_peer(client), &err), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_true(peer_check(client_peer(client), &err) < 0);
	assert_string_equal(err.code, "untrusted_socket");
	cli_fini(&cli);
	unlink(path);
	rmdir(dir);
}

static void a_token_that_would_break_its_header_is_refused_and_not_shown(void **state)
{
	struct credential credential;

	(void)state;
	write_token("secret\r\nX-Evil: 1\n");
	assert_true(credential_find(NULL, scratch, &credential, &err) < 0);
	assert_null(strstr(err.message, "secret"));
	assert_string_equal(credential.token, "");
}

static int remove_scratch(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/token", scratch);
	unlink(path);
	rmdir(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_beginning_finds_the_one_id_it_fits),
		cmocka_unit_test(a_name_comes_before_a_beginning_and_that_before_an_end),
		cmocka_unit_test(an_ambiguous_beginning_lists_the_candidates),
		cmocka_unit_test(what_is_no_id_never_reaches_the_daemon),
		cmocka_unit_test(an_empty_spec_leaves_all_defaults_to_the_daemon),
		cmocka_unit_test(a_full_spec_becomes_the_documented_body),
		cmocka_unit_test(a_port_may_have_words_behind_it),
		cmocka_unit_test(a_bad_spec_is_refused_before_anything_is_sent),
		cmocka_unit_test(a_command_is_a_list_or_a_line),
		cmocka_unit_test(the_exit_code_is_what_a_shell_would_say),
		cmocka_unit_test(the_token_is_found_and_its_origin_named),
		cmocka_unit_test(a_token_file_is_offered_to_no_address),
		cmocka_unit_test(a_token_file_is_offered_to_the_daemon_of_its_directory_alone),
		cmocka_unit_test(a_daemon_without_an_address_is_reached_by_its_socket),
		cmocka_unit_test(a_token_that_would_break_its_header_is_refused_and_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
