/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .env of a part of an app. Above a line that a launch puts there it is its owner's, below it the launch's. The owner
 * writes at two places, in the project and in the copy that runs, and so may the app: what anybody has put into the copy
 * since the launch before is kept, wherever it stands there. What the project says counts for all else.
 *
 * What was put there is known by comparing with the text that the launch before would have written by itself.
 */
#pragma once

#include <jansson.h>

struct env_file {
	const char
		*project; /* as the project has it; of a sandbox without one the copy; "": none */
	const char *copy; /* as it is where the app runs; "": none */
	const char *made; /* what the launch before made of the project alone; NULL: unknown */
	const json_t *given; /* variables that the request names, or NULL */
	/* Hears lines for people of what is kept or changed: names without values, which may be secrets. */
	void (*told)(void *arg, const char *line);
	void *arg;
};

/* The owner's part: that of the project, with what was put into the copy. A new text. */
char *env_file_own(const struct env_file *file);

/*
 * The owner's part with the launch's variables below: a new text. A variable that is in both is the owner's: its value is
 * put into `env`.
 */
char *env_file_join(const struct env_file *file, const char *own, json_t *env);

/* What is to be `made` for the next launch: the project's part and the launch's variables before they were joined. */
char *env_file_made(const struct env_file *file, const char *own, const json_t *env);

/* Tells which variables of the copy get another value by a new text, or go. */
void env_file_tell_changes(const struct env_file *file, const char *text);

/* The value of a variable, as it is written there; a new text, or NULL. The last one counts. */
char *env_file_value(const char *text, const char *name);
