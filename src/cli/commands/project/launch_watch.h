/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandlot launch --watch`: edits of a directory go into the project and into the sandbox of its launch as they are made, so
 * that a development server shows them. An edit that needs more than a copy (other packages, a server that does not load
 * its files anew) has the app launched again.
 */
#pragma once

#include "cli/cli.h"
#include "cli/copy/dir_watch.h"

struct launch_watch {
	struct client *client;
	struct dir_watch *files;
	const char *dir;     /* where the files are */
	const char *project; /* the id of the project */
	json_t *launch;	     /* how the last launch went; owned, NULL: there was none */
	/* Launches again and replaces `launch`; what went wrong with the app was told. */
	int (*again)(void *arg, struct err *err);
	void *arg;
};

/* Until a signal, which is no failure. */
int launch_watch_run(struct launch_watch *watch, struct err *err) must_check;

/* Whether a change of a file of that launch needs another launch: its path, and what the launch said of itself. */
bool launch_watch_needs_launch(const json_t *launch, const char *path);
