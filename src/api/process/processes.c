/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a sandbox. Looking at them wakes nothing: one that is stopped has a past, which is
 * read from the database.
 */
#include "api/handlers.h"
#include "api/list_page.h"
#include "api/process/output_document.h"
#include "api/process/output_events.h"
#include "api/process/process_body.h"
#include "api/text.h"
#include "base/log.h"
#include "base/number.h"
#include "core/process/process_table.h"
#include "core/process/start_command.h"
#include "event/timer.h"

#include <signal.h>
#include <stdatomic.h>

#define LIST_LIMIT_MAX	   1000
#define LIST_LIMIT_DEFAULT 100
#define INPUT_MAX	   (1 << 20)
#define WAIT_MAX_MS	   (7ull * 86400 * 1000)
#define DIMENSION_MAX	   1000
#define KILL_PATIENCE_MS   5000

/* --- finding --- */

static void release_process(void *process)
{
	process_unref(process);
}

/* The process that the path names, kept until the request is over; NULL if nothing of it runs. */
static int find(struct request *req, struct api *api, struct sandbox **ret_sandbox,
	struct process **ret_process, struct process_record *ret_record, struct err *err)
{
	int r = api_sandbox(req, api, ret_sandbox, err);

	if (r < 0 || (r = process_table_find(*ret_sandbox, request_param(req, "process"),
			      ret_process, ret_record, err)) < 0)
		return r;
	if (*ret_process)
		request_keep(req, *ret_process, release_process);
	return 0;
}

/* One that must run still. */
static int find_running(
	struct request *req, struct api *api, struct process **ret_process, struct err *err)
{
	struct process_record record;
	struct sandbox *sandbox;
	int r = find(req, api, &sandbox, ret_process, &record, err);

	if (r < 0)
		return r;
	if (!*ret_process)
		r = process_has_ended(record.number, err);
	process_record_fini(&record);
	return r;
}

static void answer_record(struct request *req, const struct process_record *record)
{
	request_answer_json(req, 200,
		json_pack("{s:o}", "process", process_body_encode(request_context(req), record)));
}

/* --- looking --- */

struct listing {
	const struct api *api;
	struct list_page page;
	const char *status;
	uint32_t last;
};

static bool list_one(const struct process_record *record, void *arg)
{
	struct listing *listing = arg;
	const char *status = record->ended_at_ms > 0 ? "exited" : "running";

	if (listing->status && strcmp(listing->status, status) != 0)
		return true;
	if (!list_page_add(&listing->page, process_body_encode_short(listing->api, record)))
		return false;
	listing->last = record->number;
	return true;
}

HANDLER(processes_list)
{
	struct listing listing = {.api = context, .status = request_query(req, "status")};
	struct sandbox *sandbox;
	uint64_t limit, after;
	int r;

	if ((r = api_sandbox(req, context, &sandbox, err)) < 0 ||
		(r = api_query_number(
			 req, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err)) < 0 ||
		(r = api_query_number(req, "cursor", 1, UINT32_MAX, 0, &after, err)) < 0)
		return r;
	if (listing.status && strcmp(listing.status, "running") != 0 &&
		strcmp(listing.status, "exited") != 0)
		return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
			"parameter status must be running or exited");
	list_page_init(&listing.page, limit);
	r = process_table_list(sandbox, (uint32_t)after, list_one, &listing, err);
	if (r == 0)
		list_page_answer(&listing.page, req, "processes",
			json_sprintf("%llu", (unsigned long long)listing.last));
	list_page_fini(&listing.page);
	return r;
}

HANDLER(processes_get)
{
	struct process_record record;
	struct sandbox *sandbox;
	struct process *process;
	int r = find(req, context, &sandbox, &process, &record, err);

	if (r < 0)
		return r;
	answer_record(req, &record);
	process_record_fini(&record);
	return 0;
}

/* --- waiting for the end --- */

