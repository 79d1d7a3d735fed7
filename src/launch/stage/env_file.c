/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/env_file.h"

#include "base/buf.h"
#include "base/mem.h"
#include "launch/app/app_service.h"
#include "launch/app/file_set.h"

#include <stdio.h>
#include <string.h>

#define BLOCK	   "# Variables of the launch; what is above is kept as it was."
#define TEXT_MAX   (4u * FILE_SET_TEXT_MAX) /* of what is made of at most three files */
#define TOLD_MAX   20
#define LETTERS	   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS	   "0123456789"
#define NAME_SHOWN 100 /* characters of a name that are told */

/* --- reading --- */

/* A line, or several if a value in quotes goes on over them. */
struct entry {
	const char *begin, *name, *value; /* name: NULL if it is no variable */
	size_t len, name_len, value_len;
};

/* Where a value ends: at the end of its line, or of that on which its quotes are closed. */
static size_t value_length(const char *value)
{
	size_t line = strcspn(value, "\n"), begin = strspn(value, " \t");
	char quote = value[begin];

	if (quote != '"' && quote != '\'')
		return line;
	for (size_t i = begin + 1; value[i]; i++) {
		if (value[i] == '\\' && quote == '"' && value[i + 1])
			i++;
		else if (value[i] == quote)
			return i + strcspn(value + i, "\n");
	}
	return line;
}

static void read_entry(const char *at, struct entry *entry)
{
	const char *name = at + strspn(at, " \t"), *sign;
	size_t name_len;

	if (strncmp(name, "export ", 7) == 0)
		name += 7 + strspn(name + 7, " \t");
	name_len = strspn(name, LETTERS DIGITS);
	sign = name + name_len + strspn(name + name_len, " \t");
	*entry = (struct entry){.begin = at};
	if (name_len > 0 && !strchr(DIGITS, name[0]) && *sign == '=') {
		entry->name = name;
		entry->name_len = name_len;
		entry->value = sign + 1;
		entry->value_len = value_length(sign + 1);
		entry->len = (size_t)(entry->value + entry->value_len - at);
		if (entry->value_len > 0 && entry->value[entry->value_len - 1] == '\r')
			entry->value_len--;
	} else {
		entry->len = strcspn(at, "\n");
	}
	entry->len += at[entry->len] == '\n';
}

#define each_entry(entry, text)                                                                    \
	for (const char *at_ = (text); *at_ && (read_entry(at_, (entry)), true);                   \
		at_ += (entry)->len)

static bool is_block(const struct entry *entry)
{
	return strncmp(entry->begin, BLOCK, strlen(BLOCK)) == 0;
}

static void put(json_t *map, const struct entry *entry)
{
	auto_free char *name = mem_printf("%.*s", (int)entry->name_len, entry->name);

	json_object_set_new_nocheck(
		map, name, json_stringn_nocheck(entry->value, entry->value_len));
}

/* All variables, in order; of the same name the last. */
static json_t *read_all(const char *text)
{
	json_t *map = json_object();
	struct entry entry;

	each_entry(&entry, text)
	{
		if (entry.name)
			put(map, &entry);
	}
	return map;
}

char *env_file_value(const char *text, const char *name)
{
	json_auto_t *map = read_all(text);
	const char *value = json_string_value(json_object_get(map, name));

	return value ? mem_strdup(value) : NULL;
}

/* --- whose they are --- */

