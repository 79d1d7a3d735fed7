/* SPDX-License-Identifier: Apache-2.0 */
/* What an app is made of, by its files. */
#include "../text_files.h"
#include "launch/app/app_service.h"
#include "launch/app/detection.h"
#include "launch/app/part_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
	part_command_line(part, "/", command);
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
			"exec vite --host 127.0.0.1 --port 5173 --strictPort --base /", 5173});
	check(FILES({"client/package.json",
		      "{\"scripts\":{\"dev\":\"next dev\"},\"dependencies\":{\"next\":\"16\"}}"}),
		NULL,
		(struct expected){ROLE_FRONTEND, "next", "client",
			"exec next dev -H 127.0.0.1 -p 3000", 3000});
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

static void each_framework_has_its_row(void **state)
{
	static const struct {
		const char *packages, *scripts, *framework, *command;
		enum app_role role;
		unsigned port;
	} cases[] = {
		{"\"nuxt\":\"4\",\"vue\":\"3\"", "", "nuxt",
			"exec node_modules/.bin/nuxt dev --host 127.0.0.1 --port 3000",
			ROLE_FRONTEND, 3000},
		{"\"nuxt\":\"4\"", "\"dev\":\"nuxt dev\"", "nuxt",
			"exec nuxt dev --host 127.0.0.1 --port 3000", ROLE_FRONTEND, 3000},
		{"\"astro\":\"5\",\"vite\":\"7\"", "\"dev\":\"astro dev\"", "astro",
			"exec astro dev --host 127.0.0.1 --port 4321", ROLE_FRONTEND, 4321},
		{"\"@remix-run/dev\":\"2\",\"express\":\"5\",\"vite\":\"6\"",
			"\"dev\":\"remix vite:dev\"", "remix",
			"exec remix vite:dev --host 127.0.0.1 --port 5173", ROLE_FRONTEND, 5173},
		{"\"@sveltejs/kit\":\"2\",\"svelte\":\"5\",\"vite\":\"7\"", "\"dev\":\"vite dev\"",
			"sveltekit",
			"exec node_modules/.bin/vite --host 127.0.0.1 --port 5173 --strictPort",
			ROLE_FRONTEND, 5173},
		{"\"@nestjs/core\":\"11\",\"express\":\"5\"", "\"start\":\"nest start\"", "nest",
			"exec npm start", ROLE_BACKEND, 3000},
		{"\"express\":\"5\"", "\"dev\":\"nodemon x\"", "express", "exec npm run dev",
			ROLE_BACKEND, 3000},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		char text[300];

		snprintf(text, sizeof(text), "{\"dependencies\":{%s},\"scripts\":{%s}}",
			cases[i].packages, cases[i].scripts);
		check(FILES({"package.json", text}), NULL,
			(struct expected){cases[i].role, cases[i].framework, "", cases[i].command,
				cases[i].port});
	}
	check(FILES({"requirements.txt", "gradio\n"}, {"app.py", ""}), NULL,
		(struct expected){ROLE_FRONTEND, "gradio", "",
			"exec env GRADIO_SERVER_NAME=127.0.0.1 GRADIO_SERVER_PORT=7860 python3 "
			"app.py",
			7860});
	check(FILES({"app.py", "import gradio as gr\n"}), NULL,
		(struct expected){ROLE_FRONTEND, "gradio", "",
			"exec env GRADIO_SERVER_NAME=127.0.0.1 GRADIO_SERVER_PORT=7860 python3 "
			"app.py",
			7860});
	check(FILES({"pyproject.toml", "[project]\ndependencies = [\"fastapi>=0.1\"]\n"},
		      {"src/app.py", "from fastapi import FastAPI\napp = FastAPI()\n"}),
		NULL,
		(struct expected){ROLE_BACKEND, "fastapi", "",
			"exec python3 -m uvicorn src.app:app --host 127.0.0.1 --port 8000", 8000});
	check(FILES({"Pipfile", "[packages]\nstreamlit = \"*\"\n"}, {"app.py", ""}), NULL,
		(struct expected){ROLE_FRONTEND, "streamlit", "",
			"exec python3 -m streamlit run app.py --server.port 8501 --server.address "
			"127.0.0.1 --server.headless true --server.runOnSave true "
			"--browser.gatherUsageStats false",
			8501});
}

