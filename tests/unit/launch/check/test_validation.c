/* SPDX-License-Identifier: Apache-2.0 */
/* What would keep an app from running. */
#include "../text_files.h"
#include "launch/app/made_files.h"
#include "launch/check/validation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* How many findings of a rule the files give, and how often that is an error. */
static size_t count(struct text_file *files, const char *rule, bool *ret_has_error)
{
	struct file_set set = text_files_set(files);
	struct validation validation;
	struct detection detection;
	struct err err;
	json_t *finding;
	size_t i, found = 0;

	assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
	validation_make(&set, &detection, &validation);
	json_array_foreach(validation.findings, i, finding)
	{
		found += strcmp(json_string_value(json_object_get(finding, "rule")), rule) == 0;
	}
	*ret_has_error = validation.has_error;
	validation_fini(&validation);
	detection_fini(&detection);
	file_set_fini(&set);
	return found;
}

static void each_rule_finds_what_it_is_for(void **state)
{
	static struct {
		const char *rule;
		struct text_file files[4];
		size_t found;
		bool is_error;
	} cases[] = {
		{"start_script", {{"package.json", "{}"}}, 1, true},
		{"start_script", {{"package.json", "{\"scripts\":{\"start\":\"x\"}}"}}, 0, false},
		{"start_script", {{"a.txt", ""}}, 1, true},
		{"requirements", {{"main.py", ""}}, 1, false},
		{"requirements", {{"main.py", ""}, {"requirements.txt", ""}}, 0, false},
		{"port", {{"server.js", "s.listen(4000)"}}, 1, false},
		{"port", {{"server.js", "s.listen(process.env.PORT)"}}, 0, false},
		{"port", {{"server.js", "const port = 4000\ns.listen(port, go)"}}, 1, false},
		{"port", {{"server.js", "const port = env || 4000\ns.listen(port)"}}, 0, false},
		{"port", {{"server.js", "connect({port: 5432}); s.listen(p)"}}, 0, false},
		{"port", {{"main.py", "app.run(port=9000)"}}, 1, false},
		{"port", {{"main.py", "HTTPServer((\"127.0.0.1\", 9000), H)"}}, 1, false},
		{"port", {{"main.py", "app.run(port=int(os.environ['PORT']))"}}, 0, false},
		{"port",
			{{"app.py",
				"from flask import Flask\napp = Flask('a')\napp.run(port=9000)"}},
			0, false},
		{"vite_config", {{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"}}, 4,
			false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.ts", "export default { host: 1, port: 2, base: 3, "
						   "hmr: { overlay: false } }"}},
			0, false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.js",
					"module.exports = { host: 1, port: 2, base: 3 }"}},
			1, false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.cjs",
					"module.exports = { host: 1, port: 2, base: 3 }"}},
			1, false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.js", "export default { host: 1, port: 2, base: 3, "
						   "hmr: { port: 4 } } // hmr"}},
			1, false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.js", "export default { host: 1, port: 2, base: 3, "
						   "hmr : false }"}},
			0, false},
		{"vite_config",
			{{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
				{"vite.config.ts", "export default { plugins: [] };\n"}},
			4, false},
		{"localhost_url", {{"index.html", "new WebSocket('ws://127.0.0.1:1/')"}}, 1, false},
		{"localhost_url", {{"index.html", "fetch('/api')"}}, 0, false},
		{"localhost_url", {{"index.html", "fetch('http://localhost:1/')"}}, 1, false},
		{"localhost_url",
			{{"index.html", ""},
				{".env", "A=1\n export VITE_API = http://localhost:1\n"}},
			1, false},
		{"localhost_url",
			{{"web/index.html", ""},
				{"web/.env.local", "NEXT_PUBLIC_A=\"ws://127.0.0.1/\""},
				{"web/.env", "REACT_APP_A=https://localhost"}},
			2, false},
		{"localhost_url",
			{{"index.html", ""},
				{".env", "API=http://localhost:1\n#VITE_A=http://localhost\n"
					 "VITE_A=/api\n"}},
			0, false},
		{"localhost_url",
			{{"backend/server.js", ""}, {"backend/.env", "VITE_A=http://localhost\n"}},
			0, false},
		{"settings", {{"index.html", ""}, {"sandlot.json", "{}"}}, 0, false},
		{"settings", {{"index.html", ""}, {"sandlot.json", "{\"frontend\":false}"}}, 0,
			true},
		{"settings",
			{{"index.html", ""},
				{"sandlot.json", "{\"frontend\":{\"prot\":1},\"x\":2}"}},
			2, false},
		{"settings", {{"index.html", ""}, {"sandlot.json", "{"}}, 1, true},
		{"made_files",
			{{"index.html", ""}, {"node_modules/a/b.js", ""},
				{"node_modules/c.js", ""}},
			1, false},
		{"made_files", {{"index.html", ""}, {"env/pyvenv.cfg", ""}, {"env/lib/a.py", ""}},
			1, false},
		{"made_files", {{"index.html", ""}, {"venv-notes/.next/a", ""}}, 1, false},
		{"line_ends", {{"index.html", ""}, {"bin/start", "#!/bin/sh\r\n"}}, 1, false},
		{"line_ends", {{"manage.py", "#!/usr/bin/env python3\r\n"}}, 1, false},
		{"line_ends", {{"main.py", "import os\r\n"}, {"run.sh", "echo\n"}}, 0, false},
		{"secret", {{"index.html", "-----BEGIN PRIVATE KEY-----"}}, 1, false},
		{"secret", {{"index.html", "AKIAABCDEFGHIJKLMNOP"}}, 1, false},
		{"secret", {{"index.html", "AKIA and so on"}}, 0, false},
		{"polling", {{"index.html", ""}, {".env", "CHOKIDAR_USEPOLLING=true"}}, 1, false},
		{"lock_file",
			{{"package.json", "{\"scripts\":{\"start\":\"x\"},\"dependencies\":{"
					  "\"left\":\"1\"}}"},
				{"yarn.lock", "right@1:\n"}},
			1, false},
		{"lock_file",
			{{"package.json", "{\"scripts\":{\"start\":\"x\"},\"dependencies\":{"
					  "\"left\":\"1\"}}"},
				{"pnpm-lock.yaml", "dependencies:\n  left:\n"}},
			0, false},
		{"lock_file",
			{{"main.py", ""},
				{"pyproject.toml", "[project]\ndependencies = [\n  'Flask_Cors "
						   ">= 1', # \"no\"\n]\n[tool.x]\nnone = \"1\""},
				{"uv.lock", "[[package]]\nname = \"flask-cors\"\n"}},
			0, false},
		{"lock_file",
			{{"main.py", ""},
				{"pyproject.toml", "[project]\nname = \"a\"\ndependencies = ["
						   "\"flask\", \"rich[x]\"]\n"},
				{"uv.lock", "[[package]]\nname = \"flask\"\n"}},
			1, false},
		{"lock_file",
			{{"main.py", ""},
				{"pyproject.toml", "[tool.poetry.dependencies]\npython = \"^3\"\n"
						   "flask = \"*\"\n[tool.poetry.group.dev."
						   "dependencies]\npytest = \"8\"\n"},
				{"poetry.lock", "name = \"Flask\"\n"}},
			1, false},
		{"lock_file",
			{{"main.py", ""}, {"Pipfile", "[packages]\nflask = \"*\"\n"},
				{"Pipfile.lock", "{\"default\": {\"flask\": {}}}"}},
			0, false},
		{"lock_file",
			{{"main.py", ""}, {"Pipfile", "[packages]\nflask = \"*\"\n"},
				{"Pipfile.lock", "{\"default\": {}}"}},
			1, false},
		{"polling", {{"web/index.html", ""}, {"web/.env", "CHOKIDAR_USEPOLLING=true"}}, 1,
			false},
		{"lock_file",
			{{"package.json",
				 "{\"scripts\":{\"start\":\"x\"},\"dependencies\":{\"a\":\"1\"}}"},
				{"package-lock.json",
					"{\"packages\":{\"\":{\"dependencies\":{\"a\":\"2\"}}}}"}},
			1, false},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		bool has_error;

		size_t found = count(cases[i].files, cases[i].rule, &has_error);

		if (found != cases[i].found)
			fail_msg("case %zu of %s: %zu found", i, cases[i].rule, found);
		assert_int_equal(has_error, cases[i].is_error);
	}
}

