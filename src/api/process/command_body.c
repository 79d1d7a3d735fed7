/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/command_body.h"

#include "api/env_body.h"
#include "api/text.h"

#define INPUT_MAX (1 << 20)

struct exec_body {
	const char *command, *cwd, *user, *input, *input_base64, *on_disconnect, *confirm;
	const json_t *argv, *env;
	int64_t timeout_ms, columns, rows;
	enum field_boolean background, keep_awake, pty, stdin_open, kill_tree, isolate, checkpoint;
};

static const char *check_argv(const json_t *argv)
{
	size_t i;
	json_t *entry;

	if (json_string_length(json_array_get(argv, 0)) == 0)
		return "must begin with the name of a program";
	json_array_foreach((json_t *)argv, i, entry)
	{
		if (json_string_length(entry) > COMMAND_LINE_MAX)
			return "has an argument that is too long";
	}
	return NULL;
}

const char *command_body_check_cwd(const json_t *cwd)
{
	return json_string_value(cwd)[0] == '/' ? NULL : "must be an absolute path";
}

static const char *const disconnect_choices[] = {"cancel", "keep", NULL};

#define AT(member) offsetof(struct exec_body, member)

static const struct field exec_rows[] = {
	{"command", FIELD_STRING, AT(command), 1, COMMAND_LINE_MAX, 0,
		"A line for /bin/sh. Either this or argv; with neither, what the image is made to "
		"run, if there is one."},
	{"argv", FIELD_STRING_LIST, AT(argv), 1, AGENT_ARGS_MAX, 0,
		"Program and arguments, run without a shell.", .check = check_argv},
	{"cwd", FIELD_STRING, AT(cwd), 1, AGENT_PATH_MAX - 1, 0,
		"Working directory; /workspace if left out.", .check = command_body_check_cwd},
	{"env", FIELD_STRING_MAP, AT(env), 0, SPEC_ENV_MAX, 0,
		"Environment, on top of the sandbox's.", .check = env_body_check},
	{"user", FIELD_STRING, AT(user), 1, 16, 0,
		"sandbox (uid 1000, the default), root, a uid up to 65534, or the user of the "
		"image "
		"by its name; the default in images is that user."},
	{"stdin", FIELD_STRING, AT(input), 0, INPUT_MAX, 0, "Standard input; empty if left out."},
	{"stdin_base64", FIELD_STRING, AT(input_base64), 0, INPUT_MAX, 0,
		"Standard input that is not text. Either this or stdin."},
	{"timeout_ms", FIELD_INTEGER, AT(timeout_ms), 1, COMMAND_TIMEOUT_MAX_MS, FIELD_NULLABLE,
		"Kills the command and its children after so long; never if left out."},
	{"kill_tree", FIELD_BOOLEAN, AT(kill_tree), 0, 0, 0,
		"Whether the timeout ends all that the command started, or only its main process; "
		"true if left out."},
	{"background", FIELD_BOOLEAN, AT(background), 0, 0, 0,
		"Answers as soon as it runs; its output is kept and can be followed."},
	{"keep_awake", FIELD_BOOLEAN, AT(keep_awake), 0, 0, 0,
		"Whether the sandbox of a background command is not idle while it runs. Without "
		"it, one "
		"that uses more than 1 % of a core keeps its sandbox awake too."},
	{"on_disconnect", FIELD_STRING, AT(on_disconnect), 0, 16, 0,
		"What becomes of a foreground command whose client goes away: cancel (the default) "
		"ends it with all that it started, keep lets it go on in the background.",
		.choices = disconnect_choices},
	{"stdin_open", FIELD_BOOLEAN, AT(stdin_open), 0, 0, 0,
		"Keeps standard input open for later writes; true for a background command without "
		"stdin, else false. For commands in the background, or streamed and kept."},
	{"pty", FIELD_BOOLEAN, AT(pty), 0, 0, 0,
		"Gives a command in the background, or one that is streamed and kept, a terminal, "
		"to "
		"which .../terminal can attach."},
	{"isolate", FIELD_BOOLEAN, AT(isolate), 0, 0, 0,
		"Runs it apart from the rest of the sandbox: it sees only its own processes, has a "
		"/tmp, /dev/shm and System V objects of its own, and can write to the workspace "
		"and nothing else. All that it started ends with it."},
	{"checkpoint", FIELD_BOOLEAN, AT(checkpoint), 0, 0, 0,
		"Makes a snapshot before it, if anything changed since the last one that was made "
		"so, for an undo. The answer names the snapshot; a sandbox keeps the last ten."},
	{"confirm", FIELD_STRING, AT(confirm), 1, 64, 0,
		"The code of a 409 confirmation_required: the command is meant, although it looks "
		"dangerous."},
	{"cols", FIELD_INTEGER, AT(columns), 1, COMMAND_TERMINAL_MAX, 0,
		"Width of the terminal; 80."},
	{"rows", FIELD_INTEGER, AT(rows), 1, COMMAND_TERMINAL_MAX, 0,
		"Height of the terminal; 24."},
};

