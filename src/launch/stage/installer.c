/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/installer.h"

#include "base/mem.h"

#include <string.h>

extern const char pyproject_needs_py[];

#define NPM_QUIET                                                                                  \
	"export npm_config_fetch_retries=1 npm_config_audit=false npm_config_fund=false "          \
	"npm_config_update_notifier=false; "
/* What installs from a registry under a name is had from npm where the template has it not. */
#define BY_NAME(name)                                                                              \
	"if command -v " name " >/dev/null; then " name " install; else npx --yes " name           \
	" install; fi"
/*
 * Of an app with a pyproject.toml what it needs is installed first. That it is a package too makes its modules known by
 * their names, from where they are: a copy of them would not see an edit. Many apps cannot be built, and need not be.
 */
#define PIP_INSTALL                                                                                \
	"if [ -f requirements.txt ]; then python3 -m pip install -r requirements.txt; "            \
	"elif [ -f pyproject.toml ]; then "                                                        \
	"python3 -I - > .venv/needs.txt && python3 -m pip install -r .venv/needs.txt && "          \
	"if grep -q '^\\[build-system\\]' pyproject.toml && ! grep -qx . .venv/needs.txt; then "   \
	"python3 -m pip install --no-deps --editable . || "                                        \
	"echo 'the app itself is not installed as a package: it runs from its files'; fi; fi"

static const struct installer installers[] = {
	{"npm", "node_modules",
		NPM_QUIET
		"if [ -f package-lock.json ] || [ -f npm-shrinkwrap.json ]; then npm ci || npm "
		"install; else npm install; fi",
		NULL},
	{"pnpm", "node_modules", NPM_QUIET BY_NAME("pnpm"), NULL},
	/* Yarn from 2 on puts packages elsewhere and asks another registry, unless it is told. */
	{"yarn", "node_modules",
		NPM_QUIET
		"export YARN_NODE_LINKER=node-modules; [ -z \"$npm_config_registry\" ] || "
		"export "
		"YARN_NPM_REGISTRY_SERVER=\"${YARN_NPM_REGISTRY_SERVER:-$npm_config_registry}\";"
		" " BY_NAME("yarn"),
		NULL},
	{"bun", "node_modules", NPM_QUIET BY_NAME("bun"), NULL},
	{"pip", ".venv", INSTALLER_VENV PIP_INSTALL, pyproject_needs_py},
	{"uv", ".venv",
		INSTALLER_VENV "if command -v uv >/dev/null; then uv sync; else " PIP_INSTALL
			       "; fi",
		pyproject_needs_py},
	{"poetry", ".venv",
		INSTALLER_VENV
		"if command -v poetry >/dev/null; then poetry install --no-root && "
		"{ poetry install --only-root || echo 'the app itself is not "
		"installed as a package: it runs from its files'; }; else " PIP_INSTALL "; fi",
		pyproject_needs_py},
	{"pipenv", ".venv",
		INSTALLER_VENV "if command -v pipenv >/dev/null; then pipenv install --system; "
			       "else python3 -m pip install pipenv && python3 -m pipenv install "
			       "--system; fi",
		NULL},
};

const struct installer *installer_find(const char *manager)
{
	for (size_t i = 0; manager && i < array_len(installers); i++) {
		if (strcmp(installers[i].manager, manager) == 0)
			return &installers[i];
	}
	return NULL;
}
