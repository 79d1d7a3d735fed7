/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include "base/format.h"
#include "base/similar.h"
#include "cli/foreign_words.h"

#include <string.h>

const struct command *const command_table[] = {
	&cmd_adopt,
	&cmd_attach,
	&cmd_audit,
	&cmd_backup,
	&cmd_bench,
	&cmd_completion,
	&cmd_console,
	&cmd_context,
	&cmd_cp,
	&cmd_create,
	&cmd_deps,
	&cmd_diff,
	&cmd_doctor,
	&cmd_egress,
	&cmd_events,
	&cmd_exec,
	&cmd_execution,
	&cmd_fn,
	&cmd_fork,
	&cmd_help,
	&cmd_inspect,
	&cmd_job,
	&cmd_kill,
	&cmd_launch,
	&cmd_launches,
	&cmd_logs,
	&cmd_ls,
	&cmd_mcp,
	&cmd_open,
	&cmd_pause,
	&cmd_pool,
	&cmd_port_forward,
	&cmd_ports,
	&cmd_project,
	&cmd_prune,
	&cmd_ps,
	&cmd_purge,
	&cmd_quota,
	&cmd_repl,
	&cmd_reset,
	&cmd_restart,
	&cmd_restore,
	&cmd_resume,
	&cmd_rm,
	&cmd_run,
	&cmd_run_code,
	&cmd_secret,
	&cmd_shell,
	&cmd_shutdown,
	&cmd_snapshot,
	&cmd_start,
	&cmd_stats,
	&cmd_stop,
	&cmd_template,
	&cmd_token,
	&cmd_undo,
	&cmd_update,
	&cmd_version,
	&cmd_wait,
	&cmd_watch,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *command = command_table[i];

		if (strcmp(command->name, name) == 0 ||
			(command->alias && strcmp(command->alias, name) == 0))
			return command;
	}
	return NULL;
}

int command_unknown(const char *name, struct err *err)
{
	const char *best = foreign_command(name);
	const bool is_foreign = best;
	unsigned least = SIMILAR_MAX + 1;

	for (size_t i = 0; !is_foreign && command_table[i]; i++) {
		const char *known = command_table[i]->name;
		unsigned distance = similar_distance(known, name);

		if (distance < least && distance < strlen(known)) {
			least = distance;
			best = known;
		}
	}
	/* Somebody may have typed no more than the beginning. */
	for (size_t i = 0; !best && strlen(name) >= 2 && command_table[i]; i++) {
		if (strncmp(command_table[i]->name, name, strlen(name)) == 0)
			best = command_table[i]->name;
	}
	err_set(err, ERR_INVALID, "there is no command \"%s\"", name);
	snprintf(err->remedy, sizeof(err->remedy), "%s%s%s\"sandlot help\" lists them all",
		best ? "did you mean \"" : "", best ? best : "", best ? "\"? " : "");
	return -err_class(ERR_INVALID)->errnum;
}

static int check_operands(const struct command *command, int count, struct err *err)
{
	bool too_few = count < command->min_operands;

	if (!too_few && (command->max_operands < 0 || count <= command->max_operands))
		return 0;
	err_set(err, ERR_INVALID, "%s: too %s arguments", command->name, too_few ? "few" : "many");
	snprintf(err->remedy, sizeof(err->remedy), "sandlot %s [OPTION...] %s%s%s", command->name,
		command->operands, command->misplaced && !too_few ? command->misplaced : "",
		command->takes == COMMAND_TAKES_IDS && too_few ? "; \"sandlot ls\" lists sandboxes"
							       : "");
	return -err_class(ERR_INVALID)->errnum;
}

/* Sets err: what the verbs of a command are, and which one may have been meant. */
static int refuse_verb(const struct command *command, const char *name, struct err *err)
{
	char text[sizeof(err->message)] = "";
	size_t len = 0;
	const char *best = NULL;

	for (const struct command_verb *verb = command->verbs; verb->name; verb++) {
		const char *between = len == 0 ? "" : verb[1].name ? ", " : " and ";

		if (!verb->name[0])
			continue;
		len = format_append(text, sizeof(text), len, "%s%s%s%s", between, verb->name,
			verb->operands[0] ? " " : "", verb->operands);
		if (similar_distance(verb->name, name) == 1)
			best = verb->name;
	}
	err_set(err, ERR_INVALID, "%s can do %s", command->name, text);
	snprintf(err->remedy, sizeof(err->remedy), "%s%s%ssee \"sandlot %s --help\"",
		best ? "did you mean \"" : "", best ? best : "", best ? "\"? " : "", command->name);
	return -err_class(ERR_INVALID)->errnum;
}