/* A member of the only runtime or framework that files show. */
static json_t *only(struct text_file *files, const char *list, const char *member)
{
	struct file_set set = text_files_set(files);
	struct detection detection;
	const json_t *all;
	json_t *value;
	struct err err;

	assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
	all = json_object_get(detection.document, list);
	assert_int_equal(json_array_size(all), 1);
	value = json_incref(json_object_get(json_array_get(all, 0), member));
	detection_fini(&detection);
	file_set_fini(&set);
	return value;
}

static void each_lock_file_says_what_installs_packages(void **state)
{
	static const struct {
		const char *manifest, *lock, *manager;
	} cases[] = {
		{"package.json", NULL, "npm"},
		{"package.json", "package-lock.json", "npm"},
		{"package.json", "npm-shrinkwrap.json", "npm"},
		{"package.json", "pnpm-lock.yaml", "pnpm"},
		{"package.json", "yarn.lock", "yarn"},
		{"package.json", "bun.lock", "bun"},
		{"package.json", "bun.lockb", "bun"},
		{"requirements.txt", NULL, "pip"},
		{"pyproject.toml", NULL, "pip"},
		{"pyproject.toml", "uv.lock", "uv"},
		{"pyproject.toml", "poetry.lock", "poetry"},
		{"Pipfile", NULL, "pipenv"},
		{"Pipfile", "Pipfile.lock", "pipenv"},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		bool is_node = strcmp(cases[i].manifest, "package.json") == 0;
		json_auto_t *manager =
			only(FILES({cases[i].manifest, is_node ? "{}" : ""},
				     {is_node ? "server.js" : "main.py", ""}, {cases[i].lock, ""}),
				"runtimes", "package_manager");

		if (!json_is_string(manager) ||
			strcmp(json_string_value(manager), cases[i].manager) != 0)
			fail_msg("%s: not %s", cases[i].lock ? cases[i].lock : cases[i].manifest,
				cases[i].manager);
	}
}

static void what_is_found_has_its_evidence_version_and_confidence(void **state)
{
	static struct text_file node[] = {
		{"package.json",
			"{\"engines\":{\"node\":\">=20\"},\"dependencies\":{\"express\":\"5\"}}"},
		{"server.js", ""}, {"yarn.lock", ""}, {NULL, NULL}};
	static const struct {
		struct text_file files[3];
		double confidence;
	} cases[] = {
		{{{"requirements.txt", "flask"}, {"app.py", ""}}, 0.95},
		{{{"app.py", "import flask"}}, 0.8},
		{{{"index.html", ""}}, 0.7},
		{{{"server.js", ""}}, 0.6},
	};
	json_auto_t *version = only(node, "runtimes", "version");
	json_auto_t *evidence = only(node, "runtimes", "evidence");

	(void)state;
	assert_string_equal(json_string_value(version), ">=20");
	assert_int_equal(json_array_size(evidence), 2);
	for (size_t i = 0; i < array_len(cases); i++) {
		json_auto_t *confidence =
			only((struct text_file *)cases[i].files, "frameworks", "confidence");

		assert_true(json_real_value(confidence) == cases[i].confidence);
	}
}

static void each_directory_has_the_part_that_its_name_says(void **state)
{
	static const struct {
		const char *dir;
		enum app_role role;
	} cases[] = {{"frontend_code", ROLE_FRONTEND}, {"backend_code", ROLE_BACKEND},
		{"frontend", ROLE_FRONTEND}, {"backend", ROLE_BACKEND}, {"client", ROLE_FRONTEND},
		{"server", ROLE_BACKEND}, {"web", ROLE_FRONTEND}, {"app", ROLE_BACKEND},
		{"ui", ROLE_FRONTEND}, {"api", ROLE_BACKEND}};

	(void)state;
	/* What is in it alone would be a backend. */
	for (size_t i = 0; i < array_len(cases); i++) {
		char path[40];

		snprintf(path, sizeof(path), "%s/server.js", cases[i].dir);
		check(FILES({path, ""}), NULL,
			(struct expected){cases[i].role, "node", cases[i].dir,
				"exec node 'server.js'", 3000});
	}
	check(FILES({"app/package.json", "{\"dependencies\":{\"vite\":\"7\"}}"}), NULL,
		(struct expected){ROLE_FRONTEND, "vite", "app",
			"exec node_modules/.bin/vite --host 127.0.0.1 --port 5173 --strictPort "
			"--base /",
			5173});
}

