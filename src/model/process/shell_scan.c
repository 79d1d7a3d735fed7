/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process/shell_scan.h"

#include "base/buf.h"

#include <string.h>

#define DEPTH_MAX     64 /* deeper ones are not told from what they stand in */
#define DELIMITER_MAX 64

/* What stands in what: its end, and the quote that goes on after it. */
struct level {
	char end;
	bool is_quoted, is_arithmetic;
};

struct scan {
	const char *text;
	size_t len, at;
	const struct shell_events *events;
	void *arg;
	struct buf word;
	bool has_word, is_quoted, is_redirect;
	struct level levels[DEPTH_MAX];
	unsigned depth;
	char delimiter[DELIMITER_MAX]; /* of the here-document that begins with the next line */
	bool has_document, is_delimiter, is_indented;
};

static char peek(const struct scan *scan, size_t more)
{
	return scan->at + more < scan->len ? scan->text[scan->at + more] : '\0';
}

static void put(struct scan *scan, char c)
{
	scan->has_word = true;
	buf_append(&scan->word, &c, 1);
}

static void take_delimiter(struct scan *scan, const char *word)
{
	scan->is_delimiter = false;
	scan->has_document = strlen(word) < sizeof(scan->delimiter);
	if (scan->has_document)
		strcpy(scan->delimiter, word);
}

static void end_word(struct scan *scan)
{
	if (!scan->has_word)
		return;
	buf_append(&scan->word, "", 1);
	if (scan->is_delimiter)
		take_delimiter(scan, (const char *)scan->word.data);
	else
		scan->events->word(scan->arg, (const char *)scan->word.data, scan->word.len - 1,
			scan->is_redirect);
	scan->word.len = 0;
	scan->has_word = scan->is_redirect = false;
}

static void sign(struct scan *scan, enum shell_sign sign, size_t skip)
{
	end_word(scan);
	scan->is_redirect = false;
	scan->at += skip;
	scan->events->sign(scan->arg, sign);
}

static void open_level(
	struct scan *scan, enum shell_sign how, char end, bool is_arithmetic, size_t skip)
{
	bool is_quoted = scan->is_quoted;

	sign(scan, scan->depth < DEPTH_MAX ? how : SHELL_END, skip);
	if (scan->depth < DEPTH_MAX)
		scan->levels[scan->depth++] = (struct level){end, is_quoted, is_arithmetic};
	scan->is_quoted = false;
}

static bool closes(const struct scan *scan, char c)
{
	return scan->depth > 0 && scan->levels[scan->depth - 1].end == c;
}

static void close_level(struct scan *scan)
{
	sign(scan, SHELL_CLOSE, 1);
	scan->is_quoted = scan->levels[--scan->depth].is_quoted;
	/* What is left of a word in quotes is no word of its own. */
	scan->has_word = false;
}

/* $( and `; false if there is none here. */
static bool take_substitution(struct scan *scan)
{
	enum shell_sign how = scan->word.len > 0 ? SHELL_INSIDE : SHELL_SUBSTITUTE;

	if (peek(scan, 0) == '`') {
		if (closes(scan, '`'))
			close_level(scan);
		else
			open_level(scan, how, '`', false, 1);
		return true;
	}
	if (peek(scan, 0) != '$' || peek(scan, 1) != '(')
		return false;
	open_level(scan, how, ')', peek(scan, 2) == '(', 2);
	return true;
}

static void take_single_quoted(struct scan *scan)
{
	const char *from = scan->text + scan->at + 1;
	size_t left = scan->len - scan->at - 1;
	const char *end = memchr(from, '\'', left);
	size_t size = end ? (size_t)(end - from) : left;

	scan->has_word = true;
	buf_append(&scan->word, from, size);
	scan->at += size + 2;
}

/* One character within double quotes. */
static void take_quoted(struct scan *scan)
{
	char c = peek(scan, 0);

	if (c == '"') {
		scan->is_quoted = false;
		scan->at++;
	} else if (c == '\\' && scan->at + 1 < scan->len) {
		if (!strchr("\"\\$`\n", peek(scan, 1)))
			put(scan, '\\');
		if (peek(scan, 1) != '\n')
			put(scan, peek(scan, 1));
		scan->at += 2;
	} else if (!take_substitution(scan)) {
		put(scan, c);
		scan->at++;
	}
}

