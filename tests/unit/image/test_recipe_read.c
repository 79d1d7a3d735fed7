/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe_read.h"

#include "image/dockerfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef __aarch64__
#define MACHINE "arm64"
#else
#define MACHINE "amd64"
#endif
#define PLATFORM "linux/" MACHINE

static const char base_text[] =
	"{\"stack\": \"x\", \"env\": {\"PATH\": \"/bin\"}, \"user\": \"app\", \"workdir\": "
	"\"/srv\","
	" \"entrypoint\": [\"/entry\"], \"command\": [\"serve\"], \"ports\": [80]}";

static int read_source(json_t *source, struct recipe *recipe, struct err *err)
{
	json_t *base = json_loads(base_text, 0, NULL);
	int r = recipe_read(source, base, recipe, err);

	json_decref(base);
	json_decref(source);
	return r;
}

static int read_dockerfile(const char *text, struct recipe *recipe, struct err *err)
{
	return read_source(json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:{s:s}}", "dockerfile", text,
				   "files", "app.py", "print()", "./lib/a.txt", "a",
				   "lib/sub/b.txt", "b", "notes.txt", "n", "args", "VERSION", "9"),
		recipe, err);
}

static void assert_json(const json_t *value, const char *text)
{
	json_t *expected = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(expected);
	assert_true(json_equal(value, expected));
	json_decref(expected);
}

static void assert_config(const struct recipe *recipe, const char *name, const char *text)
{
	assert_json(json_object_get(recipe->image, name), text);
}

static void options_that_change_nothing_here_are_left_out(void **state)
{
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(
		read_dockerfile(
			"FROM --platform=$BUILDPLATFORM a AS tools\n"
			"FROM --platform=" PLATFORM "/v2 b-$TARGETARCH\n"
			"ARG TARGETARCH\n"
			"RUN --mount=type=cache,target=/c --mount=type=tmpfs,target=/t make\n"
			"COPY --from=tools /a /b\n",
			&recipe, &err),
		0);
	assert_string_equal(recipe.from, "b-" MACHINE);
	assert_int_equal(recipe.count, 2);
	assert_json(recipe.steps[0].words, "[\"/bin/sh\", \"-c\", \"make\"]");
	assert_string_equal(
		json_string_value(json_object_get(recipe.steps[0].env, "TARGETARCH")), MACHINE);
	assert_null(json_object_get(recipe.steps[0].env, "TARGETOS"));
	assert_int_equal(recipe.steps[1].source_stage, 0);
	assert_json(recipe.notes, "[\"line 4: --mount=type=cache,target=/c is left out\","
				  " \"line 4: --mount=type=tmpfs,target=/t is left out\"]");
	recipe_fini(&recipe);
}

static void a_dockerfile_becomes_steps(void **state)
{
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(read_dockerfile("ARG BASE=debian12\n"
					 "ARG VERSION=1\n"
					 "FROM ${BASE}:$VERSION AS main\n"
					 "ARG VERSION\n"
					 "ARG NAME=x\n"
					 "ENV PATH=/opt/bin:$PATH GREETING=\"hi $NAME\"\n"
					 "LABEL a=b\n"
					 "WORKDIR app\n"
					 "COPY --chown=1000:1000 --chmod=640 app.py lib/*.txt ./\n"
					 "RUN echo $VERSION\n"
					 "USER root\n"
					 "RUN [\"/bin/true\", \"-x\"]\n"
					 "EXPOSE 8080 53/udp\n"
					 "CMD [\"python3\", \"app.py\"]\n",
				 &recipe, &err),
		0);
	assert_string_equal(recipe.from, "debian12:9");
	assert_int_equal(recipe.count, 4);

	assert_int_equal(recipe.steps[0].kind, RECIPE_MKDIR);
	assert_string_equal(recipe.steps[0].target, "/srv/app");

	assert_int_equal(recipe.steps[1].kind, RECIPE_COPY);
	assert_string_equal(recipe.steps[1].target, "/srv/app");
	assert_true(recipe.steps[1].is_into);
	assert_string_equal(recipe.steps[1].chown, "1000:1000");
	assert_int_equal(recipe.steps[1].mode, 0640);
	assert_json(recipe.steps[1].words, "[\"app.py\", \"lib/*.txt\"]");

	assert_int_equal(recipe.steps[2].kind, RECIPE_RUN);
	assert_int_equal(recipe.steps[2].line, 10);
	assert_string_equal(recipe.steps[2].title, "RUN echo $VERSION");
	assert_string_equal(recipe.steps[2].user, "app");
	assert_string_equal(recipe.steps[2].workdir, "/srv/app");
	assert_json(recipe.steps[2].words, "[\"/bin/sh\", \"-c\", \"echo $VERSION\"]");
	assert_json(recipe.steps[2].env, "{\"PATH\": \"/opt/bin:/bin\", \"GREETING\": \"hi x\","
					 " \"VERSION\": \"9\", \"NAME\": \"x\"}");

	assert_string_equal(recipe.steps[3].user, "root");
	assert_json(recipe.steps[3].words, "[\"/bin/true\", \"-x\"]");

	assert_config(&recipe, "env", "{\"PATH\": \"/opt/bin:/bin\", \"GREETING\": \"hi x\"}");
	assert_config(&recipe, "user", "\"root\"");
	assert_config(&recipe, "workdir", "\"/srv/app\"");
	assert_config(&recipe, "command", "[\"python3\", \"app.py\"]");
	assert_config(&recipe, "entrypoint", "[\"/entry\"]");
	assert_config(&recipe, "ports", "[80, 8080]");
	assert_json(recipe.notes, "[\"line 7: LABEL is left out\","
				  " \"line 13: the port 53/udp is left out\"]");
	recipe_fini(&recipe);
}

