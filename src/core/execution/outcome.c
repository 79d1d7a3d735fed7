/* SPDX-License-Identifier: Apache-2.0 */
#include "core/execution/outcome.h"

#include "base/format.h"
#include "core/execution/result_reader.h"
#include "core/output/output_cursor.h"

#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Each text of an error: a runner sends 64 Ki letters at most, but they may take four bytes each. */
#define ERROR_TEXT_MAX (256u << 10)
#define FRAME_MAX      (64u << 10) /* of a line beside the result in it */
#define PIECE_MAX      (64u << 10)
#define NOT_FOUND      127 /* the exit code of a shell that does not find a program */

/* What the log says. */
struct gathered {
	struct buf streams[2]; /* stdout, stderr */
	struct buf plain;      /* the result of a language without frames */
	bool is_plain_cut;     /* it has no room for all of it */
	struct result_reader reader;
	bool has_begun;
	bool has_handler; /* it calls a handler, says the runner */
	bool is_done;
	json_t *result, *error; /* NULL: there was none */
	json_t *results;	/* what was shown */
	size_t results_bytes;
	json_t *truncated; /* names of parts */
};

static void note_cut(struct gathered *gathered, const char *part)
{
	size_t i;
	json_t *name;

	json_array_foreach(gathered->truncated, i, name)
	{
		if (strcmp(json_string_value(name), part) == 0)
			return;
	}
	json_array_append_new(gathered->truncated, json_string(part));
}

/* --- frames --- */

/* A text of an error, bounded and always there. */
static json_t *error_text(struct gathered *gathered, const json_t *error, const char *name)
{
	const json_t *text = json_object_get(error, name);
	size_t len = json_string_length(text);

	if (!json_is_string(text))
		return json_string("");
	if (len > ERROR_TEXT_MAX) {
		note_cut(gathered, "error");
		len = ERROR_TEXT_MAX;
		len -= format_unfinished((const uint8_t *)json_string_value(text), len);
	}
	return json_stringn_nocheck(json_string_value(text), len);
}

static json_t *make_error(json_t *type, json_t *message, json_t *traceback)
{
	return json_pack(
		"{s:o, s:o, s:o}", "type", type, "message", message, "traceback", traceback);
}

static void take_display(struct gathered *gathered, json_t *value, size_t size)
{
	if (!json_is_object(value))
		return;
	if (size > OUTCOME_DISPLAY_MAX || gathered->results_bytes + size > OUTCOME_DISPLAYS_MAX) {
		note_cut(gathered, "results");
		return;
	}
	gathered->results_bytes += size;
	json_array_append(gathered->results, value);
}

/* The runner left out something of a part. */
static void take_cut(struct gathered *gathered, const char *part)
{
	static const char *const parts[] = {"result", "results", "error"};

	for (size_t i = 0; part && i < array_len(parts); i++) {
		if (strcmp(part, parts[i]) == 0)
			note_cut(gathered, part);
	}
}

/* The first of each kind counts. Numbers may be longer when they are written anew, so the line itself is measured. */
static void take_frame(void *arg, const char *kind, json_t *value, size_t len)
{
	struct gathered *gathered = arg;

	if (strcmp(kind, "begin") == 0) {
		gathered->has_handler |= json_is_string(value);
	} else if (strcmp(kind, "display") == 0) {
		take_display(gathered, value, len);
	} else if (strcmp(kind, "cut") == 0) {
		take_cut(gathered, json_string_value(value));
	} else if (strcmp(kind, "result") == 0 && !gathered->result) {
		if (len <= OUTCOME_RESULT_MAX + FRAME_MAX)
			gathered->result = json_incref(value);
		else
			note_cut(gathered, "result");
	} else if (strcmp(kind, "error") == 0 && !gathered->error) {
		gathered->error = make_error(error_text(gathered, value, "type"),
			error_text(gathered, value, "message"),
			error_text(gathered, value, "traceback"));
	} else if (strcmp(kind, "done") == 0) {
		gathered->is_done = true;
	}
}

/* --- the log --- */