/* The lines up to the one that is the delimiter. */
static void take_document(struct scan *scan)
{
	size_t from = scan->at, end = scan->len, size = strlen(scan->delimiter);

	scan->has_document = false;
	while (scan->at < scan->len) {
		const char *line = scan->text + scan->at;
		const char *newline = memchr(line, '\n', scan->len - scan->at);
		size_t len = newline ? (size_t)(newline - line) : scan->len - scan->at;
		size_t tabs = 0;

		while (scan->is_indented && tabs < len && line[tabs] == '\t')
			tabs++;
		if (len - tabs == size && memcmp(line + tabs, scan->delimiter, size) == 0) {
			end = scan->at;
			scan->at += len;
			break;
		}
		scan->at += len + (newline != NULL);
	}
	if (scan->events->document)
		scan->events->document(scan->arg, scan->text + from, end - from);
}

static void take_newline(struct scan *scan)
{
	end_word(scan);
	scan->is_delimiter = false;
	if (scan->has_document) {
		scan->at++;
		take_document(scan);
		scan->events->sign(scan->arg, SHELL_END);
		return;
	}
	sign(scan, SHELL_END, 1);
}

static bool is_number(const struct buf *word)
{
	for (size_t i = 0; i < word->len; i++) {
		if (word->data[i] < '0' || word->data[i] > '9')
			return false;
	}
	return true;
}

static void take_redirect(struct scan *scan, char c)
{
	bool is_arithmetic = scan->depth > 0 && scan->levels[scan->depth - 1].is_arithmetic;

	if (scan->has_word && is_number(&scan->word)) { /* of a descriptor: 2> */
		scan->word.len = 0;
		scan->has_word = false;
	}
	end_word(scan);
	if (peek(scan, 1) == '(') {
		open_level(scan, SHELL_SUBSTITUTE, ')', false, 2);
		return;
	}
	if (c == '<' && peek(scan, 1) == '<' && peek(scan, 2) != '<' && !is_arithmetic) {
		scan->is_indented = peek(scan, 2) == '-';
		scan->is_delimiter = true;
		scan->at += scan->is_indented ? 3 : 2;
		return;
	}
	while (scan->at < scan->len && strchr("<>&|", peek(scan, 0)) && peek(scan, 0))
		scan->at++;
	scan->is_redirect = true;
}

static void skip_comment(struct scan *scan)
{
	while (scan->at < scan->len && peek(scan, 0) != '\n')
		scan->at++;
}

/* Characters that end a word; false if it is none of them. */
static bool take_special(struct scan *scan, char c)
{
	bool is_double = peek(scan, 1) == c;

	switch (c) {
	case ' ':
	case '\t':
	case '\r':
		end_word(scan);
		scan->at++;
		return true;
	case '\n':
		take_newline(scan);
		return true;
	case ';':
		sign(scan, SHELL_END, 1);
		return true;
	case '&':
		if (peek(scan, 1) == '>') {
			end_word(scan);
			scan->at++;
			take_redirect(scan, '>');
		} else {
			sign(scan, is_double ? SHELL_END : SHELL_BACKGROUND, is_double ? 2 : 1);
		}
		return true;
	case '|':
		sign(scan, is_double ? SHELL_END : SHELL_PIPE,
			is_double || peek(scan, 1) == '&' ? 2 : 1);
		return true;
	case '<':
	case '>':
		take_redirect(scan, c);
		return true;
	case '(':
		open_level(scan, SHELL_OPEN, ')', is_double, 1);
		return true;
	case ')':
		if (closes(scan, ')'))
			close_level(scan);
		else
			sign(scan, SHELL_END, 1);
		return true;
	}
	return false;
}

static void take_plain(struct scan *scan)
{
	char c = peek(scan, 0);

	if (c == '#' && !scan->has_word) {
		skip_comment(scan);
	} else if (c == '\'') {
		take_single_quoted(scan);
	} else if (c == '"') {
		scan->has_word = scan->is_quoted = true;
		scan->at++;
	} else if (c == '\\') {
		if (peek(scan, 1) != '\n' && scan->at + 1 < scan->len)
			put(scan, peek(scan, 1));
		scan->at += 2;
	} else if (!take_substitution(scan) && !take_special(scan, c)) {
		put(scan, c);
		scan->at++;
	}
}

void shell_scan(const char *text, size_t len, const struct shell_events *events, void *arg)
{
	struct scan scan = {
		.text = text, .len = len, .events = events, .arg = arg, .word = BUF_INIT(len + 2)};

	while (scan.at < scan.len) {
		if (scan.is_quoted)
			take_quoted(&scan);
		else
			take_plain(&scan);
	}
	end_word(&scan);
	events->sign(arg, SHELL_END);
	buf_fini(&scan.word);
}
