/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe.h"

#include "base/buf.h"
#include "image/dockerfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TITLE_MAX 160
#define INSTRUCTIONS                                                                               \
	"FROM, RUN, COPY, ADD, ENV, WORKDIR, USER, EXPOSE, CMD, ENTRYPOINT and ARG are supported"

/* A source while it is read. */
struct reading {
	struct recipe *recipe;
	const json_t *base;
	const json_t *given; /* arguments of the request, or NULL */
	json_t *global;	     /* ARG before FROM */
	json_t *args;	     /* ARG after it */
	unsigned line;
	bool is_command_set;
};

static int refuse(struct err *err, const char *what)
{
	return err_explain(err, ERR_INVALID, "invalid_recipe", NULL, "%s", what);
}

/* --- the config so far --- */

static const char *config_text(const struct reading *reading, const char *name)
{
	const char *text = json_string_value(json_object_get(reading->recipe->image, name));

	return text ? text : "";
}

static void set_config(struct reading *reading, const char *name, json_t *value)
{
	json_object_set_new(reading->recipe->image, name, value);
}

static json_t *env_of(const struct reading *reading)
{
	return json_object_get(reading->recipe->image, "env");
}

static bool is_env_name(const char *name)
{
	size_t len =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return len > 0 && !name[len] && !isdigit((unsigned char)name[0]);
}

static int set_env(struct reading *reading, const char *name, const char *value, struct err *err)
{
	if (!is_env_name(name))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"%.60s is no name of a variable", name);
	if (json_object_set_new(env_of(reading), name, json_string(value)) < 0)
		return refuse(err, "a variable's value is not UTF-8");
	return 0;
}

/* A copy of the base's config, with what every one has. */
static void begin_config(struct reading *reading)
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
	if (len <= TITLE_MAX)
		return title;
	len = TITLE_MAX;
	while (len > 0 && ((unsigned char)title[len] & 0xc0) == 0x80)
		len--;
	title[len] = '\0';
	return title;
}

/* A new step with what holds at this point; NULL with err set when there are too many. */
static struct recipe_step *add_step(struct reading *reading, enum recipe_step_kind kind,
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
		.env = json_deep_copy(env_of(reading)),
		.user = mem_strdup(config_text(reading, "user")),
		.workdir = mem_strdup(config_text(reading, "workdir"))};
	/* An argument does not hide a variable of the same name. */
	json_object_update_missing(step->env, reading->args);
	recipe->count++;
	return step;
}

static void note(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct reading *reading, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(reading->recipe->notes, json_string(text));
}

/* --- instructions of a Dockerfile --- */

static const char *find_variable(void *arg, const char *name)
{
	const struct reading *reading = arg;
	const char *value = NULL;

	if (reading->recipe->image)
		value = json_string_value(json_object_get(env_of(reading), name));
	if (!value)
		value = json_string_value(json_object_get(reading->args, name));
	return value;
}

static int expand(struct reading *reading, const char *text, char **ret_text, struct err *err)
{
	const struct dockerfile_variables variables = {find_variable, reading};

	return dockerfile_expand(text, &variables, ret_text, err);
}

static int split_words(
	struct reading *reading, const char *text, json_t **ret_words, struct err *err)
{
	const struct dockerfile_variables variables = {find_variable, reading};

	return dockerfile_words(text, &variables, ret_words, err);
}

static const char *word_at(const json_t *words, size_t index)
{
	return json_string_value(json_array_get(words, index));
}

/* ["a", "b"], or NULL: then it is a line for the shell. */
static json_t *exec_form(const char *text)
{
	json_t *array;

	if (text[0] != '[')
		return NULL;
	array = json_loads(text, 0, NULL);
	if (array && recipe_are_texts(array, DOCKERFILE_WORDS_MAX))
		return array;
	json_decref(array);
	return NULL;
}

static json_t *command_of(const char *text)
{
	json_t *array = exec_form(text);

	return array ? array : json_pack("[s, s, s]", "/bin/sh", "-c", text);
}