static void line_ends_of_scripts_are_fixed_in_the_copy(void **state)
{
	struct text_file files[] = {{"index.html", ""}, {"run.sh", "a\r\nb\r\n"}, {NULL, NULL}};
	struct file_set set = text_files_set(files);
	struct validation validation;
	struct detection detection;
	struct err err;

	(void)state;
	assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
	validation_make(&set, &detection, &validation);
	assert_string_equal(
		json_string_value(json_object_get(validation.fixes, "run.sh")), "a\nb\n");
	validation_fini(&validation);
	detection_fini(&detection);
	file_set_fini(&set);
}

/* The findings of the first rule of that name, with its overrides; new. */
static json_t *find(
	struct text_file *files, const char *overrides, const char *rule, json_t **ret_fixes)
{
	struct file_set set = text_files_set(files);
	json_auto_t *given = overrides ? json_loads(overrides, 0, NULL) : NULL;
	struct validation validation;
	struct detection detection;
	json_t *found = json_array(), *finding;
	struct err err;
	size_t i;

	assert_int_equal(detection_make(&set, given, &detection, &err), 0);
	validation_make(&set, &detection, &validation);
	json_array_foreach(validation.findings, i, finding)
	{
		if (strcmp(json_string_value(json_object_get(finding, "rule")), rule) == 0)
			json_array_append(found, finding);
	}
	*ret_fixes = json_incref(validation.fixes);
	validation_fini(&validation);
	detection_fini(&detection);
	file_set_fini(&set);
	return found;
}

