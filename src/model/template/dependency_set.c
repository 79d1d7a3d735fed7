/* SPDX-License-Identifier: Apache-2.0 */
#include "model/template/dependency_set.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS	  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	  "0123456789"
#define NAME	  LETTERS DIGITS "._-"
#define VERSION	  NAME "*+!"
#define OPERATORS "<>=!~"

const char *const dependency_languages[] = {"python", "node", NULL};
const char *const dependency_file_names[DEPENDENCY_FILES] = {
	[DEPENDENCY_REQUIREMENTS] = "requirements",
	[DEPENDENCY_PACKAGE_JSON] = "package_json",
	[DEPENDENCY_PACKAGE_LOCK] = "package_lock",
};

/* --- what may be asked --- */

static const char *skip_spaces(const char *at)
{
	return at + strspn(at, " ");
}

/* "[a,b]", or nothing. NULL if it does not end. */
static const char *skip_extras(const char *at)
{
	if (*at != '[')
		return at;
	at += 1 + strspn(at + 1, NAME ", ");
	return *at == ']' ? at + 1 : NULL;
}

/* ">=1.2, <2", or nothing. NULL if an operator has no version. */
static const char *skip_versions(const char *at)
{
	while (*at && strchr(OPERATORS, *at)) {
		size_t len;

		at = skip_spaces(at + strspn(at, OPERATORS));
		len = strspn(at, VERSION);
		if (len == 0)
			return NULL;
		at = skip_spaces(at + len);
		if (*at != ',')
			break;
		at = skip_spaces(at + 1);
		if (!*at || !strchr(OPERATORS, *at))
			return NULL;
	}
	return at;
}

/* PEP 508 without addresses: name[extras] versions ; marker. */
const char *dependency_set_check_python(const char *text)
{
	static const char wrong[] =
		"has a package that is not of the form name, name==1.2 or name[extra]>=1,<2";
	size_t len = strspn(text, NAME);
	const char *at = text + len;

	if (strlen(text) > DEPENDENCY_TEXT_MAX)
		return "has a package that is too long";
	if (len == 0 || !isalnum((unsigned char)text[0]) || !isalnum((unsigned char)text[len - 1]))
		return wrong;
	at = skip_extras(skip_spaces(at));
	at = at ? skip_versions(skip_spaces(at)) : NULL;
	if (!at || (*at && *at != ';'))
		return wrong;
	/* A marker is a condition of the environment: words, texts and comparisons. */
	if (*at == ';' && at[1 + strspn(at + 1, NAME OPERATORS " '\"(),")])
		return "has a package whose marker has more than words, texts and comparisons";
	return NULL;
}

/* Length of a name that begins here; 0 if none does. */
static size_t node_name(const char *at)
{
	return isalnum((unsigned char)*at) ? strspn(at, NAME "~") : 0;
}

/* name, @scope/name, and both with @version, @range or @tag. */
const char *dependency_set_check_node(const char *text)
{
	static const char wrong[] =
		"has a package that is not of the form name, @scope/name or name@1.2";
	const char *at = text;
	size_t len;

	if (strlen(text) > DEPENDENCY_TEXT_MAX)
		return "has a package that is too long";
	if (*at == '@') {
		len = node_name(at + 1);
		at += 1 + len;
		if (len == 0 || *at++ != '/')
			return wrong;
	}
	len = node_name(at);
	at += len;
	if (len == 0 || (*at && *at != '@'))
		return wrong;
	if (!*at)
		return NULL;
	at++;
	return *at && *at != '-' && !at[strspn(at, VERSION OPERATORS "^| ")] ? NULL : wrong;
}

static int check_list(const char *field, struct text_list list,
	const char *(*check)(const char *text), struct err *err)
{
	if (list.count > DEPENDENCY_PACKAGES_MAX)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field %s must have at most %d entries", field, DEPENDENCY_PACKAGES_MAX);
	for (size_t i = 0; i < list.count; i++) {
		const char *wrong = check(list.texts[i]);

		if (wrong)
			return err_explain(err, ERR_INVALID, "invalid_field", NULL,
				"field %s %s: %.80s", field, wrong, list.texts[i]);
	}
	return 0;
}

static int check_files(const struct dependency_spec *spec, struct err *err)
{
	bool has_manifest = spec->files[DEPENDENCY_PACKAGE_JSON];

	for (size_t i = 0; i < DEPENDENCY_FILES; i++) {
		const char *text = spec->files[i];

		if (text && (!*text || strlen(text) > DEPENDENCY_FILE_MAX))
			return err_explain(err, ERR_INVALID, "invalid_field", NULL,
				"field %s must be the text of a file of at most %u MiB, not empty",
				dependency_file_names[i], DEPENDENCY_FILE_MAX >> 20);
	}
	if (has_manifest == !!spec->files[DEPENDENCY_PACKAGE_LOCK])
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_field",
		has_manifest ? "make a lock file with \"npm install --package-lock-only\", or name "
			       "packages in `node`"
			     : "give the package.json that it was made for, too",
		"field %s is missing: npm ci needs package.json and package-lock.json",
		dependency_file_names[has_manifest ? DEPENDENCY_PACKAGE_LOCK
						   : DEPENDENCY_PACKAGE_JSON]);
}

