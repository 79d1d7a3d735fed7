/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option.h"

#include "base/number.h"
#include "base/similar.h"
#include "cli/foreign_words.h"
#include "cli/text/human.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 1000000000000ull /* far above any sensible count, far below an overflow */

struct match {
	const struct option *option;
	void *values;
};

static bool find_long(const struct option_binding *bindings, size_t count, const char *name,
	size_t len, struct match *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = bindings[i].options;

		for (; o->kind != OPTION_END; o++) {
			if (strlen(o->name) != len || strncmp(o->name, name, len) != 0)
				continue;
			*ret = (struct match){o, bindings[i].values};
			return true;
		}
	}
	return false;
}

static bool find_letter(
	const struct option_binding *bindings, size_t count, char letter, struct match *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = bindings[i].options;

		for (; o->kind != OPTION_END; o++) {
			if (o->letter != letter)
				continue;
			*ret = (struct match){o, bindings[i].values};
			return true;
		}
	}
	return false;
}

struct choice_search {
	const char *text;
	bool found;
};

static void compare_choice(const char *word, size_t len, void *arg)
{
	struct choice_search *search = arg;

	if (strlen(search->text) == len && strncmp(search->text, word, len) == 0)
		search->found = true;
}

void option_each_choice(const struct option *option,
	void (*visit)(const char *word, size_t len, void *arg), void *arg)
{
	const char *at = option->choices;

	while (at && *at) {
		size_t len = strcspn(at, " ");

		visit(at, len, arg);
		at += len + (at[len] == ' ');
	}
}

static void list_add(struct option_list *list, const char *text)
{
	/* As many items as there are arguments at most: argv bounds it. */
	const char **items = reallocarray(list->items, list->count + 1, sizeof(*items));

	if (!items)
		abort();
	items[list->count] = text;
	list->items = items;
	list->count++;
}

static int store_number(
	const struct option *o, struct option_number *ret, const char *text, struct err *err)
{
	uint64_t value;
	int r;

	if (o->kind == OPTION_LIMIT && strcmp(text, "never") == 0) {
		*ret = (struct option_number){.is_set = true, .is_never = true};
		return 0;
	}
	if (o->kind == OPTION_NUMBER)
		r = number_parse(text, 0, NUMBER_MAX, &value);
	else
		r = human_parse_duration(text, &value);
	if (r < 0 && o->kind == OPTION_NUMBER)
		return err_set(
			err, ERR_INVALID, "--%s: \"%s\" is not a whole number", o->name, text);
	if (r < 0)
		return err_set(err, ERR_INVALID,
			"--%s: \"%s\" is not a duration such as 500ms, 10s, 5m, 2h or 1d%s",
			o->name, text, o->kind == OPTION_LIMIT ? ", nor \"never\"" : "");
	*ret = (struct option_number){.is_set = true, .value = value};
	return 0;
}

static int store_choice(const struct option *o, const char **ret, const char *text, struct err *err)
{
	struct choice_search search = {.text = text};

	option_each_choice(o, compare_choice, &search);
	if (!search.found)
		return err_set(err, ERR_INVALID, "--%s: \"%s\" is not one of: %s", o->name, text,
			o->choices);
	*ret = text;
	return 0;
}

static int store(const struct match *match, const char *text, struct err *err)
{
	const struct option *o = match->option;
	char *place = (char *)match->values + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)place = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)place = text;
		return 0;
	case OPTION_LIST:
		list_add((struct option_list *)place, text);
		return 0;
	case OPTION_CHOICE:
		return store_choice(o, (const char **)place, text, err);
	case OPTION_NUMBER:
	case OPTION_SECONDS:
	case OPTION_LIMIT:
		return store_number(o, (struct option_number *)place, text, err);
	case OPTION_END:
		break;
	}
	assert(!"an option of no kind");
	return -EINVAL;
}

