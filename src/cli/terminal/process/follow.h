/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the kept output of a process, or the log of a job: stdout to stdout, stderr to stderr, byte for byte, and
 * nothing twice or not at all when the connection is lost on the way.
 */
#pragma once

#include "base/err.h"
#include "cli/process_ref.h"
#include "cli/remote/client.h"

#include <jansson.h>

struct follow {
	const struct process_ref *process; /* or */
	const char *job;		   /* the id of one */
	uint64_t from;			   /* the first byte wanted */
	bool is_once;			   /* only what is there now */
	bool is_lost;		   /* goes on with a stream whose connection was lost just now */
	bool with_stdin;	   /* and passes standard input on */
	struct line_writer *lines; /* NULL: byte for byte */
	uint64_t *ret_next;	   /* may be NULL: where to go on later */
};

/* *ret is the data of the last event, or NULL if the process or job goes on (is_once). */
int follow_run(struct client *client, const struct follow *follow, json_t **ret, struct err *err)
	must_check;
