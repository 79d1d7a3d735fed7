/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int recipe_refuse(struct err *err, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_recipe", NULL, "%s", what);
}

/* --- the config so far --- */

const char *recipe_config_text(const struct recipe_reading *reading, const char *name)
{
	const char *text = json_string_value(json_object_get(reading->recipe->image, name));

	return text ? text : "";
}

void recipe_set_config(struct recipe_reading *reading, const char *name, json_t *value)
{
	json_object_set_new(reading->recipe->image, name, value);
}

json_t *recipe_env_of(const struct recipe_reading *reading)
{
	return json_object_get(reading->recipe->image, "env");
}

bool recipe_is_env_name(const char *name)
{
	size_t len =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return len > 0 && !name[len] && !isdigit((unsigned char)name[0]);
}

int recipe_set_env(
	struct recipe_reading *reading, const char *name, const char *value, struct err *err)
{
	if (!recipe_is_env_name(name))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"%.60s is no name of a variable", name);
	if (json_object_set_new(recipe_env_of(reading), name, json_string(value)) < 0)
		return recipe_refuse(err, "a variable's value is not UTF-8");
	return 0;
}

void recipe_begin_config(struct recipe_reading *reading)
{
	static const char *const texts[] = {"user", "workdir"};
	static const char *const lists[] = {"entrypoint", "command", "ports"};
	json_t *image = reading->base ? json_deep_copy(reading->base) : json_object();

	reading->recipe->image = image;
	if (!json_is_object(json_object_get(image, "env")))
		json_object_set_new(image, "env", json_object());
	for (size_t i = 0; i < array_len(texts); i++) {
		if (!json_is_string(json_object_get(image, texts[i])))
			json_object_set_new(image, texts[i], json_string(""));
	}
	for (size_t i = 0; i < array_len(lists); i++) {
		if (!json_is_array(json_object_get(image, lists[i])))
			json_object_set_new(image, lists[i], json_array());
	}
}

/* --- steps --- */

/* One line, cut between two characters. */
static char *make_title(const char *name, const char *text)
{
	char *title = mem_printf("%s %s", name, text);
	size_t len = strlen(title);

	for (char *at = title; *at; at++) {
		if ((unsigned char)*at < ' ')
			*at = ' ';
	}
	if (len <= RECIPE_TITLE_MAX)
		return title;
	len = RECIPE_TITLE_MAX;
	while (len > 0 && ((unsigned char)title[len] & 0xc0) == 0x80)
		len--;
	title[len] = '\0';
	return title;
}

struct recipe_step *recipe_add_step(struct recipe_reading *reading, enum recipe_step_kind kind,
	const char *name, const char *text, struct err *err)
{
	struct recipe *recipe = reading->recipe;
	struct recipe_step *step = &recipe->steps[recipe->count];

	if (recipe->count == RECIPE_STEPS_MAX) {
		err_explain(err, ERR_INVALID, "invalid_recipe", "join commands with &&",
			"there are more than %d steps that write", RECIPE_STEPS_MAX);
		return NULL;
	}
	*step = (struct recipe_step){.kind = kind,
		.line = reading->line,
		.title = make_title(name, text),
		.mode = -1,
		.source_stage = -1,
		.env = json_deep_copy(recipe_env_of(reading)),
		.user = mem_strdup(recipe_config_text(reading, "user")),
		.workdir = mem_strdup(recipe_config_text(reading, "workdir"))};
	/* An argument does not hide a variable of the same name. */
	json_object_update_missing(step->env, reading->args);
	recipe->count++;
	return step;
}

void recipe_note(struct recipe_reading *reading, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(reading->recipe->notes, json_string(text));
}

static void fini_step(struct recipe_step *step)
{
	free(step->title);
	json_decref(step->words);
	free(step->target);
	free(step->chown);
	free(step->source);
	json_decref(step->env);
	free(step->user);
	free(step->workdir);
}

void recipe_fini(struct recipe *recipe)
{
	for (size_t i = 0; i < recipe->count; i++)
		fini_step(&recipe->steps[i]);
	free(recipe->steps);
	free(recipe->from);
	json_decref(recipe->image);
	json_decref(recipe->files);
	json_decref(recipe->mirrors);
	json_decref(recipe->notes);
	*recipe = (struct recipe){0};
}
