/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/code_input.h"

#include <stddef.h>
#include <string.h>

struct scan {
	bool is_python;
	const char *at;
	char quote;	/* of the string that it is in; 0: in none */
	bool is_long;	/* which may have several lines */
	bool is_remark; /* in a comment of several lines */
	bool continues; /* a backslash joined the line to the next */
	bool has_block; /* a line opened a block of Python */
	int depth;	/* of brackets */
	char last;	/* the last character of the line that means something */
};

static bool begins(const char *at, const char *with)
{
	return strncmp(at, with, strlen(with)) == 0;
}

static void end_line(struct scan *scan)
{
	if (scan->depth <= 0 && scan->last == ':')
		scan->has_block = true;
	scan->last = '\0';
}

static void step_string(struct scan *scan)
{
	const char thrice[] = {scan->quote, scan->quote, scan->quote, '\0'};

	if (*scan->at == '\\' && scan->at[1]) {
		scan->at++;
	} else if (*scan->at == '\n' && !scan->is_long) {
		scan->quote = '\0'; /* nobody closed it */
		end_line(scan);
	} else if (*scan->at == scan->quote) {
		bool is_thrice = scan->is_python && scan->is_long;

		if (is_thrice && !begins(scan->at, thrice))
			return;
		scan->at += is_thrice ? 2 : 0;
		scan->quote = '\0';
	}
}

static void open_string(struct scan *scan)
{
	scan->quote = *scan->at;
	scan->is_long = scan->quote == '`';
	if (scan->is_python && scan->at[1] == scan->quote && scan->at[2] == scan->quote) {
		scan->is_long = true;
		scan->at += 2;
	}
	scan->last = '"';
}

/* Moves to the end of a regular expression, whose brackets are none; a slash that divides stays one. */
static bool skip_pattern(struct scan *scan)
{
	bool in_class = false;

	if (scan->last && !strchr("(,=:[!&|?{};+-*%<>~^", scan->last))
		return false;
	for (const char *p = scan->at + 1; *p && *p != '\n'; p++) {
		if (*p == '\\' && p[1] && p[1] != '\n') {
			p++;
		} else if (*p == '/' && !in_class) {
			scan->at = p;
			scan->last = '"';
			return true;
		} else if (*p == '[' || *p == ']') {
			in_class = *p == '[';
		}
	}
	return false;
}

/* A comment of one line, without its line feed, or the beginning of a longer one. */
static bool skip_remark(struct scan *scan)
{
	if (!scan->is_python && begins(scan->at, "/*")) {
		scan->is_remark = true;
		scan->at++;
		return true;
	}
	if (scan->is_python ? *scan->at != '#' : !begins(scan->at, "//"))
		return false;
	scan->at += strcspn(scan->at, "\n") - 1;
	return true;
}

static void step_code(struct scan *scan)
{
	char c = *scan->at;

	if (c == '\n') {
		end_line(scan);
		return;
	}
	if (begins(scan->at, "\\\n")) {
		scan->continues = true;
		scan->at++;
		return;
	}
	if (strchr(" \t\r", c) || skip_remark(scan))
		return;
	scan->continues = false;
	if (strchr("\"'", c) || (c == '`' && !scan->is_python)) {
		open_string(scan);
		return;
	}
	if (c == '/' && !scan->is_python && skip_pattern(scan))
		return;
	scan->depth += strchr("([{", c) ? 1 : 0;
	scan->depth -= strchr(")]}", c) ? 1 : 0;
	scan->last = c;
}

static void step_remark(struct scan *scan)
{
	if (!begins(scan->at, "*/"))
		return;
	scan->is_remark = false;
	scan->at++;
}

/* Whether the last line has nothing but space. */
static bool ends_blank(const char *text)
{
	size_t end = strlen(text);

	if (end > 0 && text[end - 1] == '\n')
		end--;
	while (end > 0 && strchr(" \t\r", text[end - 1]))
		end--;
	return end == 0 || text[end - 1] == '\n';
}

bool code_input_is_whole(const char *language, const char *text)
{
	struct scan scan = {.is_python = strcmp(language, "python") == 0, .at = text};

	if (scan.is_python && begins(text, "%%"))
		return ends_blank(text);
	/* A shell command or a magic of one line is taken as it is. */
	if (scan.is_python && strchr("!%", text[0]))
		return true;
	for (; *scan.at; scan.at++) {
		if (scan.is_remark)
			step_remark(&scan);
		else if (scan.quote)
			step_string(&scan);
		else
			step_code(&scan);
	}
	if (scan.quote || scan.is_remark || scan.depth > 0)
		return false;
	if (ends_blank(text) || !scan.is_python)
		return true;
	return !scan.continues && !scan.has_block && text[0] != '@';
}
