/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a command in a sandbox (exec, run), and the request made of them. */
#pragma once

#include "base/err.h"
#include "cli/option.h"

#include <jansson.h>

#define EXIT_NO_PROGRAM 127 /* as a shell has it */

#define EXEC_SPEC_STDIN_MAX (1024u * 1024)

struct exec_spec {
	const char *cwd;
	const char *user;
	struct option_number timeout;
	const char *line;    /* -c */
	const char *confirm; /* the code that a refusal gave */
	bool is_meant;	     /* whatever it looks like */
	bool may_be_image;   /* without a command the image's own program is run */
};

/* Without --env and the choice about standard input, in which exec and run differ. */
extern const struct option exec_spec_options[];

/*
 * The body of POST .../exec for argv[0..argc) or the shell line; exactly one of them must be given.
 * env may be NULL. With_stdin reads standard input to its end, which must come within
 * EXEC_SPEC_STDIN_MAX bytes.
 */
int exec_spec_body(const struct exec_spec *spec, const struct option_list *env, int argc,
	char **argv, bool with_stdin, json_t **ret, struct err *err) must_check;