static int read_from(struct reading *reading, const char *text, struct err *err)
{
	json_t *words = NULL;
	const char *name;
	size_t count;
	int r;

	if (reading->recipe->from)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile",
			"build the first stage as a template of its own",
			"a second FROM (a build of several stages) is not supported");
	r = split_words(reading, text, &words, err);
	if (r < 0)
		return r;
	name = word_at(words, 0);
	count = json_array_size(words);
	if (count == 0 || !*name)
		r = refuse(err, "FROM needs the name of a template or an image");
	else if (strncmp(name, "--", 2) == 0)
		r = refuse(err, "FROM has no options here; images are of this machine's platform");
	else if (count != 1 && !(count == 3 && strcasecmp(word_at(words, 1), "as") == 0))
		r = refuse(err, "FROM takes one name");
	if (r == 0) {
		reading->recipe->from = mem_strdup(name);
		json_object_clear(reading->args);
		begin_config(reading);
	}
	json_decref(words);
	return r;
}

static int read_arg(struct reading *reading, const char *text, struct err *err)
{
	bool is_global = !reading->recipe->from;
	json_t *words = NULL, *word;
	size_t i;
	int r = split_words(reading, text, &words, err);

	if (r < 0)
		return r;
	json_array_foreach(words, i, word)
	{
		auto_free char *name = mem_strdup(json_string_value(word));
		char *equals = strchr(name, '=');
		json_t *value;

		if (equals)
			*equals = '\0';
		if (!is_env_name(name)) {
			r = refuse(err, "ARG takes NAME or NAME=value");
			break;
		}
		value = json_object_get(reading->given, name);
		if (!value && equals)
			value = json_string(equals + 1);
		else
			value = json_incref(value ? value : json_object_get(reading->global, name));
		if (!value)
			continue;
		json_object_set(reading->args, name, value);
		if (is_global)
			json_object_set(reading->global, name, value);
		json_decref(value);
	}
	json_decref(words);
	return r;
}

static int read_run(struct reading *reading, const char *text, struct err *err)
{
	struct recipe_step *step;

	if (strncmp(text, "--", 2) == 0)
		return refuse(err, "options of RUN (--mount, --network ...) are not supported");
	if (!*text)
		return refuse(err, "RUN needs a command");
	step = add_step(reading, RECIPE_RUN, "RUN", text, err);
	if (!step)
		return -EINVAL;
	step->words = command_of(text);
	return step->words ? 0 : refuse(err, "the command is not UTF-8");
}

static int read_env(struct reading *reading, const char *text, struct err *err)
{
	size_t name_len = strcspn(text, " \t=");
	json_t *words = NULL, *word;
	size_t i;
	int r;

	/* The old form: ENV NAME all the rest. */
	if (text[name_len] != '=') {
		auto_free char *name = mem_printf("%.*s", (int)name_len, text), *value = NULL;

		text += name_len + strspn(text + name_len, " \t");
		if (!*text)
			return refuse(err, "ENV takes NAME=value");
		r = expand(reading, text, &value, err);
		return r < 0 ? r : set_env(reading, name, value, err);
	}
	r = split_words(reading, text, &words, err);
	if (r < 0)
		return r;
	json_array_foreach(words, i, word)
	{
		auto_free char *name = mem_strdup(json_string_value(word));
		char *equals = strchr(name, '=');

		if (!equals) {
			r = refuse(err, "ENV takes NAME=value");
			break;
		}
		*equals = '\0';
		r = set_env(reading, name, equals + 1, err);
		if (r < 0)
			break;
	}
	json_decref(words);
	return r;
}

static int read_workdir(struct reading *reading, const char *text, struct err *err)
{
	auto_free char *name = NULL, *path = NULL;
	struct recipe_step *step;
	int r = expand(reading, text, &name, err);

	if (r < 0)
		return r;
	if (!*name || strlen(name) > RECIPE_NAME_MAX)
		return refuse(err, "WORKDIR needs a directory");
	path = recipe_join_path(config_text(reading, "workdir"), name);
	if (strlen(path) > RECIPE_NAME_MAX)
		return refuse(err, "the directory's name is too long");
	step = add_step(reading, RECIPE_MKDIR, "WORKDIR", path, err);
	if (!step)
		return -EINVAL;
	step->target = mem_strdup(path);
	set_config(reading, "workdir", json_string(path));
	return 0;
}