static void an_entrypoint_forgets_the_command_of_the_base(void **state)
{
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(read_dockerfile("FROM a\nENTRYPOINT exec me\n", &recipe, &err), 0);
	assert_config(&recipe, "entrypoint", "[\"/bin/sh\", \"-c\", \"exec me\"]");
	assert_config(&recipe, "command", "[]");
	recipe_fini(&recipe);
	assert_int_equal(
		read_dockerfile("FROM a\nCMD [\"x\"]\nENTRYPOINT [\"y\"]\n", &recipe, &err), 0);
	assert_config(&recipe, "command", "[\"x\"]");
	recipe_fini(&recipe);
}

static int read_stage(int stage, const char *target, struct recipe *recipe, struct err *err)
{
	json_auto_t *source = json_pack("{s:s, s:s*}", "dockerfile",
		"ARG A=a\nARG B=wrong\nFROM $A AS One\nARG B=b\nENV B=$B\nRUN x\n"
		"FROM one AS two\nARG A\nRUN $A\n"
		"FROM 0 AS last\nCOPY --from=ONE /x /y\nCOPY --from=1 /x /y\n"
		"COPY --from=other --chmod=700 /x/*.c /y/\n",
		"target", target);

	return recipe_read_stage(source, stage, NULL, recipe, err);
}

static void stages_are_read_one_at_a_time(void **state)
{
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(read_stage(0, NULL, &recipe, &err), 0);
	assert_string_equal(recipe.from, "a");
	assert_int_equal(recipe.from_stage, -1);
	assert_int_equal(recipe.stage_count, 3);
	assert_config(&recipe, "env", "{\"B\": \"b\"}");
	assert_int_equal(recipe.count, 1);
	recipe_fini(&recipe);
	assert_int_equal(read_stage(1, NULL, &recipe, &err), 0);
	assert_int_equal(recipe.from_stage, 0);
	assert_json(recipe.steps[0].env, "{\"A\": \"a\"}");
	recipe_fini(&recipe);
	assert_int_equal(read_stage(RECIPE_TARGET, NULL, &recipe, &err), 0);
	assert_int_equal(recipe.stage, 2);
	assert_int_equal(recipe.from_stage, -1); /* 0 is an image's name here */
	assert_int_equal(recipe.steps[0].source_stage, 0);
	assert_int_equal(recipe.steps[1].source_stage, 1);
	assert_int_equal(recipe.steps[2].source_stage, -1);
	assert_int_equal(recipe.steps[2].mode, 0700);
	recipe_fini(&recipe);
	assert_int_equal(read_stage(RECIPE_TARGET, "TWO", &recipe, &err), 0);
	assert_int_equal(recipe.stage, 1);
	recipe_fini(&recipe);
	assert_int_equal(read_stage(RECIPE_TARGET, "0", &recipe, &err), 0);
	assert_int_equal(recipe.stage, 0);
	recipe_fini(&recipe);
	assert_true(read_stage(RECIPE_TARGET, "3", &recipe, &err) < 0);
	assert_string_equal(err.message, "the Dockerfile has no stage 3");
}

