/* SPDX-License-Identifier: Apache-2.0 */
/* An execution as a command: the interpreter with its runner, and what it is told. */
#pragma once

#include "core/execution/execution_spec.h"
#include "core/execution/language.h"
#include "core/process/command.h"
#include "model/work/context_record.h"

struct execution_request {
	struct command command;
	char *event; /* owned, as the next */
	char *title;
	struct buf input;
	const char *argv[LANGUAGE_PROGRAM_MAX + 8 + 3 * 2 * EXECUTION_FILES_MAX];
};

/* ERR_INVALID names the field. The caller ends it, also after a failure. */
int execution_request_make(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record, struct execution_request *ret_request,
	struct err *err) must_check;

/* The same for the interpreter of a context, which then waits for requests on standard input. */
int execution_request_make_context(struct sandbox *sandbox, const struct context_record *context,
	struct execution_request *ret_request, struct err *err) must_check;

/* What the interpreter of a context is sent for an execution. ERR_INVALID names the field. */
int execution_request_frame(struct sandbox *sandbox, const struct execution_spec *spec,
	const struct execution_record *record, struct buf *request, struct err *err) must_check;

/* The runner alone, which loads modules (NULL: none) and waits for its request on standard input (core/execution/runtime_pool.h). */
int execution_request_wait(struct sandbox *sandbox, const struct language *language,
	const json_t *imports, struct execution_request *ret_request, struct err *err) must_check;
void execution_request_fini(struct execution_request *request);
