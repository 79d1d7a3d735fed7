/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dockerfile.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE_MAX	128
#define EXPANSION_DEPTH 8 /* of ${A:-${B:-...}} */

static int refuse(struct err *err, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_dockerfile", NULL, "%s", what);
}

/* --- instructions --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* One line of the text, without the spaces around it. */
struct line {
	const char *start;
	size_t len;
};

static struct line next_line(const char **at)
{
	size_t len = strcspn(*at, "\n");
	struct line line = {*at, len};

	*at += len + ((*at)[len] == '\n');
	while (line.len > 0 && is_blank(line.start[0])) {
		line.start++;
		line.len--;
	}
	while (line.len > 0 && is_blank(line.start[line.len - 1]))
		line.len--;
	return line;
}

/* "# escape=`" at the top would change what a backslash means. */
static int check_directive(const struct line *line, struct err *err)
{
	char text[64];
	char value;

	snprintf(text, sizeof(text), "%.*s", (int)(line->len < 60 ? line->len : 60), line->start);
	if (sscanf(text, "# escape = %c", &value) != 1 || value == '\\')
		return 0;
	return refuse(err, "an escape character other than \\ is not supported");
}

static bool opens_here_document(const char *text)
{
	for (const char *at = strstr(text, "<<"); at; at = strstr(at + 2, "<<")) {
		const char *word = at + 2 + (at[2] == '-');

		if (at != text && !isspace((unsigned char)at[-1]))
			continue;
		if (*word == '"' || *word == '\'')
			word++;
		if (isalpha((unsigned char)*word) || *word == '_')
			return true;
	}
	return false;
}

/* Takes one whole instruction apart: its name, and the rest. */
static int add_instruction(
	struct dockerfile *file, unsigned line, struct buf *whole, struct err *err)
{
	struct dockerfile_instruction *one = &file->list[file->count];
	auto_free char *text = NULL;
	size_t len;

	if (whole->failed)
		return refuse(err, "the instruction is too long");
	text = buf_take_str(whole);
	len = strcspn(text, " \t");
	if (file->count == DOCKERFILE_INSTRUCTIONS_MAX)
		return refuse(err, "there are too many instructions");
	if (len > DOCKERFILE_NAME_MAX)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile", NULL,
			"%.40s is no instruction", text);
	*one = (struct dockerfile_instruction){.line = line};
	for (size_t i = 0; i < len; i++)
		one->name[i] = (char)toupper((unsigned char)text[i]);
	one->text = mem_strdup(text + len + strspn(text + len, " \t"));
	file->count++;
	if (opens_here_document(one->text) &&
		(strcmp(one->name, "RUN") == 0 || strcmp(one->name, "COPY") == 0 ||
			strcmp(one->name, "ADD") == 0))
		return err_explain(err, ERR_INVALID, "invalid_dockerfile",
			"write the lines to a file and COPY it, or join them with && and \\",
			"here-documents (<<) are not supported");
	return 0;
}

/* *line is where the instruction begins that is read now. */
static int split(const char *text, struct dockerfile *file, unsigned *line, struct err *err)
{
	struct buf whole = BUF_INIT(DOCKERFILE_WORD_MAX);
	bool is_top = true, is_open = false;
	int r = 0;

	for (unsigned number = 1; *text && r == 0; number++) {
		struct line one = next_line(&text);

		*line = is_open ? *line : number;
		/* Between continued lines both are skipped too. */
		if (one.len == 0 || one.start[0] == '#') {
			if (one.len > 0 && is_top)
				r = check_directive(&one, err);
			continue;
		}
		is_top = false;
		is_open = one.start[one.len - 1] == '\\';
		buf_append(&whole, one.start, one.len - is_open);
		if (!is_open)
			r = add_instruction(file, *line, &whole, err);
	}
	if (r == 0 && is_open)
		r = add_instruction(file, *line, &whole, err);
	buf_fini(&whole);
	return r;
}

