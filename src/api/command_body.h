/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks to be run: the body of exec, or a terminal, as a process_spec. */
#pragma once

#include "api/api.h"
#include "core/process.h"

/* Everything a process_spec points to, alive until the process was started. */
struct command {
	struct process_spec spec;
	bool cancels_with_client; /* a foreground command, unless the client says otherwise */
	const char **argv;
	char **env;
	uint8_t *input; /* decoded, or NULL */
};

extern const struct fields command_body_fields;

/* The body of POST .../exec. The command borrows from the request. */
int command_body_decode(const struct request *req, struct sandbox *sandbox,
	struct command *ret_command, struct err *err) must_check;

/* A login shell on a terminal, from the query of .../terminal. */
int command_body_of_terminal(const struct request *req, struct sandbox *sandbox,
	struct command *ret_command, struct err *err) must_check;

void command_body_fini(struct command *command);

/* What is wrong with a field cwd, or NULL. */
const char *command_body_check_cwd(const json_t *cwd);

/* Why a command never ran, if that is for the client to hear as an error; 0 if it is its own result. */
int command_body_explain(const char *cwd, const struct process_end *end, struct err *err)
	must_check;
