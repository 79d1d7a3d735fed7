/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an app is made of, by its files: runtimes, frameworks and services, each with why that is thought, and the parts
 * that are started. Nothing is run, and nothing that is found is trusted further than to start it in a sandbox.
 *
 * An app has at most one backend and one frontend. They are looked for at the root, then in directories whose names
 * are usual. `sandlot.json` of the app says otherwise, and a request has the last word:
 *
 *   {"frontend": {"directory", "framework", "entry", "command", "install", "port"}, "backend": {...}, "services": [names]}
 */
#pragma once

#include "launch/app/file_set.h"
#include "launch/app/framework.h"

#define APP_DIRECTORY_MAX 128 /* with NUL, as the next ones */
#define APP_ENTRY_MAX	  256
#define APP_COMMAND_MAX	  2048

struct app_part {
	const struct framework *framework;
	char dir[APP_DIRECTORY_MAX];   /* "": the root */
	char entry[APP_ENTRY_MAX];     /* in that directory; empty: none that is known */
	char command[APP_COMMAND_MAX]; /* empty: there is no way to start it */
	char install[APP_COMMAND_MAX]; /* instead of the usual; empty: the usual */
	const char *package_manager; /* npm, pnpm, yarn, bun, pip, uv, poetry, pipenv; NULL: none */
	const char *manifest, *lock; /* names of files in its directory; NULL: none */
	uint16_t port;
	const char *config;   /* the one to start it with, in its directory; NULL: its own */
	bool is_command_said; /* by sandlot.json or the request */
	bool has_own_port;    /* its code names the port */
	bool is_port_told;    /* its command does */
	bool is_base_told;    /* and the path of its preview */
};

struct detection {
	struct app_part parts[ROLE_COUNT];
	bool has_part[ROLE_COUNT];
	json_t *document; /* {"runtimes", "frameworks", "services", "parts"}: owned */
};

/* The overrides are an object as above, or NULL. ERR_INVALID for what they say that cannot be. */
int detection_make(const struct file_set *set, const json_t *overrides,
	struct detection *ret_detection, struct err *err) must_check;
void detection_fini(struct detection *detection);

/* The part whose port is the preview's; NULL if there is none. */
const struct app_part *detection_primary(const struct detection *detection);

/* The port that an entry file listens on whatever PORT says, and where it says so; 0: none. */
uint16_t detection_port_in(const char *text, enum app_runtime runtime, const char **ret_at);

/* Whether a list of Python's requirements, or the like of it, names a package. */
bool detection_names_package(const char *text, const char *package);