static int run_verb(const struct command *command, struct cli *cli, const void *values, int argc,
	char **argv, struct err *err)
{
	const char *name = argc > 0 ? argv[0] : "";
	const struct command_call call = {cli, values, argc > 0 ? argc - 1 : 0, argv + 1};

	for (const struct command_verb *verb = command->verbs; verb->name; verb++) {
		if (strcmp(verb->name, name) != 0)
			continue;
		if (call.argc >= verb->min && call.argc <= verb->max)
			return verb->run(&call, err);
		err_set(err, ERR_INVALID, "%s %s: too %s arguments", command->name, name,
			call.argc < verb->min ? "few" : "many");
		snprintf(err->remedy, sizeof(err->remedy), "sandlot %s %s [OPTION...]%s%s",
			command->name, name, verb->operands[0] ? " " : "", verb->operands);
		return -err_class(ERR_INVALID)->errnum;
	}
	return refuse_verb(command, name, err);
}

/* Behind what the parser of options says. */
static void advise(struct err *err, const char *command)
{
	size_t len = strlen(err->remedy);

	snprintf(
		err->remedy + len, sizeof(err->remedy) - len, "see \"sandlot %s --help\"", command);
}

int command_run(
	const struct command *command, struct cli *cli, int argc, char **argv, struct err *err)
{
	auto_free char *values = mem_new(command->values_size + 1);
	struct option_binding bindings[1 + COMMAND_TABLES_MAX] = {{cli_options, cli}};
	size_t count = 1;
	int operands;
	int r;

	for (size_t i = 0; i < COMMAND_TABLES_MAX && command->tables[i].options; i++)
		bindings[count++] = (struct option_binding){
			command->tables[i].options, values + command->tables[i].base};
	r = option_parse(bindings, count, command->verbatim_after, argc, argv, &operands, err);
	if (r < 0) {
		advise(err, command->name);
	} else if (cli->help) {
		command_help(command, stdout);
	} else if (cli->version) {
		printf("sandlot %s\n", SANDLOT_VERSION);
	} else {
		r = check_operands(command, operands, err);
		if (r == 0 && command->verbs)
			r = run_verb(command, cli, values, operands, argv, err);
		else if (r == 0)
			r = command->run(cli, values, operands, argv, err);
	}
	option_release(bindings, count);
	return r;
}

static void print_options(const struct option *options, FILE *out)
{
	for (const struct option *o = options; o->kind != OPTION_END; o++) {
		char left[64];
		char letter[8] = "    ";

		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->value ? " " : "",
			o->value ? o->value : "");
		fprintf(out, "  %-26s %s\n", left, o->help);
	}
}

void command_help(const struct command *command, FILE *out)
{
	bool has_options = command->tables[0].options != NULL;

	fprintf(out, "usage: sandlot %s%s%s%s\n\n%s.\n", command->name,
		has_options ? " [OPTION...]" : "", command->operands[0] ? " " : "",
		command->operands, command->summary);
	if (command->details)
		fprintf(out, "\n%s", command->details);
	if (has_options)
		fputs("\noptions:\n", out);
	for (size_t i = 0; i < COMMAND_TABLES_MAX && command->tables[i].options; i++)
		print_options(command->tables[i].options, out);
	fputs("\nglobal options:\n", out);
	print_options(cli_options, out);
}

/* What a first day needs, before all others. */
static const struct command *const first_commands[] = {&cmd_run, &cmd_create, &cmd_exec, &cmd_shell,
	&cmd_ls, &cmd_rm, &cmd_open, &cmd_cp, &cmd_logs};

static bool is_first(const struct command *command)
{
	for (size_t i = 0; i < array_len(first_commands); i++) {
		if (first_commands[i] == command)
			return true;
	}
	return false;
}

static void print_summary(const struct command *command, FILE *out)
{
	char names[32];

	snprintf(names, sizeof(names), "%s%s%s", command->name, command->alias ? ", " : "",
		command->alias ? command->alias : "");
	fprintf(out, "  %-12s %s\n", names, command->summary);
}

void command_help_all(FILE *out)
{
	fputs("usage: sandlot [OPTION...] COMMAND [ARG...]\n\n"
	      "Isolated Linux environments in milliseconds.\n\nstart here:\n",
		out);
	for (size_t i = 0; i < array_len(first_commands); i++)
		print_summary(first_commands[i], out);
	fputs("\nall others:\n", out);
	for (size_t i = 0; command_table[i]; i++) {
		if (!is_first(command_table[i]))
			print_summary(command_table[i], out);
	}
	fputs("\noptions:\n", out);
	print_options(cli_options, out);
	fputs("\nTry \"sandlot run -- echo hello\", then \"sandlot help COMMAND\". "
	      "\"sandlot help exit-codes\" lists those.\n",
		out);
}
