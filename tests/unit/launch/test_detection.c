/* SPDX-License-Identifier: Apache-2.0 */
/* What an app is made of, by its files. */
#include "launch/detection.h"
#include "text_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct expected {
	enum app_role role;
	const char *framework, *dir, *command;
	unsigned port;
};

static void check(struct text_file *files, const char *overrides, struct expected expected)
{
	struct file_set set = text_files_set(files);
	json_auto_t *given = overrides ? json_loads(overrides, 0, NULL) : NULL;
	struct detection detection;
	const struct app_part *part;
	char command[APP_COMMAND_MAX];
	struct err err;

	assert_int_equal(detection_make(&set, given, &detection, &err), 0);
	assert_true(detection.has_part[expected.role]);
	part = &detection.parts[expected.role];
	assert_string_equal(part->framework->name, expected.framework);
	assert_string_equal(part->dir, expected.dir);
	detection_command(part, "/", command);
	assert_string_equal(command, expected.command);
	assert_int_equal(part->port, expected.port);
	detection_fini(&detection);
	file_set_fini(&set);
}

#define FILES(...)                                                                                 \
	(struct text_file[])                                                                       \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			NULL, NULL                                                                 \
		}                                                                                  \
	}

static void frameworks_are_recognized_by_their_packages(void **state)
{
	(void)state;
	check(FILES({"package.json", "{\"scripts\":{\"dev\":\"vite\"},\"devDependencies\":{"
				     "\"vite\":\"8\"}}"},
		      {"index.html", ""}),
		NULL,
		(struct expected){ROLE_FRONTEND, "vite", "",
			"exec npm run dev -- --host 127.0.0.1 --port 5173 --strictPort --base /",
			5173});
	check(FILES({"client/package.json",
		      "{\"scripts\":{\"dev\":\"next dev\"},\"dependencies\":{\"next\":\"16\"}}"}),
		NULL,
		(struct expected){ROLE_FRONTEND, "next", "client",
			"exec npm run dev -- -H 127.0.0.1 -p 3000", 3000});
	check(FILES({"package.json", "{\"main\":\"a.js\",\"dependencies\":{\"express\":\"5\"}}"},
		      {"a.js", ""}),
		NULL, (struct expected){ROLE_BACKEND, "express", "", "exec node 'a.js'", 3000});
	check(FILES({"api/requirements.txt", "# flask\nfastapi[all]>=0.9\n"},
		      {"api/main.py", "from fastapi import FastAPI\nserver = FastAPI()\n"}),
		NULL,
		(struct expected){ROLE_BACKEND, "fastapi", "api",
			"exec python3 -m uvicorn main:server --host 127.0.0.1 --port 8000", 8000});
	check(FILES({"app.py", "from flask import Flask\napp = Flask(__name__)\n"}), NULL,
		(struct expected){ROLE_BACKEND, "flask", "",
			"exec python3 -m flask --app app run --host 127.0.0.1 --port 5000", 5000});
	check(FILES({"requirements.txt", "Django==5\n"}, {"manage.py", ""}), NULL,
		(struct expected){ROLE_BACKEND, "django", "",
			"exec python3 manage.py runserver --noreload 127.0.0.1:8000", 8000});
}

static void a_request_and_sandlot_json_say_otherwise(void **state)
{
	(void)state;
	check(FILES({"server.js", ""}, {"sandlot.json", "{\"backend\":{\"port\":4000}}"}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'server.js'", 4000});
	check(FILES({"server.js", ""}, {"sandlot.json", "{\"backend\":{\"port\":4000}}"}),
		"{\"backend\":{\"command\":\"./run {port}\",\"port\":5000}}",
		(struct expected){ROLE_BACKEND, "node", "", "./run 5000", 5000});
}

static void overrides_that_cannot_be_are_refused(void **state)
{
	static const char *const bad[] = {"{\"backend\":{\"directory\":\"../x\"}}",
		"{\"backend\":{\"port\":70000}}", "{\"backend\":{\"framework\":\"none\"}}",
		"{\"backend\":{\"command\":7}}", "{\"backend\":[]}"};
	struct text_file files[] = {{"server.js", ""}, {NULL, NULL}};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct file_set set = text_files_set(files);
		json_auto_t *given = json_loads(bad[i], 0, NULL);
		struct detection detection;
		struct err err;

		assert_true(detection_make(&set, given, &detection, &err) < 0);
		assert_int_equal(err.kind, ERR_INVALID);
		file_set_fini(&set);
	}
}

static void two_parts_have_two_ports_and_the_frontend_is_the_preview(void **state)
{
	struct text_file files[] = {
		{"backend/package.json", "{\"scripts\":{\"start\":\"node "
					 "x\"},\"dependencies\":{\"express\":\"5\",\"pg\":\"8\"}}"},
		{"frontend/package.json",
			"{\"scripts\":{\"dev\":\"next dev\"},\"dependencies\":{\"next\":\"16\"}}"},
		{NULL, NULL}};
	struct file_set set = text_files_set(files);
	struct detection detection;
	struct err err;

	(void)state;
	assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
	assert_int_equal(detection.parts[ROLE_FRONTEND].port, 3000);
	assert_int_equal(detection.parts[ROLE_BACKEND].port, 3001);
	assert_ptr_equal(detection_primary(&detection), &detection.parts[ROLE_FRONTEND]);
	assert_int_equal(json_array_size(json_object_get(detection.document, "services")), 1);
	detection_fini(&detection);
	file_set_fini(&set);
}

/* Names of files are anybody's, and commands are made of them. */
static void a_file_that_is_named_as_a_place_is_put_in_once(void **state)
{
	(void)state;
	check(FILES({"package.json", "{\"main\":\"{entry}{port}.js\"}"}, {"{entry}{port}.js", ""}),
		NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node '{entry}{port}.js'", 3000});
}

static void packages_are_found_as_whole_names(void **state)
{
	(void)state;
	assert_true(detection_names_package("a\nFlask==2", "flask"));
	assert_true(detection_names_package("dependencies = [\"flask>=2\"]", "flask"));
	assert_false(detection_names_package("flask-cors\n", "flask"));
	assert_false(detection_names_package("# flask\n", "flask"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frameworks_are_recognized_by_their_packages),
		cmocka_unit_test(a_request_and_sandlot_json_say_otherwise),
		cmocka_unit_test(overrides_that_cannot_be_are_refused),
		cmocka_unit_test(two_parts_have_two_ports_and_the_frontend_is_the_preview),
		cmocka_unit_test(a_file_that_is_named_as_a_place_is_put_in_once),
		cmocka_unit_test(packages_are_found_as_whole_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
