/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command as a caller asks for it, and the process_spec that it becomes: who runs it, where, with
 * which environment, whether its output is kept, and whether it ends with its caller. A struct of zeros
 * with a line in it asks for the defaults.
 *
 * To run one: command_make, process_new, process_watch, process_run, command_fini.
 */
#pragma once

#include "core/process/process.h"
#include "model/sandbox/sandbox_spec.h"
#include "model/text_map.h"

#define COMMAND_LINE_MAX       (128 * 1024 - 1) /* the kernel's limit for one argument */
#define COMMAND_TIMEOUT_MAX_MS (7ll * 86400 * 1000)
#define COMMAND_TERMINAL_MAX   1000 /* columns, rows */

struct command_spec {
	const char *line;      /* for /bin/sh. At most one of these three is given; else it is the
				* image's own program, where there is one. */
	struct text_list argv; /* program and arguments */
	bool is_login_shell;
	const char *cwd; /* NULL: the workspace, or what its image says */
	const char *
		user; /* "sandbox", "root", or a uid up to 65534; NULL: "sandbox", or what its image says */
	struct text_map env;
	const void *input; /* NULL: none */
	size_t input_len;
	uint64_t timeout_ms;	/* 0: none */
	enum choice kills_tree; /* what the timeout ends; unset: yes, all that came of it */
	enum choice
		keeps_input; /* open for later writes; unset: of a background one without input */
	bool is_background;  /* its caller does not wait for its end */
	bool keeps_awake;    /* the sandbox is not idle while it runs */
	bool is_streamed;    /* its caller reads its output as it comes, and it waits for that */
	enum choice is_kept; /* a foreground one goes on when its caller leaves; unset: no */
	bool is_pty, is_isolated;
	danger_set danger; /* what it was flagged for */
	bool has_result; /* it has a descriptor for results; with a title, for it is no command of a client */
	const char *title;	/* what lists of processes show of it; NULL: the command */
	uint16_t columns, rows; /* of the terminal; 0: the usual */
};

struct command {
	struct process_spec spec;
	bool cancels_with_caller; /* it ends with all that it started when its caller leaves */
	const char **argv;	  /* owned, as the next; the texts are the caller's */
	char **env;
	char *cwd;
	json_t *image_argv; /* whose texts argv has, if it is the image's own program; owned */
};

/* ERR_INVALID names the field. What the spec points to must stay until the process was run. */
int command_make(struct sandbox *sandbox, const struct command_spec *spec,
	struct command *ret_command, struct err *err) must_check;
void command_fini(struct command *command);
