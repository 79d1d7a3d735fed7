/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

const struct command *const command_table[] = {
	&cmd_attach,
	&cmd_audit,
	&cmd_bench,
	&cmd_completion,
	&cmd_cp,
	&cmd_create,
	&cmd_doctor,
	&cmd_egress,
	&cmd_exec,
	&cmd_help,
	&cmd_inspect,
	&cmd_kill,
	&cmd_logs,
	&cmd_ls,
	&cmd_open,
	&cmd_pause,
	&cmd_port_forward,
	&cmd_ports,
	&cmd_ps,
	&cmd_purge,
	&cmd_quota,
	&cmd_reset,
	&cmd_resume,
	&cmd_rm,
	&cmd_run,
	&cmd_secret,
	&cmd_shell,
	&cmd_shutdown,
	&cmd_start,
	&cmd_stats,
	&cmd_stop,
	&cmd_token,
	&cmd_version,
	&cmd_wait,
	&cmd_watch,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; command_table[i]; i++) {
		if (strcmp(command_table[i]->name, name) == 0)
			return command_table[i];
	}
	return NULL;
}

static int check_operands(const struct command *command, int count, struct err *err)
{
	bool too_few = count < command->min_operands;

	if (!too_few && (command->max_operands < 0 || count <= command->max_operands))
		return 0;
	err_set(err, ERR_INVALID, "%s: too %s arguments", command->name, too_few ? "few" : "many");
	snprintf(err->remedy, sizeof(err->remedy), "sandlot %s [OPTION...] %s", command->name,
		command->operands);
	return -err_class(ERR_INVALID)->errnum;
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
		snprintf(err->remedy, sizeof(err->remedy), "see \"sandlot %s --help\"",
			command->name);
	} else if (cli->help) {
		command_help(command, stdout);
	} else if (cli->version) {
		printf("sandlot %s\n", SANDLOT_VERSION);
	} else {
		r = check_operands(command, operands, err);
		if (r == 0)
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

void command_help_all(FILE *out)
{
	fputs("usage: sandlot [OPTION...] COMMAND [ARG...]\n\n"
	      "Isolated Linux environments in milliseconds.\n\ncommands:\n",
		out);
	for (size_t i = 0; command_table[i]; i++)
		fprintf(out, "  %-12s %s\n", command_table[i]->name, command_table[i]->summary);
	fputs("\noptions:\n", out);
	print_options(cli_options, out);
	fputs("\nTry \"sandlot run -- echo hello\", then \"sandlot help COMMAND\".\n", out);
}
