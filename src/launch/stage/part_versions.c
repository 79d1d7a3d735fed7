/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/part_versions.h"

#include "launch/stage/pipeline.h"

#include <stdio.h>
#include <string.h>

#define ASK_MS	   20000
#define OUTPUT_MAX 1024
#define WORD_MAX   64

/* Says "name version" for the runtime of a part and for its framework. */
static const char script[] =
	"if [ \"$RUNTIME\" = node ]; then version=$(node --version) && echo \"node ${version#v}\"; "
	"version=$(sed -n 's/^ *\"version\": *\"\\([^\"]*\\)\".*/\\1/p' "
	"\"node_modules/$PACKAGE/package.json\" | head -n 1); "
	"else PATH=\"$PWD/.venv/bin:$PATH\"; version=$(python3 --version) && "
	"echo \"python ${version#* }\"; "
	"[ -z \"$PACKAGE\" ] || version=$(python3 -c 'import importlib.metadata, os; "
	"print(importlib.metadata.version(os.environ[\"PACKAGE\"]))'); fi 2>/dev/null; "
	"[ -z \"$PACKAGE\" ] || [ -z \"$version\" ] || echo \"$FRAMEWORK $version\"";

/* What the sandbox says is anybody's: a word of plain characters. */
static void take(json_t *versions, const char *line, size_t len)
{
	const char *blank = memchr(line, ' ', len);
	size_t name_len = blank ? (size_t)(blank - line) : 0;
	size_t version_len = blank ? len - name_len - 1 : 0;
	auto_free char *name = mem_printf("%.*s", (int)name_len, line);
	auto_free char *version = mem_printf("%.*s", (int)version_len, line + name_len + 1);

	if (name_len == 0 || name_len >= WORD_MAX || version_len == 0 || version_len >= WORD_MAX ||
		strspn(version, "0123456789abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_") != version_len)
		return;
	json_object_set_new(versions, name, json_string(version));
}

static void ask(struct pipeline *pipeline, enum app_role role, json_t *versions)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	const struct framework *framework = part->framework;
	const struct text_pair env[] = {{"RUNTIME", framework_runtime_name(framework->runtime)},
		{"PACKAGE", framework->package ? framework->package : ""},
		{"FRAMEWORK", framework->name}};
	auto_free char *cwd = file_set_join(PIPELINE_APP, part->dir), *text = NULL;
	struct buf output = BUF_INIT(OUTPUT_MAX);
	struct sandbox_command command = {.line = script,
		.cwd = part->dir[0] ? cwd : PIPELINE_APP,
		.env = {.pairs = env, .count = array_len(env)},
		.timeout_ms = ASK_MS,
		.output = &output};
	struct sandbox_command_end end;
	struct err ignored;

	(void)!sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, &ignored);
	text = buf_take_str(&output);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		take(versions, line, len);
		line += len + (line[len] == '\n');
	}
}

void part_versions_begin(struct pipeline *pipeline)
{
	struct sandbox_record record;

	sandbox_read(pipeline->sandbox, &record);
	json_object_set_new(pipeline->record.document, "versions",
		json_pack("{s:s, s:s}", "sandlot", SANDLOT_VERSION, "template",
			record.template_name));
	sandbox_record_fini(&record);
}

void part_versions_note(struct pipeline *pipeline)
{
	json_t *versions = json_object_get(pipeline->record.document, "versions");

	if (pipeline->has_versions)
		return;
	pipeline->has_versions = true;
	for (int role = 0; role < ROLE_COUNT; role++) {
		if (pipeline->detection.has_part[role] &&
			pipeline->detection.parts[role].framework->runtime != RUNTIME_STATIC)
			ask(pipeline, role, versions);
	}
}