static int read_user(struct reading *reading, const char *text, struct err *err)
{
	auto_free char *name = NULL;
	int r = expand(reading, text, &name, err);

	if (r < 0)
		return r;
	if (!*name || strlen(name) > RECIPE_NAME_MAX || strpbrk(name, " \t"))
		return refuse(err, "USER takes a name or an id, and a group after a colon");
	set_config(reading, "user", json_string(name));
	return 0;
}

static int read_expose(struct reading *reading, const char *text, struct err *err)
{
	json_t *words = NULL, *word, *ports = json_object_get(reading->recipe->image, "ports");
	size_t i;
	int r = split_words(reading, text, &words, err);

	if (r < 0)
		return r;
	json_array_foreach(words, i, word)
	{
		const char *name = json_string_value(word);
		char *end;
		unsigned long port = strtoul(name, &end, 10);

		if (!isdigit((unsigned char)*name) || port == 0 || port > 65535 ||
			(*end && strcmp(end, "/tcp") != 0 && strcmp(end, "/udp") != 0)) {
			r = refuse(err, "EXPOSE takes ports from 1 to 65535, with /tcp or /udp");
			break;
		}
		if (strcmp(end, "/udp") == 0)
			note(reading, "line %u: the port %lu/udp is left out", reading->line, port);
		else
			json_array_append_new(ports, json_integer((json_int_t)port));
	}
	json_decref(words);
	return r;
}

static int read_cmd(struct reading *reading, const char *text, struct err *err)
{
	json_t *command = *text ? command_of(text) : NULL;

	if (!command)
		return refuse(err, "CMD needs a command");
	set_config(reading, "command", command);
	reading->is_command_set = true;
	return 0;
}

static int read_entrypoint(struct reading *reading, const char *text, struct err *err)
{
	json_t *command = *text ? command_of(text) : NULL;

	if (!command)
		return refuse(err, "ENTRYPOINT needs a command");
	set_config(reading, "entrypoint", command);
	/* The base's arguments were meant for the base's program. */
	if (!reading->is_command_set)
		set_config(reading, "command", json_array());
	return 0;
}

/* Takes one option off a COPY. */
static int read_copy_option(struct recipe_step *step, const char *word, struct err *err)
{
	char *end;
	unsigned long mode;

	if (strncmp(word, "--chown=", 8) == 0 && word[8] && strlen(word) <= RECIPE_NAME_MAX) {
		free(step->chown);
		step->chown = mem_strdup(word + 8);
		return 0;
	}
	if (strncmp(word, "--chmod=", 8) == 0) {
		mode = strtoul(word + 8, &end, 8);
		if (!isdigit((unsigned char)word[8]) || *end || mode > 07777)
			return refuse(err, "--chmod takes an octal number");
		step->mode = (int)mode;
		return 0;
	}
	if (strcmp(word, "--link") == 0)
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_dockerfile",
		"of options --chown and --chmod are supported", "the option %.60s is not supported",
		word);
}

static int check_sources(
	const struct reading *reading, const json_t *sources, bool is_add, struct err *err)
{
	static const char *const others[] = {".tar.bz2", ".tar.xz", ".tar.zst"};
	json_t *one;
	size_t i;

	json_array_foreach(sources, i, one)
	{
		const char *word = json_string_value(one);
		size_t len = strlen(word);

		if (is_add && strstr(word, "://"))
			return err_explain(err, ERR_INVALID, "invalid_dockerfile",
				"fetch it in a RUN, with curl for instance",
				"ADD of an address is not supported");
		for (size_t k = 0; is_add && k < array_len(others); k++) {
			if (recipe_ends_in(word, others[k]))
				return err_explain(err, ERR_INVALID, "invalid_dockerfile",
					"COPY it and unpack it in a RUN",
					"ADD unpacks tar and tar.gz alone, not %.60s", word);
		}
		if (len > RECIPE_NAME_MAX)
			return refuse(err, "the name of a file is too long");
		if (recipe_match(reading->recipe->files, word, NULL, NULL) == 0)
			return err_explain(err, ERR_INVALID, "invalid_dockerfile",
				"send it in `files`, with its path relative to the Dockerfile",
				"there is no file %.120s in the request", word);
	}
	return 0;
}