static void the_number_of_stages_is_bounded(void **state)
{
	char text[8 * (RECIPE_STAGES_MAX + 2)] = "";
	struct recipe recipe;
	struct err err;

	(void)state;
	for (int i = 0; i < RECIPE_STAGES_MAX; i++)
		strcat(text, "FROM a\n");
	assert_int_equal(read_dockerfile(text, &recipe, &err), 0);
	assert_int_equal(recipe.stage_count, RECIPE_STAGES_MAX);
	recipe_fini(&recipe);
	strcat(text, "FROM a\n");
	assert_true(read_dockerfile(text, &recipe, &err) < 0);
	assert_string_equal(err.message, "there are too many stages");
}

static void a_failure_names_the_line_and_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"", "the Dockerfile has no FROM"},
		{"RUN x", "line 1: before FROM there may be ARG alone, not RUN"},
		{"FROM", "line 1: FROM needs the name of a template or an image"},
		{"FROM a b", "line 1: FROM takes one name, and AS with a name for the stage"},
		{"FROM --platform=windows/amd64 a",
			"line 1: FROM takes --platform of this machine alone, " PLATFORM
			", not --platform=windows/amd64"},
		{"FROM --platform=" PLATFORM "x a",
			"line 1: FROM takes --platform of this machine alone, " PLATFORM
			", not --platform=" PLATFORM "x"},
		{"FROM --other a", "line 1: FROM takes --platform of this machine alone, " PLATFORM
				   ", not --other"},
		{"FROM a\nFROM b\nCOPY --from=1 /x /y",
			"line 3: there is no stage 1 before this line"},
		{"FROM a\nADD --from=b /x /y", "line 2: --from is for COPY, not for ADD"},
		{"FROM a\n\nSHELL [\"x\"]", "line 3: SHELL is not supported"},
		{"FROM a\nONBUILD RUN x", "line 2: ONBUILD is not supported"},
		{"FROM a\nRUN --mount=type=secret,id=x y",
			"line 2: the option --mount=type=secret,id=x of RUN is not supported"},
		{"FROM a\nRUN --network=host y",
			"line 2: the option --network=host of RUN is not supported"},
		{"FROM a\nRUN --mount=type=caches y",
			"line 2: the option --mount=type=caches of RUN is not supported"},
		{"FROM a\nRUN --mount=type=cache,target=/x", "line 2: RUN needs a command"},
		{"FROM a\nRUN", "line 2: RUN needs a command"},
		{"FROM a\nENV A", "line 2: ENV takes NAME=value"},
		{"FROM a\nENV 1=2", "line 2: 1 is no name of a variable"},
		{"FROM a\nENV A=\"x", "line 2: a \" is not closed"},
		{"FROM a\nCOPY app.py", "line 2: COPY takes files and where they go"},
		{"FROM a\nCOPY app.py lib /x",
			"line 2: the target of several files must end with /"},
		{"FROM a\nCOPY none.py /x", "line 2: there is no file none.py in the request"},
		{"FROM a\nCOPY --parents app.py /x",
			"line 2: the option --parents is not supported"},
		{"FROM a\nCOPY --chmod=x app.py /x", "line 2: --chmod takes an octal number"},
		{"FROM a\nADD https://a.example/x /x",
			"line 2: ADD of an address is not supported"},
		{"FROM a\nADD a.tar.xz /x",
			"line 2: ADD unpacks tar and tar.gz alone, not a.tar.xz"},
		{"FROM a\nEXPOSE 0",
			"line 2: EXPOSE takes ports from 1 to 65535, with /tcp or /udp"},
		{"FROM a\nUSER a b",
			"line 2: USER takes a name or an id, and a group after a colon"},
		{"FROM a\nARG 1x", "line 2: ARG takes NAME or NAME=value"},
	};
	struct recipe recipe;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_true(read_dockerfile(bad[i].text, &recipe, &err) < 0);
		assert_string_equal(err.message, bad[i].message);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void collect(void *arg, const char *path, const char *below)
{
	json_object_set_new(arg, path, json_string(below));
}

static void files_are_found_by_name_pattern_and_directory(void **state)
{
	static const struct {
		const char *word, *found;
	} cases[] = {
		{"app.py", "{\"app.py\": \"\"}"},
		{"/app.py", "{\"app.py\": \"\"}"},
		{"*.py", "{\"app.py\": \"\"}"},
		{"lib", "{\"lib/a.txt\": \"a.txt\", \"lib/sub/b.txt\": \"sub/b.txt\"}"},
		{"lib/", "{\"lib/a.txt\": \"a.txt\", \"lib/sub/b.txt\": \"sub/b.txt\"}"},
		{"lib/*", "{\"lib/a.txt\": \"\", \"lib/sub/b.txt\": \"b.txt\"}"},
		{".", "{\"app.py\": \"app.py\", \"lib/a.txt\": \"lib/a.txt\","
		      " \"lib/sub/b.txt\": \"lib/sub/b.txt\", \"notes.txt\": \"notes.txt\"}"},
		{"li", "{}"},
		{"../../app.py", "{\"app.py\": \"\"}"},
	};
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(read_dockerfile("FROM a\n", &recipe, &err), 0);
	for (size_t i = 0; i < array_len(cases); i++) {
		json_t *found = json_object();

		recipe_match(recipe.files, cases[i].word, collect, found);
		assert_json(found, cases[i].found);
		json_decref(found);
	}
	recipe_fini(&recipe);
}

