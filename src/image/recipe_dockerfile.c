/* SPDX-License-Identifier: Apache-2.0 */
/* A Dockerfile as steps: a table of instructions. Each FROM begins a stage, and one stage is read at a time. */
#include "image/recipe_dockerfile.h"

#include "base/buf.h"
#include "base/number.h"
#include "image/dockerfile.h"
#include "image/image_manifest.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SYSTEM "linux"
#define INSTRUCTIONS                                                                               \
	"FROM, RUN, COPY, ADD, ENV, WORKDIR, USER, EXPOSE, CMD, ENTRYPOINT and ARG are supported"

static const char *find_variable(void *arg, const char *name)
{
	const struct recipe_reading *reading = arg;
	const char *value = NULL;

	if (reading->recipe->image)
		value = json_string_value(json_object_get(recipe_env_of(reading), name));
	if (!value)
		value = json_string_value(json_object_get(reading->args, name));
	return value;
}

static int expand(
	struct recipe_reading *reading, const char *text, char **ret_text, struct err *err)
{
	const struct dockerfile_variables variables = {find_variable, reading};

	return dockerfile_expand(text, &variables, ret_text, err);
}

static int split_words(
	struct recipe_reading *reading, const char *text, json_t **ret_words, struct err *err)
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

/* Of an earlier stage, by its name or number; -1 if there is none. */
static int find_stage(const struct recipe_reading *reading, const char *name)
{
	uint64_t number;

	if (number_parse(name, 0, RECIPE_STAGES_MAX, &number) == 0)
		return (int)number < reading->stage ? (int)number : -1;
	/* The later of two of the same name is meant. */
	for (int i = reading->stage - 1; i >= 0; i--) {
		if (*name && strcasecmp(word_at(reading->names, (size_t)i), name) == 0)
			return i;
	}
	return -1;
}

static const char *find_global(void *arg, const char *name)
{
	const struct recipe_reading *reading = arg;

	return json_string_value(json_object_get(reading->global, name));
}

/* What builds for several platforms ask for; a stage knows of it what its ARG names. */
static void set_platform(struct recipe_reading *reading)
{
	static const char *const sides[] = {"BUILD", "TARGET"};

	for (size_t i = 0; i < array_len(sides); i++) {
		auto_free char *platform = mem_printf("%sPLATFORM", sides[i]),
			       *system = mem_printf("%sOS", sides[i]),
			       *machine = mem_printf("%sARCH", sides[i]);

		json_object_set_new(reading->global, platform,
			json_sprintf(SYSTEM "/%s", image_architecture()));
		json_object_set_new(reading->global, system, json_string(SYSTEM));
		json_object_set_new(reading->global, machine, json_string(image_architecture()));
	}
}

/* Takes the options off a FROM: this machine's platform may be named. */
static int read_from_options(json_t *words, struct err *err)
{
	auto_free char *own = mem_printf("--platform=" SYSTEM "/%s", image_architecture());

	while (json_array_size(words) > 0 && strncmp(word_at(words, 0), "--", 2) == 0) {
		const char *word = word_at(words, 0);

		if (strncmp(word, own, strlen(own)) != 0 ||
			(word[strlen(own)] && word[strlen(own)] != '/'))
			return err_explain(err, ERR_INVALID, "invalid_dockerfile",
				"leave it out, or say $TARGETPLATFORM",
				"FROM takes --platform of this machine alone, %s, not %.60s",
				own + strlen("--platform="), word);
		json_array_remove(words, 0);
	}
	return 0;
}

static int check_from(const json_t *words, struct err *err)
{
	size_t count = json_array_size(words);
	const char *name = word_at(words, 0);

	if (count == 0 || !*name)
		return recipe_refuse(err, "FROM needs the name of a template or an image");
	if (count != 1 && !(count == 3 && strcasecmp(word_at(words, 1), "as") == 0))
		return recipe_refuse(err, "FROM takes one name, and AS with a name for the stage");
	return 0;
}

/* Each begins a stage. Of all but the one that is read, nothing but this line counts. */
static int read_from(struct recipe_reading *reading, const char *text, struct err *err)
{
	const struct dockerfile_variables variables = {find_global, reading};
	struct recipe *recipe = reading->recipe;
	json_auto_t *words = NULL;
	int r = dockerfile_words(text, &variables, &words, err);

	if (r < 0)
		return r;
	reading->stage++;
	r = read_from_options(words, err);
	if (r == 0)
		r = check_from(words, err);
	if (r < 0 || reading->stage != recipe->stage)
		return r;
	recipe->from = mem_strdup(word_at(words, 0));
	/* A number is an image's name here, and a stage's in COPY. */
	recipe->from_stage =
		isdigit((unsigned char)*recipe->from) ? -1 : find_stage(reading, recipe->from);
	json_object_clear(reading->args);
	recipe_begin_config(reading);
	return 0;
}

