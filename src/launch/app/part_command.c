/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/app/part_command.h"

#include "base/format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *part_command_script(const json_t *package, const char *name)
{
	return json_string_value(json_object_get(json_object_get(package, "scripts"), name));
}

/*
 * TypeScript is run by what there is: the app's own tsx, a node that leaves types out, a compiler; else tsx of the registry.
 * What is compiled is a script of the old kind, whatever package.json says of those of the app.
 */
#define TYPESCRIPT                                                                                 \
	"if [ -x node_modules/.bin/tsx ]; then exec node_modules/.bin/tsx '{entry}'; fi; "         \
	"if node --experimental-strip-types -e 0 2>/dev/null; then "                               \
	"exec node --experimental-strip-types '{entry}'; fi; "                                     \
	"made=.sandlot/typescript; mkdir -p $made && echo '{}' > $made/package.json; "             \
	"tsc=$(PATH=\"node_modules/.bin:$PATH\" command -v tsc) && $tsc --rootDir . --outDir "     \
	"$made "                                                                                   \
	"--module commonjs --target es2022 --esModuleInterop --skipLibCheck '{entry}'; "           \
	"entry='{entry}'; entry=\"$made/${entry%.ts}.js\"; "                                       \
	"if [ -f \"$entry\" ]; then exec node \"$entry\"; fi; exec npx --yes tsx '{entry}'"

/* The command that runs a file; NULL: node cannot. */
static const char *program_of(const char *entry)
{
	const char *end = strrchr(entry, '.');

	if (!end || strpbrk(entry, "'\\"))
		return NULL;
	if (strcmp(end, ".js") == 0 || strcmp(end, ".mjs") == 0 || strcmp(end, ".cjs") == 0)
		return "exec node '{entry}'";
	return strcmp(end, ".ts") == 0 ? TYPESCRIPT : NULL;
}

/*
 * Whether flags behind a script reach the framework: its last command must be the framework's own, maybe behind
 * variables. Programs that run several commands would take the flags for themselves.
 */
static bool takes_flags(const char *script, const char *name)
{
	const char *at = script, *next;

	while ((next = strstr(at, "&&")))
		at = next + 2;
	for (;;) {
		size_t len;

		at += strspn(at, " ");
		len = strcspn(at, " ");
		if (len == strlen(name) && strncmp(at, name, len) == 0)
			return true;
		if (len == 0 || (!memchr(at, '=', len) && strncmp(at, "cross-env", len) != 0 &&
					strncmp(at, "npx", len) != 0))
			return false;
		at += len;
	}
}

/* Whether a shell would find nothing in a script but the framework's program and its arguments. */
static bool is_plain(const char *script, const char *program)
{
	size_t len = strlen(program);

	if (strncmp(script, program, len) != 0 || (script[len] && script[len] != ' ') ||
		strlen(script) > APP_COMMAND_MAX / 2)
		return false;
	for (const char *c = script; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr(" -_./:=@,+%", *c))
			return false;
	}
	return true;
}

/* Whether npm does no more for `dev` than to run it: no script before or behind it, no setting of its own. */
static bool needs_no_npm(
	const struct app_part *part, const struct file_set *set, const json_t *package)
{
	return is_plain(part_command_script(package, "dev"), part->framework->name) &&
	       !part_command_script(package, "predev") &&
	       !part_command_script(package, "postdev") && !json_object_get(package, "config") &&
	       !file_set_has(set, part->dir, ".npmrc") && !file_set_has(set, "", ".npmrc");
}

static void run_dev(struct app_part *part, const struct file_set *set, const json_t *package)
{
	const char *flags = part->framework->flags;

	if (needs_no_npm(part, set, package)) {
		part->script = "dev";
		snprintf(part->command, sizeof(part->command), "exec %s %s",
			part_command_script(package, "dev"), flags);
	} else {
		snprintf(part->command, sizeof(part->command), "exec npm run dev -- %s", flags);
	}
}

