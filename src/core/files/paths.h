/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in a sandbox, as clients give them. */
#pragma once

#include "base/err.h"
#include "wire/agent.h"

/*
 * Brings an absolute path into its plain form: no empty parts, no ".", no slash at the end. A path
 * that is not absolute, too long, or has "..", is refused: what it names must be plain to see.
 */
int paths_clean(const char *text, char path[AGENT_PATH_MAX], struct err *err) must_check;

/* The same for the name of an entry in an archive: relative; "" for the root itself. */
int paths_clean_entry(const char *text, char name[AGENT_PATH_MAX], struct err *err) must_check;
