/* SPDX-License-Identifier: Apache-2.0 */
#include "api/command_body.h"

#include "api/sandbox_body.h"
#include "api/text.h"
#include "base/number.h"
#include "core/environment.h"

#include <errno.h>

#define COMMAND_MAX    (128 * 1024 - 1) /* the kernel's limit for one argument */
#define INPUT_MAX      (1 << 20)
#define TIMEOUT_MAX_MS (7ll * 86400 * 1000)
#define TERMINAL_MAX   1000 /* columns, rows */
#define COLUMNS	       80
#define ROWS	       24

struct exec_body {
	const char *command, *cwd, *user, *input, *input_base64, *on_disconnect;
	const json_t *argv, *env;
	int64_t timeout_ms, columns, rows;
	enum field_boolean background, pty, stdin_open, kill_tree, isolate;
};

static const char *check_argv(const json_t *argv)
{
	size_t i;
	json_t *entry;

	if (json_string_length(json_array_get(argv, 0)) == 0)
		return "must begin with the name of a program";
	json_array_foreach((json_t *)argv, i, entry)
	{
		if (json_string_length(entry) > COMMAND_MAX)
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
	{"command", FIELD_STRING, AT(command), 1, COMMAND_MAX, 0,
		"A line for /bin/sh. Either this or argv."},
	{"argv", FIELD_STRING_LIST, AT(argv), 1, AGENT_ARGS_MAX, 0,
		"Program and arguments, run without a shell.", .check = check_argv},
	{"cwd", FIELD_STRING, AT(cwd), 1, AGENT_PATH_MAX - 1, 0,
		"Working directory; /workspace if left out.", .check = command_body_check_cwd},
	{"env", FIELD_STRING_MAP, AT(env), 0, 256, 0, "Environment, on top of the sandbox's.",
		.check = sandbox_check_env},
	{"user", FIELD_STRING, AT(user), 1, 16, 0,
		"sandbox (uid 1000, the default), root, or a uid up to 65534."},
	{"stdin", FIELD_STRING, AT(input), 0, INPUT_MAX, 0, "Standard input; empty if left out."},
	{"stdin_base64", FIELD_STRING, AT(input_base64), 0, INPUT_MAX, 0,
		"Standard input that is not text. Either this or stdin."},
	{"timeout_ms", FIELD_INTEGER, AT(timeout_ms), 1, TIMEOUT_MAX_MS, FIELD_NULLABLE,
		"Kills the command and its children after so long; never if left out."},
	{"kill_tree", FIELD_BOOLEAN, AT(kill_tree), 0, 0, 0,
		"Whether the timeout ends all that the command started, or only its main process; "
		"true if left out."},
	{"background", FIELD_BOOLEAN, AT(background), 0, 0, 0,
		"Answers as soon as it runs; its output is kept and can be followed."},
	{"on_disconnect", FIELD_STRING, AT(on_disconnect), 0, 16, 0,
		"What becomes of a foreground command whose client goes away: cancel (the default) "
		"ends it with all that it started, keep lets it go on in the background.",
		.choices = disconnect_choices},
	{"stdin_open", FIELD_BOOLEAN, AT(stdin_open), 0, 0, 0,
		"Keeps standard input open for later writes; true for a background command without "
		"stdin, else false."},
	{"pty", FIELD_BOOLEAN, AT(pty), 0, 0, 0,
		"Gives a background command a terminal, to which .../terminal can attach."},
	{"isolate", FIELD_BOOLEAN, AT(isolate), 0, 0, 0,
		"Runs it apart from the rest of the sandbox: it sees only its own processes, has a "
		"/tmp, /dev/shm and System V objects of its own, and can write to the workspace "
		"and nothing else. All that it started ends with it."},
	{"cols", FIELD_INTEGER, AT(columns), 1, TERMINAL_MAX, 0, "Width of the terminal; 80."},
	{"rows", FIELD_INTEGER, AT(rows), 1, TERMINAL_MAX, 0, "Height of the terminal; 24."},
};

const struct fields command_body_fields = FIELDS(exec_rows);

void command_body_fini(struct command *command)
{
	environment_free(command->env);
	free(command->argv);
	free(command->input);
}

/* Names are looked up here and nowhere else: /etc/passwd inside belongs to the sandbox. */
static int read_user(const char *name, uint32_t *ret_uid, struct err *err)
{
	uint64_t uid;

	if (!name || strcmp(name, "sandbox") == 0)
		uid = ENVIRONMENT_UID;
	else if (strcmp(name, "root") == 0)
		uid = 0;
	else if (number_parse(name, 0, 65534, &uid) < 0)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field user must be sandbox, root, or a uid from 0 to 65534");
	*ret_uid = (uint32_t)uid;
	return 0;
}

static const char **make_argv(const struct exec_body *body)
{
	size_t count = body->argv ? json_array_size(body->argv) : 3;
	const char **argv = mem_new((count + 1) * sizeof(char *));

	if (body->command) {
		argv[0] = "/bin/sh";
		argv[1] = "-c";
		argv[2] = body->command;
		return argv;
	}
	for (size_t i = 0; i < count; i++)
		argv[i] = json_string_value(json_array_get(body->argv, i));
	return argv;
}

/* Standard input: text as it is, base64 decoded, or none. */
static int read_input(const struct exec_body *body, struct command *command, struct err *err)
{
	ssize_t len;

	command->spec.input = body->input;
	command->spec.input_len = body->input ? strlen(body->input) : 0;
	if (!body->input_base64)
		return 0;
	len = text_decode_base64(body->input_base64, &command->input);
	if (len < 0 || body->input)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field stdin_base64 must be base64, without stdin beside it");
	command->spec.input = command->input;
	command->spec.input_len = (size_t)len;
	return 0;
}

/* Fields that only make sense together. */
static int check_body(const struct exec_body *body, struct err *err)
{
	bool background = body->background == FIELD_TRUE;

	if (!body->command == !body->argv)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"exactly one of the fields command and argv must be given");
	if (body->pty == FIELD_TRUE && !background)
		return err_explain(err, ERR_INVALID, "invalid_field",
			"set background to true and attach with GET .../terminal?process=",
			"field pty needs a background command");
	if (background && body->on_disconnect)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field on_disconnect is for foreground commands: this one has no client");
	if (body->stdin_open == FIELD_TRUE && !background)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field stdin_open needs a background command");
	if (body->pty != FIELD_TRUE &&
		(body->columns != FIELD_ABSENT || body->rows != FIELD_ABSENT))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"fields cols and rows are those of a terminal: set pty to true");
	return 0;
}