/* A held request; referenced by it, by its watch of the process, and by its alarm. */
struct end_wait {
	atomic_int refs;
	struct request *_Atomic req; /* whoever takes it answers */
	struct process *process;
	struct timer *_Atomic alarm;
	bool is_kill; /* answers with nothing */
};

static void end_wait_unref(void *arg)
{
	struct end_wait *wait = arg;

	if (atomic_fetch_sub(&wait->refs, 1) > 1)
		return;
	process_unref(wait->process);
	free(wait);
}

static void end_wait_finish(struct end_wait *wait)
{
	struct request *req = atomic_exchange(&wait->req, NULL);
	struct process_record record;

	if (!req)
		return;
	process_unwatch(wait->process, wait);
	timer_close(atomic_exchange(&wait->alarm, NULL));
	if (wait->is_kill) {
		request_answer_empty(req, 204);
	} else {
		process_read(wait->process, &record);
		answer_record(req, &record);
		process_record_fini(&record);
	}
	request_release(req);
}

static void end_wait_ended(void *arg, const struct process_end *end)
{
	(void)end;
	end_wait_finish(arg);
}

/* A kill is done when nobody that it started is left either. */
static void kill_ended(void *arg, const struct process_end *end)
{
	struct end_wait *wait = arg;
	struct process_record record;
	bool is_over;

	(void)end;
	process_read(wait->process, &record);
	is_over = record.survivors == 0;
	process_record_fini(&record);
	if (is_over)
		end_wait_finish(wait);
}

static void end_wait_over(void *arg)
{
	end_wait_finish(arg);
}

static const struct process_events end_wait_events = {
	.ended = end_wait_ended, .release = end_wait_unref};
static const struct process_events main_kill_events = {
	.ended = end_wait_ended, .release = end_wait_unref};
static const struct process_events kill_events = {
	.ended = kill_ended, .deserted = end_wait_over, .release = end_wait_unref};

/* Holds the request until the process has ended, or the time is over (0: never). */
static void keep_vigil(struct request *req, struct api *api, struct process *process,
	uint64_t timeout_ms, const struct process_events *events)
{
	struct end_wait *wait = mem_new(sizeof(*wait));
	struct timer *alarm;

	wait->refs = 3; /* this function's, the request's, the watch's */
	wait->req = req;
	wait->process = process_ref(process);
	wait->is_kill = events != &end_wait_events;
	request_keep(req, wait, end_wait_unref);
	/* A wait may be asked for again; a kill that was begun is waited for. */
	if (wait->is_kill)
		request_hold(req, end_wait_over, wait);
	else
		request_hold_until_close(req, end_wait_over, wait);
	if (timeout_ms > 0) {
		atomic_fetch_add(&wait->refs, 1);
		alarm = engine_open_timer(api->engine, end_wait_over, end_wait_unref, wait);
		timer_set(alarm, timeout_ms);
		atomic_store(&wait->alarm, alarm);
	}
	if (!process_watch(process, events, wait)) {
		end_wait_unref(wait);
		end_wait_finish(wait);
	}
	if (!atomic_load(&wait->req)) { /* it was over before all of this was there */
		process_unwatch(process, wait);
		timer_close(atomic_exchange(&wait->alarm, NULL));
	}
	end_wait_unref(wait);
}

HANDLER(processes_wait)
{
	struct process_record record;
	struct sandbox *sandbox;
	struct process *process;
	uint64_t timeout_ms;
	int r = api_query_number(req, "timeout_ms", 1, WAIT_MAX_MS, 0, &timeout_ms, err);

	if (r < 0)
		return r;
	r = find(req, context, &sandbox, &process, &record, err);
	if (r < 0)
		return r;
	if (process && record.ended_at_ms == 0)
		keep_vigil(req, context, process, timeout_ms, &end_wait_events);
	else
		answer_record(req, &record);
	process_record_fini(&record);
	return r;
}

