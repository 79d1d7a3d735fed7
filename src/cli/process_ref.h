/* SPDX-License-Identifier: Apache-2.0 */
/* A process of a sandbox as people name it: the sandbox, and "p7" or its pid inside. */
#pragma once

#include "base/err.h"
#include "cli/remote/client.h"
#include "cli/remote/resolve.h"

#include <jansson.h>
#include <stdbool.h>

#define PROCESS_REF_MAX 20

struct process_ref {
	char sandbox[RESOLVE_ID_LEN + 1];
	const char *given; /* as the person named that sandbox; NULL: by its id. Borrowed */
	char process[PROCESS_REF_MAX + 1];
};

/* Letters and digits only: it becomes part of a path and is printed for other commands to read. */
bool process_ref_is_name(const char *text);

/* The sandbox alone. Asks the daemon only if its id is not whole. */
int process_ref_in(struct client *client, const char *sandbox, struct process_ref *ret,
	struct err *err) must_check;

int process_ref_find(struct client *client, const char *sandbox, const char *process,
	struct process_ref *ret, struct err *err) must_check;

/* "/v1/sandboxes/<id>/processes/<process><rest>"; the caller frees it. */
char *process_ref_path(const struct process_ref *ref, const char *rest);

/* Makes a request about the process; *ret may be NULL. A document {"process": {...}} is unwrapped. */
int process_ref_ask(struct client *client, const struct process_ref *ref, const char *method,
	const char *rest, const json_t *body, json_t **ret, struct err *err) must_check;

/* Takes the name out of a process document. */
int process_ref_name(const json_t *process, struct process_ref *ret, struct err *err) must_check;

/* Ends it with all that it started, without a word if that fails. */
void process_ref_kill(struct client *client, const struct process_ref *ref);

/* Says on standard error that it goes on, and which command leads back to it. */
void process_ref_tell(
	const struct client *client, const struct process_ref *ref, const char *command);