static void fill_spec(const struct exec_body *body, struct command *command)
{
	struct process_spec *spec = &command->spec;

	spec->gid = spec->uid;
	spec->cwd = body->cwd ? body->cwd : ENVIRONMENT_CWD;
	spec->timeout_ms = body->timeout_ms > 0 ? (uint64_t)body->timeout_ms : 0;
	spec->kills_tree = body->kill_tree != FIELD_FALSE;
	spec->is_line = body->command != NULL;
	spec->is_background = body->background == FIELD_TRUE;
	spec->is_pty = body->pty == FIELD_TRUE;
	spec->is_isolated = body->isolate == FIELD_TRUE;
	spec->columns = (uint16_t)(body->columns > 0 ? body->columns : COLUMNS);
	spec->rows = (uint16_t)(body->rows > 0 ? body->rows : ROWS);
	spec->keeps_input_open =
		spec->is_pty || body->stdin_open == FIELD_TRUE ||
		(spec->is_background && !spec->input && body->stdin_open == FIELD_UNSET);
	command->cancels_with_client =
		!spec->is_background &&
		!(body->on_disconnect && strcmp(body->on_disconnect, "keep") == 0);
}

int command_body_decode(const struct request *req, struct sandbox *sandbox,
	struct command *ret_command, struct err *err)
{
	struct exec_body body = {0};
	struct command command = {0};
	int r;

	fields_clear(&command_body_fields, &body);
	r = fields_decode(&command_body_fields, request_body(req), &body, err);
	if (r == 0)
		r = check_body(&body, err);
	if (r == 0)
		r = read_user(body.user, &command.spec.uid, err);
	if (r == 0)
		r = read_input(&body, &command, err);
	if (r < 0) {
		command_body_fini(&command);
		return r;
	}
	fill_spec(&body, &command);
	command.argv = make_argv(&body);
	command.env = environment_make(sandbox, body.env, command.spec.uid, command.spec.is_pty);
	command.spec.argv = command.argv;
	command.spec.env = (const char *const *)command.env;
	*ret_command = command;
	return 0;
}

int command_body_of_terminal(const struct request *req, struct sandbox *sandbox,
	struct command *ret_command, struct err *err)
{
	const char *cwd = request_query(req, "cwd");
	struct command command = {.spec = {.cwd = cwd ? cwd : ENVIRONMENT_CWD,
					  .is_background = true,
					  .is_kept = true,
					  .is_pty = true,
					  .kills_tree = true,
					  .keeps_input_open = true}};
	uint64_t columns, rows;
	int r;

	if ((r = api_query_number(req, "cols", 1, TERMINAL_MAX, COLUMNS, &columns, err)) < 0 ||
		(r = api_query_number(req, "rows", 1, TERMINAL_MAX, ROWS, &rows, err)) < 0 ||
		(r = read_user(request_query(req, "user"), &command.spec.uid, err)) < 0)
		return r;
	if (command.spec.cwd[0] != '/' || strlen(command.spec.cwd) >= AGENT_PATH_MAX)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter cwd must be an absolute path");
	command.spec.gid = command.spec.uid;
	command.spec.columns = (uint16_t)columns;
	command.spec.rows = (uint16_t)rows;
	command.argv = mem_new(3 * sizeof(char *));
	command.argv[0] = "/bin/bash";
	command.argv[1] = "-l";
	command.env = environment_make(sandbox, NULL, command.spec.uid, true);
	command.spec.argv = command.argv;
	command.spec.env = (const char *const *)command.env;
	*ret_command = command;
	return 0;
}

int command_body_explain(const char *cwd, const struct process_end *end, struct err *err)
{
	int r = process_explain_end(end, cwd, err);

	if (r < 0 && end->outcome == PROCESS_BAD_CWD)
		err_prefix(err, "field cwd");
	return r;
}
