/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_spec.h"

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/create_spec.h"
#include "cli/text/base64.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define RECONNECT_MS 2000 /* before saying what we wait for */
#define AT(field)    offsetof(struct exec_spec, field)

const struct option exec_spec_options[] = {
	{OPTION_TEXT, 'c', "command", "LINE", "run this line with the shell", AT(line)},
	{OPTION_TEXT, 0, "confirm", "CODE", "confirm a command that looks dangerous", AT(confirm)},
	{OPTION_SECONDS, 'T', "timeout", "TIME", "end it after so long: 10s, 500ms, 5m",
		AT(timeout)},
	{OPTION_TEXT, 'u', "user", "USER", "run as this user of the sandbox", AT(user)},
	{OPTION_TEXT, 'w', "workdir", "DIR", "run in this directory", AT(cwd)},
	{OPTION_FLAG, 'y', "yes", NULL, "do not ask about a command that looks dangerous",
		AT(is_meant)},
	{OPTION_END},
};

/* A pipe that nobody closes would look like a hanging command: say whose turn it is. */
static void explain_wait(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&in, 1, RECONNECT_MS) == 0)
		cli_note("waiting for the end of standard input; give it </dev/null if the command "
			 "needs none");
}

static int read_stdin(struct buf *ret, struct err *err)
{
	char chunk[65536];
	bool explained = false;

	for (;;) {
		ssize_t n;

		if (!explained) {
			explain_wait();
			explained = true;
		}
		n = read(STDIN_FILENO, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read standard input");
		if (n == 0)
			return 0;
		if (buf_append(ret, chunk, (size_t)n) < 0)
			return err_explain(err, ERR_TOO_LARGE, NULL,
				"copy it in with \"sandlot cp - ID:PATH\" and let the command read "
				"it there",
				"standard input has more than %u KiB, which is all that can be "
				"passed on",
				EXEC_SPEC_STDIN_MAX / 1024);
	}
}

/* Text as it is, anything else (also a NUL byte, which JSON text carries badly) as base64. */
static int add_stdin(json_t *body, struct err *err)
{
	auto_(buf_fini) struct buf bytes = BUF_INIT(EXEC_SPEC_STDIN_MAX);
	auto_(buf_fini) struct buf encoded = BUF_INIT(2 * EXEC_SPEC_STDIN_MAX);
	json_t *text = NULL;
	int r = read_stdin(&bytes, err);

	if (r < 0 || bytes.len == 0)
		return r;
	if (!memchr(bytes.data, '\0', bytes.len))
		text = json_stringn((const char *)bytes.data, bytes.len);
	if (text) {
		json_object_set_new(body, "stdin", text);
		return 0;
	}
	r = base64_encode(bytes.data, bytes.len, &encoded);
	if (r < 0)
		return err_from(err, r, "encode standard input");
	json_object_set_new(
		body, "stdin_base64", json_stringn((const char *)encoded.data, encoded.len));
	return 0;
}

static int add_command(
	json_t *body, const struct exec_spec *spec, int argc, char **argv, struct err *err)
{
	json_t *list;

	if (spec->line && argc > 0)
		return err_set(err, ERR_INVALID, "give either -c LINE or a command, not both");
	if (!spec->line && argc == 0 && spec->may_be_image)
		return 0;
	if (!spec->line && argc == 0)
		return err_explain(err, ERR_INVALID, NULL,
			"end with a command, such as: -- echo hello", "there is no command to run");
	if (spec->line && json_object_set_new(body, "command", json_string(spec->line)) < 0)
		return err_set(err, ERR_INVALID, "the command is not UTF-8 text");
	if (spec->line)
		return 0;
	list = json_array();
	json_object_set_new(body, "argv", list);
	for (int i = 0; i < argc; i++) {
		if (json_array_append_new(list, json_string(argv[i])) < 0)
			return err_set(err, ERR_INVALID, "argument %d is not UTF-8 text", i + 1);
	}
	return 0;
}

int exec_spec_body(const struct exec_spec *spec, const struct option_list *env, int argc,
	char **argv, bool with_stdin, json_t **ret, struct err *err)
{
	json_auto_t *body = json_object();
	json_t *pairs;
	int r = add_command(body, spec, argc, argv, err);

	if (r < 0)
		return r;
	if (spec->cwd && json_object_set_new(body, "cwd", json_string(spec->cwd)) < 0)
		return err_set(err, ERR_INVALID, "--workdir is not UTF-8 text");
	if (spec->user && json_object_set_new(body, "user", json_string(spec->user)) < 0)
		return err_set(err, ERR_INVALID, "--user is not UTF-8 text");
	if (spec->confirm && json_object_set_new(body, "confirm", json_string(spec->confirm)) < 0)
		return err_set(err, ERR_INVALID, "--confirm is not UTF-8 text");
	if (spec->timeout.is_set)
		json_object_set_new(
			body, "timeout_ms", json_integer((json_int_t)spec->timeout.value));
	if (env && env->count > 0) {
		r = create_spec_pairs(env, "--env", &pairs, err);
		if (r < 0)
			return r;
		json_object_set_new(body, "env", pairs);
	}
	if (with_stdin) {
		r = add_stdin(body, err);
		if (r < 0)
			return r;
	}
	*ret = json_incref(body);
	return 0;
}
