/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview_app.h"

#include "api/preview_pages.h"
#include "api/text.h"
#include "base/clock.h"
#include "core/output_cursor.h"
#include "core/preview.h"
#include "core/roll.h"
#include "core/starter.h"
#include "model/sandbox_port.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOLD_MS	  30000 /* how long a request waits for an app that is starting */
#define YOUNG_MS  60000 /* an app that may still be starting */
#define TAIL_MAX  2000	/* bytes of its output that a page shows */
#define PORTS_MAX 8	/* that a page names */
#define TEXT_MAX  768

/* The start command that says most about the app. */
struct app {
	const char *name; /* NULL: the sandbox has none */
	struct starter_state state;
};

/*
 * How much it explains that nothing answers: one that failed or was ended most of all, one that has done what
 * it was for only if nothing else runs.
 */
static int weight(const struct starter_state *state)
{
	switch (state->status) {
	case STARTER_WAITING:
	case STARTER_KILLED:
		return 2;
	case STARTER_EXITED:
		return 0;
	default:
		return 1;
	}
}

/* Of those that explain as much, the one that was started last. */
static bool tells_more(const struct starter_state *one, const struct starter_state *other)
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

		starter_read(sandbox, next.name, &next.state);
		if (!app.name || tells_more(&next.state, &app.state))
			app = next;
	}
	return app;
}

/* --- its output --- */

/* The last lines that it wrote; only for those who were let in, because a program may say anything there. */
static void read_tail(struct sandbox *sandbox, uint32_t process, struct buf *out)
{
	struct output_cursor *cursor;
	struct output_piece piece;
	struct output_log *log;
	uint8_t data[TAIL_MAX];
	struct err ignored;
	uint64_t end;

	if (!process || roll_open_log(sandbox, process, &log, &ignored) < 0)
		return;
	end = output_log_end(log); /* of one that runs there may always be more */
	cursor = output_cursor_new(log, output_cursor_tail(log, TAIL_MAX));
	do {
		output_cursor_read(cursor, data, sizeof(data), &piece);
		if (piece.kind == OUTPUT_STDOUT || piece.kind == OUTPUT_STDERR)
			text_put_plain(out, data, (size_t)(piece.next - piece.offset));
	} while (piece.kind != OUTPUT_NONE && piece.next < end && out->len < TAIL_MAX);
	buf_append(out, "", 1);
	output_cursor_free(cursor);
	output_log_unref(log);
}

/* --- pages --- */

/* A page and the texts that it points to. */
struct finding {
	struct preview_page page;
	char message[TEXT_MAX], remediation[TEXT_MAX];
};

/* Says what to do. */
static void advise(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void advise(struct finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->remediation, TEXT_MAX, format, args);
	va_end(args);
	finding->page.remediation = finding->remediation;
}

/* Adds what comes next of one that failed. */
static void describe_plan(const struct starter_state *state, struct finding *finding)
{
	int64_t left_ms = state->next_try_at_ms - clock_wall_ms();
	size_t len = strlen(finding->message);

	snprintf(finding->message + len, TEXT_MAX - len,
		" Restarts so far: %u; the next try is in %lld s.", state->restarts,
		(long long)(left_ms > 0 ? (left_ms + 999) / 1000 : 0));
}

static void describe_crash(const char *id, const struct app *app, struct finding *finding)
{
	const struct starter_state *state = &app->state;
	char process[PROCESS_NAME_MAX];

	finding->page.code = "app_crashed";
	finding->page.title = "The app crashed";
	process_name_format(state->process, process);
	advise(finding, "Its output says why: sandlot logs %s %s", id, process);
	snprintf(finding->message, TEXT_MAX, "The start command %s ended with status %d%s%s.",
		app->name, state->exit_code, state->end.detail[0] ? ": " : "", state->end.detail);
}

/* Why is not for everybody: it is about the inside of the sandbox, as its output is. */
static void describe_failure(const struct app *app, bool is_for_all, struct finding *finding)
{
	const char *why = is_for_all ? NULL : starter_error(&app->state);

	finding->page.code = "app_not_run";
	finding->page.title = "The app cannot be run";
	finding->page.remediation = NULL;
	if (why && app->state.error.remedy[0])
		advise(finding, "%s", app->state.error.remedy);
	snprintf(finding->message, TEXT_MAX, "The start command %s cannot be run%s%s.", app->name,
		why ? ": " : "", why ? why : "");
}

/* What is wrong with an app that is not starting. */
static void judge(const char *id, const struct app *app, const struct err *why, bool is_for_all,
	struct finding *finding)
{
	struct preview_page *page = &finding->page;