static int fill_copy(struct reading *reading, struct recipe_step *step, json_t *words, bool is_add,
	struct err *err)
{
	const char *target;
	size_t len;
	int r;

	while (json_array_size(words) > 0 && strncmp(word_at(words, 0), "--", 2) == 0) {
		r = read_copy_option(step, word_at(words, 0), err);
		if (r < 0)
			return r;
		json_array_remove(words, 0);
	}
	if (json_array_size(words) < 2)
		return refuse(err, "COPY takes files and where they go");
	target = word_at(words, json_array_size(words) - 1);
	len = strlen(target);
	if (len == 0 || len > RECIPE_NAME_MAX)
		return refuse(err, "the name of the target is empty or too long");
	step->is_into = target[len - 1] == '/' || strcmp(target, ".") == 0 ||
			(len > 1 && strcmp(target + len - 2, "/.") == 0);
	if (json_array_size(words) > 2 && !step->is_into)
		return refuse(err, "the target of several files must end with /");
	step->target = recipe_join_path(config_text(reading, "workdir"), target);
	json_array_remove(words, json_array_size(words) - 1);
	step->words = json_incref(words);
	step->unpacks = is_add;
	return check_sources(reading, words, is_add, err);
}

static int read_copy_or_add(
	struct reading *reading, const char *name, const char *text, struct err *err)
{
	const char *list = strchr(text, '[');
	struct recipe_step *step = add_step(reading, RECIPE_COPY, name, text, err);
	json_t *words = NULL;
	int r = 0;

	if (!step)
		return -EINVAL;
	/* Options may stand before the list of names. */
	if (list && (list == text || text[0] == '-'))
		words = exec_form(list);
	if (words && list != text) {
		json_t *options = NULL;
		auto_free char *head = mem_printf("%.*s", (int)(list - text), text);

		r = split_words(reading, head, &options, err);
		if (r == 0)
			json_array_extend(options, words);
		json_decref(words);
		words = options;
	} else if (!words) {
		r = split_words(reading, text, &words, err);
	}
	if (r == 0)
		r = fill_copy(reading, step, words, strcmp(name, "ADD") == 0, err);
	json_decref(words);
	return r;
}

static int read_copy(struct reading *reading, const char *text, struct err *err)
{
	return read_copy_or_add(reading, "COPY", text, err);
}

static int read_add(struct reading *reading, const char *text, struct err *err)
{
	return read_copy_or_add(reading, "ADD", text, err);
}

/* Means nothing to a sandbox. */
static int read_nothing(struct reading *reading, const char *text, struct err *err)
{
	(void)reading;
	(void)text;
	(void)err;
	return 0;
}

static const struct instruction {
	const char *name;
	int (*read)(struct reading *reading, const char *text, struct err *err);
} instructions[] = {
	{"ADD", read_add},
	{"ARG", read_arg},
	{"CMD", read_cmd},
	{"COPY", read_copy},
	{"ENTRYPOINT", read_entrypoint},
	{"ENV", read_env},
	{"EXPOSE", read_expose},
	{"FROM", read_from},
	{"HEALTHCHECK", read_nothing},
	{"LABEL", read_nothing},
	{"MAINTAINER", read_nothing},
	{"RUN", read_run},
	{"STOPSIGNAL", read_nothing},
	{"USER", read_user},
	{"VOLUME", read_nothing},
	{"WORKDIR", read_workdir},
};

static const struct instruction *find_instruction(const char *name)
{
	for (size_t i = 0; i < array_len(instructions); i++) {
		if (strcmp(instructions[i].name, name) == 0)
			return &instructions[i];
	}
	return NULL;
}

static int read_instruction(
	struct reading *reading, const struct dockerfile_instruction *one, struct err *err)
{
	const struct instruction *known = find_instruction(one->name);

	reading->line = one->line;
	if (!known)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile", INSTRUCTIONS,
			"%s is not supported", one->name);
	if (!reading->recipe->from && known->read != read_from && known->read != read_arg)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile", NULL,
			"before FROM there may be ARG alone, not %s", one->name);
	if (known->read == read_nothing)
		note(reading, "line %u: %s is left out", one->line, one->name);
	return known->read(reading, one->text, err);
}