HANDLER(processes_kill)
{
	const char *tree = request_query(req, "kill_tree");
	struct process_record record;
	struct sandbox *sandbox;
	struct process *process;
	bool whole_tree = true;
	int r = tree ? api_query_boolean(req, "kill_tree", &whole_tree, err) : 0;

	if (r < 0)
		return r;
	r = find(req, context, &sandbox, &process, &record, err);
	if (r < 0)
		return r;
	if (process)
		process_kill(process, whole_tree);
	start_command_cease(sandbox, record.number);
	/* Its main process alone, or also those who outlived it. */
	if (process && (record.ended_at_ms == 0 || whole_tree))
		keep_vigil(req, context, process, KILL_PATIENCE_MS,
			whole_tree ? &kill_events : &main_kill_events);
	else
		request_answer_empty(req, 204);
	process_record_fini(&record);
	return r;
}

/* --- output --- */

/* The log of one that runs, or of one that ended; NULL if none was kept. Counted. */
static int open_log(struct sandbox *sandbox, struct process *process,
	const struct process_record *record, struct output_log **ret_log, struct err *err)
{
	struct output_log *log = process ? process_log(process) : NULL;

	if (log)
		*ret_log = output_log_ref(log);
	else if (!process)
		return process_table_open_log(sandbox, record->number, ret_log, err);
	return 0;
}

static int check_from(
	uint64_t from, const struct process_record *record, struct output_log *log, struct err *err)
{
	uint64_t end = log ? output_log_end(log) : 0;

	if (from <= end || (record->ended_at_ms > 0 && from == end + 1))
		return 0;
	return err_explain(err, ERR_INVALID, "invalid_parameter", NULL,
		"from or Last-Event-ID is beyond the output: %llu of %llu",
		(unsigned long long)from, (unsigned long long)end);
}

static int answer_output(
	struct request *req, const struct output_events_spec *spec, struct err *err)
{
	struct output_events *feed;
	int r = check_from(spec->from, spec->record, spec->log, err);

	if (r < 0)
		return r;
	if (output_document_is_wanted(req)) {
		output_document_answer(req, spec);
		return 0;
	}
	/* It has got the exit: there is nothing to come back for. */
	if (spec->from > (spec->log ? output_log_end(spec->log) : 0)) {
		request_answer_empty(req, 204);
		return 0;
	}
	feed = output_events_new(spec);
	output_events_watch(feed);
	output_events_answer(feed, req);
	output_events_unref(feed);
	return 0;
}

HANDLER(processes_output)
{
	struct output_events_spec spec = {.api = context, .follows = true};
	struct output_log *log = NULL;
	struct process_record record;
	bool given;
	int r = api_query_from(req, &spec.from, &given, err);

	if (r == 0 && request_query(req, "follow"))
		r = api_query_boolean(req, "follow", &spec.follows, err);
	if (r < 0)
		return r;
	r = find(req, context, &spec.sandbox, &spec.process, &record, err);
	if (r < 0)
		return r;
	spec.record = &record;
	spec.has_start = !given;
	r = open_log(spec.sandbox, spec.process, &record, &log, err);
	spec.log = log;
	if (r == 0)
		r = answer_output(req, &spec, err);
	output_log_unref(log);
	process_record_fini(&record);
	return r;
}

/* --- acting --- */

struct stdin_body {
	const char *data, *data_base64;
	enum field_boolean close;
};

static const struct field stdin_rows[] = {
	{"data", FIELD_STRING, offsetof(struct stdin_body, data), 0, INPUT_MAX, 0, "Text."},
	{"data_base64", FIELD_STRING, offsetof(struct stdin_body, data_base64), 0, INPUT_MAX, 0,
		"Bytes. Either this or data."},
	{"close", FIELD_BOOLEAN, offsetof(struct stdin_body, close), 0, 0, 0,
		"Whether that was all: the command then reads the end of the file."},
};

