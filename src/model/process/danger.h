/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that a person would want to hear of: those that destroy, take over, spy out or pass on. A table of rules
 * names them, with reasons.
 *
 * It is a smoke detector and no wall: whoever wants to get past it does (a variable for a name is enough), and nothing that
 * protects the host depends on it. It takes time in proportion to the text, whatever the text is.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

/* A set of rules is a number with a bit for each. */
typedef uint32_t danger_set;

/* What an owner wants to be done about such commands; the later, the stricter. */
enum danger_policy {
	DANGER_FLAG,	/* note it */
	DANGER_CONFIRM, /* run it if it is asked for a second time */
	DANGER_REFUSE,
	DANGER_POLICY_COUNT,
};

const char *danger_policy_name(enum danger_policy policy);
int danger_policy_parse(const char *name, enum danger_policy *ret_policy) must_check;

/* NULL-terminated, for choices in requests. */
extern const char *const danger_policies[];

/* Of a program with its arguments; a shell's or interpreter's own text (sh -c) is read too. */
danger_set danger_of_argv(const char *const *argv);

/* Of a text that is given to that program as its standard input: only interpreters run it. */
danger_set danger_of_input(const char *const *argv, const char *input, size_t len);

/* Of code in a language: "shell", or any other. */
danger_set danger_of_code(const char *language, const char *code);

/* Calls take for each rule of a set, in the order of the table. */
void danger_each(
	danger_set set, void (*take)(void *arg, const char *name, const char *reason), void *arg);

/* A list of names. */
json_t *danger_to_json(danger_set set);

/* "delete_root,fork_bomb" */
#define DANGER_NAMES_MAX 512
void danger_names(danger_set set, char text[DANGER_NAMES_MAX]);
