/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/language.h"

#include "base/mem.h"

#include <string.h>

/* runners.S */
extern const char python_start_py[], python_start_py_end[], python_made[], python_made_end[],
	javascript_js[], javascript_js_end[], shell_sh[], shell_sh_end[], java_sh[], java_sh_end[];

static const struct language table[] = {
	{.name = "python",
		.program = {"python3", "-c"},
		.runner = python_start_py,
		.runner_end = python_start_py_end,
		.rest = python_made,
		.rest_end = python_made_end,
		.has_contexts = true},
	{.name = "javascript",
		.program = {"node", "--experimental-vm-modules", "--no-warnings", "-e"},
		.runner = javascript_js,
		.runner_end = javascript_js_end,
		.last_words = "JavaScript heap out of memory",
		.has_contexts = true},
	{.name = "typescript",
		.program = {"node", "--experimental-vm-modules", "--no-warnings", "-e"},
		.runner = javascript_js,
		.runner_end = javascript_js_end,
		.last_words = "JavaScript heap out of memory",
		.argument = "typescript",
		.has_contexts = true},
	{.name = "java",
		.program = {"/bin/sh", "-c"},
		.runner = java_sh,
		.runner_end = java_sh_end,
		.is_plain = true},
	{.name = "shell",
		.program = {"/bin/sh", "-c"},
		.runner = shell_sh,
		.runner_end = shell_sh_end,
		.is_plain = true},
};

const char *const language_names[] = {"python", "javascript", "typescript", "java", "shell", NULL};

const struct language *language_find(const char *name)
{
	for (size_t i = 0; i < array_len(table); i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}
