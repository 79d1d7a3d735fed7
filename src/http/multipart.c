/* SPDX-License-Identifier: Apache-2.0 */
#include "http/multipart.h"

#include "base/format.h"

#include <string.h>
#include <strings.h>

#define WINDOW	    (64u << 10)
#define HEADERS_MAX (8u << 10)

enum state {
	PREAMBLE, /* before the first boundary */
	AFTER,	  /* behind a boundary: a line's end, or two dashes */
	HEADERS,
	CONTENT,
	OVER, /* behind the last boundary, where anything may follow */
};

struct multipart {
	const struct multipart_events *events;
	void *arg;
	enum state state;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* a line's end, two dashes, the boundary */
	size_t delimiter_len;
	struct multipart_part part;
	size_t len;
	char window[WINDOW]; /* what was not understood yet */
};

static int malformed(const char *what, struct err *err)
{
	return err_explain(err, ERR_INVALID, "invalid_form", NULL, "the form %s", what);
}

/*
 * Finds a parameter of a header, such as filename="a b.txt": true and its value, without quotes. A quote inside is
 * written with a backslash before it; other backslashes are the sender's own.
 */
static bool find_parameter(const char *header, const char *name, char *value, size_t size)
{
	size_t name_len = strlen(name);
	const char *at = header;

	while ((at = strchr(at, ';'))) {
		size_t len = 0;
		bool is_quoted, is_it;

		at += 1 + strspn(at + 1, " \t");
		is_it = strncasecmp(at, name, name_len) == 0 && at[name_len] == '=';
		at += strcspn(at, "=;");
		if (*at != '=')
			continue;
		at++;
		is_quoted = *at == '"';
		at += is_quoted;
		while (*at && (is_quoted ? *at != '"' : !strchr("; \t", *at))) {
			if (is_quoted && at[0] == '\\' && (at[1] == '"' || at[1] == '\\'))
				at++;
			if (len + 1 < size)
				value[len] = *at;
			len++;
			at++;
		}
		at += is_quoted && *at == '"';
		if (is_it) {
			value[len < size ? len : size - 1] = '\0';
			return len < size;
		}
	}
	return false;
}

static bool has_type(const char *content_type, const char *type)
{
	size_t len = strlen(type);

	return strncasecmp(content_type, type, len) == 0 && strchr("; \t", content_type[len]);
}

int multipart_open(const char *content_type, const struct multipart_events *events, void *arg,
	struct multipart **ret_multipart, struct err *err)
{
	char boundary[MULTIPART_BOUNDARY_MAX + 1];
	struct multipart *multipart;

	if (!content_type || !has_type(content_type, "multipart/form-data"))
		return err_explain(err, ERR_MEDIA_TYPE, NULL,
			"send a form of the type multipart/form-data",
			"the body must be multipart/form-data");
	if (!find_parameter(content_type, "boundary", boundary, sizeof(boundary)) || !boundary[0])
		return malformed("has no boundary in its type", err);
	multipart = mem_new(sizeof(*multipart));
	multipart->events = events;
	multipart->arg = arg;
	multipart->delimiter_len = format_append(
		multipart->delimiter, sizeof(multipart->delimiter), 0, "\r\n--%s", boundary);
	/* The first boundary is at the beginning of a line too. */
	memcpy(multipart->window, "\r\n", 2);
	multipart->len = 2;
	*ret_multipart = multipart;
	return 0;
}

void multipart_close(struct multipart *multipart)
{
	free(multipart);
}

void multipart_closep(struct multipart **multipart)
{
	free(*multipart);
}

