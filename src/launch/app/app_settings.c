/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/app_settings.h"

#include "base/format.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 400
#define NAME_SHOWN  40 /* bytes of an unknown name that are told */

static const struct key {
	const char *name;
	bool is_number;
} part_keys[] = {{"directory", false}, {"framework", false}, {"entry", false}, {"command", false},
	{"install", false}, {"port", true}};
static const char *const parts[] = {"frontend", "backend"};

static void add(struct app_settings *settings, bool is_error, unsigned line, const char *message)
{
	size_t len = strlen(message);

	json_array_append_new(settings->problems,
		json_pack("{s:b, s:i, s:s%}", "is_error", is_error, "line", (int)line, "message",
			message, len - format_unfinished(message, len)));
}

void app_settings_refuse(struct app_settings *settings, const char *message)
{
	add(settings, true, 0, message);
	json_decref(settings->said);
	settings->said = NULL;
}

/* The line of a key: the first place that looks like it. */
static unsigned line_of(const char *text, const char *name)
{
	auto_free char *quoted = mem_printf("\"%s\"", name);

	for (const char *at = text; (at = strstr(at, quoted)); at++) {
		const char *rest = at + strlen(quoted);

		if (rest[strspn(rest, " \t\r\n")] == ':')
			return file_set_line(text, at);
	}
	return 0;
}

static void add_unknown(struct app_settings *settings, const char *text, const char *where,
	const char *name, const char *known)
{
	char message[MESSAGE_MAX];
	size_t len = strnlen(name, NAME_SHOWN);

	len -= format_unfinished(name, len);
	snprintf(message, sizeof(message), "%s%s%.*s is no key, and is not followed: there are %s",
		where, where[0] ? "." : "", (int)len, name, known);
	add(settings, false, line_of(text, name), message);
}

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < array_len(part_keys); i++) {
		if (strcmp(part_keys[i].name, name) == 0)
			return &part_keys[i];
	}
	return NULL;
}

static void check_key(struct app_settings *settings, const char *text, const char *part,
	const char *name, const json_t *value)
{
	const struct key *key = find_key(name);
	char message[MESSAGE_MAX];

	if (!key) {
		add_unknown(settings, text, part, name,
			"directory, framework, entry, command, install and port");
		return;
	}
	if (json_is_null(value) ||
		(key->is_number ? json_is_integer(value) : json_is_string(value)))
		return;
	snprintf(message, sizeof(message), "%s.%s must be a %s", part, name,
		key->is_number ? "whole number" : "text");
	add(settings, true, line_of(text, name), message);
}

static void check_part(
	struct app_settings *settings, const char *text, const char *part, const json_t *said)
{
	char message[MESSAGE_MAX];
	const char *name;
	json_t *value;

	if (!said || json_is_null(said) || json_is_false(said))
		return;
	if (!json_is_object(said)) {
		snprintf(message, sizeof(message), "%s must be an object, or false", part);
		add(settings, true, line_of(text, part), message);
		return;
	}
	json_object_foreach((json_t *)said, name, value)
		check_key(settings, text, part, name, value);
}

static bool has_error(const struct app_settings *settings)
{
	json_t *problem;
	size_t i;

	json_array_foreach(settings->problems, i, problem)
	{
		if (json_is_true(json_object_get(problem, "is_error")))
			return true;
	}
	return false;
}

static void check(struct app_settings *settings, const char *text)
{
	const char *name;
	json_t *value;

	json_object_foreach(settings->said, name, value)
	{
		bool is_part = strcmp(name, parts[0]) == 0 || strcmp(name, parts[1]) == 0;

		if (!is_part && strcmp(name, "services") != 0)
			add_unknown(settings, text, "", name, "frontend, backend and services");
	}
	for (size_t i = 0; i < array_len(parts); i++)
		check_part(settings, text, parts[i], json_object_get(settings->said, parts[i]));
	if (has_error(settings)) {
		json_decref(settings->said);
		settings->said = NULL;
	}
}

void app_settings_read(const struct file_set *set, struct app_settings *ret_settings)
{
	struct app_settings settings = {.problems = json_array()};
	bool is_there = file_set_has(set, "", APP_SETTINGS_FILE);
	auto_free char *text = is_there ? file_set_read(set, "", APP_SETTINGS_FILE) : NULL;
	char message[MESSAGE_MAX];
	json_error_t error;

	settings.said = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;
	if (settings.said && !json_is_object(settings.said)) {
		app_settings_refuse(&settings, "it must be an object: {...}");
	} else if (settings.said) {
		check(&settings, text);
	} else if (text) {
		snprintf(message, sizeof(message), "it is no JSON: %.*s", JSON_ERROR_TEXT_LENGTH,
			error.text);
		add(&settings, true, error.line > 0 ? (unsigned)error.line : 1, message);
	} else if (is_there) {
		add(&settings, true, 0, "it cannot be read, or is too large");
	}
	*ret_settings = settings;
}

void app_settings_fini(struct app_settings *settings)
{
	json_decref(settings->said);
	json_decref(settings->problems);
	*settings = (struct app_settings){0};
}