static bool is_of_launch(const struct env_file *file, const char *name)
{
	static const char *const names[] = {"PORT", "HOST", "BACKEND_PORT", "CORS_ORIGINS"};

	for (size_t i = 0; i < array_len(names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	for (size_t i = 0; i < APP_SERVICES_MAX; i++) {
		if (strcmp(app_services[i].variable, name) == 0)
			return true;
	}
	return json_object_get(file->given, name) != NULL;
}

/* The variables of a text that are not those that a launch has put below its line. */
static json_t *read_own(const struct env_file *file, const char *text)
{
	json_auto_t *made = file->made ? read_all(file->made) : NULL;
	json_t *map = json_object();
	bool is_below = false;
	struct entry entry;

	each_entry(&entry, text)
	{
		auto_free char *name = NULL;
		json_auto_t *value = NULL;

		is_below |= is_block(&entry);
		if (!entry.name)
			continue;
		name = mem_printf("%.*s", (int)entry.name_len, entry.name);
		value = json_stringn_nocheck(entry.value, entry.value_len);
		/* One of the launch before is known by its value, or where it is not known, by its name. */
		if (is_below && (made ? json_equal(json_object_get(made, name), value)
				      : is_of_launch(file, name)))
			continue;
		put(map, &entry);
	}
	return map;
}

static void tell(const struct env_file *file, unsigned *told, const char *name, const char *what)
{
	char line[NAME_SHOWN + 160];

	if (++*told > TOLD_MAX || !file->told)
		return;
	if (*told == TOLD_MAX)
		snprintf(line, sizeof(line), "more variables of .env are not named here");
	else
		snprintf(line, sizeof(line), "%.*s of .env %s", NAME_SHOWN, name, what);
	file->told(file->arg, line);
}

/* What was put into the copy since the launch before, and the project does not say. */
static json_t *find_kept(const struct env_file *file, const json_t *project)
{
	json_auto_t *copy = read_own(file, file->copy);
	json_auto_t *made = file->made ? read_all(file->made) : NULL;
	json_t *kept = json_object(), *value;
	const char *name;
	unsigned told = 0;

	json_object_foreach(copy, name, value)
	{
		const json_t *other = json_object_get(project, name);

		if (json_equal(json_object_get(made, name), value) || json_equal(other, value))
			continue;
		json_object_set_nocheck(kept, name, value);
		tell(file, &told, name,
			other ? "is kept as it is in the copy; the project says otherwise"
			      : "is kept as it is in the copy");
	}
	return kept;
}

/* --- making --- */

static void end_line(struct buf *made)
{
	if (made->len > 0 && made->data[made->len - 1] != '\n')
		buf_append_str(made, "\n");
}

static void add_variables(struct buf *made, const json_t *map)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)map, name, value)
	{
		end_line(made);
		buf_printf(made, "%s=", name);
		buf_append(made, json_string_value(value), json_string_length(value));
		buf_append_str(made, "\n");
	}
}

/*
 * The project's text above the launch's line, with what is kept from the copy, and what somebody added to the end of a file
 * that a launch had written.
 */
static char *make_own(const struct env_file *file, const json_t *project, const json_t *kept)
{
	struct buf made = BUF_INIT(TEXT_MAX);
	json_auto_t *rest = json_copy((json_t *)project);
	struct entry entry;

	if (kept)
		json_object_update(rest, (json_t *)kept);
	each_entry(&entry, file->project)
	{
		auto_free char *name =
			entry.name ? mem_printf("%.*s", (int)entry.name_len, entry.name) : NULL;
		const char *value = name ? json_string_value(json_object_get(kept, name)) : NULL;

		if (is_block(&entry))
			break;
		if (value)
			buf_printf(&made, "%s=%s\n", name, value);
		else
			buf_append(&made, entry.begin, entry.len);
		if (name)
			json_object_del(rest, name);
	}
	add_variables(&made, rest);
	end_line(&made);
	return buf_take_str(&made);
}

char *env_file_own(const struct env_file *file)
{
	json_auto_t *project = read_own(file, file->project);
	json_auto_t *kept = find_kept(file, project);

	return make_own(file, project, kept);
}

char *env_file_join(const struct env_file *file, const char *own, json_t *env)
{
	struct buf made = BUF_INIT(TEXT_MAX);
	json_auto_t *map = read_all(own);
	const char *name;
	json_t *value;
	void *next;
	unsigned told = 0;

	buf_append_str(&made, own);
	end_line(&made);
	buf_append_str(&made, BLOCK "\n");
	json_object_foreach_safe(env, next, name, value)
	{
		const char *kept = json_string_value(json_object_get(map, name));

		if (!kept) {
			buf_printf(&made, "%s=%s\n", name, json_string_value(value));
			continue;
		}
		if (strcmp(kept, json_string_value(value)) != 0)
			tell(file, &told, name, "is kept");
		json_object_set_new(env, name, json_string(kept));
	}
	return buf_take_str(&made);
}

char *env_file_made(const struct env_file *file, const char *own, const json_t *env)
{
	struct env_file silent = *file;
	json_auto_t *project = read_own(file, file->project), *owned = read_all(own);
	json_auto_t *rest = json_copy((json_t *)env);
	auto_free char *without = make_own(file, project, NULL);
	const char *name;
	json_t *value;

	/* What was put into the copy must not look like the launch's own the next time. */
	json_object_foreach(owned, name, value)
	{
		if (!json_equal(json_object_get(project, name), value))
			json_object_del(rest, name);
	}
	silent.told = NULL;
	return env_file_join(&silent, without, rest);
}

void env_file_tell_changes(const struct env_file *file, const char *text)
{
	json_auto_t *before = read_all(file->copy), *after = read_all(text);
	const char *name;
	json_t *value;
	unsigned told = 0;

	json_object_foreach(before, name, value)
	{
		const json_t *now = json_object_get(after, name);

		if (!now)
			tell(file, &told, name,
				"is gone, as neither project nor launch has it any more");
		else if (!json_equal(now, value))
			tell(file, &told, name, "is changed");
	}
}
