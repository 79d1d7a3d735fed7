/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a JSON body as a table: one row a field says its type, bounds, meaning and place in
 * the struct it is decoded into. The same table is the schema in the OpenAPI document, so what is
 * documented and what is accepted cannot differ. A field that is in no row is an error.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_spec.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
	FIELD_STRING,  /* const char *, borrowed from the body; min and max are lengths in bytes */
	FIELD_INTEGER, /* int64_t */
	FIELD_NUMBER,  /* double */
	FIELD_BOOLEAN, /* enum field_boolean */
	FIELD_SIZE,    /* int64_t: bytes, as a number or a string with Ki, Mi, Gi, Ti, Pi */
	FIELD_STRING_MAP,  /* json_t *, borrowed: an object of strings; min and max count entries */
	FIELD_STRING_LIST, /* json_t *, borrowed: an array of strings */
	FIELD_PORT_LIST, /* json_t *, borrowed: an array of distinct ports (model/sandbox/sandbox_port.h) */
	FIELD_OBJECT_LIST,    /* json_t *, borrowed: an array of objects that sub describes */
	FIELD_NAME_OR_NUMBER, /* json_t *, borrowed: a string or a whole number; the row checks it */
	FIELD_JSON,	      /* json_t *, borrowed: any value, null too */
	FIELD_OBJECT,	      /* a struct of its own, described by sub */
	FIELD_LINE_OR_LIST, /* json_t *, borrowed: a string, or an array of objects that sub describes */
};

enum field_boolean { FIELD_UNSET = 0, FIELD_FALSE, FIELD_TRUE };

#define FIELD_ABSENT INT64_MIN	     /* an integer or size that was not given */
#define FIELD_NULL   (INT64_MIN + 1) /* one that was given as null, where that is allowed */

#define FIELD_REQUIRED 1u
#define FIELD_NULLABLE 2u
#define FIELD_FRACTION 4u  /* of a number: min is in hundredths */
#define FIELD_NAME     8u  /* of a string: no secret, what was given is repeated */
#define FIELD_OR_FALSE 16u /* of an object: false is taken too, and fills nothing in */

#define FIELD_LIST_MAX SPEC_STARTS_MAX /* objects in a FIELD_LINE_OR_LIST */

struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	int64_t min, max;
	unsigned flags;
	const char *doc;
	const char *const *choices; /* strings: the allowed values, NULL-terminated */
	const struct field *sub;    /* objects: their fields */
	size_t sub_count;
	/* A check beyond the bounds: NULL if fine, else what is wrong. */
	const char *(*check)(const json_t *value);
};

/* The fields of a body. */
struct fields {
	const struct field *rows;
	size_t count;
};

#define FIELDS(table) ((struct fields){(table), array_len(table)})

/*
 * Decodes object into the struct at out, whose integers and sizes must have been set to FIELD_ABSENT
 * with fields_clear. ERR_INVALID names the field.
 */
int fields_decode(const struct fields *fields, const json_t *object, void *out, struct err *err)
	must_check;
void fields_clear(const struct fields *fields, void *out);

/* What a boolean asks for. */
static inline enum choice fields_choice(enum field_boolean value)
{
	return value == FIELD_UNSET ? CHOICE_UNSET : value == FIELD_TRUE ? CHOICE_YES : CHOICE_NO;
}

/* The entries of a decoded map or list, whose field bounds their number, as plain values; borrowed.
 * How many; none for NULL. */
size_t fields_copy_map(const json_t *map, struct text_pair pairs[]);
size_t fields_copy_list(const json_t *list, const char *texts[]);

/* The JSON schema of the fields. */
json_t *fields_schema(const struct fields *fields);
