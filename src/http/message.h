/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/1.1 message on its way through the proxy: its head is taken apart, its body is passed on.
 *
 * http_parser does the parsing. Before it, the whole head must have come and is checked byte by byte, so that
 * what two parsers might read differently (folded lines, bare line feeds, control characters, a space before the
 * colon, two lengths) never reaches the second one.
 */
#pragma once

#include "base/buf.h"

#include <http_parser.h>

#define MESSAGE_HEAD_MAX   (32u * 1024)
#define MESSAGE_FIELDS_MAX 128

/* A part of the head. Values and the target are also terminated. */
struct slice {
	const char *at;
	size_t len;
};

struct message_field {
	struct slice name, value;
};

struct message {
	http_parser parser;
	bool has_head, is_complete;
	bool has_no_body; /* set by the caller for the answer to a HEAD */

	size_t checked; /* bytes in front of the head whose lines were found good, until it is all there */
	char *head; /* what the slices point into */
	struct slice target;
	struct slice reason;
	struct message_field *fields;
	size_t field_count;

	struct buf *out;     /* where the body goes */
	bool in_chunks;	     /* and how */
	struct buf trailers; /* fields behind a body in chunks */
	bool in_trailer_value;
};

void message_begin(struct message *message, enum http_parser_type type);

/* Lets go of what it holds; how it was framed is still known. */
void message_fini(struct message *message);

/*
 * Takes bytes of the message, at first those of its head: nothing is taken before the head is all there, and
 * then what was there the last time must be there again, with more behind it. After the head it stops, so that the
 * caller can say where the body goes, and it stops at the end of the message. How many bytes were taken, or -EPROTO
 * (-EMSGSIZE for a head that is too long).
 */
ssize_t message_feed(struct message *message, const uint8_t *data, size_t len) must_check;

/* No more bytes come; whether that is a proper end. */
bool message_end(struct message *message);

/* The value of a field, at NULL if there is none; the last one if there are several. */
struct slice message_get(const struct message *message, const char *name);

/* How many fields have that name. */
size_t message_count(const struct message *message, const char *name);

/* Whether one of the fields of that name has a word in its comma-separated list, in any case. */
bool message_lists(const struct message *message, const char *name, const char *word);

/* How it is framed. */
bool message_is_chunked(const struct message *message);
bool message_has_length(const struct message *message);

/*
 * Whether it names another transfer coding than chunked, or several times one: the parser takes a list that ends with
 * chunked, and the word chunked in any of several fields; others may not.
 */
bool message_has_other_coding(const struct message *message);

bool slice_is(struct slice slice, const char *text);	  /* exactly */
bool slice_is_like(struct slice slice, const char *text); /* in any case */
bool slice_begins(struct slice slice, const char *text);
/* Whether a comma-separated list has a word, in any case. */
bool slice_has_word(struct slice list, const char *word);