static void add_stream(struct gathered *gathered, int at, const uint8_t *data, size_t len)
{
	static const char *const names[] = {"stdout", "stderr"};
	struct buf *stream = &gathered->streams[at];
	size_t room = stream->max - stream->len;

	if (len > room)
		note_cut(gathered, names[at]);
	buf_append(stream, data, len < room ? len : room);
}

static void add_plain(struct gathered *gathered, const uint8_t *data, size_t len)
{
	/* The runner's own newline says that the code begins. */
	if (!gathered->has_begun && len > 0) {
		gathered->has_begun = true;
		data++;
		len--;
	}
	gathered->is_plain_cut |= buf_append(&gathered->plain, data, len) < 0;
}

static void add_piece(struct gathered *gathered, const struct language *language,
	const struct output_piece *piece, const uint8_t *data)
{
	size_t len = (size_t)(piece->next - piece->offset);

	switch (piece->kind) {
	case OUTPUT_STDOUT:
	case OUTPUT_STDERR:
		add_stream(gathered, piece->kind == OUTPUT_STDERR, data, len);
		break;
	case OUTPUT_RESULT:
		if (language->is_plain)
			add_plain(gathered, data, len);
		else
			result_reader_put(&gathered->reader, data, len);
		break;
	case OUTPUT_CUT:
		note_cut(gathered, "stdout");
		result_reader_cut(&gathered->reader);
		break;
	case OUTPUT_NONE:
		break;
	}
}

static void read_log(struct gathered *gathered, const struct outcome_input *input)
{
	struct output_cursor *cursor = output_cursor_new(input->log, input->from);
	auto_free uint8_t *data = mem_new(PIECE_MAX);
	uint64_t at = input->from;

	while (at < input->to) {
		struct output_piece piece;
		size_t most = input->to - at < PIECE_MAX ? (size_t)(input->to - at) : PIECE_MAX;

		output_cursor_read(cursor, data, most, &piece);
		if (piece.kind == OUTPUT_NONE)
			break;
		add_piece(gathered, input->language, &piece, data);
		at = piece.next;
	}
	output_cursor_free(cursor);
}

/* --- the document --- */

static char *base64_new(const struct buf *data)
{
	char *encoded = mem_new((data->len + 2) / 3 * 4 + 1);

	EVP_EncodeBlock((unsigned char *)encoded, data->data, (int)data->len);
	return encoded;
}

/* Text if it is UTF-8, else base64 under another name. */
static void set_stream(json_t *outcome, const char *name, struct buf *stream, bool is_cut)
{
	size_t len = stream->len - (is_cut ? format_unfinished(stream->data, stream->len) : 0);
	json_t *text = json_stringn(len ? (const char *)stream->data : "", len);
	auto_free char *encoded = NULL;
	char key[32];

	if (text) {
		json_object_set_new(outcome, name, text);
		return;
	}
	encoded = base64_new(stream);
	snprintf(key, sizeof(key), "%s_base64", name);
	json_object_set_new(outcome, key, json_string(encoded));
}