const struct fields processes_stdin_fields = FIELDS(stdin_rows);

/* The bytes that a body brings: text, or decoded; NULL for none. */
static int read_input(const struct stdin_body *body, uint8_t **decoded, const void **ret_data,
	size_t *ret_len, struct err *err)
{
	ssize_t len = body->data ? (ssize_t)strlen(body->data) : 0;

	if (body->data_base64)
		len = text_decode_base64(body->data_base64, decoded);
	if (len < 0 || (body->data && body->data_base64))
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"field data_base64 must be base64, without data beside it");
	if (!body->data && !body->data_base64 && body->close != FIELD_TRUE)
		return err_explain(err, ERR_INVALID, "invalid_field", NULL,
			"one of the fields data, data_base64 and close must be given");
	*ret_data = *decoded ? (const void *)*decoded : body->data;
	*ret_len = (size_t)len;
	return 0;
}

HANDLER(processes_stdin)
{
	struct stdin_body body = {0};
	auto_free uint8_t *decoded = NULL;
	struct process *process;
	const void *data;
	size_t len;
	int r;

	fields_clear(&processes_stdin_fields, &body);
	if ((r = find_running(req, context, &process, err)) < 0 ||
		(r = fields_decode(&processes_stdin_fields, request_body(req), &body, err)) < 0 ||
		(r = read_input(&body, &decoded, &data, &len, err)) < 0)
		return r;
	r = process_write(process, data, len, body.close == FIELD_TRUE, NULL, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

struct signal_body {
	const json_t *signal;
	enum field_boolean kill_tree;
};

static const char *check_signal(const json_t *value)
{
	return api_signal_parse(value) > 0 ? NULL : "must be a signal: SIGINT, INT or 2";
}

static const struct field signal_rows[] = {
	{"signal", FIELD_NAME_OR_NUMBER, offsetof(struct signal_body, signal), 1, 64,
		FIELD_REQUIRED, "A signal by its name (SIGINT or INT) or number.",
		.check = check_signal},
	{"kill_tree", FIELD_BOOLEAN, offsetof(struct signal_body, kill_tree), 0, 0, 0,
		"Whether all that the process started gets it too; true for SIGKILL if left out, "
		"else false."},
};

const struct fields processes_signal_fields = FIELDS(signal_rows);

HANDLER(processes_signal)
{
	struct signal_body body = {0};
	struct process *process;
	int signal_number, r;
	bool whole_tree;

	fields_clear(&processes_signal_fields, &body);
	if ((r = find_running(req, context, &process, err)) < 0 ||
		(r = fields_decode(&processes_signal_fields, request_body(req), &body, err)) < 0)
		return r;
	signal_number = api_signal_parse(body.signal);
	whole_tree = body.kill_tree == FIELD_UNSET ? signal_number == SIGKILL
						   : body.kill_tree == FIELD_TRUE;
	r = process_signal(process, signal_number, whole_tree, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}

struct resize_body {
	int64_t columns, rows;
};

static const struct field resize_rows[] = {
	{"cols", FIELD_INTEGER, offsetof(struct resize_body, columns), 1, DIMENSION_MAX,
		FIELD_REQUIRED, "Width in characters."},
	{"rows", FIELD_INTEGER, offsetof(struct resize_body, rows), 1, DIMENSION_MAX,
		FIELD_REQUIRED, "Height in lines."},
};

const struct fields processes_resize_fields = FIELDS(resize_rows);

HANDLER(processes_resize)
{
	struct resize_body body = {0};
	struct process *process;
	int r;

	fields_clear(&processes_resize_fields, &body);
	r = find_running(req, context, &process, err);
	if (r == 0)
		r = fields_decode(&processes_resize_fields, request_body(req), &body, err);
	if (r == 0)
		r = process_resize(process, (uint16_t)body.columns, (uint16_t)body.rows, err);
	if (r == 0)
		request_answer_empty(req, 204);
	return r;
}