/* Names the option that may have been meant. */
static int refuse_long(const struct option_binding *bindings, size_t count, const char *name,
	size_t len, struct err *err)
{
	auto_free char *text = mem_printf("%.*s", (int)len, name);
	const char *best = NULL;
	unsigned least = SIMILAR_MAX + 1;

	for (size_t i = 0; i < count; i++) {
		const struct option *o = bindings[i].options;

		for (; o->kind != OPTION_END; o++) {
			unsigned distance = similar_distance(o->name, text);

			if (distance < least && distance < strlen(o->name)) {
				least = distance;
				best = o->name;
			}
		}
	}
	err_set(err, ERR_INVALID, "unknown option --%s", text);
	if (foreign_option(text))
		snprintf(err->remedy, sizeof(err->remedy), "%s; ", foreign_option(text));
	else if (best)
		snprintf(err->remedy, sizeof(err->remedy), "did you mean \"--%s\"? ", best);
	return -err_class(ERR_INVALID)->errnum;
}

/* Handles "--name", "--name=value" and "--name value"; advances *at past a value it took. */
static int take_long(const struct option_binding *bindings, size_t count, int argc, char **argv,
	int *at, struct err *err)
{
	const char *name = argv[*at] + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] == '=' ? name + len + 1 : NULL;
	struct match match;

	if (!find_long(bindings, count, name, len, &match))
		return refuse_long(bindings, count, name, len, err);
	if (match.option->kind == OPTION_FLAG && value)
		return err_set(err, ERR_INVALID, "--%.*s takes no value", (int)len, name);
	if (match.option->kind != OPTION_FLAG && !value) {
		if (*at + 1 >= argc)
			return err_set(err, ERR_INVALID, "--%s needs a value: %s",
				match.option->name, match.option->value);
		value = argv[++*at];
	}
	return store(&match, value, err);
}

/* Two letters that mean one flag together, in either order. */
static bool find_pair(
	const struct option_binding *bindings, size_t count, const char *letters, struct match *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = bindings[i].options;

		for (; o->kind != OPTION_END; o++) {
			if (!o->pair || strlen(letters) != 2 ||
				((letters[0] != o->pair[0] || letters[1] != o->pair[1]) &&
					(letters[0] != o->pair[1] || letters[1] != o->pair[0])))
				continue;
			*ret = (struct match){o, bindings[i].values};
			return true;
		}
	}
	return false;
}

static int refuse_letter(char letter, struct err *err)
{
	const char *instead = foreign_option((char[]){letter, '\0'});

	err_set(err, ERR_INVALID, "unknown option -%c", letter);
	if (instead)
		snprintf(err->remedy, sizeof(err->remedy), "%s; ", instead);
	return -err_class(ERR_INVALID)->errnum;
}

/* Handles "-i", "-iq", "-eK=V" and "-e K=V". */
static int take_letters(const struct option_binding *bindings, size_t count, int argc, char **argv,
	int *at, struct err *err)
{
	struct match pair;

	if (find_pair(bindings, count, argv[*at] + 1, &pair))
		return store(&pair, NULL, err);
	for (const char *c = argv[*at] + 1; *c; c++) {
		struct match match;
		const char *value;
		int r;

		if (!find_letter(bindings, count, *c, &match))
			return refuse_letter(*c, err);
		if (match.option->kind == OPTION_FLAG) {
			r = store(&match, NULL, err);
			if (r < 0)
				return r;
			continue;
		}
		if (!c[1] && *at + 1 >= argc)
			return err_set(
				err, ERR_INVALID, "-%c needs a value: %s", *c, match.option->value);
		value = c[1] ? c + 1 : argv[++*at];
		return store(&match, value, err);
	}
	return 0;
}

int option_parse(const struct option_binding *bindings, size_t count, int verbatim_after, int argc,
	char **argv, int *ret_operands, struct err *err)
{
	bool options_ended = false;
	int operands = 0;

	for (int i = 0; i < argc; i++) {
		const char *arg = argv[i];
		int r;

		if (options_ended || arg[0] != '-' || !arg[1]) {
			if (operands == verbatim_after)
				options_ended = true;
			argv[operands++] = argv[i];
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			options_ended = true;
			continue;
		}
		if (arg[1] == '-')
			r = take_long(bindings, count, argc, argv, &i, err);
		else
			r = take_letters(bindings, count, argc, argv, &i, err);
		if (r < 0)
			return r;
	}
	*ret_operands = operands;
	return 0;
}

void option_release(const struct option_binding *bindings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = bindings[i].options;

		for (; o->kind != OPTION_END; o++) {
			struct option_list *list =
				(struct option_list *)((char *)bindings[i].values + o->offset);

			if (o->kind != OPTION_LIST)
				continue;
			free(list->items);
			*list = (struct option_list){0};
		}
	}
}