static int read_dockerfile(struct reading *reading, const json_t *source, struct err *err)
{
	struct dockerfile file;
	const char *text = json_string_value(json_object_get(source, "dockerfile"));
	int r;

	if (!text)
		return refuse(err, "field dockerfile must be the text of a Dockerfile");
	reading->given = json_object_get(source, "args");
	r = dockerfile_split(text, &file, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < file.count && r == 0; i++) {
		r = read_instruction(reading, &file.list[i], err);
		if (r < 0)
			err_prefix(err, "line %u", file.list[i].line);
	}
	if (r == 0 && !reading->recipe->from)
		r = err_explain(
			err, ERR_INVALID, "invalid_dockerfile", NULL, "the Dockerfile has no FROM");
	dockerfile_fini(&file);
	return r;
}

/* --- recipes --- */

static int check_packages(const char *name, const json_t *list, struct err *err)
{
	json_t *one;
	size_t i;

	if (!recipe_are_texts(list, RECIPE_PACKAGES_MAX))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"field recipe.%s must be a list of at most %d texts", name,
			RECIPE_PACKAGES_MAX);
	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(one);

		/* A name that begins with - would be an option of the program. */
		if (!*text || *text == '-' || strlen(text) > RECIPE_NAME_MAX ||
			strpbrk(text, "\t\r\n"))
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"recipe.%s: %.60s is no name of a package", name, text);
	}
	return 0;
}

static int add_packages(struct reading *reading, const json_t *recipe, const char *name,
	enum recipe_step_kind kind, struct err *err)
{
	json_t *list = json_object_get(recipe, name);
	struct buf text = BUF_INIT(TITLE_MAX + RECIPE_NAME_MAX + 2);
	struct recipe_step *step;
	int r = list ? check_packages(name, list, err) : 0;

	if (r < 0 || json_array_size(list) == 0)
		return r;
	for (size_t i = 0; i < json_array_size(list) && text.len < TITLE_MAX; i++)
		buf_printf(&text, "%s%s", i > 0 ? " " : "", word_at(list, i));
	buf_append(&text, "", 1);
	step = add_step(reading, kind, name, (const char *)text.data, err);
	buf_fini(&text);
	if (!step)
		return -EINVAL;
	step->words = json_incref(list);
	return 0;
}

static int add_files(struct reading *reading, struct err *err)
{
	size_t count = json_object_size(reading->recipe->files);
	char text[40];
	struct recipe_step *step;

	if (count == 0)
		return 0;
	snprintf(text, sizeof(text), "%zu of the recipe", count);
	step = add_step(reading, RECIPE_COPY, "files", text, err);
	if (!step)
		return -EINVAL;
	step->words = json_pack("[s]", ".");
	step->target = mem_strdup("/");
	step->is_into = true;
	return 0;
}

static int add_commands(struct reading *reading, const json_t *recipe, struct err *err)
{
	json_t *list = json_object_get(recipe, "run"), *one;
	size_t i;

	if (!list)
		return 0;
	if (!recipe_are_texts(list, RECIPE_STEPS_MAX))
		return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
			"field recipe.run must be a list of at most %d commands", RECIPE_STEPS_MAX);
	json_array_foreach(list, i, one)
	{
		struct recipe_step *step =
			add_step(reading, RECIPE_RUN, "run", json_string_value(one), err);

		if (!step)
			return -EINVAL;
		step->words = json_pack("[s, s, s]", "/bin/sh", "-c", json_string_value(one));
	}
	return 0;
}

static int read_recipe_env(struct reading *reading, const json_t *env, struct err *err)
{
	const char *name;
	json_t *value;
	int r = 0;

	if (env && !json_is_object(env))
		return refuse(err, "field recipe.env must be an object of texts");
	json_object_foreach((json_t *)env, name, value)
	{
		if (!json_is_string(value))
			return refuse(err, "field recipe.env must be an object of texts");
		r = set_env(reading, name, json_string_value(value), err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_names(const json_t *recipe, struct err *err)
{
	static const char *const names[] = {"from", "apt", "apk", "pip", "npm", "run", "files",
		"files_base64", "modes", "links", "directories", "env", "mirrors"};
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)recipe, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < array_len(names); i++)
			is_known |= strcmp(names[i], name) == 0;
		if (!is_known)
			return err_explain(err, ERR_INVALID, "invalid_recipe",
				"a recipe has from, apt, apk, pip, npm, run, files, modes, links, "
				"directories, env and mirrors",
				"field recipe.%.60s is not known", name);
	}
	return 0;
}

