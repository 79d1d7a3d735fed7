/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver that the conformance suite is run against, and the daemon's side of a link to an agent,
 * as simple as it can be. A new driver is a row in subject.c.
 */
#pragma once

#include "driver/driver.h"

#define SUBJECT_PATIENCE_MS 30000 /* how long a test waits for what must happen */
#define SUBJECT_MEMORY	    (128ull << 20)
#define SUBJECT_DISK	    (16ull << 20)
#define SUBJECT_PIDS	    64

struct subject {
	const char *name;
	bool has_agent;	 /* a real agent is behind its links: commands run */
	bool has_limits; /* it bounds what a sandbox uses, and tells what that is */
	unsigned steps;	 /* of progress that a start tells */

	/* Makes what the driver needs beside the daemon (a keeper); and removes that. */
	void (*begin)(void);
	void (*finish)(void);

	/* Opens the driver, as each new daemon does; closing it ends no sandbox. */
	struct driver *(*open)(void);
	void (*close)(struct driver *driver);

	/* Puts a file into a project, as the daemon does; with DRIVER_PROJECT_FILES. */
	void (*put_project_file)(const char *project, const char *name, const char *text);
};

/* NULL if there is none of that name. */
const struct subject *subject_find(const char *name);

/* A spec of a sandbox with no network, to be changed. */
struct driver_spec subject_spec(const char *id);

/* --- an agent --- */

/* Attaches to a new link; the number of processes that the agent's hello names. */
uint32_t subject_greet(int link);

/* Starts a shell that runs a line, as root inside. */
void subject_begin(int link, uint32_t number, const char *line);
void subject_begin_as(int link, uint32_t number, uint32_t flags, const char *line);

/* Waits until the output of a process contains a text, from the beginning of what comes now. */
void subject_await_output(int link, uint32_t number, const char *text);

/* Runs a line to its end; its output (static) and exit status. */
const char *subject_run(int link, uint32_t number, const char *line, int *ret_status);

/* The link must end; frames that come before are dropped. */
void subject_expect_end(int link);