static void a_vite_config_that_is_no_module_is_changed_in_the_copy(void **state)
{
	struct text_file files[] = {{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"},
		{"vite.config.js", "const x = require('x');\nmodule.exports = { base: 1 };\n"},
		{NULL, NULL}};
	json_auto_t *fixes = NULL, *found = find(files, NULL, "vite_config", &fixes);
	const char *text = json_string_value(json_object_get(fixes, "vite.config.js"));
	json_t *last = json_array_get(found, json_array_size(found) - 1);

	(void)state;
	assert_int_equal(json_object_size(fixes), 1);
	assert_int_equal(strncmp(text, files[1].text, strlen(files[1].text)), 0);
	assert_non_null(strstr(text, "overlay: false"));
	assert_non_null(strstr(
		json_string_value(json_object_get(last, "diff")), "+module.exports = ((own) => {"));
}

static void a_command_that_was_said_is_not_claimed_to_have_flags(void **state)
{
	struct text_file files[] = {
		{"package.json", "{\"devDependencies\":{\"vite\":\"7\"}}"}, {NULL, NULL}};
	json_auto_t *fixes = NULL;
	json_auto_t *found = find(files, "{\"frontend\":{\"command\":\"npx vite --port {port}\"}}",
		"vite_config", &fixes);
	const char *expected[] = {NULL, "started with --port", NULL, NULL};
	json_t *finding;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(found), 4);
	assert_int_equal(json_object_size(fixes), 0);
	json_array_foreach(found, i, finding)
	{
		const char *fix = json_string_value(json_object_get(finding, "fix"));

		assert_int_equal(fix != NULL, expected[i] != NULL);
		if (fix)
			assert_int_equal(strncmp(fix, expected[i], strlen(expected[i])), 0);
	}
}

static void a_scan_that_does_not_see_all_files_says_so(void **state)
{
	struct text_file files[403] = {{"index.html", ""}};
	json_auto_t *fixes = NULL, *found = NULL;

	(void)state;
	for (size_t i = 1; i < 402; i++)
		files[i] = (struct text_file){mem_printf("src/%zu.js", i), "x"};
	found = find(files, NULL, "localhost_url", &fixes);
	assert_int_equal(json_array_size(found), 1);
	assert_non_null(
		strstr(json_string_value(json_object_get(json_array_get(found, 0), "message")),
			"of 402 files"));
	for (size_t i = 1; i < 402; i++)
		free((char *)files[i].path);
}