static int read_arg(struct recipe_reading *reading, const char *text, struct err *err)
{
	bool is_global = reading->stage < 0;
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
		if (!recipe_is_env_name(name)) {
			r = recipe_refuse(err, "ARG takes NAME or NAME=value");
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

/* Whether a RUN does the same without an option: a cache is a directory of the layer then. */
static bool can_leave_out(const char *option, size_t len)
{
	static const char *const known[] = {"--mount=type=cache", "--mount=type=tmpfs",
		"--network=default", "--security=sandbox"};

	for (size_t i = 0; i < array_len(known); i++) {
		size_t known_len = strlen(known[i]);

		if (len >= known_len && strncmp(option, known[i], known_len) == 0 &&
			(len == known_len || option[known_len] == ','))
			return true;
	}
	return false;
}

/* Takes the options off a RUN. */
static int read_run_options(struct recipe_reading *reading, const char **text, struct err *err)
{
	while (strncmp(*text, "--", 2) == 0) {
		size_t len = strcspn(*text, " \t");

		if (!can_leave_out(*text, len))
			return err_explain(err, ERR_INVALID, "invalid_dockerfile",
				"COPY what the command needs; what it reaches is the network of "
				"sandboxes of yours",
				"the option %.*s of RUN is not supported",
				(int)(len < 60 ? len : 60), *text);
		recipe_note(reading, "line %u: %.*s is left out", reading->line,
			(int)(len < 60 ? len : 60), *text);
		*text += len + strspn(*text + len, " \t");
	}
	return 0;
}

static int read_run(struct recipe_reading *reading, const char *text, struct err *err)
{
	struct recipe_step *step;
	int r = read_run_options(reading, &text, err);

	if (r < 0)
		return r;
	if (!*text)
		return recipe_refuse(err, "RUN needs a command");
	step = recipe_add_step(reading, RECIPE_RUN, "RUN", text, err);
	if (!step)
		return -EINVAL;
	step->words = command_of(text);
	return step->words ? 0 : recipe_refuse(err, "the command is not UTF-8");
}

static int read_env(struct recipe_reading *reading, const char *text, struct err *err)
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
			return recipe_refuse(err, "ENV takes NAME=value");
		r = expand(reading, text, &value, err);
		return r < 0 ? r : recipe_set_env(reading, name, value, err);
	}
	r = split_words(reading, text, &words, err);
	if (r < 0)
		return r;
	json_array_foreach(words, i, word)
	{
		auto_free char *name = mem_strdup(json_string_value(word));
		char *equals = strchr(name, '=');

		if (!equals) {
			r = recipe_refuse(err, "ENV takes NAME=value");
			break;
		}
		*equals = '\0';
		r = recipe_set_env(reading, name, equals + 1, err);
		if (r < 0)
			break;
	}
	json_decref(words);
	return r;
}

static int read_workdir(struct recipe_reading *reading, const char *text, struct err *err)
{
	auto_free char *name = NULL, *path = NULL;
	struct recipe_step *step;
	int r = expand(reading, text, &name, err);

	if (r < 0)
		return r;
	if (!*name || strlen(name) > RECIPE_NAME_MAX)
		return recipe_refuse(err, "WORKDIR needs a directory");
	path = recipe_join_path(recipe_config_text(reading, "workdir"), name);
	if (strlen(path) > RECIPE_NAME_MAX)
		return recipe_refuse(err, "the directory's name is too long");
	step = recipe_add_step(reading, RECIPE_MKDIR, "WORKDIR", path, err);
	if (!step)
		return -EINVAL;
	step->target = mem_strdup(path);
	recipe_set_config(reading, "workdir", json_string(path));
	return 0;
}

static int read_user(struct recipe_reading *reading, const char *text, struct err *err)
{
	auto_free char *name = NULL;
	int r = expand(reading, text, &name, err);

	if (r < 0)
		return r;
	if (!*name || strlen(name) > RECIPE_NAME_MAX || strpbrk(name, " \t"))
		return recipe_refuse(err, "USER takes a name or an id, and a group after a colon");
	recipe_set_config(reading, "user", json_string(name));
	return 0;
}

