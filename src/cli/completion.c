/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include "cli/command.h"

#include <string.h>

/* Calls visit for every option of a command, the global ones last. */
static void each_option(const struct command *command,
	void (*visit)(const struct option *option, const struct command *command, FILE *out),
	FILE *out)
{
	const struct option *o;

	for (size_t i = 0; command && i < COMMAND_TABLES_MAX && command->tables[i].options; i++) {
		for (o = command->tables[i].options; o->kind != OPTION_END; o++)
			visit(o, command, out);
	}
	for (o = cli_options; o->kind != OPTION_END; o++)
		visit(o, command, out);
}

static void bash_word(const struct option *option, const struct command *command, FILE *out)
{
	(void)command;
	fprintf(out, " --%s", option->name);
	if (option->letter)
		fprintf(out, " -%c", option->letter);
}

/* After an option with a value: its choices, or the shell's own file names. */
static void bash_value(const struct option *option, const struct command *command, FILE *out)
{
	if (option->kind == OPTION_FLAG)
		return;
	fprintf(out, "\t%s:--%s", command ? command->name : "", option->name);
	if (option->letter)
		fprintf(out, "|%s:-%c", command ? command->name : "", option->letter);
	fprintf(out, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return;;\n",
		option->choices ? option->choices : "");
}

static const char *bash_operands(const struct command *command)
{
	switch (command->takes) {
	case COMMAND_TAKES_IDS:
	case COMMAND_TAKES_FILES:
		return "$(sandlot ls -q --names 2>/dev/null)";
	case COMMAND_TAKES_PROCESSES:
		return "$(_sandlot_words)";
	case COMMAND_TAKES_SHELLS:
		return COMPLETION_SHELLS;
	case COMMAND_TAKES_COMMANDS:
		return "$commands";
	case COMMAND_TAKES_A_PROGRAM:
	case COMMAND_TAKES_NOTHING:
		break;
	}
	return "";
}

