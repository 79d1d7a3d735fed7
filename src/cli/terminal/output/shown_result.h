/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an execution shows while it runs: text is printed, images are saved where the user wants them, and at the end
 * comes what went wrong and what was written. For run-code, repl and execution.
 */
#pragma once

#include "cli/terminal/output/output_stream.h"

struct shown_result {
	const char *save;   /* the directory for images; NULL: their text is printed */
	const char *prefix; /* of the names of images, before their number */
	bool keeps_files;   /* a file that is there is left alone: the image takes another number */
	bool hides_value;   /* the value is not printed as JSON; its text is shown anyway */
	unsigned count;
	bool has_shown; /* what came last was shown: the result is the same again */
};

/* The `take` of an output_stream: arg is a shown_result. */
bool shown_result_take(void *arg, const char *name, const json_t *data);

/* To standard error: the error and the artifacts of an execution that is over. */
void shown_result_report(const json_t *execution);

/* What a command ends with that ran it: 0, 1, or 124 after a timeout. */
int shown_result_exit_code(const json_t *execution);
