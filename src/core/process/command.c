/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/command.h"

#include "base/number.h"
#include "core/process/environment.h"
#include "wire/agent.h"

#include <string.h>

#define COLUMNS 80
#define ROWS	24

static int bad(struct err *err, const char *remedy, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_field", remedy, "%s", what);
}

static int check_argv(struct text_list argv, struct err *err)
{
	if (argv.count == 0 || argv.count > AGENT_ARGS_MAX || !argv.texts[0][0])
		return bad(err, NULL, "field argv must begin with the name of a program");
	for (size_t i = 0; i < argv.count; i++) {
		if (strlen(argv.texts[i]) > COMMAND_LINE_MAX)
			return bad(err, NULL, "field argv has an argument that is too long");
	}
	return 0;
}

/* Whether it goes on without its caller, who can therefore come back to it. */
static bool outlives_caller(const struct command_spec *spec)
{
	return spec->is_background || (spec->is_streamed && spec->is_kept == CHOICE_YES);
}

/* Fields that only make sense together. */
static int check_together(const struct command_spec *spec, struct err *err)
{
	if ((spec->line != NULL) + (spec->argv.texts != NULL) + spec->is_login_shell > 1)
		return bad(err, NULL, "exactly one of the fields command and argv must be given");
	if (spec->is_pty && !outlives_caller(spec))
		return bad(err, "set background to true and attach with GET .../terminal?process=",
			"field pty needs a background command");
	if (spec->is_background && spec->is_kept != CHOICE_UNSET)
		return bad(err, NULL,
			"field on_disconnect is for foreground commands: this one has no client");
	if (spec->keeps_input == CHOICE_YES && !outlives_caller(spec))
		return bad(err, NULL, "field stdin_open needs a background command");
	if (spec->keeps_awake && !spec->is_background)
		return bad(err, NULL, "field keep_awake needs a background command");
	if (!spec->is_pty && (spec->columns || spec->rows))
		return bad(
			err, NULL, "fields cols and rows are those of a terminal: set pty to true");
	return 0;
}

static int check(const struct command_spec *spec, struct err *err)
{
	int r = check_together(spec, err);

	if (r == 0 && spec->line && (!spec->line[0] || strlen(spec->line) > COMMAND_LINE_MAX))
		r = bad(err, NULL, "field command is empty or too long");
	if (r == 0 && spec->argv.texts)
		r = check_argv(spec->argv, err);
	if (r == 0 && spec->cwd && (spec->cwd[0] != '/' || strlen(spec->cwd) >= AGENT_PATH_MAX))
		r = bad(err, NULL, "field cwd must be an absolute path");
	if (r == 0 && (spec->columns > COMMAND_TERMINAL_MAX || spec->rows > COMMAND_TERMINAL_MAX))
		r = bad(err, NULL, "fields cols and rows must be from 1 to 1000");
	if (r == 0 && spec->timeout_ms > COMMAND_TIMEOUT_MAX_MS)
		r = bad(err, NULL, "field timeout_ms must be at most 7 days");
	return r < 0 ? r : sandbox_spec_check_env_map("env", spec->env, SPEC_ENV_MAX, err);
}

/* Whether it is the name of the user whom the image names too, who was looked up. */
static bool is_image_user(const struct sandbox_record *record, const char *name)
{
	const char *user = json_string_value(json_object_get(record->image, "user"));
	size_t len = strlen(name);

	return user && len > 0 && strncmp(user, name, len) == 0 && (!user[len] || user[len] == ':');
}

/* Others are not looked up: /etc/passwd inside belongs to the sandbox. */
static int read_user(
	const struct sandbox_record *record, const char *name, uint32_t *ret_uid, struct err *err)
{
	uint64_t uid;

	if (!name || is_image_user(record, name))
		uid = environment_uid(record);
	else if (strcmp(name, "sandbox") == 0)
		uid = ENVIRONMENT_UID;
	else if (strcmp(name, "root") == 0)
		uid = 0;
	else if (number_parse(name, 0, 65534, &uid) < 0)
		return bad(err, NULL, "field user must be sandbox, root, or a uid from 0 to 65534");
	*ret_uid = (uint32_t)uid;
	return 0;
}