int dockerfile_split(const char *text, struct dockerfile *ret_file, struct err *err)
{
	struct dockerfile file = {0};
	unsigned line = 1;
	int r;

	if (strlen(text) > DOCKERFILE_MAX)
		return err_explain(err, ERR_TOO_LARGE, "dockerfile_too_large", NULL,
			"a Dockerfile has at most %u bytes", DOCKERFILE_MAX);
	file.list = mem_new(DOCKERFILE_INSTRUCTIONS_MAX * sizeof(*file.list));
	r = split(text, &file, &line, err);
	if (r < 0) {
		err_prefix(err, "line %u", line);
		dockerfile_fini(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

void dockerfile_fini(struct dockerfile *file)
{
	for (size_t i = 0; i < file->count; i++)
		free(file->list[i].text);
	free(file->list);
	*file = (struct dockerfile){0};
}

/* --- words --- */

struct expansion {
	const struct dockerfile_variables *variables;
	struct buf *word;
	struct err *err;
	unsigned depth;
};

static int expand_until(struct expansion *expansion, const char **at, const char *ends);

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *find(const struct expansion *expansion, const char *name)
{
	const struct dockerfile_variables *variables = expansion->variables;

	return variables ? variables->find(variables->arg, name) : NULL;
}

static int take_name(struct expansion *expansion, const char **at, char *name)
{
	size_t len = 0;

	while (is_name((*at)[len]))
		len++;
	if (len == 0 || len > VARIABLE_MAX)
		return refuse(expansion->err, "after $ comes the name of a variable");
	memcpy(name, *at, len);
	name[len] = '\0';
	*at += len;
	return 0;
}

/* The rest of "${": NAME}, NAME:-word} or NAME:+word}. */
static int expand_braced(struct expansion *expansion, const char **at)
{
	struct buf other = BUF_INIT(DOCKERFILE_WORD_MAX), *word = expansion->word;
	char name[VARIABLE_MAX + 1], sign = '\0';
	const char *value;
	int r = take_name(expansion, at, name);

	if (r < 0)
		return r;
	if ((*at)[0] == ':' && ((*at)[1] == '-' || (*at)[1] == '+')) {
		sign = (*at)[1];
		*at += 2;
		if (++expansion->depth > EXPANSION_DEPTH)
			return refuse(expansion->err, "variables are nested too deeply");
		expansion->word = &other;
		r = expand_until(expansion, at, "}");
		expansion->word = word;
		expansion->depth--;
	}
	value = find(expansion, name);
	if (r == 0 && **at != '}')
		r = refuse(expansion->err,
			"only ${NAME}, ${NAME:-word} and ${NAME:+word} are supported");
	if (r == 0) {
		bool is_set = value && *value;

		(*at)++;
		if (sign == '\0' || (sign == '-' && is_set))
			buf_append_str(word, value ? value : "");
		else if ((sign == '-') != is_set)
			buf_append(word, other.data, other.len);
		word->failed |= other.failed;
	}
	buf_fini(&other);
	return r;
}

static int expand_variable(struct expansion *expansion, const char **at)
{
	char name[VARIABLE_MAX + 1];
	const char *value;
	int r;

	(*at)++;
	if (**at == '{') {
		(*at)++;
		return expand_braced(expansion, at);
	}
	if (!is_name(**at)) {
		buf_append(expansion->word, "$", 1);
		return 0;
	}
	r = take_name(expansion, at, name);
	if (r < 0)
		return r;
	value = find(expansion, name);
	buf_append_str(expansion->word, value ? value : "");
	return 0;
}

static int expand_single(struct expansion *expansion, const char **at)
{
	size_t len = strcspn(++*at, "'");

	buf_append(expansion->word, *at, len);
	*at += len;
	if (**at != '\'')
		return refuse(expansion->err, "a ' is not closed");
	(*at)++;
	return 0;
}

static int expand_double(struct expansion *expansion, const char **at)
{
	(*at)++;
	while (**at && **at != '"') {
		if (**at == '$') {
			int r = expand_variable(expansion, at);

			if (r < 0)
				return r;
			continue;
		}
		/* Before others a backslash stands for itself. */
		if (**at == '\\' && (*at)[1] && strchr("\"\\$", (*at)[1]))
			(*at)++;
		buf_append(expansion->word, (*at)++, 1);
	}
	if (**at != '"')
		return refuse(expansion->err, "a \" is not closed");
	(*at)++;
	return 0;
}

/* Appends up to one of the characters of ends, outside of quotes, or to the end. */
static int expand_until(struct expansion *expansion, const char **at, const char *ends)
{
	int r = 0;

	while (r == 0 && **at && !strchr(ends, **at)) {
		switch (**at) {
		case '$':
			r = expand_variable(expansion, at);
			break;
		case '\'':
			r = expand_single(expansion, at);
			break;
		case '"':
			r = expand_double(expansion, at);
			break;
		case '\\':
			*at += (*at)[1] != '\0';
			__attribute__((fallthrough));
		default:
			buf_append(expansion->word, (*at)++, 1);
		}
	}
	return r;
}

/* One word as a text; at stands after it. */
static int take_word(const char **at, const struct dockerfile_variables *variables,
	const char *ends, char **ret_word, struct err *err)
{
	struct buf word = BUF_INIT(DOCKERFILE_WORD_MAX);
	struct expansion expansion = {.variables = variables, .word = &word, .err = err};
	int r = expand_until(&expansion, at, ends);

	if (r == 0 && word.failed)
		r = refuse(err, "a word is too long");
	if (r == 0)
		*ret_word = buf_take_str(&word);
	buf_fini(&word);
	return r;
}

int dockerfile_expand(const char *text, const struct dockerfile_variables *variables,
	char **ret_text, struct err *err)
{
	return take_word(&text, variables, "", ret_text, err);
}

int dockerfile_words(const char *text, const struct dockerfile_variables *variables,
	json_t **ret_words, struct err *err)
{
	json_t *words = json_array();
	size_t bytes = 0;
	int r = 0;

	for (text += strspn(text, " \t"); r == 0 && *text; text += strspn(text, " \t")) {
		auto_free char *word = NULL;

		r = take_word(&text, variables, " \t", &word, err);
		if (r == 0 && ((bytes += strlen(word)) > DOCKERFILE_MAX ||
				      json_array_size(words) == DOCKERFILE_WORDS_MAX))
			r = refuse(err, "there are too many words");
		if (r == 0 && json_array_append_new(words, json_string(word)) < 0)
			r = refuse(err, "the text is not UTF-8");
	}
	if (r < 0) {
		json_decref(words);
		return r;
	}
	*ret_words = words;
	return 0;
}