/* What changes least comes first: the steps after a changed one run again. */
static int read_recipe(struct reading *reading, const json_t *recipe, struct err *err)
{
	const char *from = json_string_value(json_object_get(recipe, "from"));
	auto_free char *user = NULL;
	int r = check_names(recipe, err);

	if (r < 0)
		return r;
	if (!from || !*from)
		return refuse(err, "field recipe.from must be the name of a template or an image");
	reading->recipe->from = mem_strdup(from);
	begin_config(reading);
	/* All steps of a recipe are root's; who uses the result is as the base has it. */
	user = mem_strdup(config_text(reading, "user"));
	set_config(reading, "user", json_string(""));
	if ((r = read_recipe_env(reading, json_object_get(recipe, "env"), err)) < 0 ||
		(r = add_packages(reading, recipe, "apt", RECIPE_APT, err)) < 0 ||
		(r = add_packages(reading, recipe, "apk", RECIPE_APK, err)) < 0 ||
		(r = add_packages(reading, recipe, "npm", RECIPE_NPM, err)) < 0 ||
		(r = add_packages(reading, recipe, "pip", RECIPE_PIP, err)) < 0 ||
		(r = add_files(reading, err)) < 0 || (r = add_commands(reading, recipe, err)) < 0)
		return r;
	set_config(reading, "user", json_string(user));
	return 0;
}

/* --- mirrors --- */

static int take_mirrors(struct recipe *recipe, const json_t *mirrors, struct err *err)
{
	const char *name;
	json_t *value;

	if (mirrors && !json_is_object(mirrors))
		return refuse(err, "field mirrors must be an object");
	json_object_foreach((json_t *)mirrors, name, value)
	{
		const char *text = json_string_value(value);

		if (strcmp(name, "apt") != 0 && strcmp(name, "pip") != 0 &&
			strcmp(name, "npm") != 0 && strcmp(name, "apk") != 0)
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"field mirrors has apt, pip, npm and apk, not %.40s", name);
		if (!text || strlen(text) > RECIPE_NAME_MAX || strpbrk(text, " \t\r\n\"\\") ||
			(strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0))
			return err_explain(err, ERR_INVALID, "invalid_recipe", NULL,
				"field mirrors.%s must be an address that begins with http:// or "
				"https://",
				name);
		json_object_set(recipe->mirrors, name, value);
	}
	return 0;
}

/* --- */

static void fini_step(struct recipe_step *step)
{
	free(step->title);
	json_decref(step->words);
	free(step->target);
	free(step->chown);
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

int recipe_read(
	const json_t *source, const json_t *base, struct recipe *ret_recipe, struct err *err)
{
	const json_t *inner = json_object_get(source, "recipe");
	struct recipe recipe = {.steps = mem_new(RECIPE_STEPS_MAX * sizeof(*recipe.steps)),
		.files = json_object(),
		.mirrors = json_object(),
		.notes = json_array()};
	struct reading reading = {
		.recipe = &recipe, .base = base, .global = json_object(), .args = json_object()};
	int r;

	if (inner && !json_is_object(inner))
		r = refuse(err, "field recipe must be an object");
	else
		r = recipe_take_files(recipe.files, inner ? inner : source, err);
	if (r == 0)
		r = take_mirrors(&recipe, json_object_get(inner ? inner : source, "mirrors"), err);
	if (r == 0)
		r = inner ? read_recipe(&reading, inner, err)
			  : read_dockerfile(&reading, source, err);
	json_decref(reading.global);
	json_decref(reading.args);
	if (r < 0) {
		recipe_fini(&recipe);
		return r;
	}
	*ret_recipe = recipe;
	return 0;
}
