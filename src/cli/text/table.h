/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text in columns, two spaces apart, each as wide as its widest cell.
 *
 * Cells carry what servers and tenants chose (labels, messages), so control characters are
 * replaced: a label must not be able to move the reader's cursor.
 */
#pragma once

#include "base/mem.h"

#include <jansson.h>
#include <stdio.h>

struct table {
	size_t columns;
	char **cells; /* row by row; the first row is the heading */
	size_t count;
};

#define TABLE_INIT(column_count) ((struct table){.columns = (column_count)})

void table_fini(struct table *table);

/* Cells are added from left to right; an empty one is shown as "-". */
void table_add(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A whole number; an empty cell if it is none. */
void table_add_number(struct table *table, const json_t *number);
/* A number of bytes for people; a text, as the limit "1Gi", as it is; an empty cell if it is neither. */
void table_add_size(struct table *table, const json_t *size);
/* How long ago a time of the daemon was; an empty cell if it is none. */
void table_add_age(struct table *table, const char *time);
/* A row of as many isolated commands as there are columns: the heading, say. */
void table_add_row(struct table *table, const char *const *cells);
void table_print(const struct table *table, FILE *out);

/*
 * The number of the character at `at` if it steers a terminal, and else 0: control characters (C0, DEL, C1), and those of
 * Unicode that turn the direction of text or end a line. In UTF-8; its length in bytes too.
 */
unsigned table_control(const char *at, size_t *ret_len);

/* Replaces them by '?', in place. */
void table_tame(char *text);