void part_command_choose_node(struct app_part *part, const struct file_set *set,
	const json_t *package, bool is_entry_said)
{
	const struct framework *framework = part->framework;
	const char *dev = part_command_script(package, "dev");
	const char *program = program_of(part->entry);

	part->command[0] = '\0';
	part->script = NULL;
	if (is_entry_said && !framework->command && program)
		snprintf(part->command, sizeof(part->command), "%s", program);
	else if (framework->flags && dev && takes_flags(dev, framework->name))
		run_dev(part, set, package);
	else if (framework->command)
		snprintf(part->command, sizeof(part->command), "exec %s", framework->command);
	else if (part_command_script(package, "start"))
		snprintf(part->command, sizeof(part->command), "exec npm start");
	else if (dev)
		snprintf(part->command, sizeof(part->command), "exec npm run dev");
	else if (program)
		snprintf(part->command, sizeof(part->command), "%s", program);
}

/* The name of the object that an entry file makes by a call, as in "app = FastAPI()". */
static void find_object(const char *text, const char *call, char *object, size_t size)
{
	const char *at = strstr(text, call), *end, *begin;

	snprintf(object, size, "app");
	if (!at)
		return;
	for (end = at; end > text && isspace((unsigned char)end[-1]); end--)
		;
	if (end == text || *--end != '=')
		return;
	for (; end > text && end[-1] == ' '; end--)
		;
	for (begin = end; begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_');
		begin--)
		;
	if (begin < end && (size_t)(end - begin) < size)
		snprintf(object, size, "%.*s", (int)(end - begin), begin);
}

/* Replaces each place of a text; what is put in is not looked at again. */
void part_command_fill(char command[APP_COMMAND_MAX], const char *what, const char *with)
{
	char made[APP_COMMAND_MAX] = "";
	const char *from = command, *at;
	size_t len = 0;

	for (; (at = strstr(from, what)); from = at + strlen(what))
		len = format_append(
			made, sizeof(made), len, "%.*s%s", (int)(at - from), from, with);
	format_append(made, sizeof(made), len, "%s", from);
	memcpy(command, made, sizeof(made));
}

/* An entry file of Python as a module; empty if its name is none. */
static void module_of(const char *entry, char module[APP_ENTRY_MAX])
{
	size_t len = strlen(entry);

	module[0] = '\0';
	if (len < 4 || strcmp(entry + len - 3, ".py") != 0)
		return;
	for (size_t i = 0; i < len - 3; i++) {
		if (!isalnum((unsigned char)entry[i]) && entry[i] != '_' && entry[i] != '/')
			return;
	}
	snprintf(module, APP_ENTRY_MAX, "%.*s", (int)(len - 3), entry);
	for (char *c = module; *c; c++)
		*c = *c == '/' ? '.' : *c;
}

const char *part_command_call(const struct framework *framework)
{
	return strcmp(framework->name, "fastapi") == 0 ? "FastAPI("
	       : strcmp(framework->name, "flask") == 0 ? "Flask("
						       : NULL;
}

void part_command_choose_python(struct app_part *part, const struct file_set *set)
{
	char module[APP_ENTRY_MAX], object[64] = "app";
	auto_free char *text = file_set_read(set, part->dir, part->entry);

	part->command[0] = '\0';
	if (!part->entry[0] || strpbrk(part->entry, "'\\"))
		return;
	module_of(part->entry, module);
	if (strcmp(part->framework->name, "fastapi") == 0 && text)
		find_object(text, "FastAPI(", object, sizeof(object));
	if (strstr(part->framework->command, "{module}") && !module[0])
		return;
	if (strcmp(part->framework->name, "django") == 0 && strcmp(part->entry, "manage.py") != 0)
		return;
	snprintf(part->command, sizeof(part->command), "exec %s", part->framework->command);
	part_command_fill(part->command, "{module}", module);
	part_command_fill(part->command, "{object}", object);
}

void part_command_line(const struct app_part *part, const char *base, char command[APP_COMMAND_MAX])
{
	char config[APP_ENTRY_MAX] = "";

	if (part->config)
		snprintf(config, sizeof(config), " --config %s", part->config);
	memcpy(command, part->command, APP_COMMAND_MAX);
	part_command_fill(command, "{base}", base);
	part_command_fill(command, "{config}", config);
}
