/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/framework.h"

#include "base/mem.h"

#include <string.h>

#define VITE_FLAGS "--host 127.0.0.1 --port {port} --strictPort --base {base}{config}"
#define STATIC_COMMAND                                                                             \
	"if command -v python3 >/dev/null; then exec python3 -m http.server {port} --bind "        \
	"127.0.0.1; else exec busybox httpd -f -p 127.0.0.1:{port}; fi"

/* In the order in which they are looked for: those that are made with others come before them. */
const struct framework frameworks[] = {
	{"next", RUNTIME_NODE, ROLE_FRONTEND, "next",
		"node_modules/.bin/next dev -H 127.0.0.1 -p {port}", "-H 127.0.0.1 -p {port}", 3000,
		true},
	{"nuxt", RUNTIME_NODE, ROLE_FRONTEND, "nuxt",
		"node_modules/.bin/nuxt dev --host 127.0.0.1 --port {port}",
		"--host 127.0.0.1 --port {port}", 3000, true},
	{"astro", RUNTIME_NODE, ROLE_FRONTEND, "astro",
		"node_modules/.bin/astro dev --host 127.0.0.1 --port {port}",
		"--host 127.0.0.1 --port {port}", 4321, true},
	{"remix", RUNTIME_NODE, ROLE_FRONTEND, "@remix-run/dev",
		"node_modules/.bin/remix vite:dev --host 127.0.0.1 --port {port}",
		"--host 127.0.0.1 --port {port}", 5173, true},
	{"sveltekit", RUNTIME_NODE, ROLE_FRONTEND, "@sveltejs/kit",
		"node_modules/.bin/vite --host 127.0.0.1 --port {port} --strictPort",
		"--host 127.0.0.1 --port {port} --strictPort", 5173, true},
	{"vite", RUNTIME_NODE, ROLE_FRONTEND, "vite", "node_modules/.bin/vite " VITE_FLAGS,
		VITE_FLAGS, 5173, true},
	{"nest", RUNTIME_NODE, ROLE_BACKEND, "@nestjs/core", NULL, NULL, 3000, false},
	{"express", RUNTIME_NODE, ROLE_BACKEND, "express", NULL, NULL, 3000, false},
	{"node", RUNTIME_NODE, ROLE_BACKEND, NULL, NULL, NULL, 3000, false},
	{"streamlit", RUNTIME_PYTHON, ROLE_FRONTEND, "streamlit",
		"python3 -m streamlit run {entry} --server.port {port} --server.address 127.0.0.1 "
		"--server.headless true --server.runOnSave true --browser.gatherUsageStats false",
		NULL, 8501, true},
	{"gradio", RUNTIME_PYTHON, ROLE_FRONTEND, "gradio",
		"env GRADIO_SERVER_NAME=127.0.0.1 GRADIO_SERVER_PORT={port} python3 {entry}", NULL,
		7860, false},
	{"fastapi", RUNTIME_PYTHON, ROLE_BACKEND, "fastapi",
		"python3 -m uvicorn {module}:{object} --host 127.0.0.1 --port {port}", NULL, 8000,
		false},
	{"django", RUNTIME_PYTHON, ROLE_BACKEND, "django",
		"python3 manage.py runserver --noreload 127.0.0.1:{port}", NULL, 8000, false},
	{"flask", RUNTIME_PYTHON, ROLE_BACKEND, "flask",
		"python3 -m flask --app {module} run --host 127.0.0.1 --port {port}", NULL, 5000,
		false},
	{"python", RUNTIME_PYTHON, ROLE_BACKEND, NULL, "python3 {entry}", NULL, 8000, false},
	{"static", RUNTIME_STATIC, ROLE_FRONTEND, NULL, STATIC_COMMAND, NULL, 8080, true},
};
const size_t framework_count = array_len(frameworks);

const struct framework *framework_find(const char *name)
{
	for (size_t i = 0; i < framework_count; i++) {
		if (strcmp(frameworks[i].name, name) == 0)
			return &frameworks[i];
	}
	return NULL;
}

const char *framework_runtime_name(enum app_runtime runtime)
{
	static const char *const names[] = {"node", "python", "static"};

	return names[runtime];
}

const char *framework_role_name(enum app_role role)
{
	static const char *const names[] = {"backend", "frontend"};

	return names[role];
}