static void modes_links_and_directories_come_with_files(void **state)
{
	static const struct {
		const char *context, *message;
	} bad[] = {
		{"{\"modes\": {\"b\": \"755\"}}",
			"modes: b must be a file of the request, with an octal number up to 777"},
		{"{\"modes\": {\"a\": \"4755\"}}",
			"modes: a must be a file of the request, with an octal number up to 777"},
		{"{\"modes\": {\"a\": \"rwx\"}}",
			"modes: a must be a file of the request, with an octal number up to 777"},
		{"{\"modes\": {\"../a\": \"755\"}}", "modes: ../a is no path of a file"},
		{"{\"links\": {\"../b\": \"a\"}}", "links: ../b is no path of a file"},
		{"{\"links\": {\"b\": \"\"}}",
			"links: b must lead somewhere, in at most 1024 bytes"},
		{"{\"directories\": [\"/\"]}", "directories: / is no path of a file"},
		{"{\"directories\": \"x\"}",
			"field directories must be a list of paths, of not too many"},
	};
	json_t *source = json_loads(
		"{\"dockerfile\": \"FROM a\", \"files\": {\"a\": \"text\", \"plain\": \"p\"},"
		" \"modes\": {\"./a\": \"755\"}, \"links\": {\"d/l\": \"../a\", \"round\": "
		"\"round\","
		" \"out\": \"/etc/passwd\"}, \"directories\": [\"d/empty\"]}",
		0, NULL);
	auto_free uint8_t *data = NULL;
	struct recipe recipe;
	struct err err;
	size_t len;

	(void)state;
	assert_int_equal(read_source(source, &recipe, &err), 0);
	assert_int_equal(recipe_file_mode(json_object_get(recipe.files, "a")), 0755);
	assert_int_equal(recipe_file_mode(json_object_get(recipe.files, "plain")), 0644);
	assert_int_equal(
		recipe_file_kind(json_object_get(recipe.files, "d/empty")), RECIPE_DIRECTORY);
	assert_string_equal(
		recipe_link_target(json_object_get(recipe.files, "out")), "/etc/passwd");
	assert_ptr_equal(recipe_resolve(recipe.files, "d/l"), json_object_get(recipe.files, "a"));
	assert_null(recipe_resolve(recipe.files, "round"));
	assert_null(recipe_resolve(recipe.files, "out"));
	assert_int_equal(recipe_decode(recipe_resolve(recipe.files, "d/l"), &data, &len, &err), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(data, "text", 4);
	recipe_fini(&recipe);
	for (size_t i = 0; i < array_len(bad); i++) {
		source = json_loads(bad[i].context, 0, NULL);
		json_object_set_new(source, "dockerfile", json_string("FROM a"));
		json_object_set_new(source, "files", json_pack("{s:s}", "a", "x"));
		assert_true(read_source(source, &recipe, &err) < 0);
		assert_string_equal(err.message, bad[i].message);
	}
}

static void a_recipe_becomes_steps_of_root(void **state)
{
	struct recipe recipe;
	struct err err;

	(void)state;
	assert_int_equal(
		read_source(json_pack("{s:{s:s, s:[s, s], s:[s], s:[s], s:[s, s], s:{s:s},"
				      " s:{s:s}}}",
				    "recipe", "from", "debian12", "apt", "git", "curl", "pip",
				    "requests==2", "npm", "left-pad", "run", "true", "echo $HOME",
				    "files", "/etc/app.conf", "x", "env", "MODE", "test"),
			&recipe, &err),
		0);
	assert_int_equal(recipe.count, 6);
	assert_string_equal(recipe.from, "debian12");
	assert_int_equal(recipe.steps[0].kind, RECIPE_APT);
	assert_string_equal(recipe.steps[0].title, "apt git curl");
	assert_json(recipe.steps[0].words, "[\"git\", \"curl\"]");
	assert_int_equal(recipe.steps[1].kind, RECIPE_NPM);
	assert_int_equal(recipe.steps[2].kind, RECIPE_PIP);
	assert_int_equal(recipe.steps[3].kind, RECIPE_COPY);
	assert_json(recipe.files, "{\"etc/app.conf\": \"x\"}");
	assert_string_equal(recipe.steps[3].target, "/");
	assert_int_equal(recipe.steps[5].kind, RECIPE_RUN);
	assert_json(recipe.steps[5].words, "[\"/bin/sh\", \"-c\", \"echo $HOME\"]");
	assert_json(recipe.steps[5].env, "{\"PATH\": \"/bin\", \"MODE\": \"test\"}");
	for (size_t i = 0; i < recipe.count; i++)
		assert_string_equal(recipe.steps[i].user, "");
	assert_config(&recipe, "user", "\"app\"");
	assert_config(&recipe, "entrypoint", "[\"/entry\"]");
	recipe_fini(&recipe);
}

static void a_recipe_that_is_wrong_is_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"{\"recipe\": 1}", "field recipe must be an object"},
		{"{\"recipe\": {}}",
			"field recipe.from must be the name of a template or an image"},
		{"{\"recipe\": {\"from\": \"a\", \"yum\": []}}", "field recipe.yum is not known"},
		{"{\"recipe\": {\"from\": \"a\", \"apt\": \"git\"}}",
			"field recipe.apt must be a list of at most 256 texts"},
		{"{\"recipe\": {\"from\": \"a\", \"apt\": [\"-o=x\"]}}",
			"recipe.apt: -o=x is no name of a package"},
		{"{\"recipe\": {\"from\": \"a\", \"run\": [1]}}",
			"field recipe.run must be a list of at most 64 commands"},
		{"{\"recipe\": {\"from\": \"a\", \"env\": {\"A\": 1}}}",
			"field recipe.env must be an object of texts"},
		{"{\"recipe\": {\"from\": \"a\", \"files\": {\"/\": \"\"}}}",
			"files: / is no path of a file"},
		{"{\"recipe\": {\"from\": \"a\", \"files\": {\"/a/../../b\": \"\"}}}",
			"files: /a/../../b is no path of a file"},
		{"{\"recipe\": {\"from\": \"a\", \"files\": {\"/a\": 1}}}",
			"files: /a must be a text"},
		{"{\"recipe\": {\"from\": \"a\", \"files_base64\": {\"/a\": \"a b=\"}}}",
			"a file of the request is not base64"},
		{"{\"recipe\": {\"from\": \"a\", \"mirrors\": {\"apt\": \"ftp://x\"}}}",
			"field mirrors.apt must be an address that begins with http:// or "
			"https://"},
		{"{\"recipe\": {\"from\": \"a\", \"mirrors\": {\"gem\": \"http://x\"}}}",
			"field mirrors has apt, pip, npm and apk, not gem"},
		{"{\"dockerfile\": 1}", "field dockerfile must be the text of a Dockerfile"},
	};
	struct recipe recipe;
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		assert_true(read_source(json_loads(bad[i].text, 0, NULL), &recipe, &err) < 0);
		assert_string_equal(err.message, bad[i].message);
	}
}