	*page = (struct preview_page){
		.status = 502, .code = why->code, .message = finding->message};
	snprintf(finding->message, TEXT_MAX, "%s", why->message);
	page->title = "Nothing answers on this port";
	page->remediation = why->remedy;
	if (!app->name)
		return;
	switch (app->state.status) {
	case STARTER_WAITING:
		if (starter_error(&app->state))
			describe_failure(app, is_for_all, finding);
		else
			describe_crash(id, app, finding);
		describe_plan(&app->state, finding);
		page->reloads = true;
		break;
	case STARTER_EXITED:
		page->code = "app_exited";
		page->title = "The app has ended";
		advise(finding,
			"A start command that ends with status 0 is left alone; it runs again when "
			"the sandbox starts: sandlot stop %s, sandlot start %s",
			id, id);
		snprintf(finding->message, TEXT_MAX,
			"The start command %s ended with status 0, and nothing listens on this "
			"port.",
			app->name);
		break;
	case STARTER_KILLED:
		page->code = "app_killed";
		page->title = "The app was ended";
		advise(finding,
			"It runs again when the sandbox starts: sandlot stop %s, sandlot start %s",
			id, id);
		snprintf(finding->message, TEXT_MAX, "Somebody ended the start command %s.",
			app->name);
		break;
	default:
		if (strcmp(why->code, "port_closed") != 0)
			break;
		page->code = "wrong_port";
		page->title = "The app does not listen on this port";
		page->remediation = "Have it listen on this port, or open the one that it uses";
		snprintf(finding->message, TEXT_MAX, "The start command %s runs, but %s", app->name,
			why->message);
	}
}

/* --- where it listens instead --- */

/* The ports that would answer, each once; NULL if that is not known. */
static json_t *list_ports(struct sandbox *sandbox)
{
	struct port_list list;
	json_t *numbers;

	if (preview_look_around(sandbox, &list) < 0)
		return NULL;
	numbers = json_array();
	for (size_t i = 0; i < list.count && json_array_size(numbers) < PORTS_MAX; i++) {
		const json_t *last = json_array_get(numbers, json_array_size(numbers) - 1);

		if (port_is_reachable(&list.ports[i]) &&
			json_integer_value(last) != list.ports[i].number)
			json_array_append_new(numbers, json_integer(list.ports[i].number));
	}
	port_list_fini(&list);
	return numbers;
}

/* The one to look at: one that has a preview, if there is such. */
static int choose(const struct sandbox_record *record, const json_t *listening)
{
	struct sandbox_port shown;
	json_t *port;
	size_t i;

	json_array_foreach((json_t *)listening, i, port)
	{
		if (sandbox_port_find(record, (uint16_t)json_integer_value(port), &shown))
			return shown.number;
	}
	return (int)json_integer_value(json_array_get(listening, 0));
}

/* Says what listens, if anything does: what looks for the app knocks on the wrong door. */
static void point_elsewhere(
	const struct sandbox_record *record, uint16_t wanted, struct finding *finding)
{
	auto_free char *numbers = json_dumps(finding->page.listening, 0);
	size_t len = strlen(finding->message);

	if (json_array_size(finding->page.listening) == 0)
		return;
	/* Without the brackets. */
	snprintf(finding->message + len, TEXT_MAX - len, "%s The sandbox listens on %.*s.",
		finding->message[len - 1] == '.' ? "" : ".", (int)strlen(numbers) - 2, numbers + 1);
	advise(finding,
		"Have it listen on port %u, or open the one that it uses: sandlot open %s %d",
		wanted, record->id, choose(record, finding->page.listening));
}

/* --- the answer --- */

static void await_app(struct finding *finding)
{
	finding->page = (struct preview_page){.status = 503,
		.code = "app_starting",
		.title = "Waiting for the app",
		.message = finding->message,
		.reloads = true};
	snprintf(finding->message, TEXT_MAX,
		"The sandbox runs; nothing answers on this port yet. This page reloads by itself.");
}

void preview_app_miss(struct sandbox *sandbox, const struct sandbox_record *record,
	const struct proxy_visit *visit, const struct err *why, struct proxy_way *way)
{
	struct app app = find_app(sandbox, record);
	/* One that is stopped in a sandbox that runs is about to be started. */
	bool runs = !app.name || app.state.status == STARTER_RUNNING ||
		    app.state.status == STARTER_STOPPED;
	int64_t since_ms = app.state.tried_at_ms ? app.state.tried_at_ms : record->started_at_ms;
	bool is_busy = strcmp(why->code, "port_busy") == 0;
	bool is_starting = !is_busy && runs && clock_wall_ms() - since_ms < YOUNG_MS;
	struct buf tail = BUF_INIT(2 * TAIL_MAX);
	json_auto_t *ports = NULL;
	struct finding finding;

	if (visit->waited_ms < HOLD_MS && (is_busy || (is_starting && !visit->is_page))) {
		way->kind = PROXY_LATER;
		return;
	}
	if (is_starting && visit->is_page)
		await_app(&finding);
	else
		judge(record->id, &app, why, way->is_for_all, &finding);
	/* What is inside is for those who were let in. */
	if (!way->is_for_all) {
		read_tail(sandbox, app.state.process, &tail);
		if (runs && !is_busy)
			finding.page.listening = ports = list_ports(sandbox);
	}
	point_elsewhere(record, way->port, &finding);
	finding.page.output = tail.len > 1 ? (const char *)tail.data : NULL;
	preview_page_put(&finding.page, visit->is_page, way);
	buf_fini(&tail);
}