/* What a finding says, and of which line. */
static void expect_finding(struct text_file *files, const char *rule, unsigned line,
	const char *severity, const char *words)
{
	json_auto_t *fixes = NULL, *found = find(files, NULL, rule, &fixes);
	const json_t *one = json_array_get(found, 0);
	const char *message = json_string_value(json_object_get(one, "message"));

	if (!message || !strstr(message, words))
		fail_msg("%s: %s", rule, message ? message : "nothing is found");
	assert_int_equal(json_integer_value(json_object_get(one, "line")), line);
	assert_string_equal(json_string_value(json_object_get(one, "severity")), severity);
}

static void what_is_wrong_in_sandlot_json_is_named_with_its_line(void **state)
{
	static const struct {
		const char *text, *words, *severity;
		unsigned line;
	} cases[] = {
		{"{\n \"frontend\": {\n  \"prot\": 1}}",
			"frontend.prot is no key, and is not followed: there are directory, "
			"framework, entry, command, install and port",
			"warning", 3},
		{"{\n \"env\": {}}",
			"env is no key, and is not followed: there are frontend, backend and "
			"services",
			"warning", 2},
		{"{\n\n  \"frontend\": {,}}", "it is no JSON: ", "error", 3},
		{"{\n \"frontend\": {\"port\": \"80\"}}", "frontend.port must be a whole number",
			"error", 2},
		{"{\"frontend\": {\"framework\": \"rails\"}}",
			"frontend.framework: rails is not known; there are next, ", "error", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct text_file files[] = {
			{"index.html", ""}, {"sandlot.json", cases[i].text}, {NULL, NULL}};

		expect_finding(files, "settings", cases[i].line, cases[i].severity, cases[i].words);
	}
}

static void a_variable_of_the_page_is_named_with_its_line(void **state)
{
	struct text_file files[] = {{"index.html", ""},
		{".env", "A=1\nVITE_API_URL=http://localhost:8000\n"}, {NULL, NULL}};

	(void)state;
	expect_finding(
		files, "localhost_url", 2, "warning", "VITE_API_URL becomes part of the page");
}

static void a_part_that_is_dropped_is_said_to_be(void **state)
{
	struct text_file files[] = {
		{"index.html", ""}, {"sandlot.json", "{\"frontend\": false}"}, {NULL, NULL}};

	(void)state;
	expect_finding(files, "start_script", 0, "error", "nothing is left to be started");
}

static void what_installing_makes_is_left_out(void **state)
{
	struct text_file files[] = {
		{"my-env/pyvenv.cfg", ""}, {"a/tools/pyvenv.cfg", ""}, {NULL, NULL}};
	struct file_set set = text_files_set(files);

	(void)state;
	assert_true(made_files_length(&set, "node_modules/a.js") > 0);
	assert_true(made_files_length(&set, "web/.venv/bin/python") > 0);
	assert_true(made_files_length(&set, "my-env/bin/python") > 0);
	assert_true(made_files_length(&set, "a/tools/lib/x/y.py") > 0);
	assert_int_equal(made_files_length(&set, "a/tool.py"), 0);
	assert_int_equal(made_files_length(&set, "src/node_modules.js"), 0);
	assert_int_equal(made_files_length(&set, "docs/venv"), 0);
	file_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_finds_what_it_is_for),
		cmocka_unit_test(line_ends_of_scripts_are_fixed_in_the_copy),
		cmocka_unit_test(a_vite_config_that_is_no_module_is_changed_in_the_copy),
		cmocka_unit_test(a_command_that_was_said_is_not_claimed_to_have_flags),
		cmocka_unit_test(a_scan_that_does_not_see_all_files_says_so),
		cmocka_unit_test(what_is_wrong_in_sandlot_json_is_named_with_its_line),
		cmocka_unit_test(a_variable_of_the_page_is_named_with_its_line),
		cmocka_unit_test(a_part_that_is_dropped_is_said_to_be),
		cmocka_unit_test(what_installing_makes_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
