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

#include <sys/types.h>

struct http_parser;

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

enum message_kind {
	MESSAGE_REQUEST,
	MESSAGE_RESPONSE,
};

struct message {
	struct http_parser *parser; /* of message.c alone */
	enum message_kind kind;
	bool has_head, is_complete;
	bool has_no_body; /* set by the caller for the answer to a HEAD */

	size_t checked; /* bytes in front of the head whose lines were found good, until it is all there */
	/* Known with the head. */
	const char *method; /* of a request, in capitals */
	unsigned status;    /* of an answer */
	unsigned version_major, version_minor;
	bool is_chunked, has_length; /* how it is framed */
	uint64_t length;
	bool keeps_alive; /* another may follow on its connection */
	char *head;	  /* what the slices point into */
	struct slice target;
	struct slice reason;
	struct message_field *fields;
	size_t field_count;

	struct buf *out;     /* where the body goes */
	bool in_chunks;	     /* and how */
	struct buf trailers; /* fields behind a body in chunks */
	bool in_trailer_value;
};

void message_begin(struct message *message, enum message_kind kind);

/* Frees what it holds; what was known with the head is known still, but for the slices. */
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

/* Whether a request has this method. */
bool message_asks(const struct message *request, const char *method);

/* The reason that goes with a status. */
const char *message_reason(unsigned status);

/*
 * What is doubtful about where a request's body ends (http/head_rules.h), or NULL. The parser alone is less strict: it
 * takes a list of codings that ends with chunked, and the word chunked in any of several fields.
 */
const char *message_framing_fault(const struct message *request);

bool slice_is(struct slice slice, const char *text);	  /* exactly */
bool slice_is_like(struct slice slice, const char *text); /* in any case */
bool slice_begins(struct slice slice, const char *text);
/* Whether a comma-separated list has a word, in any case. */
bool slice_has_word(struct slice list, const char *word);