static void consume(struct multipart *multipart, size_t len)
{
	multipart->len -= len;
	memmove(multipart->window, multipart->window + len, multipart->len);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* filename*=UTF-8''a%20b.txt, in place; false if it is of another kind. */
static bool decode_extended(char *value)
{
	const char *from;
	char *to = value;

	if (strncasecmp(value, "utf-8'", 6) != 0 || !(from = strchr(value + 6, '\'')))
		return false;
	for (from++; *from; to++) {
		if (from[0] == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0) {
			*to = (char)(hex_digit(from[1]) * 16 + hex_digit(from[2]));
			if (!*to)
				return false;
			from += 3;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return true;
}

static int read_disposition(struct multipart *multipart, const char *value, struct err *err)
{
	struct multipart_part *part = &multipart->part;

	value += strspn(value, " \t");
	if (!has_type(value, "form-data") ||
		!find_parameter(value, "name", part->name, sizeof(part->name)))
		return malformed("has a part without a name", err);
	if (find_parameter(value, "filename*", part->file_name, sizeof(part->file_name)) &&
		decode_extended(part->file_name))
		part->is_file = true;
	else
		part->is_file =
			find_parameter(value, "filename", part->file_name, sizeof(part->file_name));
	return 0;
}

/* The headers of a part; the text ends with an empty line, and is cut up. */
static int read_headers(struct multipart *multipart, char *text, struct err *err)
{
	static const char disposition[] = "Content-Disposition:";
	char *line, *end;
	bool has_one = false;
	int r = 0;

	multipart->part = (struct multipart_part){.is_file = false};
	for (line = text; r == 0 && *line; line = end + 2) {
		end = strstr(line, "\r\n");
		if (!end)
			return malformed("has a header without an end", err);
		*end = '\0';
		if (strncasecmp(line, disposition, sizeof(disposition) - 1) != 0)
			continue;
		if (has_one)
			return malformed("has a part with two names", err);
		has_one = true;
		r = read_disposition(multipart, line + sizeof(disposition) - 1, err);
	}
	if (r == 0 && !has_one)
		r = malformed("has a part without a name", err);
	return r < 0 ? r : multipart->events->begin(multipart->arg, &multipart->part, err);
}

/* Each step: 1 if it came further, 0 if it needs more bytes, or what a callback said below 0. */

static int step_headers(struct multipart *multipart, struct err *err)
{
	char text[HEADERS_MAX + 3];
	const char *end;
	size_t len;
	int r;

	/* With the line's end of the boundary before them, so that none at all end as well. */
	end = memmem(multipart->window, multipart->len, "\r\n\r\n", 4);
	if (!end)
		return multipart->len > HEADERS_MAX
			       ? malformed("has headers that are too long", err)
			       : 0;
	len = (size_t)(end - multipart->window) + 2;
	if (len > HEADERS_MAX || memchr(multipart->window, '\0', len))
		return malformed("has headers that are too long, or none", err);
	memcpy(text, multipart->window + 2, len - 2);
	text[len - 2] = '\0';
	consume(multipart, len + 2);
	multipart->state = CONTENT;
	r = read_headers(multipart, text, err);
	return r < 0 ? r : 1;
}

/* Up to the next boundary, or as far as none can begin. */
static int step_content(struct multipart *multipart, struct err *err)
{
	const char *found = memmem(
		multipart->window, multipart->len, multipart->delimiter, multipart->delimiter_len);
	size_t keep = multipart->delimiter_len - 1, len;
	int r = 0;

	if (found)
		len = (size_t)(found - multipart->window);
	else
		len = multipart->len > keep ? multipart->len - keep : 0;
	if (len > 0 && multipart->state == CONTENT)
		r = multipart->events->data(multipart->arg, multipart->window, len, err);
	if (r == 0 && found && multipart->state == CONTENT)
		r = multipart->events->end(multipart->arg, err);
	if (r < 0)
		return r;
	consume(multipart, len + (found ? multipart->delimiter_len : 0));
	if (found)
		multipart->state = AFTER;
	return found != NULL;
}

static int step_after(struct multipart *multipart, struct err *err)
{
	size_t blank = 0;

	while (blank < multipart->len && strchr(" \t", multipart->window[blank]) &&
		multipart->window[blank])
		blank++;
	if (multipart->len < blank + 2)
		return multipart->len > HEADERS_MAX
			       ? malformed("has a boundary without an end", err)
			       : 0;
	if (blank == 0 && memcmp(multipart->window, "--", 2) == 0) {
		multipart->state = OVER;
		return 1;
	}
	if (memcmp(multipart->window + blank, "\r\n", 2) != 0)
		return malformed("has a boundary without an end", err);
	consume(multipart, blank);
	multipart->state = HEADERS;
	return 1;
}

static int step(struct multipart *multipart, struct err *err)
{
	switch (multipart->state) {
	case PREAMBLE:
	case CONTENT:
		return step_content(multipart, err);
	case AFTER:
		return step_after(multipart, err);
	case HEADERS:
		return step_headers(multipart, err);
	case OVER:
		multipart->len = 0;
		return 0;
	}
	return 0;
}

int multipart_feed(struct multipart *multipart, const void *data, size_t len, struct err *err)
{
	const char *at = data;
	int r;

	while (len > 0) {
		size_t room = WINDOW - multipart->len, n = len < room ? len : room;

		memcpy(multipart->window + multipart->len, at, n);
		multipart->len += n;
		at += n;
		len -= n;
		while ((r = step(multipart, err)) > 0)
			;
		if (r < 0)
			return r;
	}
	return 0;
}

int multipart_finish(struct multipart *multipart, struct err *err)
{
	return multipart->state == OVER ? 0 : malformed("ends early", err);
}
