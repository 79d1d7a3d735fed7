/* SPDX-License-Identifier: Apache-2.0 */
/* What every command of a sandbox finds around it, whoever starts it. */
#pragma once

#include "core/sandbox.h"

#define ENVIRONMENT_UID 1000 /* the user `sandbox` */
#define ENVIRONMENT_CWD "/workspace"

/* Variables "NAME=value", NULL-terminated: the usual ones, then the sandbox's, then own (may be NULL). */
char **environment_make(struct sandbox *sandbox, const json_t *own, uint32_t uid, bool is_pty);
void environment_free(char **entries);
