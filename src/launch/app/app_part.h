/* SPDX-License-Identifier: Apache-2.0 */
/* A part of an app that is started: its backend, or its frontend. detection.h finds them. */
#pragma once

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
	const char *script; /* of package.json, which is run as npm would, without it; NULL: none */
	const char *config; /* the one to start it with, in its directory; NULL: its own */
	bool is_command_said; /* by sandlot.json or the request */
	bool has_own_port;    /* its code names the port */
	bool is_port_told;    /* its command does */
	bool is_base_told;    /* and the path of its preview */
};
