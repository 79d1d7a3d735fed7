/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a Dockerfile: its instructions, its words, its variables. What an instruction means is
 * the business of image/recipe.h. Comments, empty lines and lines that end with a backslash are
 * understood; here-documents and another escape character are not, and are refused with their line.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>

#define DOCKERFILE_MAX		    (512u << 10) /* bytes of the text */
#define DOCKERFILE_INSTRUCTIONS_MAX 256
#define DOCKERFILE_WORDS_MAX	    512
#define DOCKERFILE_WORD_MAX	    (64u << 10) /* bytes of an instruction, and of an expanded word */
#define DOCKERFILE_NAME_MAX	    16

struct dockerfile_instruction {
	unsigned line;			    /* where it begins, from 1 */
	char name[DOCKERFILE_NAME_MAX + 1]; /* in capitals */
	char *text;			    /* the rest, as one line */
};

struct dockerfile {
	struct dockerfile_instruction *list;
	size_t count;
};

int dockerfile_split(const char *text, struct dockerfile *ret_file, struct err *err) must_check;
void dockerfile_fini(struct dockerfile *file);

/* The value of a variable, borrowed; NULL: it has none. */
struct dockerfile_variables {
	const char *(*find)(void *arg, const char *name);
	void *arg;
};

/*
 * Splits a text at its spaces into an array of words, with quotes and backslashes taken away and
 * $NAME, ${NAME}, ${NAME:-word} and ${NAME:+word} replaced, but for what stands between single
 * quotes. What a variable holds is not split.
 */
int dockerfile_words(const char *text, const struct dockerfile_variables *variables,
	json_t **ret_words, struct err *err) must_check;

/* The same without splitting: the whole text is one word. */
int dockerfile_expand(const char *text, const struct dockerfile_variables *variables,
	char **ret_text, struct err *err) must_check;
