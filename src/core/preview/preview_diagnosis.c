/* SPDX-License-Identifier: Apache-2.0 */
#include "core/preview/preview_diagnosis.h"

#include "core/engine/sandbox_state.h"
#include "core/output/output_cursor.h"
#include "core/preview/preview.h"
#include "core/process/process_table.h"
#include "core/process/start_command.h"
#include "model/sandbox/sandbox_port.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long an app may still be starting: while a page reloads, or one waits for another; while a request waits; and if
 * nobody has said what to start, until somebody has had the time to do that. */
#define YOUNG_PAGE_MS	 60000
#define YOUNG_REQUEST_MS 30000
#define YOUNG_EMPTY_MS	 5000

/* The start command that says most about the app. */
struct app {
	const char *name; /* NULL: the sandbox has none */
	struct start_command_state state;
	int64_t now_ms; /* by the clock that the state has its times from */
};

/*
 * How much it explains that nothing answers: one that failed or was ended most of all, one that has done what
 * it was for only if nothing else runs.
 */
static int weight(const struct start_command_state *state)
{
	switch (state->status) {
	case START_COMMAND_WAITING:
	case START_COMMAND_KILLED:
		return 2;
	case START_COMMAND_EXITED:
		return 0;
	default:
		return 1;
	}
}

/* Of those that explain as much, the one that was started last. */
static bool tells_more(
	const struct start_command_state *one, const struct start_command_state *other)
{
	int difference = weight(one) - weight(other);

	return difference ? difference > 0 : one->tried_at_ms > other->tried_at_ms;
}

static struct app find_app(struct sandbox *sandbox, const struct sandbox_record *record)
{
	struct app app = {0};
	json_t *spec;
	size_t i;

	json_array_foreach(record->start, i, spec)
	{
		struct app next = {.name = json_string_value(json_object_get(spec, "name"))};

		start_command_read(sandbox, next.name, &next.state);
		if (!app.name || tells_more(&next.state, &app.state))
			app = next;
	}
	app.now_ms = store_clock_ms(sandbox->engine->config.store);
	return app;
}

/* --- its output --- */

/* The last that it wrote; only for those who were let in, because a program may say anything there. */
static void read_tail(
	struct sandbox *sandbox, uint32_t process, struct preview_diagnosis *diagnosis)
{
	struct output_cursor *cursor;
	struct output_piece piece;
	struct output_log *log;
	uint8_t data[PREVIEW_OUTPUT_MAX];
	struct err ignored;
	uint64_t end;

	if (!process || process_table_open_log(sandbox, process, &log, &ignored) < 0)
		return;
	end = output_log_end(log); /* of one that runs there may always be more */
	cursor = output_cursor_new(log, output_cursor_tail(log, PREVIEW_OUTPUT_MAX));
	do {
		size_t room = PREVIEW_OUTPUT_MAX - diagnosis->output_len, len;

		output_cursor_read(cursor, data, room, &piece);
		if (piece.kind != OUTPUT_STDOUT && piece.kind != OUTPUT_STDERR)
			continue;
		len = (size_t)(piece.next - piece.offset);
		memcpy(diagnosis->output + diagnosis->output_len, data, len < room ? len : room);
		diagnosis->output_len += len < room ? len : room;
	} while (piece.kind != OUTPUT_NONE && piece.next < end &&
		 diagnosis->output_len < PREVIEW_OUTPUT_MAX);
	output_cursor_free(cursor);
	output_log_unref(log);
}

/* --- what is wrong --- */

