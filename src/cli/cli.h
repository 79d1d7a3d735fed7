/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every command gets: the global options and, when it asks for it, the connection.
 */
#pragma once

#include "base/err.h"
#include "cli/option.h"
#include "cli/remote/client.h"
#include "cli/text/note.h"

#include <jansson.h>
#include <stdbool.h>

struct cli {
	const char *output; /* "table", "json" or NULL for the command's own choice */
	const char *url;
	const char *token;
	const char *ca_file;
	bool json; /* the same as output "json" */
	bool help;
	bool version;
	struct client *client; /* made by the first cli_connect */
};

/* The options that every command takes; offsets into struct cli. */
extern const struct option cli_options[];

void cli_fini(struct cli *cli);

bool cli_wants_json(const struct cli *cli);

/* Lends the client; the first call makes it. Nothing is sent yet. */
int cli_connect(struct cli *cli, struct client **ret, struct err *err) must_check;

/* To standard output: lines, in which nothing that a server or sandbox named steers the terminal. */
void cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* As JSON, with what steers a terminal as \u escapes; flags are jansson's. A new string. */
char *cli_dump_json(const json_t *document, size_t flags);

/* To standard output, indented, at once. */
void cli_print_json(const json_t *document);

/* An answer as JSON where that is asked for, else what a script needs of it in one line: an id. */
void cli_print_answer(const struct cli *cli, const json_t *answer, const char *line);

/* To standard error: what went wrong and what to do about it; a prefix (an id) may be NULL. */
void cli_complain(const struct err *err, const char *prefix);

/* A text of a JSON object; "" if it has none. */
const char *cli_text(const json_t *object, const char *name);

/*
 * For a file of the user's: that it could not be opened, say, with an errno. One that is missing or not allowed is no
 * failure of ours, as err_sys() would have it.
 */
int cli_file_error(int errnum, const char *what, const char *path, struct err *err);

/* To standard error: lines of a sandbox (a traceback), without our name before them, as cli_print would print them. */
void cli_tell(const char *text);

/* Writes to a descriptor that may be a pipe nobody reads any more, or be non-blocking. */
int cli_write(int fd, const void *data, size_t len, struct err *err) must_check;

/* The exit code for a failure. */
int cli_exit_code(const struct err *err);
