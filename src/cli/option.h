/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line options as tables: one row an option, read by the parser, by --help and by the shell
 * completions, so that none of the three can forget one.
 *
 * A row says where its value goes: an offset into a struct of values. A command that takes another
 * one's options embeds that struct and binds the same table to it.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_END,
	OPTION_FLAG,	/* bool */
	OPTION_TEXT,	/* const char *, borrowed from argv */
	OPTION_CHOICE,	/* the same, one of `choices` */
	OPTION_LIST,	/* struct option_list */
	OPTION_NUMBER,	/* struct option_number */
	OPTION_SECONDS, /* struct option_number in ms; a bare number counts seconds */
	OPTION_LIMIT,	/* the same, or "never" */
};

struct option_list {
	const char **items;
	size_t count;
};

struct option_number {
	bool is_set;
	bool is_never; /* OPTION_LIMIT; value is 0 */
	uint64_t value;
};

struct option {
	enum option_kind kind;
	char letter; /* 0 for none */
	const char *name;
	const char *value; /* what --help calls the value; NULL for a flag */
	const char *help;
	size_t offset;
	const char *choices; /* OPTION_CHOICE: words with one space between */
	const char
		*pair; /* OPTION_FLAG: two letters that set it when they stand alone, as in "-it" */
};

/* Of commands whose requests client_mean_member() leads to a member. */
#define OPTION_MEMBER(at)                                                                          \
	{                                                                                          \
		OPTION_CHOICE, 0, "member", "ROLE", "of this member of the sandbox", at,           \
			"primary frontend backend database cache"                                  \
	}

struct option_binding {
	const struct option *options; /* up to OPTION_END */
	void *values;
};

/* No operand ends the options: they may stand anywhere before "--". */
#define OPTION_ANYWHERE (-1)

/*
 * Reads the options out of argv[0..argc) and leaves the operands in argv[0..*ret_operands), in
 * their order. After `verbatim_after` operands the next one ends the options: it and all that
 * follow are somebody else's command line. The remedy of an error is "" or which option may have been
 * meant, with a space behind it.
 */
int option_parse(const struct option_binding *bindings, size_t count, int verbatim_after, int argc,
	char **argv, int *ret_operands, struct err *err) must_check;

/* Frees the lists that parsing made. */
void option_release(const struct option_binding *bindings, size_t count);

/* Calls visit for each word of a row's choices. */
void option_each_choice(const struct option *option,
	void (*visit)(const char *word, size_t len, void *arg), void *arg);
