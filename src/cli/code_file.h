/* SPDX-License-Identifier: Apache-2.0 */
/* A file of code, for commands that send one. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

#define CODE_FILE_MAX (1u << 20)

/* What it is written in, by its name; NULL if that does not tell. */
const char *code_file_language(const char *file);

/* A file, or standard input for "-". */
int code_file_read(const char *file, struct buf *code, struct err *err) must_check;

/* Puts a file of this computer, "FILE" or "FILE:PATH" in the sandbox, into the member `files` or `files_base64`. */
int code_file_add_file(json_t *body, const char *text, struct err *err) must_check;

/* Sets the member `event` from a text of JSON, or from a file of it, "@FILE"; "@-" is standard input. */
int code_file_add_event(json_t *body, const char *text, struct err *err) must_check;