int dependency_set_check(const struct dependency_spec *spec, struct err *err)
{
	int r = check_list("python", spec->python, dependency_set_check_python, err);

	if (r == 0)
		r = check_list("node", spec->node, dependency_set_check_node, err);
	return r < 0 ? r : check_files(spec, err);
}

bool dependency_spec_is_empty(const struct dependency_spec *spec)
{
	for (size_t i = 0; i < DEPENDENCY_FILES; i++) {
		if (spec->files[i])
			return false;
	}
	return spec->python.count == 0 && spec->node.count == 0;
}

/* --- sets --- */

/* The name alone, so that two texts with the same package are known: "Zope_Interface>=5" is zope-interface. */
static char *python_name(const char *text)
{
	size_t len = strspn(text, NAME), n = 0;
	char *name = mem_new(len + 1);

	for (size_t i = 0; i < len; i++) {
		bool is_joint = strchr("._-", text[i]);

		if (is_joint && n > 0 && name[n - 1] == '-')
			continue;
		name[n++] = is_joint ? '-' : (char)tolower((unsigned char)text[i]);
	}
	return name;
}

static char *node_name_of(const char *text)
{
	const char *at = strchr(text + (*text == '@'), '@');

	return mem_printf("%.*s", (int)(at ? (size_t)(at - text) : strlen(text)), text);
}

static void add_texts(json_t *by_name, const char *language, const json_t *texts)
{
	const json_t *value;
	size_t i;

	json_array_foreach((json_t *)texts, i, value)
	{
		const char *text = json_string_value(value);
		auto_free char *name =
			strcmp(language, "python") == 0 ? python_name(text) : node_name_of(text);

		json_object_set_new(by_name, name, json_string(text));
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts in the order of their names. */
static json_t *in_order(json_t *by_name)
{
	size_t count = json_object_size(by_name), i = 0;
	auto_free const char **names = mem_new((count + 1) * sizeof(*names));
	json_t *list = json_array(), *value;
	const char *name;

	json_object_foreach(by_name, name, value) names[i++] = name;
	qsort(names, count, sizeof(*names), compare);
	for (i = 0; i < count; i++)
		json_array_append(list, json_object_get(by_name, names[i]));
	return list;
}

/* A file of the second counts; package.json and its lock are of one of both. */
static void join_files(json_t *joined, const json_t *set, const json_t *more)
{
	for (size_t i = 0; i < DEPENDENCY_FILES; i++) {
		const char *name = dependency_file_names[i];
		json_t *file = json_object_get(more, name);

		if (!file)
			file = json_object_get(set, name);
		if (file)
			json_object_set(joined, name, file);
	}
}

json_t *dependency_set_join(const json_t *set, const json_t *more)
{
	json_t *joined = json_object();

	for (size_t i = 0; dependency_languages[i]; i++) {
		const char *language = dependency_languages[i];
		json_auto_t *by_name = json_object();

		add_texts(by_name, language, json_object_get(set, language));
		add_texts(by_name, language, json_object_get(more, language));
		json_object_set_new(joined, language, in_order(by_name));
	}
	join_files(joined, set, more);
	return joined;
}

json_t *dependency_set_new(const struct dependency_spec *spec)
{
	json_auto_t *set = json_pack("{s:o, s:o}", "python", text_list_to_json(spec->python),
		"node", text_list_to_json(spec->node));

	return dependency_set_join(NULL, set);
}

int dependency_set_check_size(const json_t *set, struct err *err)
{
	for (size_t i = 0; dependency_languages[i]; i++) {
		const char *language = dependency_languages[i];

		if (json_array_size(json_object_get(set, language)) > DEPENDENCY_PACKAGES_MAX)
			return err_explain(err, ERR_INVALID, "too_many_packages",
				"make a template of those that many sandboxes need",
				"a sandbox has at most %d packages of %s", DEPENDENCY_PACKAGES_MAX,
				language);
	}
	return 0;
}

bool dependency_set_is_empty(const json_t *set)
{
	for (size_t i = 0; dependency_languages[i]; i++) {
		if (json_array_size(json_object_get(set, dependency_languages[i])) > 0)
			return false;
	}
	for (size_t i = 0; i < DEPENDENCY_FILES; i++) {
		if (json_object_get(set, dependency_file_names[i]))
			return false;
	}
	return true;
}

bool dependency_set_equals(const json_t *set, const json_t *other)
{
	json_auto_t *a = dependency_set_join(NULL, set), *b = dependency_set_join(NULL, other);

	return json_equal(a, b);
}