/* What a language without frames wrote as its result: JSON, or else text, or else bytes, as base64 as all bytes are. */
static json_t *read_plain(struct buf *plain)
{
	json_t *value = json_loadb((const char *)plain->data, plain->len,
		JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	auto_free char *encoded = NULL;
	size_t text_len = plain->len;

	if (value || plain->len == 0)
		return value;
	while (text_len > 0 && plain->data[text_len - 1] == '\n')
		text_len--;
	value = json_stringn((const char *)plain->data, text_len);
	if (value)
		return value;
	encoded = base64_new(plain);
	return json_string(encoded);
}

static double milliseconds(uint64_t from_us, uint64_t to_us)
{
	return from_us && to_us > from_us ? (double)(to_us - from_us) / 1000 : 0;
}

static json_t *make_metrics(const struct outcome_input *input)
{
	const struct outcome_times *times = &input->times;
	uint64_t begun_us = times->begun_us ? times->begun_us : times->ended_us;
	const struct termination *how = &input->end->how;

	json_t *metrics = json_pack("{s:f, s:f, s:f, s:f, s:I}", "queued_ms",
		milliseconds(times->asked_us, times->sent_us), "start_ms",
		milliseconds(times->sent_us, begun_us), "run_ms",
		times->sent_us ? milliseconds(begun_us, times->ended_us)
			       : (double)input->end->duration_us / 1000,
		"cpu_ms", (double)how->cpu_us / 1000, "peak_memory_bytes",
		(json_int_t)how->peak_memory_bytes);

	if (input->start)
		json_object_set_new(metrics, "start", json_string(input->start));
	return metrics;
}

/* --- how it ended --- */

/* An interpreter that bounds itself, as node does, ends itself with last words on standard error. */
static bool says_out_of_memory(const struct language *language, const struct buf *said)
{
	return language->last_words && said->len > 0 &&
	       memmem(said->data, said->len, language->last_words, strlen(language->last_words));
}

/* Why it failed without an error of its own, in words; text has room for them. */
static const char *explain(
	const struct outcome_input *input, const struct gathered *gathered, char *text, size_t size)
{
	const struct process_end *end = input->end;
	const char *signal_name = end->how.signal ? sigabbrev_np(end->how.signal) : NULL;

	switch (end->how.reason) {
	case END_OOM:
		snprintf(text, size, "the sandbox ran out of memory");
		return "OutOfMemory";
	case END_PIDS_LIMIT:
		snprintf(text, size, "the sandbox has as many processes as it may have");
		return "TooManyProcesses";
	case END_DISK_FULL:
		snprintf(text, size, "the disk of the sandbox is full");
		return "DiskFull";
	default:
		break;
	}
	/* A runner that finds no interpreter leaves before the code begins. */
	if (input->language->is_plain && !gathered->has_begun && end->exit_code == NOT_FOUND) {
		snprintf(text, size, "the sandbox has nothing to run %s with",
			input->language->name);
		return "LanguageMissing";
	}
	if (end->outcome == PROCESS_BAD_CWD) {
		const char *cwd = json_string_value(json_object_get(input->record->request, "cwd"));

		snprintf(text, size, "the directory %s cannot be entered: %s",
			cwd ? cwd : "that it was to run in", strerror(end->errnum));
		return "DirectoryMissing";
	}
	if (end->outcome == PROCESS_REFUSED) {
		snprintf(text, size, "the sandbox has no room for another process: %s",
			strerror(end->errnum));
		return "TooManyProcesses";
	}
	if (end->outcome == PROCESS_NOT_RUN) {
		snprintf(text, size, "the sandbox has no %s to run %s with: %s",
			input->language->program[0], input->language->name, strerror(end->errnum));
		return "LanguageMissing";
	}
	if (gathered->is_plain_cut) {
		snprintf(text, size, "the result is larger than %u bytes", OUTCOME_RESULT_MAX);
		return "TooLarge";
	}
	if (signal_name && says_out_of_memory(input->language, &gathered->streams[1])) {
		snprintf(text, size, "the interpreter used all memory that it takes for itself");
		return "OutOfMemory";
	}
	if (gathered->is_done && !signal_name) {
		snprintf(text, size,
			"the result of the handler could not be read: what was sent as one is no "
			"JSON of up to 1 MiB");
		return "BadResult";
	}
	if (signal_name)
		snprintf(text, size, "the process was ended by SIG%s", signal_name);
	else if (input->record->context_id[0])
		snprintf(text, size, "the interpreter ended with exit code %d before the code did",
			end->exit_code);
	else if (end->exit_code == 0)
		snprintf(text, size, "the process ended before the handler gave a result");
	else
		snprintf(text, size, "the process ended with exit code %d", end->exit_code);
	return signal_name ? "Signal" : "Exit";
}

static enum execution_status judge(const struct outcome_input *input, struct gathered *gathered)
{
	const struct process_end *end = input->end;
	bool must_return = gathered->has_handler || input->record->has_handler;
	/* A context goes on after its code: one that did not has ended too soon. */
	bool may_leave = !must_return && !input->record->context_id[0];
	bool is_quiet = input->language->is_plain || !must_return;

	if (input->failure || end->how.reason == END_AGENT_LOST)
		return EXECUTION_LOST;
	if (end->how.reason == END_TIMEOUT)
		return EXECUTION_TIMEOUT;
	if (end->how.reason == END_KILLED)
		return EXECUTION_CANCELLED;
	if (end->how.reason == END_IDLE || end->how.reason == END_LIFETIME ||
		end->how.reason == END_MEMORY_PRESSURE || end->how.reason == END_OPERATOR)
		return EXECUTION_LOST;
	if (gathered->error || gathered->is_plain_cut)
		return EXECUTION_FAILED;
	/* Its last line was run, but not its threads and what it does at its exit. */
	if (end->how.signal && may_leave && !input->record->is_fresh)
		return EXECUTION_FAILED;
	/* A handler must come back, with something; a script may end as it likes. */
	if (gathered->is_done && !is_quiet && !gathered->result)
		return EXECUTION_FAILED;
	if (gathered->is_done || ((input->language->is_plain || may_leave) &&
					 end->how.reason == END_EXITED && end->exit_code == 0))
		return EXECUTION_SUCCEEDED;
	return EXECUTION_FAILED;
}

/* The error of one that has none of its own. */
static json_t *invent_error(const struct outcome_input *input, const struct gathered *gathered,
	enum execution_status status)
{
	char text[256];
	const char *type;

	switch (status) {
	case EXECUTION_SUCCEEDED:
		return json_null();
	case EXECUTION_TIMEOUT:
		snprintf(text, sizeof(text), "it ran for longer than its timeout of %llu ms",
			(unsigned long long)input->record->timeout_ms);
		type = "Timeout";
		break;
	case EXECUTION_CANCELLED:
		snprintf(text, sizeof(text), "it was cancelled");
		type = "Cancelled";
		break;
	case EXECUTION_LOST:
		snprintf(text, sizeof(text), "%s",
			input->failure		    ? input->failure
			: input->end->how.detail[0] ? input->end->how.detail
						    : "its sandbox ended before it did");
		type = "Lost";
		break;
	default:
		type = explain(input, gathered, text, sizeof(text));
	}
	return make_error(json_string(type), json_string(text), json_string(""));
}

static json_t *take_or_null(json_t **value)
{
	json_t *taken = take_ptr(value);

	return taken ? taken : json_null();
}

json_t *outcome_make(struct outcome_input *input, enum execution_status *ret_status)
{
	struct gathered gathered = {
		.streams = {BUF_INIT(OUTCOME_STREAM_MAX), BUF_INIT(OUTCOME_STREAM_MAX)},
		.plain = BUF_INIT(OUTCOME_RESULT_MAX),
		.results = json_array(),
		.truncated = json_array()};
	enum execution_status status;
	json_t *outcome;

	result_reader_init(&gathered.reader, take_frame, &gathered);
	if (input->record->context_id[0])
		gathered.reader.marker = input->record->id;
	if (input->log)
		read_log(&gathered, input);
	if (input->language->is_plain)
		gathered.result = read_plain(&gathered.plain);
	if (gathered.reader.bad > 0)
		note_cut(&gathered, "results");
	if (input->is_artifacts_cut)
		note_cut(&gathered, "artifacts");
	status = judge(input, &gathered);
	if (!gathered.error || status == EXECUTION_LOST || status == EXECUTION_TIMEOUT) {
		json_decref(gathered.error);
		gathered.error = invent_error(input, &gathered, status);
	}
	if (status != EXECUTION_SUCCEEDED)
		json_decref(take_ptr(&gathered.result));
	outcome = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "result",
		take_or_null(&gathered.result), "results", gathered.results, "error",
		gathered.error, "exit_code",
		input->failure ? json_null() : json_integer(input->end->exit_code), "artifacts",
		take_ptr(&input->artifacts), "metrics", make_metrics(input), "termination",
		termination_to_json(&input->end->how), "truncated",
		json_incref(gathered.truncated));
	if (input->state != OUTCOME_STATELESS)
		json_object_set_new(outcome, "state",
			json_string(input->state == OUTCOME_KEPT ? "kept" : "lost"));
	set_stream(outcome, "stdout", &gathered.streams[0], json_array_size(gathered.truncated));
	set_stream(outcome, "stderr", &gathered.streams[1], json_array_size(gathered.truncated));
	json_decref(gathered.truncated);
	result_reader_fini(&gathered.reader);
	buf_fini(&gathered.streams[0]);
	buf_fini(&gathered.streams[1]);
	buf_fini(&gathered.plain);
	*ret_status = status;
	return outcome;
}
