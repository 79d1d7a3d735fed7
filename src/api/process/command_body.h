/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks to be run: the body of exec, or a terminal, as a command_spec. */
#pragma once

#include "api/api.h"
#include "core/process/command.h"

extern const struct fields command_body_fields;

/* The body of POST .../exec, and what its spec points to. */
struct command_body {
	struct command_spec spec;
	const char **argv;     /* owned, as the next */
	uint8_t *input;	       /* decoded, or NULL */
	bool wants_checkpoint; /* before it runs */
	const char *confirm;   /* borrowed; NULL: none */
	struct text_pair env[SPEC_ENV_MAX];
};

/* It borrows from the request's body. The caller ends it, also after a failure. */
int command_body_decode(const struct request *req, struct command_body *ret_body, struct err *err)
	must_check;
void command_body_fini(struct command_body *body);

/* A login shell on a terminal, from the query of .../terminal. */
int command_body_of_terminal(
	const struct request *req, struct command_spec *ret_spec, struct err *err) must_check;

/* What is wrong with a field cwd, or NULL. */
const char *command_body_check_cwd(const json_t *cwd);

/* Why a command never ran, if that is for the client to hear as an error; 0 if it is its own result. */
int command_body_explain(const char *cwd, const struct process_end *end, struct err *err)
	must_check;
