/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a project as a file_set. What installing makes is left out. */
#pragma once

#include "core/project/projects.h"
#include "launch/app/file_set.h"

/* Of a project by id or name; ERR_NOT_FOUND. The caller ends the set. */
int project_set_open(struct projects *projects, const struct owner *owner, const char *project,
	struct file_set *ret_set, struct err *err) must_check;

/* Lines of "<sha256> <path>", a new text. */
char *project_set_list(const struct file_set *set);