static void the_number_of_steps_is_bounded(void **state)
{
	char text[16 + 8 * (RECIPE_STEPS_MAX + 1)] = "FROM a\n";
	struct recipe recipe;
	struct err err;

	(void)state;
	for (int i = 0; i < RECIPE_STEPS_MAX; i++)
		strcat(text, "RUN x\n");
	assert_int_equal(read_dockerfile(text, &recipe, &err), 0);
	assert_int_equal(recipe.count, RECIPE_STEPS_MAX);
	recipe_fini(&recipe);
	strcat(text, "RUN x\n");
	assert_true(read_dockerfile(text, &recipe, &err) < 0);
	assert_string_equal(err.message, "line 66: there are more than 64 steps that write");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dockerfile_becomes_steps),
		cmocka_unit_test(an_entrypoint_forgets_the_command_of_the_base),
		cmocka_unit_test(a_failure_names_the_line_and_what_is_wrong),
		cmocka_unit_test(options_that_change_nothing_here_are_left_out),
		cmocka_unit_test(files_are_found_by_name_pattern_and_directory),
		cmocka_unit_test(modes_links_and_directories_come_with_files),
		cmocka_unit_test(a_recipe_becomes_steps_of_root),
		cmocka_unit_test(a_recipe_that_is_wrong_is_refused),
		cmocka_unit_test(stages_are_read_one_at_a_time),
		cmocka_unit_test(the_number_of_stages_is_bounded),
		cmocka_unit_test(the_number_of_steps_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
