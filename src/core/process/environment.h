/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of every command of a sandbox. */
#pragma once

#include "core/engine/sandbox_handle.h"
#include "core/process/process.h"

#include <stdint.h>

#define ENVIRONMENT_UID	    1000  /* the user `sandbox` */
#define ENVIRONMENT_UID_MAX 65534 /* the highest of a sandbox */
#define ENVIRONMENT_CWD	    "/workspace"

/* Where packages are that a sandbox has beside its template (core/dependency/dependencies.h). */
#define DEPENDENCY_PYTHON DRIVER_LAYER_PLACE "/python"
#define DEPENDENCY_NODE	  DRIVER_LAYER_PLACE "/node"

/*
 * Who runs a command that names nobody, and where one runs that names no place, which the record keeps: the usual, or
 * as its image says.
 */
uint32_t environment_uid(const struct sandbox_record *record);
/* The group of a user whom a command names by a number, or who runs those that name nobody. */
uint32_t environment_gid(const struct sandbox_record *record, uint32_t uid);
/* And the groups that the image's own files put this user into besides. */
struct process_groups environment_groups(const struct sandbox_record *record, uint32_t uid);
const char *environment_cwd(const struct sandbox_record *record);

/* Whether what is inside comes from an image, so that nothing is known of it. */
bool environment_is_foreign(const struct sandbox_record *record);

/* Variables "NAME=value", NULL-terminated: the usual ones, then the sandbox's, then own (may be NULL). */
char **environment_make(struct sandbox *sandbox, const json_t *own, uint32_t uid, bool is_pty);
void environment_free(char **entries);
