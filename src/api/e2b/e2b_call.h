/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the E2B protocol. Each is a row that names what it asks of the API (http/server/request/request_redirect.h) and how the
 * answer is told in E2B's words. Three kinds of words: the control API (e2b_sandbox.c), calls into a sandbox by the Connect
 * protocol (e2b_process.c, e2b_filesystem.c), and the code interpreter (e2b_interpreter.c).
 */
#pragma once

#include "api/handlers.h"
#include "auth/secret.h"
#include "http/server/request/request_redirect.h"

#include <jansson.h>

#define E2B_DATA_PATH	 "/e2b/data/" /* where calls into a sandbox go: this, its id, and more */
#define E2B_PART_MAX	 64
#define E2B_PATH_MAX	 4096
#define E2B_ENVD_VERSION "0.6.4" /* of the protocol inside, by which clients know what is spoken */

struct e2b_call;

struct e2b_row {
	const char *method, *path; /* below /e2b; {id} and {part} are kept */
	/* Redirects the request, or answers it. */
	int (*ask)(struct request *req, struct e2b_call *call, struct err *err);
	request_retell_fn answer; /* of what the API said */
	request_event_fn event;	  /* of its events */
	const char *stream_type;
	unsigned flags;
};

#define E2B_CONNECT	1u /* an RPC: its errors have Connect's words */
#define E2B_STREAM	2u /* with E2B_CONNECT: request and answer are envelopes */
#define E2B_INTERPRETER 4u /* its errors are text */
#define E2B_CONTENT	8u /* answers with the content of a file */

/* Kept by its request. */
struct e2b_call {
	const struct e2b_row *row;
	char id[E2B_PART_MAX], part[E2B_PART_MAX]; /* of the path */
	json_t *body;				   /* an object */
	char path[E2B_PATH_MAX];		   /* a directory that is watched */
	json_t *filter;				   /* of a list: what it is to have; NULL: all */
	const char *states;			   /* of a list, "running,paused"; NULL: all */
	bool is_pty;				   /* of a process: its output is a terminal's */
	bool was_resumed;
	bool has_error; /* of an execution: it was told */
	unsigned shown; /* results that were told */
};

extern const struct e2b_row e2b_sandbox_rows[], e2b_process_rows[], e2b_filesystem_rows[],
	e2b_interpreter_rows[];
extern const size_t e2b_sandbox_count, e2b_process_count, e2b_filesystem_count,
	e2b_interpreter_count;

/* A request of the API, which the call goes on as; the body, which is taken over, may be NULL. `handle` as of a redirection. */
struct e2b_request {
	const char *method;
	json_t *body;
	route_handler handle;
	const char *accept;
};
int e2b_call_redirect(struct request *req, struct e2b_call *call, const struct e2b_request *to,
	struct err *err, const char *format, ...) must_check __attribute__((format(printf, 5, 6)));

/* A text as a part of a target; the caller frees it. */
char *e2b_call_escape(const char *text);

/* A field of the call's body: a text or NULL, a number or -1. */
const char *e2b_call_text(const struct e2b_call *call, const char *name);
json_int_t e2b_call_number(const json_t *object, const char *name);

/* The path that a text means in a sandbox: relative ones and ~ begin at its workspace. False if it is too long. */
bool e2b_call_resolve(const char *text, char path[E2B_PATH_MAX]);

/* Whether the client names root as the user of the call (Authorization: Basic). */
bool e2b_call_is_root(const struct request *req);

/* Answers with {"code", "message"} as of the control API; takes the API's error document over. */
void e2b_call_answer_error(struct request *req, int status, json_t *error);
