/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the table of commands: each row is whole, sorted, free of clashes, and in the completions.
 */
#include "cli/command.h"
#include "cli/completion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void each_option(void (*visit)(const struct command *command, const struct option *option))
{
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *c = command_table[i];

		for (size_t t = 0; t < COMMAND_TABLES_MAX && c->tables[t].options; t++) {
			for (const struct option *o = c->tables[t].options; o->kind != OPTION_END;
				o++)
				visit(c, o);
		}
	}
}

static void the_table_is_sorted_and_its_rows_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *c = command_table[i];

		assert_non_null(c->name);
		assert_non_null(c->operands);
		assert_true(!c->run == !!c->verbs);
		for (const struct command_verb *verb = c->verbs; verb && verb->name; verb++) {
			assert_non_null(verb->run);
			assert_non_null(verb->operands);
			assert_true(verb->min <= verb->max);
			assert_true((verb->max == 0) == !verb->operands[0]);
			assert_true(!verb->name[0] || strstr(c->operands, verb->name));
		}
		assert_true(c->summary[0] && c->summary[strlen(c->summary) - 1] != '.');
		assert_true(c->max_operands < 0 || c->max_operands >= c->min_operands);
		if (i > 0)
			assert_true(strcmp(command_table[i - 1]->name, c->name) < 0);
		assert_ptr_equal(command_find(c->name), c);
	}
	assert_null(command_find("nope"));
}

static const struct option *counted;
static int same_name, same_letter;
static const struct command *counted_in;

static void count(const struct command *command, const struct option *option)
{
	if (command != counted_in)
		return;
	same_name += strcmp(option->name, counted->name) == 0;
	same_letter += counted->letter && option->letter == counted->letter;
}

static void check_option(const struct command *command, const struct option *option)
{
	assert_true(option->help[0]);
	assert_int_equal(option->value == NULL, option->kind == OPTION_FLAG);
	assert_int_equal(option->choices != NULL, option->kind == OPTION_CHOICE);
	assert_true(option->offset < command->values_size);
	counted = option;
	counted_in = command;
	same_name = same_letter = 0;
	each_option(count);
	for (const struct option *o = cli_options; o->kind != OPTION_END; o++)
		count(command, o);
	assert_int_equal(same_name, 1);
	assert_true(same_letter <= 1);
}

static void no_two_options_of_a_command_clash(void **state)
{
	(void)state;
	each_option(check_option);
}

static char *completions(const char *shell)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct err err;

	assert_int_equal(completion_write(shell, out, &err), 0);
	fclose(out);
	return text;
}

static const char *script;
static const char *flag_format;

static void find_in_script(const struct command *command, const struct option *option)
{
	char flag[64];

	(void)command;
	snprintf(flag, sizeof(flag), "%s%s", flag_format, option->name);
	assert_non_null(strstr(script, flag));
}

static void every_command_and_option_is_in_every_completion(void **state)
{
	static const char *const shells[][2] = {{"bash", "--"}, {"zsh", "--"}, {"fish", "-l "}};

	(void)state;
	for (size_t s = 0; s < array_len(shells); s++) {
		char *text = completions(shells[s][0]);

		script = text;
		flag_format = shells[s][1];
		for (size_t i = 0; command_table[i]; i++)
			assert_non_null(strstr(text, command_table[i]->name));
		each_option(find_in_script);
		free(text);
	}
}

static void an_unknown_shell_is_refused(void **state)
{
	struct err err;

	(void)state;
	assert_true(completion_write("csh", stdout, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
}

static void help_names_every_option(void **state)
{
	(void)state;
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *c = command_table[i];
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		command_help(c, out);
		fclose(out);
		assert_non_null(strstr(text, c->summary));
		for (size_t t = 0; t < COMMAND_TABLES_MAX && c->tables[t].options; t++) {
			for (const struct option *o = c->tables[t].options; o->kind != OPTION_END;
				o++)
				assert_non_null(strstr(text, o->name));
		}
		free(text);
	}
}

static void the_wrong_number_of_operands_shows_the_usage(void **state)
{
	struct cli cli = {0};
	struct err err = {0};
	char *argv[] = {(char *)"a", NULL};

	(void)state;
	assert_true(command_run(&cmd_rm, &cli, 0, argv, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.remedy, "sandlot rm"));
	assert_true(command_run(&cmd_ls, &cli, 1, argv, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
}

/* Parses as exec would and stops at the first thing that needs a daemon. */
static void exec_wants(const char *const *words, const char *message)
{
	struct cli cli = {.url = "http://127.0.0.1:1", .token = "x"};
	struct err err = {0};
	char *argv[8];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	assert_true(command_run(&cmd_exec, &cli, argc, argv, &err) < 0);
	assert_non_null(strstr(err.message, message));
	cli_fini(&cli);
}

static void assert_refused(const char *words[], const char *message, const char *remedy)
{
	char *argv[8] = {0};
	struct cli cli = {0};
	struct err err = {0};
	int argc = 0;

	for (; words[argc + 1]; argc++)
		argv[argc] = strdup(words[argc + 1]);
	assert_true(command_run(command_find(words[0]), &cli, argc, argv, &err) < 0);
	assert_string_equal(err.message, message);
	assert_string_equal(err.remedy, remedy);
	while (argc > 0)
		free(argv[--argc]);
}

static void a_verb_that_is_not_there_or_has_other_operands_is_refused(void **state)
{
	(void)state;
	assert_refused((const char *[]){"token", "rewoke", "x", NULL},
		"token can do create, ls and revoke ID...",
		"did you mean \"revoke\"? see \"sandlot token --help\"");
	assert_refused((const char *[]){"console", "nonsense", NULL},
		"console can do ls and end ID", "see \"sandlot console --help\"");
	assert_refused((const char *[]){"snapshot", "restore", "web", NULL},
		"snapshot restore: too few arguments",
		"sandlot snapshot restore [OPTION...] SANDBOX SNAPSHOT");
	assert_refused((const char *[]){"token", "ls", "x", NULL}, "token ls: too many arguments",
		"sandlot token ls [OPTION...]");
}

static void letters_of_exec_can_be_joined_and_a_terminal_must_be_there(void **state)
{
	static const char *const terminal[] = {"-it", "01k9", "sh", NULL};
	static const char *const no_terminal[] = {"-i", "-c", "ls", "01k9", NULL};
	static const char *const detached[] = {"-dit", "01k9", "sh", NULL};
	static const char *const json[] = {"-t", "--json", "01k9", "sh", NULL};
	static const char *const nothing[] = {"-d", "01k9", NULL};

	(void)state;
	assert_non_null(freopen("/dev/null", "r", stdin));
	exec_wants(terminal, "not a terminal");
	exec_wants(no_terminal, "cannot reach the daemon");
	exec_wants(detached, "cannot reach the daemon");
	exec_wants(json, "not JSON");
	exec_wants(nothing, "no command");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sorted_and_its_rows_are_whole),
		cmocka_unit_test(no_two_options_of_a_command_clash),
		cmocka_unit_test(every_command_and_option_is_in_every_completion),
		cmocka_unit_test(an_unknown_shell_is_refused),
		cmocka_unit_test(help_names_every_option),
		cmocka_unit_test(the_wrong_number_of_operands_shows_the_usage),
		cmocka_unit_test(a_verb_that_is_not_there_or_has_other_operands_is_refused),
		cmocka_unit_test(letters_of_exec_can_be_joined_and_a_terminal_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
