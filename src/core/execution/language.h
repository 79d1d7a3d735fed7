/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The languages of executions: one row each, with a runner of the project's directory runtime/. The runner is
 * an argument of its interpreter, so nothing of it lies in the sandbox, where it could be changed or missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LANGUAGE_PROGRAM_MAX 8

struct language {
	const char *name;
	const char *program[LANGUAGE_PROGRAM_MAX]; /* interpreter and options; the runner follows */
	const char *runner;			   /* its text, */
	const char *runner_end;			   /* up to here: a NUL */
	const char *argument;			   /* of the runner; NULL: none */
	/* What comes on standard input before the first request: the rest of the runner; NULL: nothing does. */
	const char *rest, *rest_end;
	/* It gets code, path, handler and event as arguments, and its result is bytes without frames; else a
	 * request on standard input, and results are lines (runtime/python.py). */
	bool is_plain;
	bool has_contexts;
	/* What it writes to standard error before it ends itself for want of memory; NULL: nothing is known. */
	const char *last_words;
};

/* NULL if there is none of that name. */
const struct language *language_find(const char *name);

/* All names, with a NULL at the end. */
extern const char *const language_names[];
