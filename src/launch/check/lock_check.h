/* SPDX-License-Identifier: Apache-2.0 */
/* Whether lock files of Python have what the app asks for. They are not understood: names are looked for. */
#pragma once

#include "launch/app/app_part.h"
#include "launch/app/file_set.h"

#define LOCK_CHECK_NAME_MAX 128 /* with NUL */

/*
 * The first package that pyproject.toml or Pipfile names and the lock file of a part (uv.lock, poetry.lock, Pipfile.lock)
 * has not; false if there is none.
 */
bool lock_check_missing(const struct file_set *set, const struct app_part *part,
	char ret_name[LOCK_CHECK_NAME_MAX]);