/* What the image is made to run: its entrypoint and command. They are copied, as the record goes. */
static int take_image_argv(
	const struct sandbox_record *record, struct command *command, struct err *err)
{
	json_t *words = json_array(), *word;
	size_t i;

	json_array_extend(words, json_object_get(record->image, "entrypoint"));
	json_array_extend(words, json_object_get(record->image, "command"));
	command->image_argv = words;
	if (json_array_size(words) == 0 || json_array_size(words) > AGENT_ARGS_MAX)
		return bad(err,
			environment_is_foreign(record) ? "the image names no program to run" : NULL,
			"exactly one of the fields command and argv must be given");
	command->argv = mem_new((json_array_size(words) + 1) * sizeof(char *));
	json_array_foreach(words, i, word) command->argv[i] = json_string_value(word);
	return 0;
}

static const char **make_argv(const struct command_spec *spec, bool is_foreign)
{
	static const char *const own_shell[] = {"/bin/bash", "-l", NULL};
	static const char *const any_shell[] = {
		"/bin/sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l"};
	const char *const *shell = is_foreign ? any_shell : own_shell;
	const char *line[] = {"/bin/sh", "-c", spec->line};
	struct text_list from = spec->line ? (struct text_list){line, array_len(line)}
				: spec->is_login_shell
					? (struct text_list){shell, is_foreign ? 3 : 2}
					: spec->argv;
	const char **argv = mem_new((from.count + 1) * sizeof(char *));

	memcpy(argv, from.texts, from.count * sizeof(char *));
	return argv;
}

static void fill(const struct command_spec *from, struct command *command)
{
	struct process_spec *spec = &command->spec;

	spec->input = from->input;
	spec->input_len = from->input_len;
	spec->timeout_ms = from->timeout_ms;
	spec->kills_tree = from->kills_tree != CHOICE_NO;
	spec->is_line = from->line != NULL;
	spec->is_background = from->is_background;
	spec->keeps_awake = from->keeps_awake;
	spec->is_pty = from->is_pty;
	spec->is_isolated = from->is_isolated;
	spec->has_result = from->has_result;
	spec->title = from->title;
	spec->danger = from->danger;
	spec->columns = from->columns ? from->columns : COLUMNS;
	spec->rows = from->rows ? from->rows : ROWS;
	spec->keeps_input_open =
		from->is_pty || from->keeps_input == CHOICE_YES ||
		(from->is_background && !from->input && from->keeps_input == CHOICE_UNSET);
	command->cancels_with_caller = !from->is_background && from->is_kept != CHOICE_YES;
	/* Output is kept of all whose caller may come back for it. */
	spec->is_kept = from->is_background || from->is_streamed || !command->cancels_with_caller;
	spec->is_paced = from->is_streamed && !from->is_background;
}

/* What depends on the sandbox that it runs in. */
static int fit(const struct sandbox_record *record, const struct command_spec *from,
	struct command *command, struct err *err)
{
	int r = read_user(record, from->user, &command->spec.uid, err);

	if (r < 0)
		return r;
	command->spec.gid = environment_gid(record, command->spec.uid);
	command->spec.groups = environment_groups(record, command->spec.uid);
	command->cwd = mem_strdup(from->cwd ? from->cwd : environment_cwd(record));
	if (!from->line && !from->argv.texts && !from->is_login_shell)
		return take_image_argv(record, command, err);
	command->argv = make_argv(from, environment_is_foreign(record));
	return 0;
}

int command_make(struct sandbox *sandbox, const struct command_spec *from,
	struct command *ret_command, struct err *err)
{
	json_auto_t *env = NULL;
	struct command command = {0};
	struct sandbox_record record;
	int r = check(from, err);

	if (r < 0)
		return r;
	sandbox_read(sandbox, &record);
	r = fit(&record, from, &command, err);
	sandbox_record_fini(&record);
	if (r < 0) {
		command_fini(&command);
		return r;
	}
	fill(from, &command);
	env = text_map_to_json(from->env);
	command.env = environment_make(sandbox, env, command.spec.uid, command.spec.is_pty);
	command.spec.argv = command.argv;
	command.spec.env = (const char *const *)command.env;
	command.spec.cwd = command.cwd;
	*ret_command = command;
	return 0;
}

void command_fini(struct command *command)
{
	environment_free(command->env);
	free(command->argv);
	free(command->cwd);
	json_decref(command->image_argv);
}
