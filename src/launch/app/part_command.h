/* SPDX-License-Identifier: Apache-2.0 */
/* How a part of an app is started, by its framework, its entry file and its scripts. */
#pragma once

#include "launch/app/app_part.h"
#include "launch/app/file_set.h"

#include <jansson.h>

/*
 * Chooses the command of a part whose framework and entry are known; it is empty if there is none. In commands places
 * such as {port} are left for later (framework.h). A script of package.json goes before an entry file that nobody has named.
 * One that is a line of the framework's own program is run without npm, which takes longer to start than that often does,
 * and would stay in memory beside it: part.script names it then, and whoever starts it says what npm would (stage_start.c).
 */
void part_command_choose_node(struct app_part *part, const struct file_set *set,
	const json_t *package, bool is_entry_said);
void part_command_choose_python(struct app_part *part, const struct file_set *set);

/* The command of a part as it is run, with the path that its preview is at, and its config. */
void part_command_line(
	const struct app_part *part, const char *base, char command[APP_COMMAND_MAX]);

/* Replaces each place of a text; what is put in is not looked at again. */
void part_command_fill(char command[APP_COMMAND_MAX], const char *what, const char *with);

/* The call by which an entry file makes the app of a framework; NULL: there is none that is known. */
const char *part_command_call(const struct framework *framework);

/* A script of package.json, which may be NULL; NULL if it is not there. */
const char *part_command_script(const json_t *package, const char *name);
