/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands. A command is one row, defined in its own cmd_*.c; help, completions and a
 * test walk the table. To add one: write the file, name the row in command.c, in its alphabetical
 * place.
 */
#pragma once

#include "cli/cli.h"
#include "cli/option.h"

#include <stdio.h>

/* What the shell offers for an operand. */
enum command_operand {
	COMMAND_TAKES_NOTHING,
	COMMAND_TAKES_A_PROGRAM,
	COMMAND_TAKES_IDS,
	COMMAND_TAKES_PROCESSES, /* of the sandbox whose id comes first */
	COMMAND_TAKES_FILES,	 /* and ids */
	COMMAND_TAKES_SHELLS,
	COMMAND_TAKES_COMMANDS,
};

/* A table of options and where in the command's own values its offsets begin. */
struct command_options {
	const struct option *options;
	size_t base;
};

#define COMMAND_TABLES_MAX 3

/* What one of the verbs of a command is called with: its own operands are argv[0..argc). */
struct command_call {
	struct cli *cli;
	const void *values; /* of the command's options */
	int argc;
	char **argv;
};

/* One of several things that a command can do, named by its first operand: sandlot token ls. */
struct command_verb {
	const char *name;     /* "": what the command does without operands */
	const char *operands; /* "NAME FILE" */
	int min, max;	      /* how many; COMMAND_ANY: any number */
	/* The exit code, or -errno with *err set. */
	int (*run)(const struct command_call *call, struct err *err);
};

#define COMMAND_ANY 0x7fffffff

struct command {
	const char *name;
	const char *alias;    /* another name that it has; may be NULL */
	const char *operands; /* "ID [--] COMMAND [ARG...]" */
	const char *summary;  /* one line, no full stop */
	const char
		*misplaced;  /* where operands that are too many may belong; NULL: nothing to say */
	const char *details; /* paragraphs and examples */
	struct command_options tables[COMMAND_TABLES_MAX];
	size_t values_size; /* of the struct that the tables fill, which starts zeroed */
	int min_operands;
	int max_operands;   /* -1: any number */
	int verbatim_after; /* see option_parse */
	enum command_operand takes;

	/* The exit code, or -errno with *err set. Operands are argv[0..argc). NULL: it has verbs. */
	int (*run)(struct cli *cli, const void *values, int argc, char **argv, struct err *err);
	const struct command_verb *verbs; /* ended by a row without a name */
};

/* Sorted by name, ended by NULL. */
extern const struct command *const command_table[];

const struct command *command_find(const char *name);

/* Sets err: there is no such command, and which one may have been meant. */
int command_unknown(const char *name, struct err *err);

/* Parses the command's arguments (without its name) and runs it. */
int command_run(const struct command *command, struct cli *cli, int argc, char **argv,
	struct err *err) must_check;

/* The help of one command; of the whole program. */
void command_help(const struct command *command, FILE *out);
void command_help_all(FILE *out);

/* The rows, each in its own file. */
extern const struct command cmd_adopt;
extern const struct command cmd_attach;
extern const struct command cmd_audit;
extern const struct command cmd_backup;
extern const struct command cmd_bench;
extern const struct command cmd_completion;
extern const struct command cmd_console;
extern const struct command cmd_context;
extern const struct command cmd_cp;
extern const struct command cmd_create;
extern const struct command cmd_deps;
extern const struct command cmd_diff;
extern const struct command cmd_doctor;
extern const struct command cmd_egress;
extern const struct command cmd_events;
extern const struct command cmd_exec;
extern const struct command cmd_execution;
extern const struct command cmd_fn;
extern const struct command cmd_fork;
extern const struct command cmd_help;
extern const struct command cmd_inspect;
extern const struct command cmd_job;
extern const struct command cmd_kill;
extern const struct command cmd_launch;
extern const struct command cmd_launches;
extern const struct command cmd_logs;
extern const struct command cmd_ls;
extern const struct command cmd_mcp;
extern const struct command cmd_open;
extern const struct command cmd_pause;
extern const struct command cmd_pool;
extern const struct command cmd_port_forward;
extern const struct command cmd_ports;
extern const struct command cmd_project;
extern const struct command cmd_prune;
extern const struct command cmd_ps;
extern const struct command cmd_purge;
extern const struct command cmd_quota;
extern const struct command cmd_repl;
extern const struct command cmd_reset;
extern const struct command cmd_restart;
extern const struct command cmd_restore;
extern const struct command cmd_resume;
extern const struct command cmd_rm;
extern const struct command cmd_run;
extern const struct command cmd_run_code;
extern const struct command cmd_secret;
extern const struct command cmd_shell;
extern const struct command cmd_shutdown;
extern const struct command cmd_snapshot;
extern const struct command cmd_start;
extern const struct command cmd_stats;
extern const struct command cmd_stop;
extern const struct command cmd_template;
extern const struct command cmd_token;
extern const struct command cmd_undo;
extern const struct command cmd_update;
extern const struct command cmd_version;
extern const struct command cmd_wait;
extern const struct command cmd_watch;
