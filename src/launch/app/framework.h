/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What apps are made with: one row for each framework says how it is recognized, what part of an app it is, and how it
 * is started. In commands {port} is the port, {base} the path that its preview is at, {config} the flag for a config
 * that was made for it, {module} the entry file as Python imports it, {entry} that file, and {object} the name of the
 * app in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum app_runtime { RUNTIME_NODE, RUNTIME_PYTHON, RUNTIME_STATIC, RUNTIME_COUNT };
enum app_role { ROLE_BACKEND, ROLE_FRONTEND, ROLE_COUNT };

struct framework {
	const char *name;
	enum app_runtime runtime;
	enum app_role role;
	const char *package; /* a dependency of this name shows it; NULL: it is what is left */
	const char *command; /* NULL: `npm start` or `npm run dev`, or the entry file */
	const char *flags;   /* behind the script `dev`, if that is there */
	uint16_t port;
	bool is_hot; /* it sees changed files by itself */
};

extern const struct framework frameworks[];
extern const size_t framework_count;

/* The row of a name; NULL if there is none. */
const struct framework *framework_find(const char *name);

const char *framework_runtime_name(enum app_runtime runtime);
const char *framework_role_name(enum app_role role);