static int read_expose(struct recipe_reading *reading, const char *text, struct err *err)
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
			r = recipe_refuse(
				err, "EXPOSE takes ports from 1 to 65535, with /tcp or /udp");
			break;
		}
		if (strcmp(end, "/udp") == 0)
			recipe_note(reading, "line %u: the port %lu/udp is left out", reading->line,
				port);
		else
			json_array_append_new(ports, json_integer((json_int_t)port));
	}
	json_decref(words);
	return r;
}

static int read_cmd(struct recipe_reading *reading, const char *text, struct err *err)
{
	json_t *command = *text ? command_of(text) : NULL;

	if (!command)
		return recipe_refuse(err, "CMD needs a command");
	recipe_set_config(reading, "command", command);
	reading->is_command_set = true;
	return 0;
}

static int read_entrypoint(struct recipe_reading *reading, const char *text, struct err *err)
{
	json_t *command = *text ? command_of(text) : NULL;

	if (!command)
		return recipe_refuse(err, "ENTRYPOINT needs a command");
	recipe_set_config(reading, "entrypoint", command);
	/* The base's arguments were meant for the base's program. */
	if (!reading->is_command_set)
		recipe_set_config(reading, "command", json_array());
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
			return recipe_refuse(err, "--chmod takes an octal number");
		step->mode = (int)mode;
		return 0;
	}
	if (strcmp(word, "--link") == 0)
		return 0;
	if (strncmp(word, "--from=", 7) == 0 && word[7] && strlen(word) <= RECIPE_NAME_MAX) {
		free(step->source);
		step->source = mem_strdup(word + 7);
		return 0;
	}
	return err_explain(err, ERR_INVALID, "invalid_dockerfile",
		"of options --from, --chown, --chmod and --link are supported",
		"the option %.60s is not supported", word);
}

static int check_sources(
	const struct recipe_reading *reading, const json_t *sources, bool is_add, struct err *err)
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
			return recipe_refuse(err, "the name of a file is too long");
		if (!reading->recipe->has_sent_files &&
			recipe_match(reading->recipe->files, word, NULL, NULL) == 0)
			return err_explain(err, ERR_INVALID, "invalid_dockerfile",
				"send it in `files`, with its path relative to the Dockerfile",
				"there is no file %.120s in the request", word);
	}
	return 0;
}

/* What is copied from a stage, or another image, is looked for there when the step is done. */
static int check_foreign_sources(
	struct recipe_reading *reading, struct recipe_step *step, bool is_add, struct err *err)
{
	const json_t *one;
	uint64_t number;
	size_t i;

	if (is_add)
		return recipe_refuse(err, "--from is for COPY, not for ADD");
	step->source_stage = find_stage(reading, step->source);
	if (step->source_stage < 0 && number_parse(step->source, 0, UINT32_MAX, &number) == 0)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile",
			"stages are counted from 0, and the one before can be named",
			"there is no stage %.20s before this line", step->source);
	json_array_foreach(step->words, i, one)
	{
		if (strlen(json_string_value(one)) > RECIPE_NAME_MAX)
			return recipe_refuse(err, "the name of a file is too long");
	}
	return 0;
}

static int fill_copy(struct recipe_reading *reading, struct recipe_step *step, json_t *words,
	bool is_add, struct err *err)
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
		return recipe_refuse(err, "COPY takes files and where they go");
	target = word_at(words, json_array_size(words) - 1);
	len = strlen(target);
	if (len == 0 || len > RECIPE_NAME_MAX)
		return recipe_refuse(err, "the name of the target is empty or too long");
	step->is_into = target[len - 1] == '/' || strcmp(target, ".") == 0 ||
			(len > 1 && strcmp(target + len - 2, "/.") == 0);
	if (json_array_size(words) > 2 && !step->is_into)
		return recipe_refuse(err, "the target of several files must end with /");
	step->target = recipe_join_path(recipe_config_text(reading, "workdir"), target);
	json_array_remove(words, json_array_size(words) - 1);
	step->words = json_incref(words);
	step->unpacks = is_add;
	return step->source ? check_foreign_sources(reading, step, is_add, err)
			    : check_sources(reading, words, is_add, err);
}

