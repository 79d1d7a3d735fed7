/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/part_state.h"

#include <stdio.h>
#include <string.h>

#define READ_MS	   60000
#define OUTPUT_MAX 4096

/*
 * Says the four texts, a line each. Files of a project are those that it has; of a sandbox without one those that are
 * there. Each is read once. Large ones are known by size and times, packages by what their installers note, also by
 * hand. A part that lies below this one is another's.
 */
static const char script[] =
	"export LC_ALL=C; "
	"list() { if [ \"$PROJECT\" = 1 ]; then cut -d' ' -f2- .sandlot/files; else "
	"find . -name node_modules -prune -o -name .git -prune -o -name .venv -prune -o "
	"-name .sandlot -prune -o -name __pycache__ -prune -o -type f -print | cut -c3- | sort; fi "
	"| "
	"awk 'BEGIN { dir = ENVIRON[\"DIR\"]; if (dir != \"\") dir = dir \"/\"; "
	"other = ENVIRON[\"OTHER\"] } "
	"index($0, dir) == 1 && (other == \"\" || index($0, other \"/\") != 1)'; "
	"cd \"./$DIR\" && for name in .env .sandlot/vite.config.mjs .sandlot/.sandlot-installed "
	"node_modules/.sandlot-installed node_modules/.package-lock.json .venv/.sandlot-installed "
	".venv/lib/python*/site-packages/*.dist-info/RECORD; do "
	"printf '%s\\n' \"${DIR:+$DIR/}$name\"; done; }; "
	"sums() { sed 's|^|./|' | tr '\\n' '\\0' | xargs -0 sh -c '"
	"find \"$@\" -maxdepth 0 -type f -size -2048k -exec sha256sum {} +; "
	"find \"$@\" -maxdepth 0 -type f -size +2047k -exec stat -c \"%n %s %Y %Z\" {} +' sh "
	"2>/dev/null; }; "
	/* What lies in the directory of the part itself, and what was noted of its packages. */
	"top() { awk 'BEGIN { dir = ENVIRON[\"DIR\"]; skip = dir == \"\" ? 2 : length(dir) + 3 } "
	"{ rest = substr($0, index($0, \"./\") + skip) } "
	"index(rest, \"/\") == 0 || rest ~ /^(\\.sandlot|node_modules|\\.venv)\\//'; }; "
	"digest() { sha256sum | { read -r sum rest; echo \"$sum\"; }; }; "
	"sums=$(list | sums); all=$(printf '%s\\n' \"$sums\" | digest); "
	"case $LOADED in all) loaded=$all;; none) loaded=$(echo none | digest);; "
	"*) loaded=$(printf '%s\\n' \"$sums\" | top | digest);; esac; "
	"checked= started=; { read -r checked < .sandlot/checked.$ROLE; "
	"read -r started < .sandlot/started.$ROLE; } 2>/dev/null; "
	"printf '%s\\n%s\\n%s\\n%s\\n' \"$all\" \"$loaded\" \"$checked\" \"$started\"";

/* The directory of the other part, if it lies below that of this one. */
static const char *other_below(const struct pipeline *pipeline, enum app_role role)
{
	enum app_role other_role = role == ROLE_BACKEND ? ROLE_FRONTEND : ROLE_BACKEND;
	const char *dir = pipeline->detection.parts[role].dir;
	const char *other = pipeline->detection.parts[other_role].dir;
	size_t len = strlen(dir);

	if (!pipeline->detection.has_part[other_role] || !other[0] || strcmp(other, dir) == 0)
		return "";
	return len == 0 || (strncmp(other, dir, len) == 0 && other[len] == '/') ? other : "";
}

/* A development server sees changes of sources; those of its own config it may not. */
static const char *what_is_loaded(const struct app_part *part)
{
	return part->framework->runtime == RUNTIME_STATIC ? "none"
	       : part->framework->is_hot		  ? "top"
							  : "all";
}

static void take_line(const char **at, char *to, size_t size)
{
	size_t len = strcspn(*at, "\n");

	if (len < size)
		snprintf(to, size, "%.*s", (int)len, *at);
	*at += len + ((*at)[len] == '\n');
}

int part_state_read(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct app_part *part = &pipeline->detection.parts[role];
	struct part_state *state = &pipeline->states[role];
	const struct text_pair env[] = {{"DIR", part->dir}, {"OTHER", other_below(pipeline, role)},
		{"LOADED", what_is_loaded(part)}, {"ROLE", framework_role_name(role)},
		{"PROJECT", pipeline->record.project[0] ? "1" : "0"}};
	struct buf output = BUF_INIT(OUTPUT_MAX);
	struct sandbox_command command = {.line = script,
		.cwd = PIPELINE_APP,
		.env = {.pairs = env, .count = array_len(env)},
		.timeout_ms = READ_MS,
		.output = &output};
	struct sandbox_command_end end;
	auto_free char *text = NULL;
	const char *at;
	int r;

	if (state->is_read)
		return 0;
	r = sandbox_command_run(pipeline->sandbox, pipeline->job, &command, &end, err);
	text = buf_take_str(&output);
	if (r < 0)
		return r;
	state->is_read = true;
	if (end.exit_code != 0)
		return 0;
	at = text;
	take_line(&at, state->all, sizeof(state->all));
	take_line(&at, state->loaded, sizeof(state->loaded));
	take_line(&at, state->checked, sizeof(state->checked));
	take_line(&at, state->started, sizeof(state->started));
	return 0;
}

bool part_state_is_checked(const struct part_state *state)
{
	return state->all[0] && strcmp(state->all, state->checked) == 0;
}

static void format_start(
	const struct part_state *state, uint32_t process, char text[sizeof(state->started)])
{
	snprintf(text, sizeof(state->started), "%s %u", state->loaded, process);
}

bool part_state_is_started(const struct part_state *state, uint32_t process)
{
	size_t len = strlen(state->loaded);
	unsigned noted;

	return len > 0 && strncmp(state->started, state->loaded, len) == 0 &&
	       sscanf(state->started + len, " %u", &noted) == 1 && process >= noted;
}

static int write_note(struct pipeline *pipeline, const char *what, enum app_role role,
	const char *text, struct err *err)
{
	auto_free char *path = mem_printf(".sandlot/%s.%s", what, framework_role_name(role));

	return pipeline_write(pipeline, path, text, err);
}

int part_state_note_check(struct pipeline *pipeline, enum app_role role, struct err *err)
{
	const struct part_state *state = &pipeline->states[role];

	return state->all[0] ? write_note(pipeline, "checked", role, state->all, err) : 0;
}

int part_state_note_start(
	struct pipeline *pipeline, enum app_role role, uint32_t process, struct err *err)
{
	const struct part_state *state = &pipeline->states[role];
	char text[sizeof(state->started)];

	format_start(state, process, text);
	return state->loaded[0] ? write_note(pipeline, "started", role, text, err) : 0;
}
