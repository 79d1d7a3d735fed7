/* SPDX-License-Identifier: Apache-2.0 */
/* How the packages of an app are installed: one row for each program that does it. */
#pragma once

struct installer {
	const char *manager;
	const char *place; /* where packages go */
	const char *line;  /* for the shell, in the directory of the part */
	const char *input; /* on its standard input; NULL: none */
};

/* The environment of a part that is written in Python, made if it is not there, and its programs. */
#define INSTALLER_VENV                                                                             \
	"[ -x .venv/bin/python3 ] || python3 -m venv --system-site-packages --without-pip .venv; " \
	"PATH=\"$PWD/.venv/bin:$PATH\"; export PATH PIP_DISABLE_PIP_VERSION_CHECK=1; "

/* The row of a package manager; NULL if there is none. */
const struct installer *installer_find(const char *manager);