static int read_copy_or_add(
	struct recipe_reading *reading, const char *name, const char *text, struct err *err)
{
	const char *list = strchr(text, '[');
	struct recipe_step *step = recipe_add_step(reading, RECIPE_COPY, name, text, err);
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

static int read_copy(struct recipe_reading *reading, const char *text, struct err *err)
{
	return read_copy_or_add(reading, "COPY", text, err);
}

static int read_add(struct recipe_reading *reading, const char *text, struct err *err)
{
	return read_copy_or_add(reading, "ADD", text, err);
}

/* Means nothing to a sandbox. */
static int read_nothing(struct recipe_reading *reading, const char *text, struct err *err)
{
	(void)reading;
	(void)text;
	(void)err;
	return 0;
}

static const struct instruction {
	const char *name;
	int (*read)(struct recipe_reading *reading, const char *text, struct err *err);
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
	struct recipe_reading *reading, const struct dockerfile_instruction *one, struct err *err)
{
	const struct instruction *known = find_instruction(one->name);

	reading->line = one->line;
	if (!known)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile", INSTRUCTIONS,
			"%s is not supported", one->name);
	if (reading->stage < 0 && known->read != read_from && known->read != read_arg)
		return err_explain(err, ERR_INVALID, "invalid_dockerfile", NULL,
			"before FROM there may be ARG alone, not %s", one->name);
	if (known->read != read_from && reading->stage >= 0 &&
		reading->stage != reading->recipe->stage)
		return 0;
	if (known->read == read_nothing)
		recipe_note(reading, "line %u: %s is left out", one->line, one->name);
	return known->read(reading, one->text, err);
}

/* The names of all stages, which are known before any of them is read. */
static int name_stages(
	struct recipe_reading *reading, const struct dockerfile *file, struct err *err)
{
	for (size_t i = 0; i < file->count; i++) {
		json_auto_t *words = NULL;
		int r;

		if (strcmp(file->list[i].name, "FROM") != 0)
			continue;
		if (json_array_size(reading->names) == RECIPE_STAGES_MAX)
			return recipe_refuse(err, "there are too many stages");
		r = dockerfile_words(file->list[i].text, NULL, &words, err);
		if (r < 0) {
			err_prefix(err, "line %u", file->list[i].line);
			return r;
		}
		while (json_array_size(words) > 0 && strncmp(word_at(words, 0), "--", 2) == 0)
			json_array_remove(words, 0);
		json_array_append_new(reading->names,
			json_array_size(words) == 3 ? json_incref(json_array_get(words, 2))
						    : json_string(""));
	}
	return 0;
}

/* Which stage is read: one that the builder needs, else the one that is wanted, which is the last unless it is named. */
static int choose_stage(struct recipe_reading *reading, const json_t *source, struct err *err)
{
	struct recipe *recipe = reading->recipe;
	const json_t *target = json_object_get(source, "target");
	const char *name = json_string_value(target);

	recipe->stage_count = (int)json_array_size(reading->names);
	/* The first line that is wrong tells more. */
	if (recipe->stage_count == 0)
		return 0;
	if (recipe->stage != RECIPE_TARGET) {
		assert(recipe->stage < recipe->stage_count);
		return 0;
	}
	recipe->stage = recipe->stage_count - 1;
	if (!target)
		return 0;
	reading->stage = recipe->stage_count;
	recipe->stage = name ? find_stage(reading, name) : -1;
	reading->stage = -1;
	return recipe->stage >= 0
		       ? 0
		       : err_explain(err, ERR_INVALID, "invalid_dockerfile",
				 "name a stage as in FROM ... AS name, or count from 0",
				 "the Dockerfile has no stage %.60s", name ? name : "of that name");
}

int recipe_read_dockerfile(struct recipe_reading *reading, const json_t *source, struct err *err)
{
	struct dockerfile file;
	const char *text = json_string_value(json_object_get(source, "dockerfile"));
	int r;

	if (!text)
		return recipe_refuse(err, "field dockerfile must be the text of a Dockerfile");
	reading->recipe->has_sent_files = json_object_get(source, "files_digest");
	if (reading->recipe->has_sent_files && json_object_size(reading->recipe->files) > 0)
		return recipe_refuse(
			err, "files are in the request, or were sent before: files_digest");
	reading->given = json_object_get(source, "args");
	set_platform(reading);
	r = dockerfile_split(text, &file, err);
	if (r < 0)
		return r;
	r = name_stages(reading, &file, err);
	if (r == 0)
		r = choose_stage(reading, source, err);
	for (size_t i = 0; i < file.count && r == 0; i++) {
		r = read_instruction(reading, &file.list[i], err);
		if (r < 0)
			err_prefix(err, "line %u", file.list[i].line);
	}
	if (r == 0 && reading->recipe->stage_count == 0)
		r = err_explain(
			err, ERR_INVALID, "invalid_dockerfile", NULL, "the Dockerfile has no FROM");
	dockerfile_fini(&file);
	return r;
}