static void write_bash(FILE *out)
{
	fputs("# bash completion for sandlot; made by: sandlot completion bash\n"
	      /* The first operand is a sandbox, those after it are its processes. */
	      "_sandlot_words() {\n"
	      "    local i id=\n"
	      "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "        [[ ${COMP_WORDS[i]} =~ ^([a-z]|[0-9a-z-]{4})[0-9a-z-]*$ ]] && {\n"
	      "            id=${COMP_WORDS[i]}; break\n"
	      "        }\n"
	      "    done\n"
	      "    if [[ $id ]]; then sandlot ps -aq \"$id\"; else sandlot ls -q --names; fi "
	      "2>/dev/null\n"
	      "}\n"
	      "_sandlot() {\n"
	      "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "    local command= options= operands= i\n"
	      "    local commands='",
		out);
	for (size_t i = 0; command_table[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", command_table[i]->name);
	fputs("'\n"
	      "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "        case ${COMP_WORDS[i]} in\n"
	      "        -o|--output|--token|--url) ((i++));;\n"
	      "        -*) ;;\n"
	      "        *) command=${COMP_WORDS[i]}; break;;\n"
	      "        esac\n"
	      "    done\n"
	      "    case $command:$prev in\n",
		out);
	each_option(NULL, bash_value, out);
	for (size_t i = 0; command_table[i]; i++)
		each_option(command_table[i], bash_value, out);
	fputs("    esac\n    case $command in\n    '') operands=$commands options='", out);
	each_option(NULL, bash_word, out);
	fputs("';;\n", out);
	for (size_t i = 0; command_table[i]; i++) {
		fprintf(out, "    %s) options='", command_table[i]->name);
		each_option(command_table[i], bash_word, out);
		fputs("'\n", out);
		/* The daemon is asked only where the word may be an id. */
		fprintf(out, "        [[ $cur == -* ]] || operands=\"%s\";;\n",
			bash_operands(command_table[i]));
	}
	fputs("    esac\n"
	      "    [[ $cur == -* ]] && operands=$options\n"
	      "    COMPREPLY=($(compgen -W \"$operands\" -- \"$cur\"))\n"
	      "}\n"
	      "complete -o default -F _sandlot sandlot\n",
		out);
}

/* Between single quotes; brackets and colons mean something to _arguments. */
static void zsh_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void zsh_option(const struct option *option, const struct command *command, FILE *out)
{
	const char *repeat = option->kind == OPTION_LIST ? "*" : "";
	const char *joint = option->value ? "=" : "";

	(void)command;
	for (int is_letter = 0; is_letter < (option->letter ? 2 : 1); is_letter++) {
		fprintf(out, " \\\n            '%s", repeat);
		if (is_letter)
			fprintf(out, "-%c%s", option->letter, option->value ? "+" : "");
		else
			fprintf(out, "--%s%s", option->name, joint);
		fputc('[', out);
		zsh_text(option->help, out);
		fputc(']', out);
		if (option->choices)
			fprintf(out, ":%s:(%s)", option->value, option->choices);
		else if (option->value)
			fprintf(out, ":%s:", option->value);
		fputc('\'', out);
	}
}

static const char *zsh_operands(const struct command *command)
{
	switch (command->takes) {
	case COMMAND_TAKES_IDS:
		return "*:id:_sandlot_ids";
	case COMMAND_TAKES_FILES:
		return "*:file:_sandlot_ids_or_files";
	case COMMAND_TAKES_PROCESSES:
		return "*:process:_sandlot_ids_or_processes";
	case COMMAND_TAKES_SHELLS:
		return "1:shell:(" COMPLETION_SHELLS ")";
	case COMMAND_TAKES_COMMANDS:
		return "1:command:_sandlot_commands";
	case COMMAND_TAKES_A_PROGRAM:
		return "*::command:_normal";
	case COMMAND_TAKES_NOTHING:
		break;
	}
	return NULL;
}

static void write_zsh(FILE *out)
{
	fputs("#compdef sandlot\n# made by: sandlot completion zsh\n\n"
	      "_sandlot_ids() { compadd -- ${(f)\"$(sandlot ls -q --names 2>/dev/null)\"} }\n"
	      "_sandlot_ids_or_files() { _sandlot_ids; _files }\n"
	      "_sandlot_ids_or_processes() {\n"
	      "    local id=${${(M)words[2,CURRENT-1]:#([a-z]|[0-9a-z](#c4))[0-9a-z-]#}[1]}\n"
	      "    if [[ -n $id ]]; then\n"
	      "        compadd -- ${(f)\"$(sandlot ps -aq $id 2>/dev/null)\"}\n"
	      "    else\n        _sandlot_ids\n    fi\n}\n"
	      "_sandlot_commands() {\n    local -a commands=(\n",
		out);
	for (size_t i = 0; command_table[i]; i++) {
		fprintf(out, "        '%s:", command_table[i]->name);
		zsh_text(command_table[i]->summary, out);
		fputs("'\n", out);
	}
	fputs("    )\n    _describe command commands\n}\n\n"
	      "_sandlot() {\n    local curcontext=$curcontext state line\n    _arguments -C",
		out);
	each_option(NULL, zsh_option, out);
	fputs(" \\\n            '1:command:_sandlot_commands' '*::argument:->rest'\n"
	      "    [[ $state == rest ]] || return\n    case $words[1] in\n",
		out);
	for (size_t i = 0; command_table[i]; i++) {
		fprintf(out, "    %s)\n        _arguments", command_table[i]->name);
		each_option(command_table[i], zsh_option, out);
		if (zsh_operands(command_table[i]))
			fprintf(out, " \\\n            '%s'", zsh_operands(command_table[i]));
		fputs(";;\n", out);
	}
	fputs("    esac\n}\n\n"
	      "if [[ $funcstack[1] == _sandlot ]]; then _sandlot \"$@\"; else compdef _sandlot "
	      "sandlot; fi\n",
		out);
}

static void fish_text(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

static void fish_option(const struct option *option, const struct command *command, FILE *out)
{
	fputs("complete -c sandlot", out);
	if (command)
		fprintf(out, " -n '__fish_seen_subcommand_from %s'", command->name);
	fprintf(out, " -l %s", option->name);
	if (option->letter)
		fprintf(out, " -s %c", option->letter);
	if (option->value)
		fputs(" -x", out);
	if (option->choices)
		fprintf(out, " -a '%s'", option->choices);
	fputs(" -d ", out);
	fish_text(option->help, out);
	fputc('\n', out);
}

static void fish_operands(const struct command *command, FILE *out)
{
	const char *words = command->takes == COMMAND_TAKES_IDS ||
					    command->takes == COMMAND_TAKES_FILES ||
					    command->takes == COMMAND_TAKES_PROCESSES
				    ? "(sandlot ls -q --names 2>/dev/null)"
			    : command->takes == COMMAND_TAKES_SHELLS ? COMPLETION_SHELLS
								     : NULL;

	if (words)
		fprintf(out, "complete -c sandlot -n '__fish_seen_subcommand_from %s'%s -a '%s'\n",
			command->name, command->takes == COMMAND_TAKES_FILES ? "" : " -f", words);
}

static void write_fish(FILE *out)
{
	fputs("# fish completion for sandlot; made by: sandlot completion fish\n", out);
	/* The global ones once, for all commands. */
	each_option(NULL, fish_option, out);
	for (size_t i = 0; command_table[i]; i++) {
		const struct command *command = command_table[i];

		fprintf(out, "complete -c sandlot -f -n __fish_use_subcommand -a %s -d ",
			command->name);
		fish_text(command->summary, out);
		fputc('\n', out);
		for (size_t t = 0; t < COMMAND_TABLES_MAX && command->tables[t].options; t++) {
			const struct option *o = command->tables[t].options;

			for (; o->kind != OPTION_END; o++)
				fish_option(o, command, out);
		}
		fish_operands(command, out);
	}
}

int completion_write(const char *shell, FILE *out, struct err *err)
{
	if (strcmp(shell, "bash") == 0)
		write_bash(out);
	else if (strcmp(shell, "fish") == 0)
		write_fish(out);
	else if (strcmp(shell, "zsh") == 0)
		write_zsh(out);
	else
		return err_set(err, ERR_INVALID, "completions are made for %s, not for \"%s\"",
			COMPLETION_SHELLS, shell);
	return 0;
}