/* Says what to do. */
static void advise(struct preview_diagnosis *diagnosis, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void advise(struct preview_diagnosis *diagnosis, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(diagnosis->remedy, PREVIEW_TEXT_MAX, format, args);
	va_end(args);
}

/* Adds what comes next of one that failed. */
static void describe_plan(const struct start_command_state *state, int64_t now_ms,
	struct preview_diagnosis *diagnosis)
{
	int64_t left_ms = state->next_try_at_ms - now_ms;
	size_t len = strlen(diagnosis->message);

	snprintf(diagnosis->message + len, PREVIEW_TEXT_MAX - len,
		" Restarts so far: %u; the next try is in %lld s.", state->restarts,
		(long long)(left_ms > 0 ? (left_ms + 999) / 1000 : 0));
}

static void describe_crash(
	const char *id, const struct app *app, struct preview_diagnosis *diagnosis)
{
	const struct start_command_state *state = &app->state;
	char process[PROCESS_NAME_MAX];

	diagnosis->code = "app_crashed";
	diagnosis->title = "The app crashed";
	process_name_format(state->process, process);
	advise(diagnosis, "Its output says why: sandlot logs %s %s", id, process);
	snprintf(diagnosis->message, PREVIEW_TEXT_MAX,
		"The start command %s ended with status %d%s%s.", app->name, state->exit_code,
		state->end.detail[0] ? ": " : "", state->end.detail);
}

/* Why is not for everybody: it is about the inside of the sandbox, as its output is. */
static void describe_failure(
	const struct app *app, bool is_for_all, struct preview_diagnosis *diagnosis)
{
	const char *why = is_for_all ? NULL : start_command_error(&app->state);

	diagnosis->code = "app_not_run";
	diagnosis->title = "The app cannot be run";
	diagnosis->remedy[0] = '\0';
	if (why && app->state.error.remedy[0])
		advise(diagnosis, "%s", app->state.error.remedy);
	snprintf(diagnosis->message, PREVIEW_TEXT_MAX, "The start command %s cannot be run%s%s.",
		app->name, why ? ": " : "", why ? why : "");
}

/* What is wrong with an app that is not starting. */
static void judge(const char *id, const struct app *app, const struct err *why, bool is_for_all,
	struct preview_diagnosis *diagnosis)
{
	diagnosis->code = why->code;
	diagnosis->title = "Nothing answers on this port";
	snprintf(diagnosis->message, PREVIEW_TEXT_MAX, "%s", why->message);
	snprintf(diagnosis->remedy, PREVIEW_TEXT_MAX, "%s", why->remedy);
	if (!app->name)
		return;
	switch (app->state.status) {
	case START_COMMAND_WAITING:
		if (start_command_error(&app->state))
			describe_failure(app, is_for_all, diagnosis);
		else
			describe_crash(id, app, diagnosis);
		describe_plan(&app->state, app->now_ms, diagnosis);
		diagnosis->may_pass = true;
		break;
	case START_COMMAND_EXITED:
		diagnosis->code = "app_exited";
		diagnosis->title = "The app has ended";
		advise(diagnosis,
			"A start command that ends with status 0 is left alone; it runs again when "
			"the sandbox starts: sandlot stop %s, sandlot start %s",
			id, id);
		snprintf(diagnosis->message, PREVIEW_TEXT_MAX,
			"The start command %s ended with status 0, and nothing listens on this "
			"port.",
			app->name);
		break;
	case START_COMMAND_KILLED:
		diagnosis->code = "app_killed";
		diagnosis->title = "The app was ended";
		advise(diagnosis,
			"It runs again when the sandbox starts: sandlot stop %s, sandlot start %s",
			id, id);
		snprintf(diagnosis->message, PREVIEW_TEXT_MAX,
			"Somebody ended the start command %s.", app->name);
		break;
	default:
		if (strcmp(why->code, "port_closed") != 0)
			break;
		diagnosis->code = "wrong_port";
		diagnosis->title = "The app does not listen on this port";
		advise(diagnosis, "Have it listen on this port, or open the one that it uses");
		snprintf(diagnosis->message, PREVIEW_TEXT_MAX, "The start command %s runs, but %s",
			app->name, why->message);
	}
}

/* --- where it listens instead --- */

/* The ports that would answer, each once, if that can be known. */
static void list_ports(struct sandbox *sandbox, struct preview_diagnosis *diagnosis)
{
	struct port_list list;
	size_t count = 0;

	if (preview_look_around(sandbox, &list) < 0)
		return;
	diagnosis->knows_listening = true;
	for (size_t i = 0; i < list.count && count < PREVIEW_PORTS_MAX; i++) {
		uint16_t number = list.ports[i].number;

		if (port_is_reachable(&list.ports[i]) &&
			(count == 0 || diagnosis->listening[count - 1] != number))
			diagnosis->listening[count++] = number;
	}
	diagnosis->listening_count = count;
	port_list_fini(&list);
}

/* The one to look at: one that has a preview, if there is such. */
static uint16_t choose(
	const struct sandbox_record *record, const struct preview_diagnosis *diagnosis)
{
	struct sandbox_port shown;

	for (size_t i = 0; i < diagnosis->listening_count; i++) {
		if (sandbox_port_find(record, diagnosis->listening[i], &shown))
			return shown.number;
	}
	return diagnosis->listening[0];
}

/* Says what listens, if anything does: what looks for the app knocks on the wrong door. */
static void point_elsewhere(
	const struct preview_question *question, struct preview_diagnosis *diagnosis)
{
	size_t len = strlen(diagnosis->message);

	if (diagnosis->listening_count == 0)
		return;
	for (size_t i = 0; i < diagnosis->listening_count; i++) {
		const char *before = i > 0 ? ", "
				     : diagnosis->message[len - 1] == '.'
					     ? " The sandbox listens on "
					     : ". The sandbox listens on ";

		snprintf(diagnosis->message + len, PREVIEW_TEXT_MAX - len, "%s%u", before,
			diagnosis->listening[i]);
		len = strlen(diagnosis->message);
	}
	snprintf(diagnosis->message + len, PREVIEW_TEXT_MAX - len, ".");
	advise(diagnosis,
		"Have it listen on port %u, or open the one that it uses: sandlot open %s %u",
		question->port, question->record->id, choose(question->record, diagnosis));
}

/* --- the answer --- */

static void await_app(struct preview_diagnosis *diagnosis)
{
	diagnosis->code = "app_starting";
	diagnosis->title = "Waiting for the app";
	diagnosis->may_pass = true;
	diagnosis->is_starting = true;
	snprintf(diagnosis->message, PREVIEW_TEXT_MAX,
		"The sandbox runs; nothing answers on this port yet. This page reloads by itself.");
}

static bool is_busy(const struct preview_question *question)
{
	return strcmp(question->why->code, "port_busy") == 0;
}

/* One that is stopped in a sandbox that runs is about to be started. */
static bool runs(const struct app *app)
{
	return !app->name || app->state.status == START_COMMAND_RUNNING ||
	       app->state.status == START_COMMAND_STOPPED;
}

/*
 * Members have commands of their own, and others wait for them. Where there is no command it is whatever somebody has
 * just started.
 */
static bool is_starting(
	struct sandbox *sandbox, const struct app *app, const struct preview_question *question)
{
	bool has_members = json_array_size(question->record->members) > 0;
	uint64_t young_ms = question->wants_page || has_members ? YOUNG_PAGE_MS : YOUNG_REQUEST_MS;
	int64_t age_ms = app->now_ms - (app->state.tried_at_ms ? app->state.tried_at_ms
							       : question->record->started_at_ms);

	if (is_busy(question) || !runs(app))
		return false;
	if (app->name || has_members)
		return age_ms < (int64_t)young_ms;
	return age_ms < YOUNG_EMPTY_MS || process_table_has_young(sandbox, young_ms);
}

bool preview_diagnosis_may_pass(struct sandbox *sandbox, const struct preview_question *question)
{
	struct app app = find_app(sandbox, question->record);

	return is_busy(question) || (is_starting(sandbox, &app, question) && !question->wants_page);
}

void preview_diagnosis_make(struct sandbox *sandbox, const struct preview_question *question,
	struct preview_diagnosis *ret_diagnosis)
{
	struct app app = find_app(sandbox, question->record);

	*ret_diagnosis = (struct preview_diagnosis){0};
	if (question->wants_page && is_starting(sandbox, &app, question))
		await_app(ret_diagnosis);
	else
		judge(question->record->id, &app, question->why, question->is_for_all,
			ret_diagnosis);
	/* What is inside is for those who were let in. */
	if (!question->is_for_all) {
		read_tail(sandbox, app.state.process, ret_diagnosis);
		if (runs(&app) && !is_busy(question))
			list_ports(sandbox, ret_diagnosis);
	}
	point_elsewhere(question, ret_diagnosis);
}
