/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads text as a shell would, word by word, far enough to tell which programs it names with which arguments: quotes,
 * substitutions, pipes, redirections, comments and here-documents. Nothing is expanded. It looks at each byte once, and
 * any text is fine: what no shell would take is read as well as can be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum shell_sign {
	SHELL_END,	  /* of a command: ; && || or the end of a line */
	SHELL_BACKGROUND, /* & */
	SHELL_PIPE,	  /* | |& */
	SHELL_OPEN,	  /* ( or {: commands inside of this one */
	SHELL_SUBSTITUTE, /* $( <( or `, at the beginning of a word: its output is a word or file of this command */
	SHELL_INSIDE, /* the same within a word */
	SHELL_CLOSE,  /* the end of one of the last three */
};

struct shell_events {
	/* Without its quotes; the target of a redirection too. Borrowed, and NUL-terminated. */
	void (*word)(void *arg, const char *word, size_t len, bool is_redirect);
	void (*sign)(void *arg, enum shell_sign sign);
	/* What the command that was read last is given as its standard input. Borrowed, not NUL-terminated. */
	void (*document)(void *arg, const char *text, size_t len);
};

void shell_scan(const char *text, size_t len, const struct shell_events *events, void *arg);