const struct fields command_body_fields = FIELDS(exec_rows);

/* Standard input: text as it is, base64 decoded, or none. */
static int read_input(const struct exec_body *body, struct command_body *ret_body, struct err *err)
{
	ssize_t len;

	ret_body->spec.input = body->input;
	ret_body->spec.input_len = body->input ? strlen(body->input) : 0;
	if (!body->input_base64)
		return 0;
	len = text_decode_base64(body->input_base64, &ret_body->input);
	if (len < 0 || body->input)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field stdin_base64 must be base64, without stdin beside it");
	ret_body->spec.input = ret_body->input;
	ret_body->spec.input_len = (size_t)len;
	return 0;
}

static enum choice keeps_when_left(const char *on_disconnect)
{
	if (!on_disconnect)
		return CHOICE_UNSET;
	return strcmp(on_disconnect, "keep") == 0 ? CHOICE_YES : CHOICE_NO;
}

static uint64_t number_from(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

void command_body_fini(struct command_body *body)
{
	free(take_ptr(&body->argv));
	free(take_ptr(&body->input));
}

static struct text_list argv_from(const json_t *list, struct command_body *body)
{
	if (!list)
		return (struct text_list){0};
	body->argv = mem_new(json_array_size(list) * sizeof(char *));
	return (struct text_list){body->argv, fields_copy_list(list, body->argv)};
}

int command_body_decode(const struct request *req, struct command_body *ret_body, struct err *err)
{
	struct exec_body body = {0};
	int r;

	ret_body->argv = NULL;
	ret_body->input = NULL;
	fields_clear(&command_body_fields, &body);
	r = fields_decode(&command_body_fields, request_body(req), &body, err);
	if (r < 0)
		return r;
	ret_body->spec = (struct command_spec){.line = body.command,
		.argv = argv_from(body.argv, ret_body),
		.cwd = body.cwd,
		.user = body.user,
		.env = {ret_body->env, fields_copy_map(body.env, ret_body->env)},
		.timeout_ms = number_from(body.timeout_ms),
		.kills_tree = fields_choice(body.kill_tree),
		.keeps_input = fields_choice(body.stdin_open),
		.is_background = body.background == FIELD_TRUE,
		.keeps_awake = body.keep_awake == FIELD_TRUE,
		.is_kept = keeps_when_left(body.on_disconnect),
		.is_pty = body.pty == FIELD_TRUE,
		.is_isolated = body.isolate == FIELD_TRUE,
		.columns = (uint16_t)number_from(body.columns),
		.rows = (uint16_t)number_from(body.rows)};
	ret_body->confirm = body.confirm;
	ret_body->wants_checkpoint = body.checkpoint == FIELD_TRUE;
	return read_input(&body, ret_body, err);
}

int command_body_of_terminal(
	const struct request *req, struct command_spec *ret_spec, struct err *err)
{
	struct command_spec spec = {.is_login_shell = true,
		.cwd = request_query(req, "cwd"),
		.user = request_query(req, "user"),
		.is_background = true,
		.is_pty = true};
	uint64_t columns, rows;
	int r;

	if ((r = api_query_number(req, "cols", 1, COMMAND_TERMINAL_MAX, 0, &columns, err)) < 0 ||
		(r = api_query_number(req, "rows", 1, COMMAND_TERMINAL_MAX, 0, &rows, err)) < 0)
		return r;
	spec.columns = (uint16_t)columns;
	spec.rows = (uint16_t)rows;
	*ret_spec = spec;
	return 0;
}

int command_body_explain(const char *cwd, const struct process_end *end, struct err *err)
{
	int r = process_explain_end(end, cwd, err);

	if (r < 0 && end->outcome == PROCESS_BAD_CWD)
		err_prefix(err, "field cwd");
	return r;
}
