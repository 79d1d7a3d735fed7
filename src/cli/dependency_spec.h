/* SPDX-License-Identifier: Apache-2.0 */
/* The options that name packages for a sandbox (create, run, deps), and the request made of them. */
#pragma once

#include "base/err.h"
#include "cli/option.h"
#include "cli/remote/client.h"

#include <jansson.h>

struct dependency_spec {
	struct option_list python;
	struct option_list node;
	const char *requirements; /* a file */
	const char *lock;	  /* a directory */
};

/* For tables of options of structs that have one. */
#define DEPENDENCY_SPEC_OPTIONS(at)                                                                \
	{OPTION_LIST, 0, "python", "PACKAGE", "a package that pip installs; may be repeated",      \
		(at) + offsetof(struct dependency_spec, python)},                                  \
		{OPTION_LIST, 0, "node", "PACKAGE",                                                \
			"a package that npm installs; may be repeated",                            \
			(at) + offsetof(struct dependency_spec, node)},                            \
		{OPTION_TEXT, 'r', "requirements", "FILE",                                         \
			"a requirements.txt of which pip installs all",                            \
			(at) + offsetof(struct dependency_spec, requirements)},                    \
	{                                                                                          \
		OPTION_TEXT, 0, "lock", "DIR",                                                     \
			"a directory with package.json and package-lock.json, for npm ci",         \
			(at) + offsetof(struct dependency_spec, lock)                              \
	}

bool dependency_spec_is_empty(const struct dependency_spec *spec);

/* The body of POST .../dependencies; NULL if nothing is asked for. `:PATH` names files in the sandbox; without has_sandbox
 * there is none. */
int dependency_spec_body(const struct dependency_spec *spec, bool has_sandbox, json_t **ret_body,
	struct err *err) must_check;

/* Waits until the packages of a sandbox are installed; *ret_document (may be NULL) is how they stand then. ERR_UNPROCESSABLE
 * in the words of pip or npm if they are not. */
int dependency_spec_await(
	struct client *client, const char *id, json_t **ret_document, struct err *err) must_check;