static void a_port_that_code_names_is_its_own(void **state)
{
	(void)state;
	check(FILES({"server.js", "s.listen(4000, () => {})"}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'server.js'", 4000});
	check(FILES({"server.js", "const PORT = 4000;\ns.listen(PORT)"}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'server.js'", 4000});
	check(FILES({"server.js", "s.listen(4000 + 1)"}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'server.js'", 3000});
	check(FILES({"server.js", "s.listen(4000)"}), "{\"backend\":{\"port\":4001}}",
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'server.js'", 4001});
	check(FILES({"main.py", "uvicorn.run(app, host='0.0.0.0', port=9000)\n"}), NULL,
		(struct expected){ROLE_BACKEND, "python", "", "exec python3 main.py", 9000});
	check(FILES({"main.py", "HTTPServer(('', 9000), H)\n"}), NULL,
		(struct expected){ROLE_BACKEND, "python", "", "exec python3 main.py", 9000});
	check(FILES({"main.py", "connect(port=5432)\napp.run()\n"}), NULL,
		(struct expected){ROLE_BACKEND, "python", "", "exec python3 main.py", 8000});
	check(FILES({"api/server.js", "s.listen(3000)"},
		      {"web/package.json", "{\"dependencies\":{\"next\":\"16\"}}"}),
		NULL,
		(struct expected){ROLE_FRONTEND, "next", "web",
			"exec node_modules/.bin/next dev -H 127.0.0.1 -p 3001", 3001});
}

static void flags_reach_the_framework_or_its_script_is_left_out(void **state)
{
	static const char *const own = "exec node_modules/.bin/next dev -H 127.0.0.1 -p 3000";
	static const char *const by_script = "exec npm run dev -- -H 127.0.0.1 -p 3000";
	static const char *const by_itself = "exec next dev --turbopack -H 127.0.0.1 -p 3000";
	static const struct {
		const char *script, *command;
	} cases[] = {{"next dev --turbopack", by_itself}, {"next dev > log", by_script},
		{"npm run gen && next dev", by_script}, {"cross-env A=1 B=2 next dev", by_script},
		{"npx next dev", by_script}, {"concurrently \"next dev\" \"node api.js\"", own},
		{"next-like dev", own}, {"", own}, {"next dev && echo", own}};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		json_auto_t *package = json_pack("{s:{s:s}, s:{s:s}}", "scripts", "dev",
			cases[i].script, "dependencies", "next", "16");
		char *text = json_dumps(package, 0);

		check(FILES({"package.json", text}), NULL,
			(struct expected){ROLE_FRONTEND, "next", "", cases[i].command, 3000});
		free(text);
	}
}

/* npm runs the scripts before and behind it, and gives it settings: then it is asked to. */
static void npm_runs_a_script_that_needs_it(void **state)
{
	static const char *const texts[] = {
		"\"scripts\":{\"dev\":\"vite\",\"predev\":\"node gen.js\"}",
		"\"scripts\":{\"dev\":\"vite\",\"postdev\":\"node gen.js\"}",
		"\"scripts\":{\"dev\":\"vite\"},\"config\":{\"level\":\"2\"}",
		"\"scripts\":{\"dev\":\"vite --mode $MODE\"}"};
	static const char *const by_npm =
		"exec npm run dev -- --host 127.0.0.1 --port 5173 --strictPort --base /";

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++) {
		char *text = mem_printf("{%s,\"dependencies\":{\"vite\":\"7\"}}", texts[i]);

		check(FILES({"package.json", text}), NULL,
			(struct expected){ROLE_FRONTEND, "vite", "", by_npm, 5173});
		free(text);
	}
	check(FILES({"package.json",
			    "{\"scripts\":{\"dev\":\"vite\"},\"dependencies\":{\"vite\":\"7\"}}"},
		      {".npmrc", "node-options=--no-warnings\n"}),
		NULL, (struct expected){ROLE_FRONTEND, "vite", "", by_npm, 5173});
}

static void expect_service(struct text_file *files, const char *name)
{
	struct file_set set = text_files_set(files);
	struct detection detection;
	const json_t *services;
	struct err err;

	assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
	services = json_object_get(detection.document, "services");
	assert_int_equal(json_array_size(services), name ? 1 : 0);
	if (name)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(services, 0), "name")),
			name);
	detection_fini(&detection);
	file_set_fini(&set);
}

static void services_are_known_by_drivers_examples_and_code(void **state)
{
	(void)state;
	expect_service(
		FILES({"requirements.txt", "psycopg[binary]>=3\n"}, {"main.py", ""}), "postgres");
	expect_service(FILES({"requirements.txt", "redis\n"}, {"main.py", ""}), "redis");
	expect_service(FILES({"package.json", "{\"dependencies\":{\"ioredis\":\"5\"}}"},
			       {"server.js", ""}),
		"redis");
	expect_service(FILES({"main.py", ""}, {".env.example", "DATABASE_URL=postgresql://x/y\n"}),
		"postgres");
	expect_service(FILES({"main.py", "url = os.environ['DATABASE_URL']\n"}), "postgres");
	expect_service(FILES({"server.js", "connect(process.env.REDIS_URL)"}), "redis");
	expect_service(
		FILES({"main.py", "os.environ.get('DATABASE_URL', 'sqlite:///a.db')\n"}), NULL);
	expect_service(
		FILES({"main.py", ""}, {".env.example", "DATABASE_URL=sqlite:///a.db\n"}), NULL);
}

static void a_page_s_library_is_told(void **state)
{
	static const char *const names[] = {"react", "vue", "svelte"};

	(void)state;
	for (size_t i = 0; i < array_len(names); i++) {
		json_auto_t *package = json_pack("{s:{s:s}, s:{s:s}}", "dependencies", names[i],
			"1", "devDependencies", "vite", "7");
		char *text = json_dumps(package, 0);
		struct text_file files[] = {{"package.json", text}, {NULL, NULL}};
		struct file_set set = text_files_set(files);
		struct detection detection;
		struct err err;
		const json_t *found;

		assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
		found = json_array_get(json_object_get(detection.document, "frameworks"), 0);
		assert_string_equal(json_string_value(json_object_get(found, "name")), "vite");
		assert_string_equal(json_string_value(json_object_get(found, "with")), names[i]);
		detection_fini(&detection);
		file_set_fini(&set);
		free(text);
	}
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

#define UVICORN(what) "exec python3 -m uvicorn " what " --host 127.0.0.1 --port 8000"
#define FLASK(what)   "exec python3 -m flask --app " what " run --host 127.0.0.1 --port 5000"

static void another_framework_or_entry_has_another_command(void **state)
{
	(void)state;
	check(FILES({"main.py", "from fastapi import FastAPI\nweb = FastAPI()\n"}, {"x.py", ""}),
		"{\"backend\":{\"framework\":\"fastapi\"}}",
		(struct expected){ROLE_BACKEND, "fastapi", "", UVICORN("main:web"), 8000});
	check(FILES({"main.py", ""}, {"app.py", "api = Flask(__name__)\n"}),
		"{\"backend\":{\"framework\":\"flask\"}}",
		(struct expected){ROLE_BACKEND, "flask", "", FLASK("app"), 5000});
	check(FILES({"main.py", "from fastapi import FastAPI\napp = FastAPI()\n"},
		      {"src/other.py", "server = FastAPI()\n"}),
		"{\"backend\":{\"entry\":\"src/other.py\"}}",
		(struct expected){ROLE_BACKEND, "fastapi", "", UVICORN("src.other:server"), 8000});
	check(FILES({"app.py", "from flask import Flask\n"}, {"other.py", ""}),
		"{\"backend\":{\"entry\":\"other.py\"}}",
		(struct expected){ROLE_BACKEND, "flask", "", FLASK("other"), 5000});
	check(FILES({"app.py", "from flask import Flask\n"}, {"other.py", ""},
		      {"sandlot.json", "{\"backend\":{\"entry\":\"other.py\"}}"}),
		"{\"backend\":{\"framework\":\"fastapi\",\"entry\":\"app.py\"}}",
		(struct expected){ROLE_BACKEND, "fastapi", "", UVICORN("app:app"), 8000});
	check(FILES({"package.json", "{\"scripts\":{\"start\":\"node a.js\"}}"}, {"a.js", ""},
		      {"b.js", ""}),
		"{\"backend\":{\"entry\":\"b.js\"}}",
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'b.js'", 3000});
	check(FILES({"main.py", "from fastapi import FastAPI\n"}),
		"{\"backend\":{\"framework\":\"flask\",\"command\":\"./run {port}\"}}",
		(struct expected){ROLE_BACKEND, "flask", "", "./run 5000", 5000});
	/* Nothing was found, and all of it is said. */
	check(FILES({"tools/web.py", "site = FastAPI()\n"}),
		"{\"backend\":{\"directory\":\"tools\",\"framework\":\"fastapi\","
		"\"entry\":\"web.py\"}}",
		(struct expected){ROLE_BACKEND, "fastapi", "tools", UVICORN("web:site"), 8000});
}

static void a_server_without_package_json_is_known_by_its_name(void **state)
{
	struct text_file page[] = {{"main.py", ""}, {"index.js", ""}, {NULL, NULL}};
	struct text_file browser[] = {
		{"main.py", ""}, {"web/index.js", "document.body.append(1)"}, {NULL, NULL}};
	struct text_file *others[] = {page, browser};

	(void)state;
	check(FILES({"index.js", "require('node:http')"}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'index.js'", 3000});
	check(FILES({"index.mjs", "import 'node:http'"}, {"frontend/index.html", ""}), NULL,
		(struct expected){ROLE_BACKEND, "node", "", "exec node 'index.mjs'", 3000});
	for (size_t i = 0; i < array_len(others); i++)
		check(others[i], NULL,
			(struct expected){
				ROLE_BACKEND, "python", "", "exec python3 main.py", 8000});
}

static void typescript_is_started_by_what_can_run_it(void **state)
{
	struct text_file *both[] = {FILES({"index.ts", "import http from 'node:http'"}),
		FILES({"src/index.ts", ""}, {"package.json", "{}"})};

	(void)state;
	for (size_t i = 0; i < array_len(both); i++) {
		struct file_set set = text_files_set(both[i]);
		struct detection detection;
		struct err err;

		assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
		assert_non_null(strstr(detection.parts[ROLE_BACKEND].command, "tsx 'index.ts'")
					?: strstr(detection.parts[ROLE_BACKEND].command,
						   "tsx 'src/index.ts'"));
		assert_null(strstr(detection.parts[ROLE_BACKEND].command, "{entry}"));
		detection_fini(&detection);
		file_set_fini(&set);
	}
}

static void overrides_that_cannot_be_are_refused(void **state)
{
	static const char *const bad[] = {"{\"backend\":{\"directory\":\"../x\"}}",
		"{\"backend\":{\"port\":70000}}", "{\"backend\":{\"framework\":\"none\"}}",
		"{\"backend\":{\"command\":7}}", "{\"backend\":[]}",
		"{\"backend\":{\"entry\":\"none.js\"}}", "{\"backend\":{\"entry\":\"../x.js\"}}",
		"{\"backend\":{\"entry\":\"a'b.js\"}}"};
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

/* The names of the services that are found, behind each other. */
static void check_services(struct text_file *files, const char *overrides, const char *expected)
{
	struct file_set set = text_files_set(files);
	json_auto_t *given = overrides ? json_loads(overrides, 0, NULL) : NULL;
	struct detection detection;
	struct err err;
	char names[64] = "";
	json_t *service;
	size_t i;

	assert_int_equal(detection_make(&set, given, &detection, &err), 0);
	json_array_foreach(json_object_get(detection.document, "services"), i, service)
	{
		strcat(names, json_string_value(json_object_get(service, "name")));
		strcat(names, " ");
	}
	assert_string_equal(names, expected);
	detection_fini(&detection);
	file_set_fini(&set);
}

static void services_are_seen_by_packages_examples_and_code_and_said_otherwise(void **state)
{
	(void)state;
	check_services(FILES({"requirements.txt", "psycopg2-binary\n"}, {"main.py", ""}), NULL,
		"postgres ");
	check_services(FILES({"server.js", ""}, {".env.example", "REDIS_URL=x\n"}), NULL, "redis ");
	check_services(FILES({"main.py", "os.environ['DATABASE_URL']"},
			       {"db.py", "redis.from_url('redis://x')"}),
		NULL, "postgres redis ");
	check_services(
		FILES({"main.py", "os.environ.get('DATABASE_URL', 'sqlite:///a')"}), NULL, "");
	check_services(FILES({"server.js", ""}, {".env", "DATABASE_URL=mysql://x/y\n"}), NULL, "");
	check_services(
		FILES({"app/main.py", ""}, {"app/core/config.py", "url: str = DATABASE_URL"}), NULL,
		"postgres ");
	check_services(FILES({"server.js", ""}, {"src/jobs/worker.ts", "process.env.REDIS_URL"}),
		NULL, "redis ");
	/* Another file says which database that is; tests and pages of a bundle say nothing. */
	check_services(FILES({"main.py", ""}, {"app/core/config.py", "DATABASE_URL = 'sqlite://'"},
			       {"app/db.py", "connect(DATABASE_URL)"}),
		NULL, "");
	check_services(FILES({"main.py", ""}, {"tests/db.py", "postgres://x"},
			       {"node_modules/pg/db.js", "postgres://x"}),
		NULL, "");
	check_services(
		FILES({"server.js", "REDIS_URL"}, {"sandlot.json", "{\"services\":[]}"}), NULL, "");
	check_services(FILES({"server.js", "REDIS_URL"}, {"sandlot.json", "{\"services\":[]}"}),
		"{\"services\":[\"postgres\"]}", "postgres ");
}

static void an_address_says_whether_a_member_can_serve_it(void **state)
{
	static const struct {
		const char *url;
		bool is_read, is_local;
		const char *user, *password, *database;
	} cases[] = {
		{"postgres://me:p%40ss@localhost:5432/shop?x=1", true, true, "me", "p@ss", "shop"},
		{"postgresql://127.0.0.1/a", true, true, "", "", "a"},
		{"postgres://u:p@db:5432/a", true, false, "u", "p", "a"},
		{"postgres://u:p@localhost:6000/a", true, false, "u", "p", "a"},
		{"postgres://u:p@w@localhost/", true, true, "u", "p@w", ""},
		{"localhost", false, false, "", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct app_service_address address = {0};

		assert_int_equal(app_service_address_read(&app_services[0], cases[i].url, &address),
			cases[i].is_read);
		assert_int_equal(address.is_local, cases[i].is_local);
		assert_string_equal(address.user, cases[i].user);
		assert_string_equal(address.password, cases[i].password);
		assert_string_equal(address.database, cases[i].database);
	}
}

/* The entries of what is said otherwise, each as {what, said, found, source}. */
static void what_is_said_otherwise_is_told_beside_what_was_found(void **state)
{
	struct text_file files[] = {{"backend/package.json", "{\"dependencies\":{\"pg\":\"8\"}}"},
		{"backend/server.js", "s.listen(4100)"}, {"web/index.html", ""},
		{"sandlot.json", "{\"backend\": {\"port\": 4000, \"entry\": \"server.js\"}, "
				 "\"services\": [\"redis\"], \"frontend\": null}"},
		{NULL, NULL}};
	struct file_set set = text_files_set(files);
	json_auto_t *given =
		json_loads("{\"frontend\": false, \"backend\": {\"port\": 5000}}", 0, NULL);
	json_auto_t *expected = json_loads(
		"[{\"what\": \"backend.entry\", \"said\": \"server.js\", \"found\": \"server.js\", "
		"\"source\": \"sandlot.json\"}, {\"what\": \"backend.port\", \"said\": 4000, "
		"\"found\": 4100, \"source\": \"sandlot.json\"}, {\"what\": \"services\", "
		"\"said\": [\"redis\"], \"found\": [\"postgres\"], \"source\": \"sandlot.json\"}, "
		"{\"what\": \"backend.port\", \"said\": 5000, \"found\": 4100, \"source\": "
		"\"request\"}, {\"what\": \"frontend\", \"said\": false, \"found\": \"static\", "
		"\"source\": \"request\"}]",
		0, NULL);
	struct detection detection;
	struct err err;

	(void)state;
	assert_int_equal(detection_make(&set, given, &detection, &err), 0);
	assert_true(json_equal(json_object_get(detection.document, "overrides"), expected));
	assert_false(detection.has_part[ROLE_FRONTEND]);
	assert_int_equal(detection.parts[ROLE_BACKEND].port, 5000);
	assert_int_equal(json_array_size(json_object_get(detection.document, "parts")), 1);
	assert_int_equal(json_array_size(json_object_get(detection.document, "frameworks")), 2);
	detection_fini(&detection);
	file_set_fini(&set);
}

/* An error of the file must not hide what can be found without it, nor be followed by half. */
static void of_a_sandlot_json_that_cannot_be_nothing_is_followed(void **state)
{
	static const char *const bad[] = {"{\"backend\": {\"port\": 4000}", "[]", "7", "",
		"{\"backend\": {\"port\": 4000}, \"frontend\": 7}",
		"{\"backend\": {\"port\": \"4000\"}}",
		"{\"backend\": {\"port\": 4000, \"entry\": 7}}",
		"{\"backend\": {\"port\": 4000, \"entry\": \"none.js\"}}",
		"{\"backend\": {\"port\": 4000, \"framework\": \"none\"}}",
		"{\"backend\": {\"port\": 4000, \"directory\": \"../x\"}}",
		"{\"backend\": {\"port\": 4000}, \"services\": [\"mysql\"]}",
		"{\"backend\": {\"port\": 4000}, \"frontend\": false, \"backend\": {}}"};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct text_file files[] = {
			{"server.js", ""}, {"sandlot.json", bad[i]}, {NULL, NULL}};
		struct file_set set = text_files_set(files);
		struct detection detection;
		const json_t *problem;
		struct err err;

		assert_int_equal(detection_make(&set, NULL, &detection, &err), 0);
		problem = json_array_get(detection.settings.problems, 0);
		if (!json_is_true(json_object_get(problem, "is_error")))
			fail_msg("%s: nothing is said", bad[i]);
		assert_int_equal(detection.parts[ROLE_BACKEND].port, 3000);
		assert_int_equal(
			json_array_size(json_object_get(detection.document, "overrides")), 0);
		assert_int_equal(json_array_size(json_object_get(detection.document, "parts")), 1);
		detection_fini(&detection);
		file_set_fini(&set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frameworks_are_recognized_by_their_packages),
		cmocka_unit_test(each_framework_has_its_row),
		cmocka_unit_test(each_lock_file_says_what_installs_packages),
		cmocka_unit_test(what_is_found_has_its_evidence_version_and_confidence),
		cmocka_unit_test(each_directory_has_the_part_that_its_name_says),
		cmocka_unit_test(a_port_that_code_names_is_its_own),
		cmocka_unit_test(flags_reach_the_framework_or_its_script_is_left_out),
		cmocka_unit_test(npm_runs_a_script_that_needs_it),
		cmocka_unit_test(services_are_known_by_drivers_examples_and_code),
		cmocka_unit_test(a_page_s_library_is_told),
		cmocka_unit_test(a_request_and_sandlot_json_say_otherwise),
		cmocka_unit_test(another_framework_or_entry_has_another_command),
		cmocka_unit_test(a_server_without_package_json_is_known_by_its_name),
		cmocka_unit_test(typescript_is_started_by_what_can_run_it),
		cmocka_unit_test(overrides_that_cannot_be_are_refused),
		cmocka_unit_test(what_is_said_otherwise_is_told_beside_what_was_found),
		cmocka_unit_test(of_a_sandlot_json_that_cannot_be_nothing_is_followed),
		cmocka_unit_test(two_parts_have_two_ports_and_the_frontend_is_the_preview),
		cmocka_unit_test(a_file_that_is_named_as_a_place_is_put_in_once),
		cmocka_unit_test(packages_are_found_as_whole_names),
		cmocka_unit_test(
			services_are_seen_by_packages_examples_and_code_and_said_otherwise),
		cmocka_unit_test(an_address_says_whether_a_member_can_serve_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
