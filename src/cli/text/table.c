/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/table.h"

#include "base/clock.h"
#include "base/format.h"
#include "cli/text/human.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#define GROW_BY 64

void table_fini(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = TABLE_INIT(table->columns);
}

unsigned table_control(const char *at, size_t *ret_len)
{
	const unsigned char *c = (const unsigned char *)at;
	unsigned code = 0;

	*ret_len = 1;
	if ((c[0] && c[0] < 0x20) || c[0] == 0x7f)
		return c[0];
	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
		*ret_len = 2;
		return c[1];
	}
	if (c[0] == 0xe2 && (c[1] == 0x80 || c[1] == 0x81) && c[2] >= 0x80 && c[2] < 0xc0) {
		*ret_len = 3;
		code = 0x2000u + (c[1] & 0x3fu) * 0x40 + (c[2] & 0x3fu);
	}
	return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
			       code == 0x200e || code == 0x200f
		       ? code
		       : 0;
}

void table_tame(char *text)
{
	size_t len;

	for (char *at = text; *at; at += len) {
		if (table_control(at, &len))
			memset(at, '?', len);
	}
}

void table_add(struct table *table, const char *fmt, ...)
{
	char *cell = NULL;
	va_list ap;

	if (table->count % GROW_BY == 0) {
		char **cells = reallocarray(table->cells, table->count + GROW_BY, sizeof(*cells));

		if (!cells)
			abort();
		table->cells = cells;
	}
	va_start(ap, fmt);
	if (vasprintf(&cell, fmt, ap) < 0)
		abort();
	va_end(ap);
	if (!cell[0]) {
		free(cell);
		cell = mem_strdup("-");
	}
	table_tame(cell);
	table->cells[table->count++] = cell;
}

void table_add_number(struct table *table, const json_t *number)
{
	if (json_is_integer(number))
		table_add(table, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	else
		table_add(table, "%s", "");
}

void table_add_size(struct table *table, const json_t *size)
{
	char text[FORMAT_SIZE_LEN];

	if (json_is_integer(size)) {
		format_size((uint64_t)json_integer_value(size), text);
		table_add(table, "%s", text);
	} else {
		table_add(table, "%s", json_is_string(size) ? json_string_value(size) : "");
	}
}

void table_add_age(struct table *table, const char *time)
{
	char age[HUMAN_LEN] = "";
	int64_t wall_ms;

	if (human_parse_time(time, &wall_ms) == 0)
		human_age(clock_wall_ms() - wall_ms, age);
	table_add(table, "%s", age);
}

void table_add_row(struct table *table, const char *const *cells)
{
	for (size_t i = 0; i < table->columns; i++)
		table_add(table, "%s", cells[i]);
}

/* Code points, which is close enough for what stands in these tables. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static size_t column_width(const struct table *table, size_t column)
{
	size_t width = 0;

	for (size_t i = column; i < table->count; i += table->columns) {
		size_t w = width_of(table->cells[i]);

		if (w > width)
			width = w;
	}
	return width;
}

void table_print(const struct table *table, FILE *out)
{
	size_t *widths = mem_new(table->columns * sizeof(*widths));

	assert(table->count % table->columns == 0);
	for (size_t c = 0; c < table->columns; c++)
		widths[c] = column_width(table, c);
	for (size_t i = 0; i < table->count; i++) {
		size_t c = i % table->columns;

		fputs(table->cells[i], out);
		if (c + 1 == table->columns)
			fputc('\n', out);
		else
			fprintf(out, "%*s", (int)(widths[c] - width_of(table->cells[i]) + 2), "");
	}
	free(widths);
}
